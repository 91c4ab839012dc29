//! `job` and `tags`: jobs, and the labels by which they are found again.

use pyoco_client::api::SubmitJob;
use pyoco_client::{Client, JobFilter, TagFilter};
use serde_json::Value;

use super::options::ListForm;
use super::options::form::RowsForm;
use super::options::job::{Get, JobCommand, Labels, List, Submit};
use super::rows::{self, Pages};
use super::{logs, params};
use crate::errors::Failure;
use crate::output;

/// As many as the gateway gives at once.
const MOST_JOBS: i64 = 200;
const MOST_LABELS: i64 = 1_000;

pub(super) async fn run(client: &Client, command: JobCommand) -> Result<(), Failure> {
    match command {
        JobCommand::Submit(options) => submit(client, options).await,
        JobCommand::Get(options) => get(client, &options).await,
        JobCommand::List(options) => list(client, options).await,
        JobCommand::Delete(options) => Ok(client.delete_job(&options.job_id).await?),
        JobCommand::Tags(options) => {
            show_labels(options.output.form(), client.job_tags(&options.job_id).await?.json())
        }
        JobCommand::Tag(options) => {
            let mut now = Value::Null;
            for label in &options.labels {
                now = client.add_tag(&options.job_id, label).await?.into_json();
            }
            show_labels(options.output.form(), &now)
        }
        JobCommand::Untag(options) => {
            for label in &options.labels {
                client.remove_tag(&options.job_id, label).await?;
            }
            Ok(())
        }
    }
}

async fn submit(client: &Client, options: Submit) -> Result<(), Failure> {
    let request = SubmitJob {
        parameters: params::of_job(&options)?,
        tags: options.tag,
        flow: options.flow,
        tag: options.routing_tag,
    };
    let job = client.submit_job(&request, options.repeat.idempotency_key.as_deref()).await?;
    if !options.follow {
        return output::json(job.json());
    }
    output::aside(&format!("job: {}", job.id));
    logs::follow_job(client, &job.id, &options.form).await
}

async fn get(client: &Client, options: &Get) -> Result<(), Failure> {
    let job = client.get_job(&options.job_id).await?;
    match options.output.form() {
        ListForm::Json => output::json(job.json()),
        ListForm::Table => output::line(&view(job.json()).join("\n")),
    }
}

async fn list(client: &Client, options: List) -> Result<(), Failure> {
    let most = if options.rest.all { None } else { Some(options.limit) };
    let filter = JobFilter {
        tags: options.tag,
        any_tags: options.any_tag,
        statuses: options.status,
        flow: options.flow,
        created_after: options.created_after,
        created_before: options.created_before,
        limit: None,
        next_token: None,
    };
    let headers = ["id", "status", "tags", "createdAt", "completedAt"];
    let mut pages = Pages::new(options.output.form(), "jobs", headers, most, options.rest.next_token);
    while let Some((limit, next_token)) = pages.next(MOST_JOBS) {
        let filter = JobFilter { limit: Some(limit), next_token, ..filter.clone() };
        let page = client.list_jobs(&filter).await?.into_json();
        pages.show(page, |job| {
            headers.map(|name| if name == "tags" { rows::tags(job) } else { rows::member(job, name) })
        })?;
    }
    pages.end()
}

pub(super) async fn labels(client: &Client, options: Labels) -> Result<(), Failure> {
    let most = if options.rest.all { None } else { Some(options.limit) };
    let headers = ["tag", "count"];
    let mut pages = Pages::new(options.output.form(), "tags", headers, most, options.rest.next_token);
    while let Some((limit, next_token)) = pages.next(MOST_LABELS) {
        let filter = TagFilter { prefix: options.prefix.clone(), limit: Some(limit), next_token };
        let page = client.list_tags(&filter).await?.into_json();
        pages.show(page, |label| headers.map(|name| rows::member(label, name)))?;
    }
    pages.end()
}

/// The labels of one job.
fn show_labels(form: RowsForm, labels: &Value) -> Result<(), Failure> {
    if form == RowsForm::Json {
        return output::json(labels);
    }
    let labels = labels.as_array().map_or(&[][..], Vec::as_slice);
    let rows: Vec<[String; 1]> = labels.iter().map(|label| [output::cell(Some(label))]).collect();
    rows::show(form, ["tag"], &rows)
}

/// A job for people: what it is, and what became of it.
fn view(job: &Value) -> Vec<String> {
    let mut lines = vec![["status", "flow", "id"].map(|name| rows::member(job, name)).join("  ")];
    let mut say = |label: &str, text: String| {
        if text != "-" {
            lines.push(format!("{label:<10}  {text}"));
        }
    };
    say("tags", rows::tags(job));
    say("created", rows::member(job, "createdAt"));
    say("started", rows::member(job, "startedAt"));
    say("cancel", rows::member(job, "cancelRequestedAt"));
    say("ended", rows::member(job, "completedAt"));
    say("error", rows::member(job, "error"));
    say("parameters", rows::member(job, "parameters"));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_shown_with_its_labels_and_what_became_of_it() {
        let job = json!({
            "id": "j-1", "status": "failed", "flow": "analysis", "tags": ["urgent", "Q3\u{1b}[2J"],
            "createdAt": "2026-01-31T00:00:00Z", "startedAt": "2026-01-31T00:00:01Z", "completedAt": null,
            "error": "no\nluck", "parameters": {"input": "data.csv"},
        });
        assert_eq!(
            view(&job),
            [
                "failed  analysis  j-1",
                "tags        urgent,Q3\\u{1b}[2J",
                "created     2026-01-31T00:00:00Z",
                "started     2026-01-31T00:00:01Z",
                "error       no\\nluck",
                "parameters  {\"input\":\"data.csv\"}",
            ]
        );
    }
}
