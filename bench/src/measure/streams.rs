//! Many readers of the events of one execution.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::{join_all, try_join, try_join_all};
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use crate::execution::{Chain, Driver};
use crate::http::{Address, Connection, get, next_piece};
use crate::sse::Lines;
use crate::stats::Figure;
use crate::{Failure, clock};

const CHAIN: Chain = Chain { graph: "bench-streams", nodes: 1 };
/// How many read at once.
pub(crate) const READERS: usize = 200;
/// How many report at once, so that the readers have to keep up.
const WRITERS: usize = 4;
/// Reports of each.
const REPORTS: usize = 500;
const PATIENCE: Duration = Duration::from_secs(120);

/// Events a second that arrive at all readers together: from the first report until the last reader has the last event. Every reader
/// has to get every event once and in order, and then the end.
pub(crate) async fn delivered(address: Address) -> Result<Option<Figure>, Failure> {
    timeout(PATIENCE, deliver(address)).await.map_err(|_| "the readers did not get all events")?
}

async fn deliver(address: Address) -> Result<Option<Figure>, Failure> {
    CHAIN.put(address).await?;
    let keys = Cell::new(0);
    let mut driver = Driver::open(address, &keys).await?;
    let execution = driver.start(CHAIN.graph).await?;
    driver.drive(&execution, 0, "start", "").await?;
    let before = driver.events(&execution).await?;

    let seen = RefCell::new(vec![0; READERS]);
    let readers = try_join_all((0..READERS).map(|number| read(address, &execution, number, &seen)));
    let write = async {
        while seen.borrow().iter().any(|seen| *seen < before) {
            sleep(Duration::from_millis(1)).await;
        }
        let begin = clock::now();
        let reports = (0..WRITERS).map(|_| report(address, &execution, &keys));
        join_all(reports).await.into_iter().collect::<Result<(), _>>()?;
        driver.drive(&execution, 0, "success", "").await?;
        let last = driver.events(&execution).await?;
        Ok::<_, Failure>((begin, last))
    };
    let (ends, (begin, last)) = try_join(readers, write).await?;
    if let Some(seen) = seen.borrow().iter().find(|seen| **seen != last) {
        return Err(format!("a reader got {seen} events of {last}").into());
    }
    let end = ends.into_iter().max().ok_or("no reader")?;
    let count = (last - before) * READERS;
    Ok(Some(Figure::single(count as f64 / (end - begin).as_secs_f64(), count, 0)))
}

async fn report(address: Address, execution: &str, keys: &Cell<usize>) -> Result<(), Failure> {
    let mut driver = Driver::open(address, keys).await?;
    for number in 0..REPORTS {
        let body = format!(r#"{{"progress":{},"message":"row {number}"}}"#, number * 100 / REPORTS);
        driver.drive(execution, 0, "progress", &body).await?;
    }
    Ok(())
}

/// Reads a stream to its end; when that came. `seen` is told what arrived last.
async fn read(
    address: Address,
    execution: &str,
    number: usize,
    seen: &RefCell<Vec<usize>>,
) -> Result<std::time::Instant, Failure> {
    let mut connection = Connection::open(address).await?;
    let response = connection.start(get(&format!("/executions/{execution}/events/stream"))?).await?;
    if !response.status().is_success() {
        return Err(format!("a stream was answered with {}", response.status()).into());
    }
    let mut body: Incoming = response.into_body();
    let mut lines = Lines::default();
    let mut last = 0;
    while let Some(piece) = next_piece(&mut body).await? {
        lines.push(&piece);
        for line in lines.whole()?.lines() {
            if let Some(id) = line.strip_prefix("id: ") {
                let id: usize = id.parse()?;
                if id != last + 1 {
                    return Err(format!("event {id} came after event {last}").into());
                }
                last = id;
            } else if line == "event: end" {
                return Ok(clock::now());
            }
        }
        if let Some(seen) = seen.borrow_mut().get_mut(number) {
            *seen = last;
        }
    }
    Err("a stream has no end".into())
}
