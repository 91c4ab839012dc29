//! More and more readers of the events of one execution.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::{try_join, try_join_all};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::curve::{Curve, both, cell};
use crate::execution::{Chain, Driver};
use crate::http::{Address, Connection, get, next_piece};
use crate::ours::Ours;
use crate::sse::Events;
use crate::stats::Figure;
use crate::subject::{Stack, Subject as _};
use crate::{Failure, clock};

const CHAIN: Chain = Chain { graph: "bench-readers", nodes: 1 };
/// Events that are measured.
const REPORTS: usize = 40;
/// Between two of them: every reader has had the last one by then, so ages are those of one event and not of a queue of them.
const EVERY: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(120);
/// What a report is called as an event. Its message is the clock when it was sent.
const PROGRESS: &str = "NODE_PROGRESS_REPORTED";

pub(super) fn curve() -> Curve {
    Curve::new(
        "Readers of one execution's events (SSE), embedded",
        "readers",
        &["report sent → event arrived, ms", "report answered, ms", "memory, MiB"],
        &[1, 10, 100, 1_000],
    )
}

pub(super) async fn measure(ours: &Ours<'_>, curve: &mut Curve) -> Result<(), Failure> {
    for size in curve.sizes.clone() {
        let stack = ours.start(true).await?;
        CHAIN.put(stack.address).await?;
        let cells = timeout(PATIENCE, read(&stack, size)).await;
        curve.keep(size, cells.map_err(|_| "the readers did not get all events")??);
        stack.stop().await;
    }
    Ok(())
}

async fn read(stack: &Stack, size: usize) -> Result<Vec<String>, Failure> {
    let (address, keys) = (stack.address, Cell::new(0));
    let mut driver = Driver::open(address, &keys).await?;
    let execution = driver.start(CHAIN.graph).await?;
    driver.drive(&execution, 0, "start", "").await?;

    let (following, ages) = (Cell::new(0), RefCell::new(Vec::new()));
    let readers = try_join_all((0..size).map(|_| follow(address, &execution, &following, &ages)));
    let write = async {
        while following.get() < size {
            sleep(Duration::from_millis(1)).await;
        }
        let mut answered = Vec::new();
        for _ in 0..REPORTS {
            sleep(EVERY).await;
            let sent = clock::unix();
            let body = format!(r#"{{"progress":50,"message":"{sent}"}}"#);
            driver.drive(&execution, 0, "progress", &body).await?;
            answered.push((clock::unix() - sent) * 1_000.0);
        }
        let memory = stack.gateway.memory();
        driver.drive(&execution, 0, "success", "").await?;
        Ok::<_, Failure>((answered, memory))
    };
    let (_, (answered, memory)) = try_join(readers, write).await?;
    let ages = ages.into_inner();
    if ages.len() != REPORTS * size {
        return Err(format!("{} events arrived of {}", ages.len(), REPORTS * size).into());
    }
    Ok(vec![both(Figure::of(ages, 0).as_ref()), both(Figure::of(answered, 0).as_ref()), cell(memory)])
}

/// Follows to the end, and keeps how old each report was when it arrived.
async fn follow(
    address: Address,
    execution: &str,
    following: &Cell<usize>,
    ages: &RefCell<Vec<f64>>,
) -> Result<(), Failure> {
    let mut connection = Connection::open(address).await?;
    let response = connection.start(get(&format!("/executions/{execution}/events/stream"))?).await?;
    if !response.status().is_success() {
        return Err(format!("a stream was answered with {}", response.status()).into());
    }
    let mut body = response.into_body();
    let mut events = Events::default();
    let mut is_first = true;
    while let Some(piece) = next_piece(&mut body).await? {
        let arrived = clock::unix();
        if std::mem::take(&mut is_first) {
            following.set(following.get() + 1);
        }
        events.push(&piece);
        while let Some(event) = events.next()? {
            if event.name == "end" {
                return Ok(());
            }
            if event.name == PROGRESS {
                let sent = event.data.pointer("/payload/message").and_then(Value::as_str);
                let sent: f64 = sent.ok_or("a report without its message")?.parse()?;
                ages.borrow_mut().push((arrived - sent) * 1_000.0);
            }
        }
    }
    Err("a stream has no end".into())
}
