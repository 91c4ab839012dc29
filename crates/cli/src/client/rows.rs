//! Lists of executions, events, graphs, waits, jobs and labels: a table for people, lines for programs, JSON for both.

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

/// A list of jobs, labels or entries that is shown while its pages come. A page may have fewer items than it could, so that several are asked
/// for until there are as many as wanted.
pub(super) struct Pages<const N: usize> {
    form: RowsForm,
    /// Which member of a page holds its items.
    list: &'static str,
    /// And which member says where it goes on.
    mark: &'static str,
    headers: [&'static str; N],
    /// How many are still wanted; none if all are.
    left: Option<i64>,
    token: Option<String>,
    is_over: bool,
    /// What cannot be shown before all is there: a table needs its widths, and JSON is one document.
    rows: Vec<[String; N]>,
    whole: Option<Value>,
}

impl<const N: usize> Pages<N> {
    pub(super) const fn new(
        form: RowsForm,
        list: &'static str,
        headers: [&'static str; N],
        most: Option<i64>,
        token: Option<String>,
    ) -> Self {
        let mark = "nextToken";
        Self { form, list, mark, headers, left: most, token, is_over: false, rows: Vec::new(), whole: None }
    }

    /// The same of a list whose pages have `items` and a `nextCursor`.
    pub(super) fn by_cursor(
        form: RowsForm,
        headers: [&'static str; N],
        most: Option<i64>,
        cursor: Option<String>,
    ) -> Self {
        let pages = Self::new(form, "items", headers, most, cursor);
        Self { mark: "nextCursor", ..pages }
    }

    /// What to ask for next: how many, and behind which token.
    pub(super) fn next(&self, most: i64) -> Option<(i64, Option<String>)> {
        (!self.is_over).then(|| (self.left.unwrap_or(most), self.token.clone()))
    }

    /// Shows what can be shown of a page, and keeps the rest.
    pub(super) fn show(
        &mut self,
        mut page: Value,
        row: impl Fn(&Value) -> [String; N],
    ) -> Result<(), Failure> {
        let items = match page.get_mut(self.list).map(Value::take) {
            Some(Value::Array(items)) => items,
            Some(_) | None => Vec::new(),
        };
        self.token = page.get(self.mark).and_then(Value::as_str).map(str::to_owned);
        self.left = self.left.map(|left| left - i64::try_from(items.len()).unwrap_or(i64::MAX));
        self.is_over = self.token.is_none() || self.left.is_some_and(|left| left <= 0);
        match self.form {
            RowsForm::Json if self.left.is_none() => items.iter().try_for_each(output::json),
            RowsForm::Json => {
                self.keep(page, items);
                Ok(())
            }
            RowsForm::Lines => show(self.form, self.headers, &items.iter().map(row).collect::<Vec<_>>()),
            RowsForm::Table => {
                self.rows.extend(items.iter().map(row));
                Ok(())
            }
        }
    }

    /// All pages are one: the first, with the items of all and the token of the last.
    fn keep(&mut self, page: Value, mut items: Vec<Value>) {
        let mut whole = self.whole.take().unwrap_or(page);
        if let Some(Value::Array(before)) = whole.get_mut(self.list).map(Value::take) {
            items = before.into_iter().chain(items).collect();
        }
        if let Some(members) = whole.as_object_mut() {
            members.insert(self.list.to_owned(), Value::Array(items));
            match &self.token {
                Some(token) => members.insert(self.mark.to_owned(), Value::String(token.clone())),
                None => members.remove(self.mark),
            };
        }
        self.whole = Some(whole);
    }

    /// Shows what was kept, and says where the list goes on.
    pub(super) fn end(self) -> Result<(), Failure> {
        match self.form {
            RowsForm::Json => return self.whole.iter().try_for_each(output::json),
            RowsForm::Table => show(self.form, self.headers, &self.rows)?,
            RowsForm::Lines => {}
        }
        if let Some(token) = &self.token {
            output::aside(&format!("{}: {}", self.mark, one_line(token)));
        }
        Ok(())
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
