//! `exec events`: what happened to an execution, and what happens.

use futures_util::StreamExt as _;
use pyoco_client::api::{ExecutionEvent, Status};
use pyoco_client::{Answer, Client, FollowOptions};
use serde_json::Value;

use super::failure::how_to_repeat;
use super::options::exec::Events;
use super::options::form::RowsForm;
use super::rows;
use crate::errors::Failure;
use crate::output::{self, one_line};

/// As many as the gateway gives at once.
const PAGE: u64 = 1_000;

const HEADERS: [&str; 5] = ["seq", "occurredAt", "type", "node", "actor"];

pub(super) async fn events(client: &Client, options: &Events) -> Result<(), Failure> {
    if options.follow { follow(client, options).await } else { history(client, options).await }
}

async fn history(client: &Client, options: &Events) -> Result<(), Failure> {
    let form = options.output.form();
    let (mut after, mut left) = (options.after, options.limit.unwrap_or(u64::MAX));
    let mut table = Vec::new();
    while left > 0 {
        let limit = i64::try_from(left.min(PAGE)).ok();
        let page = client.get_events(&options.execution_id, after, limit).await?;
        left = left.saturating_sub(page.events.len() as u64);
        match form {
            RowsForm::Json => {
                let events = page.json().get("events").and_then(Value::as_array).into_iter().flatten();
                events.into_iter().try_for_each(output::json)?;
            }
            RowsForm::Lines => {
                let rows: Vec<_> = page.events.iter().map(row).collect();
                rows::show(form, HEADERS, &rows)?;
            }
            RowsForm::Table => table.extend(page.events.iter().map(row)),
        }
        let Some(next) = page.next else { break };
        after = next;
    }
    if form == RowsForm::Table { rows::show(form, HEADERS, &table) } else { Ok(()) }
}

async fn follow(client: &Client, options: &Events) -> Result<(), Failure> {
    let form = options.output.form();
    let asked = FollowOptions { after: options.after, ..FollowOptions::default() };
    let mut events = client.follow_events(&options.execution_id, &asked).await?;
    let mut end = None;
    while let Some(event) = events.next().await {
        let event = event?;
        show(form, &event)?;
        end = End::of(&event).or(end);
    }
    let end = match end {
        Some(end) => end,
        // What ended it was behind the first event that was asked for.
        None => End::read(client, &options.execution_id).await?,
    };
    end.conclude(&options.execution_id)
}

fn show(form: RowsForm, event: &Answer<ExecutionEvent>) -> Result<(), Failure> {
    let [seq, at, kind, node, actor] = row(event);
    match form {
        RowsForm::Json => output::json(event.json()),
        RowsForm::Lines => output::line(&[seq, at, kind, node, actor].join("\t")),
        // Nobody knows yet how wide the columns will be.
        RowsForm::Table => output::line(&format!("{seq:>5}  {at:<27}  {kind:<26}  {node}")),
    }
}

fn row(event: &ExecutionEvent) -> [String; 5] {
    let node = event.payload.get("nodeId").and_then(Value::as_str).map_or_else(|| "-".to_owned(), one_line);
    let actor = match &event.actor.id {
        Some(id) => format!("{}:{id}", event.actor.kind),
        None => event.actor.kind.clone(),
    };
    [event.seq.to_string(), event.occurred_at.to_string(), one_line(&event.kind), node, one_line(&actor)]
}

/// How an execution ended.
struct End {
    status: Status,
    why: Option<String>,
}

impl End {
    fn of(event: &ExecutionEvent) -> Option<Self> {
        let status = match event.kind.as_str() {
            "EXECUTION_COMPLETED" => Status::Completed,
            "EXECUTION_FAILED" => Status::Failed,
            "EXECUTION_CANCELED" => Status::Canceled,
            _ => return None,
        };
        let error = event.payload.get("error");
        let member = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
        let why = member("message").or_else(|| member("code"));
        let why = why.or_else(|| event.payload.get("reason").and_then(Value::as_str));
        Some(Self { status, why: why.map(str::to_owned) })
    }

    async fn read(client: &Client, execution_id: &str) -> Result<Self, Failure> {
        let execution = client.get_execution(execution_id, None).await?.into_value();
        let why = execution.error.and_then(|error| error.message.or(error.code));
        Ok(Self { status: execution.status, why })
    }

    fn conclude(self, execution_id: &str) -> Result<(), Failure> {
        match self.status {
            Status::Completed => Ok(()),
            Status::Canceled => Err(Failure::canceled()),
            Status::Failed => {
                let failure = Failure::new("ERR-PYOCO-EXEC: execution failed");
                let why = self.why.unwrap_or_else(|| "none was given".to_owned());
                let hint = how_to_repeat(execution_id, &why);
                Err(failure.note("reason", why).hint(hint))
            }
            Status::Active => Err(Failure::unexpected("the events end before their execution")),
        }
    }
}
