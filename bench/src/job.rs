//! Jobs whose log is what counts: submitted, waited for, and their log read again.

use std::time::Duration;

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::flows::SERVED;
use crate::http::{Address, Connection, get_with, next_piece};
use crate::sse::Lines;
use crate::{Failure, execution};

const LOOK_EVERY: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(180);
/// What each line of a task that is measured begins with; its number follows.
const ROW: &str = "row ";

/// A flow with one task, which writes lines.
pub(crate) struct Writing {
    /// What it is registered as.
    pub(crate) flow: &'static str,
    /// What the task runs, as flow.yaml has it.
    pub(crate) task: String,
}

impl Writing {
    /// A Python function of `bench_flows`.
    pub(crate) fn python(flow: &'static str, function: &str) -> Self {
        Self { flow, task: format!("{{callable: 'bench_flows:{function}'}}") }
    }

    /// A process that writes `rows` lines, each of them `row`, which has the number for `%.0f`.
    pub(crate) fn command(flow: &'static str, row: &str, rows: usize) -> Self {
        Self { flow, task: format!("{{command: [seq, -f, '{row}', '{rows}']}}") }
    }

    pub(crate) async fn put(&self, address: Address) -> Result<(), Failure> {
        let text = format!("version: 2\nflow: {{graph: 'write'}}\ntasks:\n  write: {}\n", self.task);
        execution::put_graph(address, self.flow, text).await
    }
}

/// The format of a line of 80 bytes with its break, for numbers of six digits.
pub(crate) fn wide_row() -> String {
    format!("{ROW}%.0f {}", ".".repeat(68))
}

/// The format of a short line.
pub(crate) fn short_row() -> String {
    format!("{ROW}%.0f")
}

/// Submits a job; its id.
pub(crate) async fn submit(address: Address, flow: &str, parameters: &Value) -> Result<String, Failure> {
    let body = json!({"flow": flow, "parameters": parameters, "tag": SERVED}).to_string();
    let request = Request::builder().method(Method::POST).uri("/jobs");
    let request = request.header(CONTENT_TYPE, "application/json").body(body)?;
    let answer = Connection::open(address).await?.send(request).await?;
    if answer.status != StatusCode::CREATED {
        return Err(answer.problem());
    }
    let job: Value = serde_json::from_slice(&answer.body)?;
    Ok(job.get("id").and_then(Value::as_str).ok_or("a job without an id")?.to_owned())
}

/// The number of the row that a line of a log is, if it is one.
pub(crate) fn row(message: &str) -> Option<usize> {
    let rest = message.strip_prefix(ROW)?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Waits until a job has completed and its log of at least `rows` lines is closed. While it runs only the job is looked at, and then the
/// few lines behind the last row.
pub(crate) async fn closed(address: Address, job: &str, rows: usize) -> Result<(), Failure> {
    closed_within(PATIENCE, address, job, rows).await
}

/// The same, for a log that takes longer than others.
pub(crate) async fn closed_within(
    patience: Duration,
    address: Address,
    job: &str,
    rows: usize,
) -> Result<(), Failure> {
    let mut connection = Connection::open(address).await?;
    let end = async {
        completed(&mut connection, job).await?;
        while !is_told_to_the_end(&mut connection, job, rows).await? {
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    };
    timeout(patience, end).await.map_err(|_| format!("the log of job {job} has not ended in {patience:?}"))?
}

async fn completed(connection: &mut Connection, job: &str) -> Result<(), Failure> {
    let path = format!("/jobs/{job}");
    loop {
        let shown = connection.get(&path).await?.json()?;
        match shown.get("status").and_then(Value::as_str) {
            Some("pending" | "running") => sleep(LOOK_EVERY).await,
            Some("completed") => return Ok(()),
            Some(_) | None => return Err(format!("a job did not complete: {shown}").into()),
        }
    }
}

/// Whether the log has so many lines and is then told to its end: that comes when it is closed.
async fn is_told_to_the_end(connection: &mut Connection, job: &str, rows: usize) -> Result<bool, Failure> {
    let last_event = HeaderName::from_static("last-event-id");
    let request = get_with(&format!("/jobs/{job}/logs/stream"), last_event, &rows.to_string())?;
    let response = connection.start(request).await?;
    let status = response.status();
    let mut body = response.into_body();
    let mut lines = Lines::default();
    let mut is_told = false;
    while let Some(piece) = next_piece(&mut body).await? {
        lines.push(&piece);
        is_told |= lines.whole()?.lines().any(|line| line == "event: status");
    }
    match status {
        StatusCode::OK if is_told => Ok(true),
        // It has fewer lines.
        StatusCode::BAD_REQUEST => Ok(false),
        _ => Err(format!("the end of a log was answered with {status}").into()),
    }
}

/// Reads a log as text: each row has to be in it once and in order.
pub(crate) async fn has_all(address: Address, job: &str, rows: usize) -> Result<(), Failure> {
    let request = get_with(&format!("/jobs/{job}/logs"), ACCEPT, "text/plain")?;
    let answer = Connection::open(address).await?.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(answer.problem());
    }
    let text = String::from_utf8(answer.body)?;
    let written = text.lines().filter_map(|line| row(line.split_once(" stdout | ")?.1));
    must_be_all(written, rows)
}

/// Whether these are the rows from 1 to the last.
fn must_be_all(written: impl Iterator<Item = usize>, rows: usize) -> Result<(), Failure> {
    let mut last = 0;
    for row in written {
        if row != last + 1 {
            return Err(format!("row {row} came after row {last}").into());
        }
        last = row;
    }
    if last == rows { Ok(()) } else { Err(format!("the log has {last} rows of {rows}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_log_is_a_row_or_it_is_not() {
        assert_eq!(row("row 17 ....."), Some(17));
        assert_eq!(row("row 200000"), Some(200_000));
        assert_eq!(row("task started"), None);
        assert_eq!(row("row x"), None);
    }

    #[test]
    fn a_row_that_is_missing_or_doubled_or_in_the_wrong_place_is_found() {
        assert!(must_be_all([1, 2, 3].into_iter(), 3).is_ok());
        for wrong in [&[1, 2][..], &[1, 3], &[1, 2, 2, 3], &[2, 1, 3], &[1, 2, 3, 4]] {
            assert!(must_be_all(wrong.iter().copied(), 3).is_err(), "{wrong:?}");
        }
    }
}
