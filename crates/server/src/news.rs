//! What other processes write becomes known to this one: watchers are told, and what another implementation says enters the log.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_engine::Engine;
use pyoco_ports::Heard;
use pyoco_store_nats::{Listener, NatsStore};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::StartError;

/// So many may wait to be looked at; whoever brings more waits, and the server keeps them.
const WAITING: usize = 1_024;
/// So many are looked at at once.
const AT_ONCE: usize = 16;

/// Begins to listen, and returns when everything that stood there is in the index.
pub(crate) async fn follow(
    store: &Arc<NatsStore>,
    engine: &Engine,
    tasks: &TaskTracker,
    stopping: &CancellationToken,
) -> Result<(), StartError> {
    let (sender, receiver) = mpsc::channel(WAITING);
    tasks.spawn(pass_on(engine.clone(), receiver, stopping.clone()));
    let following = store.follow(Arc::new(Outbox(sender))).map_err(StartError::other)?;
    following.caught_up().await;
    Ok(())
}

struct Outbox(mpsc::Sender<Heard>);

#[async_trait]
impl Listener for Outbox {
    async fn heard(&self, heard: Heard) {
        // Nobody listens any more only when the process stops.
        let _ = self.0.send(heard).await;
    }
}

async fn pass_on(engine: Engine, mut news: mpsc::Receiver<Heard>, stopping: CancellationToken) {
    let at_once = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    loop {
        let heard = tokio::select! {
            heard = news.recv() => heard,
            () = stopping.cancelled() => None,
        };
        let (Some(heard), Ok(place)) = (heard, at_once.clone().acquire_owned().await) else { return };
        let engine = engine.clone();
        tokio::spawn(async move {
            engine.heed(&heard).await;
            drop(place);
        });
    }
}
