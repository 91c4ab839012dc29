//! An execution as it was, behind a long history.

use std::cell::Cell;

use serde_json::Value;

use crate::Failure;
use crate::clock;
use crate::execution::{Chain, Driver};
use crate::figures::{Figures, Metric};
use crate::http::{Address, Connection};
use crate::stats::{Figure, ms};

/// A hundred nodes, each of which reports often.
const CHAIN: Chain = Chain { graph: "bench-history", nodes: 100 };
/// How many events there are.
pub(crate) const EVENTS: usize = 10_000;
/// Reports of each node but the last, which makes up for what is missing.
const REPORTS: usize = 90;
const LOOKS: usize = 200;

/// One `GET ?at=` at a time on an idle server, in the middle and at the end.
pub(crate) async fn measure(address: Address, figures: &mut Figures) -> Result<(), Failure> {
    let execution = write(address).await?;
    for at in [EVENTS / 2, EVENTS] {
        figures.keep(Metric::HistoryAt { at }, looks(address, &execution, at).await);
    }
    Ok(())
}

/// Drives an execution until it has as many events as are wanted.
async fn write(address: Address) -> Result<String, Failure> {
    CHAIN.put(address).await?;
    let keys = Cell::new(0);
    let mut driver = Driver::open(address, &keys).await?;
    let execution = driver.start(CHAIN.graph).await?;
    let last = CHAIN.nodes - 1;
    for node in 0..last {
        driver.drive(&execution, node, "start", "").await?;
        for _ in 0..REPORTS {
            driver.drive(&execution, node, "progress", r#"{"progress":50,"message":"half"}"#).await?;
        }
        driver.drive(&execution, node, "success", r#"{"output":{"n":1}}"#).await?;
    }
    driver.drive(&execution, last, "start", "").await?;
    let written = driver.events(&execution).await?;
    for _ in written..EVENTS {
        driver.drive(&execution, last, "progress", r#"{"progress":50,"message":"half"}"#).await?;
    }
    match driver.events(&execution).await? {
        EVENTS => Ok(execution),
        other => Err(format!("the history has {other} events").into()),
    }
}

async fn looks(address: Address, execution: &str, at: usize) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    let path = format!("/executions/{execution}?at={at}");
    let (mut samples, mut failed) = (Vec::new(), 0);
    for _ in 0..LOOKS {
        let sent = clock::now();
        let answer = connection.get(&path).await;
        let took = sent.elapsed();
        let shown = answer.and_then(|answer| answer.json());
        if shown.is_ok_and(|shown| shown.get("seq").and_then(Value::as_u64) == Some(at as u64)) {
            samples.push(ms(took));
        } else {
            failed += 1;
        }
    }
    Ok(Figure::of(samples, failed))
}
