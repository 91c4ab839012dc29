//! What is measured: an implementation that can be started, alone or with its workers, and filled with runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::broker::Storage;
use crate::http::{Address, Connection};
use crate::process::Process;
use crate::{Failure, clock};

/// One run of every [`RARE_EVERY`] seeded ones is of the flow "rare", the others are of the flow "common".
pub(crate) const RARE_EVERY: usize = 20;

/// The folders of a bench.
pub(crate) struct Places {
    /// The tasks that the flows name.
    pub(crate) flows: PathBuf,
    /// What the comparison needs beside the packages.
    pub(crate) original: PathBuf,
    /// A folder for each peer: what it needs and what it is asked.
    pub(crate) peers: PathBuf,
    /// Where their packages are installed.
    pub(crate) peer_packages: PathBuf,
    /// Where the packages are installed.
    pub(crate) venv: PathBuf,
    /// What the measured processes print.
    pub(crate) logs: PathBuf,
    /// What they store, on the disk that the repository is on.
    pub(crate) data: PathBuf,
    /// The table.
    pub(crate) report: PathBuf,
    /// Our own server.
    pub(crate) server: PathBuf,
    /// Our own worker.
    pub(crate) worker: PathBuf,
    /// The tool that makes API keys.
    pub(crate) admin: PathBuf,
    /// Where `make test` installs packages, a nats-server among them.
    pub(crate) test_venv: PathBuf,
}

impl Places {
    pub(crate) fn new() -> Self {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = bench.parent().unwrap_or(bench);
        let target = root.join("target");
        Self {
            flows: bench.join("flows"),
            original: bench.join("original"),
            peers: bench.join("peers"),
            peer_packages: target.join("bench-peers"),
            venv: target.join("bench-venv"),
            logs: target.join("bench-logs"),
            data: target.join("bench-data"),
            report: target.join("bench.md"),
            server: target.join("release/pyoco-server"),
            worker: target.join("release/pyoco-worker"),
            admin: target.join("release/pyoco-server-admin"),
            test_venv: root.join(".venv"),
        }
    }

    /// A fresh folder that goes when it is dropped.
    pub(crate) fn fresh_data(&self) -> Result<tempfile::TempDir, Failure> {
        std::fs::create_dir_all(&self.data)?;
        Ok(tempfile::tempdir_in(&self.data)?)
    }
}

/// How often each measurement is repeated. The original is slow where we are not; a bench must end.
pub(crate) struct Sizes {
    pub(crate) starts: usize,
    pub(crate) single_runs: usize,
    pub(crate) throughput_runs: usize,
    /// None, when there is nothing to compare.
    pub(crate) cancels: u64,
    /// For how many stored runs lists are measured, smallest first.
    pub(crate) stored: &'static [usize],
    /// How many lists of each kind, unless [`Sizes::list_time`] is over before.
    pub(crate) lists: usize,
    pub(crate) list_time: Duration,
}

/// An implementation.
pub(crate) trait Subject {
    const NAME: &'static str;

    fn sizes(&self) -> Sizes;

    /// Starts the server with empty storage, and workers unless `only_gateway`.
    async fn start(&self, only_gateway: bool) -> Result<Stack, Failure>;

    /// Adds the runs of these numbers to what is stored. They wait for a worker that never comes.
    async fn seed(&self, stack: &Stack, numbers: std::ops::Range<usize>) -> Result<(), Failure>;
}

/// A started implementation.
pub(crate) struct Stack {
    pub(crate) address: Address,
    pub(crate) gateway: Process,
    pub(crate) others: Vec<Process>,
    /// From the start of the gateway's process to the first answer of `GET /health`, in ms.
    pub(crate) start_ms: f64,
    /// The nats-server, for those that store in one; its process is the first of the others.
    pub(crate) storage: Option<Storage>,
    /// Kept until the processes are gone: fields are dropped in order.
    data: tempfile::TempDir,
}

impl Stack {
    pub(crate) fn new(
        address: Address,
        (gateway, start_ms): (Process, f64),
        others: Vec<Process>,
        storage: Option<Storage>,
        data: tempfile::TempDir,
    ) -> Self {
        Self { address, gateway, others, start_ms, storage, data }
    }

    /// The folder of what it stores.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Waits until this many workers are ready for runs.
    pub(crate) async fn wait_for_workers(&self, count: usize) -> Result<(), Failure> {
        let mut connection = Connection::open(self.address).await?;
        let deadline = clock::now() + Duration::from_secs(20);
        loop {
            let answer = connection.get("/workers").await?;
            let workers = answer.json().unwrap_or(Value::Null);
            if workers.as_array().is_some_and(|workers| workers.len() >= count) {
                return Ok(());
            }
            if clock::now() > deadline {
                return Err(format!("{count} workers did not appear: {workers}").into());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Resident memory of all processes together, in MiB.
    pub(crate) fn memory_of_all(&self) -> Option<f64> {
        let all = self.others.iter().chain([&self.gateway]);
        all.map(Process::memory_of_family).sum()
    }

    /// Ends all processes but the first of the others, which is the nats-server.
    pub(crate) async fn leave_storage(self) -> Result<Left, Failure> {
        let storage = self.storage.ok_or("it stores in no nats-server")?;
        self.gateway.stop().await;
        let mut others = self.others;
        while others.len() > 1 {
            if let Some(process) = others.pop() {
                process.stop().await;
            }
        }
        Ok(Left { storage, _processes: others, _data: self.data })
    }

    /// Ends all processes of one that stores in its own folder, which stays.
    pub(crate) async fn stop_and_keep(self) -> tempfile::TempDir {
        self.gateway.stop().await;
        self.data
    }

    /// Ends all processes: workers first, storage last.
    pub(crate) async fn stop(self) {
        self.gateway.stop().await;
        for process in self.others.into_iter().rev() {
            process.stop().await;
        }
    }
}

/// What is left of a stack: its nats-server with everything in it.
pub(crate) struct Left {
    pub(crate) storage: Storage,
    _processes: Vec<Process>,
    _data: tempfile::TempDir,
}
