//! `raise`: existing streams stand on more servers.

use std::time::Duration;

use pyoco_store_nats::cluster::{self, Raised};
use serde_json::json;

use super::arguments::{Common, Place, Raise};
use super::place;
use crate::errors::Failure;
use crate::output;

const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn run(common: &Common, raise: &Raise) -> Result<(), Failure> {
    let replicas = raise.replicas.parse().map_err(|_| Failure::arguments("--replicas"))?;
    let raised = all(&raise.place, replicas, Duration::from_secs(raise.wait_sec)).await?;
    if common.json {
        return output::json(&json!({"replicas": replicas, "raised": raised}));
    }
    if raised.is_empty() {
        return output::line("raise: nothing to do");
    }
    for Raised { stream, from, to } in &raised {
        output::line(&format!("{stream}: {from} → {to}"))?;
    }
    output::line("raise: ok")
}

/// Has every stream of ours stand on so many servers, and waits until every copy is whole.
pub(super) async fn all(place: &Place, replicas: usize, patience: Duration) -> Result<Vec<Raised>, Failure> {
    let config = place::config(place)?;
    let settings = place::settings(&config);
    let raised = cluster::raise(&settings, replicas).await.map_err(|error| {
        Failure::new(error.to_string())
            .hint(format!("{replicas} servers must be there: nats-bootstrap status. What was raised stays; say it again to go on"))
    })?;
    let end = tokio::time::Instant::now() + patience;
    loop {
        // While copies are made a leader may be elected anew.
        let unfinished = match cluster::unfinished(&settings).await {
            Ok(unfinished) if unfinished.is_empty() => break,
            Ok(unfinished) => unfinished
                .iter()
                .map(|(stream, whole, wanted)| format!("{stream} {whole}/{wanted}"))
                .collect::<Vec<_>>()
                .join(", "),
            Err(error) => error.to_string(),
        };
        if tokio::time::Instant::now() >= end {
            return Err(Failure::new(format!(
                "the copies are being made and are not whole yet: {unfinished}"
            ))
            .hint("nats-bootstrap status shows when they are"));
        }
        tokio::time::sleep(LOOK).await;
    }
    output::aside(&format!(
        "set PYOCO_NATS_REPLICAS={replicas} for gateways and workers, so that what is made later has as many"
    ));
    Ok(raised)
}
