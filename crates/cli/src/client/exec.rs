//! `exec`: create executions, drive them as a whole, look at them.

use pyoco_client::api::{CreateExecution, Execution, ExecutionNode, RetryExecution, Why};
use pyoco_client::{Client, ExecutionFilter};
use serde_json::Value;

use super::options::ListForm;
use super::options::exec::{Create, ExecCommand, Get, List, Retry};
use super::{command, events, labels, params, rows};
use crate::errors::Failure;
use crate::output::{self, one_line};
use crate::table;

pub(super) async fn run(client: &Client, command: ExecCommand) -> Result<(), Failure> {
    match command {
        ExecCommand::Create(options) => create(client, options).await,
        ExecCommand::Start(options) => {
            let sent = command::options(options.sending);
            command::show(client.start_execution(&options.execution_id, &sent).await)
        }
        ExecCommand::Cancel(options) => {
            let (why, sent) = (Why { reason: options.why.reason }, command::options(options.sending));
            command::show(client.cancel_execution(&options.execution_id, &why, &sent).await)
        }
        ExecCommand::Archive(options) => {
            let (why, sent) = (Why { reason: options.why.reason }, command::options(options.sending));
            command::show(client.archive_execution(&options.execution_id, &why, &sent).await)
        }
        ExecCommand::Get(options) => get(client, &options).await,
        ExecCommand::List(options) => list(client, options).await,
        ExecCommand::Events(options) => events::events(client, &options).await,
        ExecCommand::Retry(options) => retry(client, options).await,
    }
}

async fn create(client: &Client, options: Create) -> Result<(), Failure> {
    let request = CreateExecution {
        graph_id: options.graph,
        input: params::of_execution(&options.input)?.unwrap_or_default(),
        tag: options.tag,
        tags: labels(options.tags.as_deref()),
        graph_version: options.graph_version,
    };
    let sent = command::options(options.sending);
    let created = client.create_execution(&request, &sent).await?;
    // Shown before it is started: whatever happens next, its id is known.
    output::json(created.json())?;
    if options.start {
        // A key counts for its own command, so that the same one makes a repeat of both harmless.
        client.start_execution(&created.execution_id, &sent).await?;
    }
    Ok(())
}

async fn retry(client: &Client, options: Retry) -> Result<(), Failure> {
    let request =
        RetryExecution { input: params::of_execution(&options.input)?, from_node: options.from_node };
    let sent = command::options(options.sending);
    command::show(client.retry_execution(&options.execution_id, &request, &sent).await)
}

async fn get(client: &Client, options: &Get) -> Result<(), Failure> {
    let execution = client.get_execution(&options.execution_id, options.at).await?;
    match options.output.form() {
        ListForm::Json => output::json(execution.json()),
        ListForm::Table => output::line(&view(&execution).join("\n")),
    }
}

async fn list(client: &Client, options: List) -> Result<(), Failure> {
    let form = options.output.form();
    let filter = ExecutionFilter {
        status: options.status,
        graph_id: options.graph,
        tag: options.tag,
        created_after: options.created_after,
        created_before: options.created_before,
        updated_after: options.updated_after,
        updated_before: options.updated_before,
        limit: options.page.limit,
        cursor: options.page.cursor,
    };
    let page = client.list_executions(&filter).await?;
    let headers = ["executionId", "status", "graphId", "tags", "updatedAt"];
    rows::page(form, page.json(), headers, |item| {
        headers.map(|name| if name == "tags" { rows::tags(item) } else { rows::member(item, name) })
    })
}

/// An execution for people: what it is, what became of it, and its nodes.
fn view(execution: &Execution) -> Vec<String> {
    let version = execution.graph_version.map(|version| format!(" v{version}")).unwrap_or_default();
    let parts = [
        execution.status.to_string(),
        one_line(&execution.graph_id) + &version,
        one_line(&execution.execution_id),
    ];
    let mut lines = vec![parts.join("  ")];
    let mut say = |label: &str, text: Option<String>| {
        lines.extend(text.map(|text| format!("{label:<10}  {}", one_line(&text))));
    };
    say("created", execution.created_at.map(|at| at.to_string()));
    say("ended", execution.ended_at.map(|at| at.to_string()));
    say("cancel", execution.cancel_requested_at.map(|at| at.to_string()));
    say("reason", execution.cancel_reason.clone());
    say("archived", execution.archived_at.map(|at| at.to_string()));
    say(
        "error",
        execution.error.as_ref().and_then(|error| error.message.clone().or_else(|| error.code.clone())),
    );
    say("retry of", execution.retry_of.clone());
    say("retried by", execution.retried_by.clone());
    say("event", Some(execution.seq.to_string()));
    let nodes: Vec<_> = execution.nodes.iter().map(node_row).collect();
    lines.extend(table::lines(["node", "type", "status", "attempt", "what"], &nodes));
    lines
}

fn node_row(node: &ExecutionNode) -> [String; 5] {
    let error = node.error.as_ref().and_then(|error| error.message.clone().or_else(|| error.code.clone()));
    let what = match (&node.waiting, error, node.progress) {
        (Some(wait), ..) => wait.wait_key.as_ref().map(|key| format!("waits for key {key}")),
        (None, Some(error), _) => Some(error),
        (None, None, Some(progress)) if node.output == Value::Null => Some(format!("{progress} %")),
        (None, None, _) => Some(&node.output).filter(|output| !output.is_null()).map(Value::to_string),
    };
    let what = what.map_or_else(|| "-".to_owned(), |what| rows::short(&one_line(&what)));
    let (id, kind) = (one_line(&node.node_id), one_line(&node.node_type));
    [id, kind, node.status.to_string(), node.attempt.to_string(), what]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_execution_is_shown_with_what_its_nodes_wait_for() {
        let execution: Execution = serde_json::from_value(json!({
            "executionId": "e-1", "graphId": "approval", "graphVersion": 2, "status": "ACTIVE", "seq": 7,
            "retryOf": "e-0",
            "nodes": [
                {"nodeId": "draft", "nodeType": "Task", "status": "SUCCEEDED", "attempt": 1, "output": {"n": 1}},
                {"nodeId": "ask", "nodeType": "Wait", "status": "WAITING", "attempt": 1,
                 "waiting": {"since": "2026-01-31T00:00:00Z", "waitKey": "k\n1", "prompt": null}},
                {"nodeId": "send", "nodeType": "Task", "status": "PENDING"},
            ],
        }))
        .unwrap();
        assert_eq!(
            view(&execution),
            [
                "ACTIVE  approval v2  e-1",
                "retry of    e-0",
                "event       7",
                "node   type  status     attempt  what              ",
                "draft  Task  SUCCEEDED  1        {\"n\":1}           ",
                "ask    Wait  WAITING    1        waits for key k\\n1",
                "send   Task  PENDING    0        -                 ",
            ]
        );
    }
}
