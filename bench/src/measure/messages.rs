//! How many messages a step costs the nats-server, by its own count.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::try_join;
use tokio::time::{sleep, timeout};

use super::CONNECTIONS;
use crate::broker::Storage;
use crate::flows::{self, SERVED, UNSERVED};
use crate::stats::Figure;
use crate::subject::Stack;
use crate::tape::is_end;
use crate::{Failure, clock, http, load};

const COUNT: usize = 500;
/// How long it is watched while nothing is asked of it, to know what comes anyway.
const IDLE: Duration = Duration::from_secs(2);
/// Until the last answers to the queue have arrived.
const SETTLE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages that all processes send for one submission that nobody takes.
pub(crate) async fn per_submission(stack: &Stack) -> Result<Option<Figure>, Failure> {
    let request = |_| http::submit(flows::noop().name, UNSERVED);
    counted(stack, async |_| {
        let sent = load::send_all(stack.address, CONNECTIONS, COUNT, request, |_| Ok(())).await?;
        Ok(sent.failed)
    })
    .await
}

/// Messages that all processes send for one run of a task that does nothing, its submission included. The bench sees the ends in the
/// bucket, because asking the gateway would cost messages too.
pub(crate) async fn per_run(stack: &Stack) -> Result<Option<Figure>, Failure> {
    let noop = flows::noop();
    let request = |_| http::submit_yaml(noop.name, SERVED, &noop.yaml);
    counted(stack, async |storage| {
        let ear = async_nats::connect(storage.url()).await?;
        let mut snapshots = ear.subscribe("$KV.pyoco_runs.*").await?;
        ear.flush().await?;
        let ended = async {
            let mut ended = HashSet::new();
            while ended.len() < COUNT {
                let message = snapshots.next().await.ok_or("the broker went away")?;
                if is_end(&message.payload) {
                    ended.insert(message.subject.to_string());
                }
            }
            Ok::<(), Failure>(())
        };
        let submitted = load::send_all(stack.address, CONNECTIONS, COUNT, request, |_| Ok(()));
        let ((), outcome) = timeout(PATIENCE, try_join(ended, submitted)).await??;
        Ok(outcome.failed)
    })
    .await
}

/// Messages for each of the [`COUNT`] things that `work` does, less those that come anyway. `work` gives how many failed.
async fn counted(
    stack: &Stack,
    work: impl AsyncFnOnce(Storage) -> Result<usize, Failure>,
) -> Result<Option<Figure>, Failure> {
    let storage = stack.storage.ok_or("it stores in no nats-server")?;
    let before = storage.received().await?;
    sleep(IDLE).await;
    let idle = (storage.received().await? - before) / IDLE.as_secs_f64();
    let (before, begin) = (storage.received().await?, clock::now());
    let failed = work(storage).await?;
    sleep(SETTLE).await;
    let messages = storage.received().await? - before - idle * begin.elapsed().as_secs_f64();
    Ok(Some(Figure::single(messages / COUNT as f64, COUNT, failed)))
}
