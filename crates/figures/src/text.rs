//! The text that Prometheus reads (version 0.0.4), for figures that are found out when somebody asks and are not counted.

use std::fmt::{Display, Write as _};

use crate::table::Figure;

/// Text as it grows.
#[derive(Debug, Default)]
pub struct Sheet(String);

impl Sheet {
    /// Begins with a figure. Its values follow.
    pub fn head(&mut self, figure: &Figure) {
        let Figure { name, kind, help, .. } = figure;
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {}", kind.as_str());
    }

    /// A value of a figure, for what its labels are.
    pub fn value(&mut self, figure: &Figure, labels: &[&str], value: impl Display) {
        self.0.push_str(figure.name);
        for (place, (name, label)) in figure.labels.iter().zip(labels).enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let label = label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let _ = write!(self.0, "{before}{name}=\"{label}\"");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{after} {value}");
    }

    /// A figure that has one value.
    pub fn only(&mut self, figure: &Figure, value: impl Display) {
        self.head(figure);
        self.value(figure, &[], value);
    }

    /// Text of others below it.
    pub fn push(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// All of it.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// The library speaks OpenMetrics, where the head of a counter is without the `_total` of its values. In this version of the text the
/// head has the name of the values, or they have no kind and no meaning.
pub(crate) fn with_whole_heads(text: &str) -> String {
    let mut whole = String::with_capacity(text.len() + text.len() / 64);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let counter = lines.peek().copied().and_then(counter);
        if let (Some(help), Some(name)) = (line.strip_prefix("# HELP "), counter) {
            let help = help.strip_prefix(name).unwrap_or_default();
            let _ = writeln!(whole, "# HELP {name}_total{help}\n# TYPE {name}_total counter");
            lines.next();
        } else {
            let _ = writeln!(whole, "{line}");
        }
    }
    whole
}

/// The name of a counter, if a line says that it is one.
fn counter(line: &str) -> Option<&str> {
    line.strip_prefix("# TYPE ")?.strip_suffix(" counter")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{BUILD, QUEUE_DEPTH};

    #[test]
    fn what_stands_in_a_label_cannot_break_a_line() {
        let mut sheet = Sheet::default();
        sheet.head(&QUEUE_DEPTH);
        sheet.value(&QUEUE_DEPTH, &["a\"b\\c\nd"], 3);
        sheet.value(&BUILD, &["1", "x"], 1);
        let text = sheet.into_text();
        let values: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            values,
            [r#"pyoco_queue_depth{tag="a\"b\\c\nd"} 3"#, r#"pyoco_build_info{version="1",store="x"} 1"#]
        );
    }

    #[test]
    fn the_head_of_a_counter_has_the_name_of_its_values() {
        let text =
            "# HELP a_b It.\n# TYPE a_b counter\na_b_total 1\n# HELP c More a_b.\n# TYPE c gauge\nc 2\n";
        let whole = "# HELP a_b_total It.\n# TYPE a_b_total counter\na_b_total 1\n# HELP c More a_b.\n# TYPE c gauge\nc 2\n";
        assert_eq!(with_whole_heads(text), whole);
    }
}
