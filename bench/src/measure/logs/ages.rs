//! How old a line is when somebody who reads the log sees it.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::try_join4;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use super::Reader;
use crate::http::{Address, Connection, get, next_piece};
use crate::job::{self, Writing};
use crate::sse::Events;
use crate::subject::Stack;
use crate::{Failure, clock};

/// How many lines, and how far apart.
const ROWS: usize = 1_000;
const EVERY: Duration = Duration::from_millis(10);
const POLL_EVERY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);
const FLOW: &str = "bench-clock";

/// The clock at the arrival of a line, less the clock that the task has read and written into it, in ms. All three read the same log
/// at the same time, and each has to get every line once and in order.
pub(super) async fn measure(stack: &Stack) -> Result<[(Reader, Vec<f64>); 3], Failure> {
    timeout(PATIENCE, read_all(stack)).await.map_err(|_| "a log that was followed did not end")?
}

async fn read_all(stack: &Stack) -> Result<[(Reader, Vec<f64>); 3], Failure> {
    let address = stack.address;
    let mark = stack.data().join("write-clock");
    Writing::python(FLOW, "write_clock").put(address).await?;
    let parameters = json!({"rows": ROWS, "every": EVERY.as_secs_f64(), "mark": mark.to_string_lossy()});
    let job = job::submit(address, FLOW, &parameters).await?;
    let following = Cell::new(0);
    let (sse, socket, polled, ()) = try_join4(
        over_sse(address, &job, &following),
        over_socket(address, &job, &following),
        polling(address, &job),
        let_write(&mark, &following),
    )
    .await?;
    Ok([(Reader::Sse, sse), (Reader::WebSocket, socket), (Reader::Polling, polled)])
}

/// Leaves the mark once both have seen the line that says that the task has started.
async fn let_write(mark: &Path, following: &Cell<usize>) -> Result<(), Failure> {
    while following.get() < 2 {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(std::fs::write(mark, "")?)
}

async fn over_sse(address: Address, job: &str, following: &Cell<usize>) -> Result<Vec<f64>, Failure> {
    let mut connection = Connection::open(address).await?;
    let response = connection.start(get(&format!("/jobs/{job}/logs/stream"))?).await?;
    if !response.status().is_success() {
        return Err(format!("a stream was answered with {}", response.status()).into());
    }
    let mut body = response.into_body();
    let (mut events, mut ages) = (Events::default(), Ages::default());
    while let Some(piece) = next_piece(&mut body).await? {
        let arrived = clock::unix();
        events.push(&piece);
        while let Some(event) = events.next()? {
            match event.name.as_str() {
                "logEntry" => ages.see(&event.data, arrived, Some(following))?,
                "status" => return ages.all(),
                other => return Err(format!("an event {other} came").into()),
            }
        }
    }
    Err("a stream has no end".into())
}

async fn over_socket(address: Address, job: &str, following: &Cell<usize>) -> Result<Vec<f64>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut socket, _) = client_async(format!("ws://{address}/jobs/{job}/ws"), stream).await?;
    let mut ages = Ages::default();
    while let Some(message) = socket.next().await {
        let arrived = clock::unix();
        let message = message?;
        let Message::Text(text) = message else { continue };
        let news: Value = serde_json::from_str(&text)?;
        if let Some(entry) = news.get("entry") {
            ages.see(entry, arrived, Some(following))?;
        }
    }
    ages.all()
}

async fn polling(address: Address, job: &str) -> Result<Vec<f64>, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut ticks = interval(POLL_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let first = format!("/jobs/{job}/logs");
    let (mut path, mut ages) = (first.clone(), Ages::default());
    while ages.samples.len() < ROWS {
        ticks.tick().await;
        let answer = connection.get(&path).await?;
        let arrived = clock::unix();
        let page = answer.json()?;
        let entries = page.get("entries").and_then(Value::as_array).ok_or("a page without entries")?;
        for entry in entries {
            ages.see(entry, arrived, None)?;
        }
        let token = page.get("nextToken").and_then(Value::as_str).ok_or("a page without nextToken")?;
        path = format!("{first}?sinceToken={token}");
    }
    ages.all()
}

/// The ages of the rows that one reader has seen.
#[derive(Default)]
struct Ages {
    lines: usize,
    samples: Vec<f64>,
}

impl Ages {
    /// Looks at an entry; `following` counts those who have seen one.
    fn see(&mut self, entry: &Value, arrived: f64, following: Option<&Cell<usize>>) -> Result<(), Failure> {
        if self.lines == 0
            && let Some(following) = following
        {
            following.set(following.get() + 1);
        }
        self.lines += 1;
        let seq = entry.get("seq").and_then(Value::as_u64);
        if seq != Some(self.lines as u64) {
            return Err(format!("{entry} came as line {}", self.lines).into());
        }
        let message = entry.get("message").and_then(Value::as_str).ok_or("an entry without a message")?;
        let Some(row) = job::row(message) else { return Ok(()) };
        if row != self.samples.len() + 1 {
            return Err(format!("row {row} came after row {}", self.samples.len()).into());
        }
        let printed: f64 = message.rsplit(' ').next().ok_or("a row without a clock")?.parse()?;
        self.samples.push((arrived - printed) * 1_000.0);
        Ok(())
    }

    fn all(self) -> Result<Vec<f64>, Failure> {
        match self.samples.len() {
            ROWS => Ok(self.samples),
            rows => Err(format!("a reader got {rows} rows of {ROWS}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: usize, message: &str) -> Value {
        json!({"seq": seq, "message": message})
    }

    #[test]
    fn the_age_of_a_row_is_told_and_other_lines_have_none() {
        let (mut ages, following) = (Ages::default(), Cell::new(0));
        ages.see(&entry(1, "task write started"), 100.0, Some(&following)).expect("a line");
        ages.see(&entry(2, "row 1 100.0"), 100.25, Some(&following)).expect("a row");
        assert_eq!((ages.samples, following.get()), (vec![250.0], 1));
    }

    #[test]
    fn a_line_that_is_missing_is_found() {
        let mut ages = Ages::default();
        ages.see(&entry(1, "row 1 100.0"), 100.25, None).expect("a row");
        assert!(ages.see(&entry(3, "row 3 100.0"), 100.25, None).is_err());
        assert!(ages.all().is_err());
    }
}
