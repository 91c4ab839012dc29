//! Use cases over the ports: ask something of an execution, look at it, watch it, keep it going.
//!
//! The engine decides nothing by itself: `pyoco_core::decide` does. It loads, decides, appends with an expected version,
//! and carries out what follows. It knows no store by name (`pyoco-ports`), no HTTP and no Python, and it asks for time and
//! ids instead of making them.

mod ask;
mod audit;
mod bulk;
mod cache;
mod command;
mod consequences;
mod count;
mod endings;
mod environment;
mod graphs;
mod history;
mod lines;
mod marks;
mod patience;
mod peers;
mod projection;
mod prune;
mod publish;
mod query;
mod retry;
mod submit;
mod sweep;
mod trail;
mod watch;

use std::sync::Arc;

use pyoco_core::time::Millis;
use pyoco_figures::Figures;
use pyoco_ports::Store;

pub use ask::{Ask, Asked, Create};
pub use audit::{Audit, Finding};
pub use bulk::{Bulk, BulkAction, BulkResult, Bulked, Skip};
pub use command::{Decided, EngineError};
pub use endings::Endings;
pub use environment::{Clock, Ids};
pub use graphs::{Graph, GraphError, GraphKept, GraphPut};
pub use history::{EventPage, Follower, NumberedEvent};
pub use lines::{LineFilter, Lines, LogFollower, LogPage, NumberedLine};
pub use projection::job_body;
pub use prune::{Prune, Pruned};
pub use publish::may_be_foreign;
pub use retry::Retry;
pub(crate) use submit::uuid;
pub use submit::{Flow, Submission, Submitted};
pub use sweep::Swept;
pub use trail::Trail;
pub use watch::{Changes, Watcher};

/// The engine of one process. Clones share it.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    settings: Settings,
    cache: Arc<cache::Cache>,
    hub: Arc<watch::Hub>,
    lines: Lines,
    trail: Trail,
    /// Executions whose progress is to be shown before long.
    waiting: Arc<marks::Marks>,
    /// Executions of which an append was not answered in time.
    doubts: Arc<marks::Marks>,
    graphs: Arc<graphs::KnownGraphs>,
    shortage: Arc<sweep::Shortage>,
    /// Executions whose submission was answered with a failure although they may exist: they are taken back as soon as the store
    /// allows.
    refused: Arc<marks::Marks>,
    /// Held by whoever prunes.
    pruning: Arc<tokio::sync::Mutex<()>>,
    endings: Option<Arc<dyn Endings>>,
}

/// What an operator chooses.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a task may take to stop by itself after a cancel (`PYOCO_CANCEL_GRACE_PERIOD_SEC`); 0: as long as it likes.
    pub cancel_grace: Millis,
    /// Whether a failed execution leaves a dead letter (`PYOCO_DLQ_PUBLISH_EXECUTION_ERROR`).
    pub letters_for_failures: bool,
    /// A snapshot that is longer goes without its task records (`PYOCO_MAX_RUN_SNAPSHOT_BYTES`).
    pub max_snapshot_bytes: usize,
    /// The longest log of an execution (`PYOCO_RUN_LOG_MAX_BYTES`).
    pub max_log_bytes: u64,
    /// Who counts what it does.
    pub figures: Figures,
}

impl Settings {
    /// After the grace period a task is ended, five seconds later killed, and five seconds after that nobody waits for
    /// its worker any longer.
    const fn force_after(&self) -> Millis {
        match self.cancel_grace.0 {
            0 => Millis(u64::MAX),
            grace => Millis(grace.saturating_add(10_000)),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cancel_grace: Millis(30_000),
            letters_for_failures: true,
            max_snapshot_bytes: 262_144,
            max_log_bytes: 64 << 20,
            figures: Figures::default(),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    /// An engine on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, settings: Settings) -> Self {
        let lines = Lines::counted(store.clone(), settings.max_log_bytes, settings.figures.clone());
        let trail = Trail::new(store.clone(), ids.clone(), settings.figures.clone());
        Self {
            store,
            lines,
            trail,
            clock,
            ids,
            settings,
            cache: Arc::default(),
            hub: Arc::default(),
            waiting: Arc::default(),
            doubts: Arc::default(),
            graphs: Arc::default(),
            shortage: Arc::default(),
            refused: Arc::default(),
            pruning: Arc::default(),
            endings: None,
        }
    }

    /// Who counts what this process does, for those who do more than the engine.
    pub const fn figures(&self) -> &Figures {
        &self.settings.figures
    }

    /// The audit trail, for those who let others do something.
    pub const fn trail(&self) -> &Trail {
        &self.trail
    }

    /// The store behind it, for reads that need no execution.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}
