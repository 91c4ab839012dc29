//! Lists of runs and workers, as JSON or as tables.

use pyoco_client::{Client, RunDelta, RunFilter, WorkerFilter};
use serde_json::Value;

use super::options::{Filter, List, ListForm, ListVnext, Workers, WorkersForm};
use crate::errors::Failure;
use crate::output::{self, cell, one_line};
use crate::table;

/// So many plugins of a worker fit into a row.
const PREVIEWED: usize = 3;

pub(super) async fn list(client: &Client, options: List) -> Result<(), Failure> {
    let form = options.output.form();
    let runs = client.list_runs(&filter(options.filter)).await?;
    match form {
        ListForm::Json => output::json(runs.json()),
        ListForm::Table => show(&run_table(runs.json())),
    }
}

pub(super) async fn list_vnext(client: &Client, options: ListVnext) -> Result<(), Failure> {
    let form = options.output.form();
    let delta = RunDelta {
        updated_after: options.updated_after,
        cursor: options.cursor,
        workflow_yaml_sha256: options.workflow_yaml_sha256,
    };
    let page = client.list_runs_vnext(&filter(options.filter), &delta).await?;
    match form {
        ListForm::Json => output::json(page.json()),
        ListForm::Table => {
            let mut lines = run_table(page.json().get("items").unwrap_or(&Value::Null));
            lines
                .extend(page.next_cursor.as_ref().map(|cursor| format!("next_cursor: {}", one_line(cursor))));
            show(&lines)
        }
    }
}

pub(super) async fn workers(client: &Client, options: Workers) -> Result<(), Failure> {
    let filter = WorkerFilter {
        scope: Some(options.scope),
        state: options.state,
        include_hidden: options.include_hidden.then_some(true),
        limit: options.limit,
    };
    let workers = client.get_workers(&filter).await?;
    match options.output {
        WorkersForm::Json => output::json(workers.json()),
        WorkersForm::Table => {
            let rows: Vec<_> = items(workers.json()).iter().map(worker_row).collect();
            show(&table::lines(["worker_id", "state", "tags", "plugins", "plugin_preview"], &rows))
        }
        WorkersForm::Plugins => {
            let rows: Vec<_> = items(workers.json()).iter().flat_map(plugin_rows).collect();
            show(&table::lines(["worker_id", "state", "tags", "package", "version", "wheel_name"], &rows))
        }
    }
}

fn filter(options: Filter) -> RunFilter {
    let Filter { status, flow, tag, full, limit } = options;
    RunFilter { status, flow, tag, full, limit }
}

fn show(lines: &[String]) -> Result<(), Failure> {
    output::line(&lines.join("\n"))
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn run_table(runs: &Value) -> Vec<String> {
    let columns = ["run_id", "status", "flow_name", "tag", "updated_at"];
    let rows: Vec<_> = items(runs).iter().map(|run| columns.map(|name| cell(run.get(name)))).collect();
    table::lines(columns, &rows)
}

fn worker_row(worker: &Value) -> [String; 5] {
    let plugins = plugins(worker);
    let mut preview: Vec<String> = plugins.iter().take(PREVIEWED).map(|plugin| label(plugin)).collect();
    if plugins.len() > PREVIEWED {
        preview.push(format!("+{}", plugins.len() - PREVIEWED));
    }
    let preview = if preview.is_empty() { "-".to_owned() } else { preview.join(", ") };
    [name(worker, "worker_id"), name(worker, "state"), tags(worker), plugins.len().to_string(), preview]
}

fn plugin_rows(worker: &Value) -> Vec<[String; 6]> {
    let row = |plugin: &Value| {
        let [package, version, wheel] =
            ["package_name", "package_version", "wheel_name"].map(|key| name(plugin, key));
        [name(worker, "worker_id"), name(worker, "state"), tags(worker), package, version, wheel]
    };
    match plugins(worker).as_slice() {
        [] => vec![row(&Value::Null)],
        plugins => plugins.iter().map(|plugin| row(plugin)).collect(),
    }
}

fn plugins(worker: &Value) -> Vec<&Value> {
    let installed = worker.get("wheel_sync").and_then(|sync| sync.get("installed_wheels"));
    installed.map_or(&[][..], items).iter().filter(|plugin| plugin.is_object()).collect()
}

/// `package@version`, or the name of the file when these are not known.
fn label(plugin: &Value) -> String {
    match (name(plugin, "package_name").as_str(), name(plugin, "package_version").as_str()) {
        ("-", _) | (_, "-") => name(plugin, "wheel_name"),
        (package, version) => format!("{package}@{version}"),
    }
}

fn tags(worker: &Value) -> String {
    let tags = worker.get("tags").map_or(&[][..], items).iter();
    let tags: Vec<String> =
        tags.map(|tag| cell(Some(tag)).trim().to_owned()).filter(|tag| !tag.is_empty()).collect();
    if tags.is_empty() { "-".to_owned() } else { tags.join(",") }
}

/// An empty text is as good as none.
fn name(item: &Value, key: &str) -> String {
    Some(cell(item.get(key))).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())
}
