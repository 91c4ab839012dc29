//! Whether a server has found the others: before it is started, and after.

use std::time::Duration;

use pyoco_bootstrap::facts::Meta;
use pyoco_bootstrap::monitor::Monitor;
use pyoco_bootstrap::seed::{self, Seed};
use pyoco_bootstrap::setup::Wish;

use super::now;
use crate::errors::Failure;
use crate::output;

const LOOK: Duration = Duration::from_millis(100);

/// The name of the cluster that seeds are in. One of them must be there: nothing is started otherwise.
pub(super) async fn cluster_of(seeds: &[Seed], wanted: Option<&str>, own: &str) -> Result<String, Failure> {
    let mut name: Option<String> = None;
    let mut away = Vec::new();
    for seed in seeds {
        let address = seed.address();
        let there = match seed::introduction(&address).await {
            Ok(there) => there,
            Err(why) => {
                away.push(format!("{address}: {why}"));
                continue;
            }
        };
        let Some(cluster) = there.cluster.filter(|_| there.client_id.is_none()) else {
            return Err(Failure::new(format!(
                "{address} is where clients come, not servers; nothing was started"
            ))
            .hint(
                "name its cluster port, 6222 unless somebody chose another; a server on its own has none",
            ));
        };
        if there.server_name == own {
            return Err(Failure::new(format!("{address} is called {own} too; nothing was started"))
                .hint("give this one another --server-name"));
        }
        if let Some(wanted) = wanted.or(name.as_deref()).filter(|wanted| *wanted != cluster) {
            return Err(Failure::new(format!(
                "{address} is in cluster {cluster}, not {wanted}; nothing was started"
            ))
            .hint("the name must be the same everywhere; leave --cluster out to take the seed's"));
        }
        name = Some(cluster);
    }
    match name {
        Some(name) => {
            for why in away {
                output::aside(&format!("a seed is not there: {why}"));
            }
            Ok(name)
        }
        None => Err(Failure::new(format!("no seed is there, so nothing was started: {}", away.join("; ")))
            .hint("start the first server with `nats-bootstrap up --cluster NAME`, and let its cluster port be reached")),
    }
}

/// Waits until a server knows who leads the cluster; gives the leader's name.
pub(super) async fn wait(http: &str, patience: Duration) -> Result<String, Failure> {
    let monitor = Monitor::new().map_err(Failure::unexpected)?;
    let end = tokio::time::Instant::now() + patience;
    loop {
        let told = monitor.ask(http, now).await;
        let meta = told.as_ref().ok().and_then(|server| server.meta.clone());
        if let Some(leader) = meta.as_ref().and_then(|meta| meta.leader.clone()) {
            return Ok(leader);
        }
        if tokio::time::Instant::now() >= end {
            return Err(half(meta.as_ref()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// It runs, and JetStream does not.
fn half(meta: Option<&Meta>) -> Failure {
    let size = meta.map_or(0, |meta| meta.size);
    Failure::new(format!(
        "it runs, but has joined only half: nobody leads the cluster of {size}, so nothing can be stored yet"
    ))
    .hint("more than half of the servers must reach each other at their cluster ports, with the same passwords; nats-bootstrap doctor says who is away. It goes on trying; nats-bootstrap down --confirm stops it")
}

/// Says, beside the words of a server in the foreground, whether it has found the others.
pub(super) async fn tell(wish: &Wish, patience: Duration) {
    let Some(cluster) = &wish.cluster else { return };
    match wait(&format!("http://{}", wish.http.address()), patience).await {
        Ok(leader) => output::aside(&format!("nats-bootstrap: cluster {} is led by {leader}", cluster.name)),
        Err(half) => output::aside(&format!("nats-bootstrap: {half}")),
    }
}
