//! A curve as a table: a row for each size, a column for each cost.

use std::fmt::Write as _;

use crate::figures::thousands;
use crate::progress;
use crate::stats::Figure;
use crate::table;

/// What is made larger, and what it was seen to cost.
#[derive(Debug)]
pub(crate) struct Curve {
    pub(crate) title: &'static str,
    /// What the sizes are sizes of.
    pub(crate) of: &'static str,
    pub(crate) columns: &'static [&'static str],
    /// Smallest first.
    pub(crate) sizes: Vec<usize>,
    rows: Vec<(usize, Vec<String>)>,
    /// Why there are no more rows.
    pub(crate) problem: Option<String>,
}

impl Curve {
    pub(crate) fn new(
        title: &'static str,
        of: &'static str,
        columns: &'static [&'static str],
        sizes: &[usize],
    ) -> Self {
        Self { title, of, columns, sizes: sizes.to_vec(), rows: Vec::new(), problem: None }
    }

    /// Keeps what a size costs, and tells whoever waits.
    pub(crate) fn keep(&mut self, size: usize, cells: Vec<String>) {
        progress(self.title, &format!("{} {}: {}", thousands(size), self.of, cells.join(", ")));
        self.rows.push((size, cells));
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{}\n\n| {} | {} |\n", self.title, self.of, self.columns.join(" | "));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "|---{}|", "|---".repeat(self.columns.len()));
        for (size, cells) in &self.rows {
            let _ = writeln!(text, "| {} | {} |", thousands(*size), cells.join(" | "));
        }
        if let Some(problem) = &self.problem {
            let _ = write!(text, "\nFailed: {problem}\n");
        }
        text
    }
}

/// A number, or that there is none.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), table::number)
}

/// The median, and p99 in parentheses.
pub(crate) fn both(figure: Option<&Figure>) -> String {
    figure.map_or_else(|| "–".to_owned(), table::value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_table_with_a_row_for_each_size_and_says_why_it_ends() {
        let mut curve = Curve::new("Runs", "stored", &["POST, /s", "GET, ms"], &[1_000]);
        curve.keep(1_000, vec![cell(Some(250.0)), cell(None)]);
        curve.problem = Some("the disk is full".to_owned());
        let wanted = "Runs\n\n| stored | POST, /s | GET, ms |\n|---|---|---|\n| 1,000 | 250 | – |\n\nFailed: the disk is full\n";
        assert_eq!(curve.markdown(), wanted);
    }
}
