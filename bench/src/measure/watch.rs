//! How old news is when a watcher gets it.

use std::time::Duration;

use futures_util::future::try_join;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::runs::{is_completed, run_id};
use crate::flows::{self, SERVED};
use crate::http::{Address, Connection, get, next_piece, submit_yaml};
use crate::sse::Events;
use crate::stats::Figure;
use crate::{Failure, clock};

const PAIRS: u32 = 8;
/// Each watch begins a little later into its run than the one before, so that together they meet every moment of the half second in which the
/// original looks once.
const LATER: Duration = Duration::from_millis(31);
const PATIENCE: Duration = Duration::from_secs(30);

/// The clock at the arrival of a snapshot, less the `updated_at` in it, in ms. The first event of each watch is left out: it
/// tells what was so before.
pub(crate) async fn ages(address: Address) -> Result<Option<Figure>, Failure> {
    let mut ages = Vec::new();
    for pair in 0..PAIRS {
        // Two at once: as many as there are workers.
        let (one, other) = try_join(watch(address, pair * 2), watch(address, pair * 2 + 1)).await?;
        ages.extend(one);
        ages.extend(other);
    }
    Ok(Figure::of(ages, 0))
}

async fn watch(address: Address, number: u32) -> Result<Vec<f64>, Failure> {
    timeout(PATIENCE, watch_to_the_end(address, number)).await.map_err(|_| "a watched run did not end")?
}

async fn watch_to_the_end(address: Address, number: u32) -> Result<Vec<f64>, Failure> {
    let mut connection = Connection::open(address).await?;
    let paced = flows::paced();
    let answer = connection.send(submit_yaml(paced.name, SERVED, &paced.yaml)?).await?;
    let id = run_id(&answer.json()?)?;
    sleep(LATER * number).await;
    let response = connection.start(get(&format!("/runs/{id}/watch?timeout_sec=60"))?).await?;
    if !response.status().is_success() {
        return Err(format!("watch answered {}", response.status()).into());
    }
    let mut body = response.into_body();
    let mut events = Events::default();
    let mut ages = Vec::new();
    let mut last = None;
    while let Some(piece) = next_piece(&mut body).await? {
        let arrived = clock::unix();
        events.push(&piece);
        while let Some(event) = events.next()? {
            if event.name != "snapshot" {
                continue;
            }
            let snapshot = event.data.get("snapshot").ok_or("a snapshot event without a snapshot")?;
            let updated = snapshot.get("updated_at").and_then(Value::as_f64).ok_or("no updated_at")?;
            if last.is_some_and(|last| updated > last) {
                ages.push((arrived - updated) * 1_000.0);
            }
            last = Some(updated);
            if is_completed(snapshot)? {
                return Ok(ages);
            }
        }
    }
    Err("the watch ended before its run".into())
}
