//! Warm task processes: started when a task needs one, kept for the next, ended when nobody does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::PythonOptions;
use super::host::{Host, Place};
use super::interpreter;

/// How often it looks for processes that nobody needs: so many times in the time that they may idle.
const LOOKS: u32 = 6;

/// The processes of a worker.
pub(super) struct Pool {
    options: Arc<PythonOptions>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    python: OnceCell<PathBuf>,
    sweeper: std::sync::Once,
}

struct Idle {
    host: Host,
    place: Place,
    since: Instant,
}

/// A process for one task. Dropping it ends the process.
pub(super) struct Lease {
    pub(super) host: Host,
    place: Place,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(options: Arc<PythonOptions>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(options.hosts.max(1)));
        Arc::new(Self {
            options,
            permits,
            idle: Mutex::new(Vec::new()),
            python: OnceCell::new(),
            sweeper: std::sync::Once::new(),
        })
    }

    /// A process for a task: a warm one, or a new one as soon as there may be one more.
    pub(super) async fn take(self: &Arc<Self>, place: &Place) -> Result<Lease, String> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| "the worker has stopped running tasks".to_owned())?;
        let host = match self.warm(place) {
            Some(host) => host,
            None => self.start(place).await?,
        };
        Ok(Lease { host, place: place.clone(), pool: self.clone(), _permit: permit })
    }

    /// The one that was used last, because the others may then end.
    fn warm(&self, place: &Place) -> Option<Host> {
        let mut idle = self.idle();
        while let Some(at) = idle.iter().rposition(|idle| idle.place == *place) {
            let mut found = idle.remove(at);
            // It may have died in the meantime, by somebody's hand.
            if found.host.group.is_running() {
                return Some(found.host);
            }
        }
        None
    }

    async fn start(&self, place: &Place) -> Result<Host, String> {
        let python = self.python.get_or_try_init(|| interpreter::find(&self.options)).await?;
        {
            // One that waits for other flows makes room.
            let mut idle = self.idle();
            let busy = self.options.hosts.max(1).saturating_sub(self.permits.available_permits());
            while !idle.is_empty() && idle.len() + busy > self.options.hosts.max(1) {
                idle.remove(0);
            }
        }
        Host::start(python, &self.options, place).map_err(|error| {
            let python = python.display();
            format!(
                "Python ('{python}') cannot be started: {error}; choose one with --python or PYOCO_PYTHON"
            )
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for idle processes now and then, for as long as there is a pool.
    fn sweep(self: &Arc<Self>) {
        let (pool, every): (Weak<Self>, _) = (Arc::downgrade(self), self.options.idle / LOOKS);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(pool) = pool.upgrade() else { return };
                let leaving = pool.overdue();
                drop(pool);
                for host in leaving {
                    tokio::spawn(host.finish());
                }
            }
        });
    }

    fn overdue(&self) -> Vec<Host> {
        let mut idle = self.idle();
        let spare = idle.len().saturating_sub(self.options.keep_warm);
        // The longest unused stand in front.
        let count =
            idle.iter().take(spare).take_while(|idle| idle.since.elapsed() >= self.options.idle).count();
        idle.drain(..count).map(|idle| idle.host).collect()
    }

    /// Starts nothing more, and lets what is idle leave.
    pub(super) async fn close(&self) {
        self.permits.close();
        let leaving: Vec<_> = self.idle().drain(..).map(|idle| tokio::spawn(idle.host.finish())).collect();
        for left in leaving {
            let _ = left.await;
        }
    }
}

impl Lease {
    /// Keeps the process for the next task.
    pub(super) fn give_back(self) {
        let Self { host, place, pool, _permit } = self;
        {
            let mut idle = pool.idle();
            // Looked at under the lock: whoever closes the pool takes it afterwards, and finds what we leave.
            if pool.permits.is_closed() {
                return;
            }
            idle.push(Idle { host, place, since: Instant::now() });
        }
        pool.sweeper.call_once(|| pool.sweep());
    }
}
