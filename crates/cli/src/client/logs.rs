//! `logs`: what the tasks of a run wrote, and what they write.

use std::time::Duration;

use futures_util::StreamExt as _;
use pyoco_client::api::{LogEntry, RunStatus};
use pyoco_client::{Answer, Client, Error, LogFilter, LogOf};
use serde_json::Value;

use super::failure::how_to_repeat;
use super::line::{Ink, Look};
use super::options::logs::{LinesForm, Logs};
use crate::errors::Failure;
use crate::output::{self, one_line};

/// As many as the gateway gives at once.
const PAGE: i64 = 1_000;
/// As many are written at once.
const AT_ONCE: usize = 1_000;
/// How long a gateway may be away, and how long it may take to say how a run ended whose log has.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn logs(client: &Client, options: Logs) -> Result<(), Failure> {
    let form = Form::of(&options.form);
    let filter = LogFilter { task: options.task, stream: options.stream, since_token: options.since };
    let of = LogOf::Run(options.run_id.clone());
    if options.follow {
        follow(client, &of, &filter, form).await?;
        return conclude(client, &options.run_id).await;
    }
    history(client, &of, filter, form).await
}

/// Shows the log of a job until it has ended; fails if the job did.
pub(super) async fn follow_job(client: &Client, job_id: &str, form: &LinesForm) -> Result<(), Failure> {
    let of = LogOf::Job(job_id.to_owned());
    follow(client, &of, &LogFilter::default(), Form::of(form)).await?;
    conclude(client, job_id).await
}

async fn history(client: &Client, of: &LogOf, mut filter: LogFilter, form: Form) -> Result<(), Failure> {
    // What is written from now on is for whoever follows.
    let mut last = None;
    loop {
        let page = client.get_log(of, &filter, Some(PAGE)).await?;
        let lines = page.json().get("entries").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        form.show(page.entries.iter().zip(lines))?;
        filter.since_token = Some(page.next_token.clone());
        if page.through_seq >= *last.get_or_insert(page.last_seq) {
            break;
        }
    }
    // Beside the lines, so that whoever reads them can take every line for one.
    if let Some(token) = &filter.since_token {
        output::aside(&format!("nextToken: {}", one_line(token)));
    }
    Ok(())
}

async fn follow(client: &Client, of: &LogOf, filter: &LogFilter, form: Form) -> Result<(), Failure> {
    let lines = client.follow_log(of, filter, PATIENCE).await?;
    let mut lines = lines.ready_chunks(AT_ONCE);
    while let Some(ready) = lines.next().await {
        let mut good: Vec<Answer<LogEntry>> = Vec::with_capacity(ready.len());
        let mut trouble = None;
        for line in ready {
            match line {
                Ok(line) => good.push(line),
                Err(error) => trouble = Some(error),
            }
        }
        form.show(good.iter().map(|line| (&**line, line.json())))?;
        if let Some(error) = trouble {
            return Err(error.into());
        }
    }
    Ok(())
}

/// How a run ended whose log has: its failure is ours.
async fn conclude(client: &Client, run_id: &str) -> Result<(), Failure> {
    let run = match client.wait_for_end(run_id, PATIENCE, |_| {}).await {
        Ok(run) => run,
        Err(Error::WaitTimeout { .. }) => return Err(Failure::unexpected("the log ends before its run")),
        Err(error) => return Err(error.into()),
    };
    match run.status {
        RunStatus::Completed => Ok(()),
        RunStatus::Cancelled => Err(Failure::canceled()),
        RunStatus::Failed => {
            let why = run.error.clone().filter(|error| !error.is_empty());
            let failure = Failure::new("ERR-PYOCO-RUN: run failed");
            let why = why.unwrap_or_else(|| "none was given".to_owned());
            let hint = how_to_repeat(run_id, &why);
            Err(failure.note("reason", why).hint(hint))
        }
        RunStatus::Pending | RunStatus::Running | RunStatus::Cancelling => {
            Err(Failure::unexpected("the log ends before its run"))
        }
    }
}

/// The form of lines.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Text(Look),
}

impl Form {
    fn of(options: &LinesForm) -> Self {
        if options.json {
            return Self::Json;
        }
        Self::Text(Look { has_times: !options.no_timestamps, ink: Ink::of_output() })
    }

    /// Writes lines, all at once.
    fn show<'a>(self, lines: impl Iterator<Item = (&'a LogEntry, &'a Value)>) -> Result<(), Failure> {
        let mut shown = String::new();
        for (line, json) in lines {
            match self {
                Self::Json => {
                    shown.push_str(&output::json_text(json)?);
                    shown.push('\n');
                }
                Self::Text(look) => look.write_to(&mut shown, line),
            }
        }
        if shown.is_empty() { Ok(()) } else { output::text(&shown) }
    }
}
