//! How soon a running task notices that it is canceled.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::runs::run_id;
use crate::flows::{HELD, SERVED};
use crate::http::{self, Address, Connection};
use crate::stats::Figure;
use crate::{Failure, clock};

const LOOK_EVERY: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// From sending `POST /runs/ID/cancel` to the clock that the task reads when it notices, in ms. The task looks every
/// millisecond.
pub(crate) async fn delays(address: Address, count: u64, folder: &Path) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut samples = Vec::new();
    for number in 0..count {
        let mark = folder.join(format!("held-{number}"));
        let params = json!({"mark": mark.to_string_lossy()});
        let answer = connection.send(http::submit_with(HELD, SERVED, &params)?).await?;
        let id = run_id(&answer.json()?)?;
        found(&mark.with_extension("begun")).await?;
        // Pauses of many lengths, so that whoever writes or looks every so often is met at every moment.
        sleep(Duration::from_millis(number * 37 % 300)).await;
        let sent = clock::unix();
        connection.send(http::cancel(&id)?).await?.json()?;
        let noticed: f64 = found(&mark.with_extension("noticed")).await?.parse()?;
        samples.push((noticed - sent) * 1_000.0);
        ended(&mut connection, &id).await?;
    }
    Ok(Figure::of(samples, 0))
}

/// What a task has left in a file, once it is there.
async fn found(path: &Path) -> Result<String, Failure> {
    let look = async {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) => return text,
                Err(_) => sleep(LOOK_EVERY).await,
            }
        }
    };
    Ok(timeout(PATIENCE, look).await.map_err(|_| format!("no task has left {}", path.display()))?)
}

/// Waits until a run is over, so that its worker is free.
async fn ended(connection: &mut Connection, id: &str) -> Result<(), Failure> {
    let path = format!("/runs/{id}");
    let look = async {
        loop {
            let snapshot = connection.get(&path).await?.json()?;
            match snapshot.get("status").and_then(Value::as_str) {
                Some("PENDING" | "RUNNING" | "CANCELLING") => sleep(LOOK_EVERY).await,
                Some("CANCELLED") => return Ok(()),
                Some(_) | None => return Err(format!("a run was not canceled: {snapshot}").into()),
            }
        }
    };
    timeout(PATIENCE, look).await.map_err(|_| format!("run {id} was not canceled in {PATIENCE:?}"))?
}
