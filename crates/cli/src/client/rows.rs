//! Lists of executions, events, graphs and waits: a table for people, lines for programs, JSON for both.

use serde_json::Value;

use super::options::form::RowsForm;
use crate::errors::Failure;
use crate::output::{self, cell, one_line};
use crate::table;

/// A longer text is cut where it is only a hint.
const LONGEST: usize = 60;

/// Shows a page: its items in columns, or all of it as JSON.
pub(super) fn page<const N: usize>(
    form: RowsForm,
    page: &Value,
    headers: [&str; N],
    row: impl Fn(&Value) -> [String; N],
) -> Result<(), Failure> {
    if form == RowsForm::Json {
        return output::json(page);
    }
    let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let rows: Vec<[String; N]> = items.iter().map(row).collect();
    show(form, headers, &rows)?;
    // Beside the rows, so that whoever reads them can take every line for a row.
    if let Some(cursor) = page.get("nextCursor").and_then(Value::as_str) {
        output::aside(&format!("nextCursor: {}", one_line(cursor)));
    }
    Ok(())
}

/// Shows rows that are all there, as a table or as lines.
pub(super) fn show<const N: usize>(
    form: RowsForm,
    headers: [&str; N],
    rows: &[[String; N]],
) -> Result<(), Failure> {
    match form {
        RowsForm::Table => output::line(&table::lines(headers, rows).join("\n")),
        RowsForm::Lines | RowsForm::Json => rows.iter().try_for_each(|row| output::line(&row.join("\t"))),
    }
}

/// The member of an item, on one line.
pub(super) fn member(item: &Value, name: &str) -> String {
    cell(item.get(name))
}

/// Labels, separated by commas.
pub(super) fn tags(item: &Value) -> String {
    let tags = item.get("tags").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let tags: Vec<String> = tags.iter().map(|tag| cell(Some(tag))).collect();
    if tags.is_empty() { "-".to_owned() } else { tags.join(",") }
}

/// The text, cut to what fits into a row.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
