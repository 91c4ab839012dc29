//! Lines a second, from one task to its log and to those who follow it.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use futures_util::future::{try_join, try_join_all};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{FOLLOWED_ROWS, FOLLOWERS, Writer};
use crate::http::{Address, Connection, get, next_piece};
use crate::job::{self, Writing};
use crate::sse::Lines;
use crate::stats::Figure;
use crate::subject::Stack;
use crate::{Failure, clock};

const WARM_UP_ROWS: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(180);
/// Where the text of an entry begins, if it is a row.
const MESSAGE: &str = r#""message":""#;

/// Writes a little, so that processes are started and pages are loaded.
pub(super) async fn warm_up(address: Address) -> Result<(), Failure> {
    let (command, python) = (of(Writer::Command, WARM_UP_ROWS), of(Writer::Python, WARM_UP_ROWS));
    for writing in [command, python] {
        write(address, &writing, WARM_UP_ROWS).await?;
    }
    Ok(())
}

/// From sending the job until its log is seen closed. Nobody reads meanwhile; afterwards every line has to be there once and in order.
pub(super) async fn stored(address: Address, writer: Writer) -> Result<Option<Figure>, Failure> {
    let rows = writer.rows();
    let took = write(address, &of(writer, rows), rows).await?;
    Ok(Some(Figure::single(rows as f64 / took.as_secs_f64(), rows, 0)))
}

fn of(writer: Writer, rows: usize) -> Writing {
    match writer {
        Writer::Command => Writing::command("bench-command-rows", &job::wide_row(), rows),
        Writer::Python => Writing::python("bench-python-rows", "write_rows"),
    }
}

async fn write(address: Address, writing: &Writing, rows: usize) -> Result<Duration, Failure> {
    writing.put(address).await?;
    let begin = clock::now();
    let job = job::submit(address, writing.flow, &json!({"rows": rows})).await?;
    job::closed(address, &job, rows).await?;
    let took = begin.elapsed();
    job::has_all(address, &job, rows).await?;
    Ok(took)
}

/// Lines a second that arrive at all followers together: from letting the task write until the last follower has been told the end.
/// Every follower has to get every line once and in order.
pub(super) async fn followed(stack: &Stack) -> Result<Option<Figure>, Failure> {
    timeout(PATIENCE, follow_all(stack)).await.map_err(|_| "the followers did not get all lines")?
}

async fn follow_all(stack: &Stack) -> Result<Option<Figure>, Failure> {
    let address = stack.address;
    let gate = stack.data().join("write-now");
    gated(&gate.to_string_lossy()).put(address).await?;
    let job = job::submit(address, GATED, &json!({})).await?;

    // The first line says that the task has started; it then waits at the gate.
    let seen = RefCell::new([0; FOLLOWERS]);
    let followers = try_join_all((0..FOLLOWERS).map(|number| follow(address, &job, number, &seen)));
    let write = async {
        while seen.borrow().contains(&0) {
            sleep(Duration::from_millis(1)).await;
        }
        let begin = clock::now();
        std::fs::write(&gate, "")?;
        Ok::<_, Failure>(begin)
    };
    let (ends, begin) = try_join(followers, write).await?;
    let end = ends.into_iter().max().ok_or("no follower")?;
    let count = FOLLOWED_ROWS * FOLLOWERS;
    Ok(Some(Figure::single(count as f64 / (end - begin).as_secs_f64(), count, 0)))
}

const GATED: &str = "bench-followed-rows";

/// A command that writes as soon as there is a file.
fn gated(gate: &str) -> Writing {
    let row = job::wide_row();
    let script =
        format!(r#"until [ -e "$GATE" ]; do sleep 0.005; done; exec seq -f "{row}" {FOLLOWED_ROWS}"#);
    let (script, gate) = (json!(script), json!(gate));
    Writing { flow: GATED, task: format!("{{command: [sh, -c, {script}], inputs: {{GATE: {gate}}}}}") }
}

/// Follows a log to its end; when that came. `seen` is told which line arrived last.
async fn follow(
    address: Address,
    job: &str,
    number: usize,
    seen: &RefCell<[usize; FOLLOWERS]>,
) -> Result<Instant, Failure> {
    let mut connection = Connection::open(address).await?;
    let response = connection.start(get(&format!("/jobs/{job}/logs/stream"))?).await?;
    if !response.status().is_success() {
        return Err(format!("a stream was answered with {}", response.status()).into());
    }
    let mut body = response.into_body();
    let (mut lines, mut order) = (Lines::default(), Order::default());
    while let Some(piece) = next_piece(&mut body).await? {
        lines.push(&piece);
        for line in lines.whole()?.lines() {
            order.see(line)?;
        }
        if order.is_over {
            let end = clock::now();
            return if order.row == FOLLOWED_ROWS {
                Ok(end)
            } else {
                Err(format!("a follower got {} rows of {FOLLOWED_ROWS}", order.row).into())
            };
        }
        if let Some(seen) = seen.borrow_mut().get_mut(number) {
            *seen = order.line;
        }
    }
    Err("a stream has no end".into())
}

/// What has arrived, and that nothing is missing, doubled or out of order. Events are not parsed: there are millions.
#[derive(Default)]
struct Order {
    /// The number of the last line.
    line: usize,
    /// The last of the rows that the task numbers itself.
    row: usize,
    is_over: bool,
}

impl Order {
    fn see(&mut self, line: &str) -> Result<(), Failure> {
        if line == "event: status" {
            self.is_over = true;
        } else if self.is_over {
            // What the status says.
        } else if let Some(id) = line.strip_prefix("id: ") {
            self.line = next(self.line, id.parse()?)?;
        } else if let Some((_, message)) = line.split_once(MESSAGE)
            && let Some(row) = job::row(message)
        {
            self.row = next(self.row, row)?;
        }
        Ok(())
    }
}

fn next(last: usize, number: usize) -> Result<usize, Failure> {
    if number == last + 1 { Ok(number) } else { Err(format!("{number} came after {last}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Result<Order, Failure> {
        let mut order = Order::default();
        lines.iter().try_for_each(|line| order.see(line))?;
        Ok(order)
    }

    #[test]
    fn lines_and_rows_are_counted_to_the_end() {
        let started = ["event: logEntry", "id: 1", r#"data: {"seq":1,"message":"task started"}"#, ""];
        let row = ["event: logEntry", "id: 2", r#"data: {"seq":2,"message":"row 1 ..."}"#, ""];
        let end = ["event: status", "id: 2", "data: {}"];
        let order = seen(&[&started[..], &row, &end].concat()).expect("all in order");
        assert_eq!((order.line, order.row, order.is_over), (2, 1, true));
    }

    #[test]
    fn a_gap_and_a_repetition_are_found() {
        assert!(seen(&["id: 1", "id: 3"]).is_err());
        assert!(seen(&["id: 1", "id: 1"]).is_err());
        assert!(seen(&[r#"data: {"message":"row 1"}"#, r#"data: {"message":"row 3"}"#]).is_err());
    }
}
