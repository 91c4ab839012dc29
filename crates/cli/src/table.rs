//! Tables for people: columns padded, two blanks between.

/// The lines of a table, or `(no items)`.
pub fn lines<const N: usize>(headers: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["(no items)".to_owned()];
    }
    let headers = headers.map(str::to_owned);
    let mut widths = [0_usize; N];
    for row in std::iter::once(&headers).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let pad = |row: &[String; N]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ")
    };
    std::iter::once(&headers).chain(rows).map(pad).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a".to_owned(), "long cell".to_owned()], ["bcdefg".to_owned(), "é".to_owned()]];
        assert_eq!(
            lines(["name", "x"], &rows),
            ["name    x        ", "a       long cell", "bcdefg  é        "]
        );
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(lines(["name"], &[]), ["(no items)"]);
    }
}
