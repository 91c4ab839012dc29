//! Processes around one NATS: gateways and workers as an operator starts them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::support::{PATIENCE, Running, Site};
use crate::{ledger, support};

/// Whether there is time for the long form.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("SOAK").is_some_and(|value| value == "1")
}

/// Random numbers that can be had again; the seed is said.
pub(crate) fn random(test: &str) -> ChaCha8Rng {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2026);
    eprintln!("{test}: SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

/// A folder with flows, and everything that is started with them on one NATS.
pub(crate) struct Ground {
    pub(crate) site: Site,
    urls: String,
}

impl Ground {
    pub(crate) fn new(urls: &str) -> Self {
        let site = ledger::flows(Site::new()).argument("--nats-url").argument(urls);
        // Short, so that a test need not wait long for what they are there for.
        let site = site.env("PYOCO_CONSUMER_ACK_WAIT_SEC", "2").env("PYOCO_SWEEP_INTERVAL_SEC", "2");
        Self { site, urls: urls.to_owned() }
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.site = self.site.env(name, value);
        self
    }

    pub(crate) fn gateway(&self) -> Running {
        self.site.start()
    }

    /// A gateway that can be started again where it was.
    pub(crate) fn gateway_on(&self, port: u16) -> Running {
        self.site.start_on(port)
    }

    /// A worker for runs of a tag or several, with so many of them at once.
    pub(crate) fn worker(&self, name: &str, tags: &str, concurrency: usize) -> Worker {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-worker"));
        command.args(["--nats-url", &self.urls, "--worker-id", name, "--tags", tags]);
        command.args(["--concurrency", &concurrency.to_string(), "--task-slots", "2"]);
        command.arg("--flows").arg(self.site.path("flows"));
        command.envs(&self.site.env).current_dir(self.site.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let (stdout, kept) = (child.stdout.take().unwrap(), log.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Worker { child, log }
    }

    /// What the tasks have written so far.
    pub(crate) fn ledger(&self) -> Vec<ledger::Line> {
        ledger::read(&self.site.path("ledger"))
    }

    /// Where the tasks write.
    pub(crate) fn ledger_path(&self) -> String {
        self.site.path("ledger").to_str().unwrap().to_owned()
    }
}

/// A worker process. It ends with this value.
pub(crate) struct Worker {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Stops it where it is, all of its threads. Its tasks are processes of their own and go on.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let since = Instant::now();
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = || {
            std::fs::read_dir(&tasks).unwrap().flatten().all(|task| {
                let line = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                line.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
            })
        };
        while !is_stopped() {
            assert!(since.elapsed() < PATIENCE, "the worker does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Worker {
    /// Ends it without a word (`kill -9`).
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until there is something to see.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(since.elapsed() < PATIENCE, "{what} takes longer than {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many runs have this status, as a gateway counts them.
pub(crate) async fn count(gateway: &Running, status: &str) -> u64 {
    let metrics = gateway.client.get_metrics().await.unwrap();
    let wanted = format!("pyoco_runs_total{{status=\"{status}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0, |count| count.parse().unwrap())
}

pub(crate) use support::free_port;
