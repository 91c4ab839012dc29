//! Removing runs that ended long ago, by order: some at a time, so that whoever ordered it sees how far it is.

use pyoco_core::time::Timestamp;
use pyoco_engine::{self as engine, EngineError, Prune};
use pyoco_figures::Figures;
use pyoco_ports::EndedPlace;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::desk::Desk;
use super::order::{self, AdminError, Order};
use super::trail::{self, Done};
use crate::storage::{Role, Storage};
use crate::{Config, news};

/// So many runs an order removes at most; then it is ordered again.
const AT_ONCE: usize = 1_000;
/// After so many it is known how many are gone, also if what comes then fails: as many as go with one write.
const STEP: usize = 8;

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// So many runs are gone, or would be.
    pub removed: u64,
    /// So many that should be gone stay: their logs cannot be read, or somebody writes to them.
    pub left: u64,
}

/// Removes the runs that ended before an instant, at most so many, and tells how far it is now and then.
pub async fn prune(
    config: &Config,
    before: Timestamp,
    most: Option<usize>,
    dry_run: bool,
    mut told: impl FnMut(Pruned),
) -> Result<Pruned, AdminError> {
    // In NATS the index is this process's own; it is made once, for all orders.
    let here = match &config.nats_url {
        Some(_) => Some(Here::open(config).await?),
        None => None,
    };
    let (mut sum, mut after, mut room) = (Pruned::default(), None, most.unwrap_or(usize::MAX));
    let done = loop {
        let order = Order::Prune { before, most: room.min(AT_ONCE), after: after.take(), dry_run };
        let answer = match &here {
            Some(here) => order::perform(&here.desk, order).await,
            None => super::carry_out(config, order).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => break Err(error),
        };
        let number = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (removed, left) = (number("removed"), number("left"));
        sum = Pruned { removed: sum.removed + removed, left: sum.left + left };
        told(sum);
        room = room.saturating_sub(usize::try_from(removed + left).unwrap_or(usize::MAX));
        after = answer.get("next").and_then(|next| serde_json::from_value(next.clone()).ok());
        if after.is_none() || room == 0 {
            break Ok(sum);
        }
    };
    if let Some(here) = here {
        here.close().await;
    }
    done
}

/// A process that has an index of all runs in NATS, for as long as it prunes.
struct Here {
    desk: Desk,
    tasks: TaskTracker,
}

impl Here {
    async fn open(config: &Config) -> Result<Self, AdminError> {
        let storage = Storage::open(config, &Role::Gateway, &Figures::default()).await?;
        let (desk, tasks) = (Desk::alone(config, storage), TaskTracker::new());
        if let Storage::Nats(store) = &desk.storage {
            news::follow(store, &desk.engine, &tasks, &desk.stopping).await?;
        }
        Ok(Self { desk, tasks })
    }

    async fn close(self) {
        self.desk.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        tokio::join!(self.desk.engine.lines().flush(), self.desk.engine.trail().flush());
        // What was removed is removed.
        let _ = self.desk.storage.close().await;
    }
}

/// Carries out one order.
pub(super) async fn some(
    desk: &Desk,
    before: Timestamp,
    most: usize,
    after: Option<EndedPlace>,
    dry_run: bool,
) -> Result<Value, AdminError> {
    let is_foreign_too = desk.config.retention_foreign;
    let mut prune = Prune { before, is_foreign_too, most: most.min(AT_ONCE), after };
    if dry_run {
        let pruned = desk.engine.count_prunable(&prune).await.map_err(|error| failure(&error))?;
        return Ok(shown(&pruned, dry_run));
    }
    let (mut room, mut sum) = (prune.most, engine::Pruned::default());
    let mut failed = None;
    while room > 0 {
        prune.most = room.min(STEP);
        let step = tokio::select! {
            step = desk.engine.prune(&prune) => step.map_err(|error| failure(&error)),
            () = desk.stopping.cancelled() => {
                Err(AdminError::Failed("the server stops; what is left is removed when it is ordered again".to_owned()))
            }
        };
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                failed =
                    Some(AdminError::Failed(format!("{error} ({} runs were removed before)", sum.removed)));
                break;
            }
        };
        room -= prune.most;
        sum.removed += step.removed;
        sum.left += step.left;
        sum.next = step.next;
        if sum.next.is_none() {
            break;
        }
        prune.after = sum.next.clone();
    }
    let mut answer = shown(&sum, dry_run);
    if sum.removed > 0 || failed.is_some() {
        tracing::info!(removed = sum.removed, %before, "runs were removed by order");
        let details = &[("before", json!(before)), ("removed", json!(sum.removed))];
        let (action, failed) = ("runs.prune", failed.as_ref());
        let done = Done { action, tenant: None, target: None, details, failed };
        trail::write(desk, &mut answer, done).await;
    }
    failed.map_or(Ok(answer), Err)
}

fn shown(pruned: &engine::Pruned, dry_run: bool) -> Value {
    json!({"dry_run": dry_run, "removed": pruned.removed, "left": pruned.left, "next": pruned.next})
}

fn failure(error: &EngineError) -> AdminError {
    AdminError::Failed(error.to_string())
}
