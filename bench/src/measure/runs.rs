//! Runs that are carried out: how many a second, how long one takes, and what lies between two tasks.

use std::time::Duration;

use hyper::Request;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::CONNECTIONS;
use crate::flows::{self, SERVED, Workflow};
use crate::http::{Address, Connection, submit_yaml};
use crate::stats::{Figure, ms};
use crate::{Failure, clock, load};

/// Between two looks at a run. What is seen is late by at most this and one GET.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// Between two looks at the last of many runs.
const GLANCE_EVERY: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const REPEATS: usize = 15;

/// Lets each worker load the flows once.
pub(crate) async fn warm_up(address: Address) -> Result<(), Failure> {
    let mut connection = Connection::open(address).await?;
    for workflow in [flows::noop(), flows::chain(), flows::fan_out(), flows::noop(), flows::noop()] {
        run(&mut connection, &workflow).await?;
    }
    Ok(())
}

/// Submits a run when the system is idle and looks at it until it is COMPLETED; the time between, in ms.
pub(crate) async fn single(address: Address, count: usize) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    let noop = flows::noop();
    let mut samples = Vec::new();
    for pause in (0_u64..50).map(|number| number * 37 % 50).cycle().take(count) {
        // Pauses of many lengths, so that a server that polls is not always met at the same moment of its round.
        sleep(Duration::from_millis(20 + pause)).await;
        let begin = clock::now();
        run(&mut connection, &noop).await?;
        samples.push(ms(begin.elapsed()));
    }
    Ok(Figure::of(samples, 0))
}

/// What the same runs took, in ms.
pub(crate) struct Times {
    /// By the clock that two of the tasks read.
    pub(crate) between: Vec<f64>,
    /// Submitted → seen COMPLETED.
    pub(crate) whole: Vec<f64>,
}

/// The time from one task of a chain to the next, by the clock that the first and the last task read; and the whole chain.
pub(crate) async fn chain(address: Address) -> Result<Times, Failure> {
    let tasks = flows::chain_tasks();
    let (first, last) = tasks.first().zip(tasks.last()).ok_or("a chain without tasks")?;
    let steps = (tasks.len() - 1) as f64;
    let mut times = times(address, &flows::chain(), first, last).await?;
    times.between.iter_mut().for_each(|between| *between /= steps);
    Ok(times)
}

/// The time from the task before 400 parallel ones to the task after them, by the clock that these two read; and the whole.
pub(crate) async fn fan_out(address: Address) -> Result<Times, Failure> {
    times(address, &flows::fan_out(), "root", "join").await
}

async fn times(address: Address, workflow: &Workflow, from: &str, to: &str) -> Result<Times, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut times = Times { between: Vec::new(), whole: Vec::new() };
    for _ in 0..REPEATS {
        let begin = clock::now();
        let id = run(&mut connection, workflow).await?;
        times.whole.push(ms(begin.elapsed()));
        let snapshot = connection.get(&format!("/runs/{id}?include=full")).await?.json()?;
        let read = |task: &str| {
            snapshot
                .pointer(&format!("/task_records/{task}/output"))
                .and_then(Value::as_f64)
                .ok_or_else(|| format!("run {id} has no output of {task}"))
        };
        times.between.push((read(to)? - read(from)?) * 1_000.0);
    }
    Ok(times)
}

/// Submits one run and looks at it until it is COMPLETED.
async fn run(connection: &mut Connection, workflow: &Workflow) -> Result<String, Failure> {
    let answer = connection.send(submit_yaml(workflow.name, SERVED, &workflow.yaml)?).await?;
    let id = run_id(&answer.json()?)?;
    wait_for(connection, &id, LOOK_EVERY).await?;
    Ok(id)
}

pub(crate) fn run_id(answer: &Value) -> Result<String, Failure> {
    let id = answer.get("run_id").and_then(Value::as_str);
    Ok(id.ok_or_else(|| format!("no run_id in {answer}"))?.to_owned())
}

/// Looks at a run until it is COMPLETED; gives what was seen last.
async fn wait_for(connection: &mut Connection, id: &str, every: Duration) -> Result<Value, Failure> {
    let path = format!("/runs/{id}");
    let completed = async {
        loop {
            let snapshot = connection.get(&path).await?.json()?;
            if is_completed(&snapshot)? {
                return Ok(snapshot);
            }
            pause(every).await;
        }
    };
    timeout(PATIENCE, completed).await.map_err(|_| format!("run {id} did not end in {PATIENCE:?}"))?
}

/// Waits that long. The runtime counts in milliseconds and makes two of one, so what is shorter is left to the thread, which has
/// nothing else to do.
#[allow(clippy::disallowed_methods, reason = "a bench waits by the clock")]
async fn pause(time: Duration) {
    if time < Duration::from_millis(5) {
        std::thread::sleep(time);
    } else {
        sleep(time).await;
    }
}

/// Whether a run has ended well. One that ended otherwise is an error: there would be nothing to compare.
pub(crate) fn is_completed(snapshot: &Value) -> Result<bool, Failure> {
    match snapshot.get("status").and_then(Value::as_str) {
        Some("COMPLETED") => Ok(true),
        Some("PENDING" | "RUNNING") => Ok(false),
        Some(_) | None => Err(format!("a run did not complete: {snapshot}").into()),
    }
}

/// Runs a second: `count` runs are submitted as fast as 16 connections allow; from the first request to the time at which
/// the last terminal snapshot was written, which all servers stamp with the clock of this machine. While they run the
/// bench looks at one run only.
pub(crate) async fn throughput(
    address: Address,
    count: usize,
    request: impl Fn() -> Result<Request<String>, Failure>,
) -> Result<Option<Figure>, Failure> {
    let mut ids = Vec::new();
    let begin = clock::unix();
    let outcome = load::send_all(
        address,
        CONNECTIONS,
        count,
        |_| request(),
        |answer| {
            ids.push(run_id(&answer.json()?)?);
            Ok(())
        },
    )
    .await?;
    let mut connection = Connection::open(address).await?;
    let mut end = begin;
    for id in ids.iter().rev() {
        let snapshot = wait_for(&mut connection, id, GLANCE_EVERY).await?;
        let written = snapshot.get("updated_at").and_then(Value::as_f64).ok_or("no updated_at")?;
        if written < begin || written > clock::unix() {
            return Err(format!("run {id} says it was written at {written}, which cannot be").into());
        }
        end = end.max(written);
    }
    Ok(Some(Figure::single(ids.len() as f64 / (end - begin), ids.len(), outcome.failed)))
}
