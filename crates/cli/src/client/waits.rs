//! `waits`: what waits for a person.

use pyoco_client::{Client, WaitFilter};
use serde_json::Value;

use super::options::Waits;
use super::options::form::RowsForm;
use super::rows;
use crate::errors::Failure;

pub(super) async fn list(client: &Client, options: Waits) -> Result<(), Failure> {
    let form = options.output.form();
    let filter = WaitFilter {
        tag: options.tag,
        older_than_sec: options.older_than_sec,
        limit: options.page.limit,
        cursor: options.page.cursor,
    };
    let page = client.list_waits(&filter).await?;
    let headers = ["executionId", "nodeId", "waitKey", "since", "graphId", "prompt"];
    rows::page(form, page.json(), headers, |wait| {
        headers.map(|name| match name {
            "prompt" => prompt(wait, form),
            _ => rows::member(wait, name),
        })
    })
}

/// The hint, cut where a person reads it.
fn prompt(wait: &Value, form: RowsForm) -> String {
    let text = rows::member(wait, "prompt");
    if form == RowsForm::Table { rows::short(&text) } else { text }
}
