//! Our own server: one process, embedded storage with fsync, a worker inside.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use crate::flows::{SERVED, UNSERVED};
use crate::process::{Process, free_address, timed_start};
use crate::subject::{Places, RARE_EVERY, Sizes, Stack, Subject};
use crate::{Failure, http, load};

/// As many as the original has workers, each of which runs one at a time.
const RUNS_AT_ONCE: &str = "2";
/// The folder of the store, in that of the data.
const STORE: &str = "store";
const SEEDING_CONNECTIONS: usize = 64;
/// How what is measured is built.
pub(crate) const BUILD: &str =
    "cargo build --release -p pyoco-cli --bin pyoco-server --bin pyoco-worker --bin pyoco-server-admin";

/// Our server, built, and the interpreter for its tasks.
pub(crate) struct Ours<'a> {
    places: &'a Places,
    python: PathBuf,
}

impl<'a> Ours<'a> {
    pub(crate) fn new(places: &'a Places, python: PathBuf) -> Result<Self, Failure> {
        if !places.server.exists() {
            return Err(format!("{} is missing: {BUILD}", places.server.display()).into());
        }
        Ok(Self { places, python })
    }

    /// A folder for data, with where in it the server stores.
    pub(crate) fn fresh_store(&self) -> Result<(TempDir, PathBuf), Failure> {
        let data = self.places.fresh_data()?;
        let store = Self::store_in(data.path());
        Ok((data, store))
    }

    /// The folder of the store, in that of the data.
    pub(crate) fn store_in(data: &Path) -> PathBuf {
        data.join(STORE)
    }

    /// The tool that makes keys.
    pub(crate) fn admin(&self) -> &Path {
        &self.places.admin
    }

    /// Starts the server on what `data` holds.
    pub(crate) async fn start_on(&self, data: TempDir) -> Result<Stack, Failure> {
        self.start_with(data, &[]).await
    }

    /// The same, with settings of its own.
    pub(crate) async fn start_with(
        &self,
        data: TempDir,
        settings: &[(&str, &str)],
    ) -> Result<Stack, Failure> {
        let address = free_address().await?;
        let mut command = Command::new(&self.places.server);
        command
            .env("PYTHONPATH", &self.places.flows)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(settings.iter().copied())
            .current_dir(data.path());
        command.args(["up", "--host", "127.0.0.1", "--port", &address.port().to_string()]);
        command.arg("--data-dir").arg(data.path().join(STORE)).arg("--python").arg(&self.python);
        command.args(["--concurrency", RUNS_AT_ONCE, "--flow-resolver", "bench_flows:get_flow"]);
        command.args(["--tags", SERVED]);
        let gateway =
            timed_start(address, || Process::start("ours", &mut command, &self.places.logs)).await?;
        Ok(Stack::new(address, gateway, Vec::new(), None, data))
    }
}

impl Subject for Ours<'_> {
    const NAME: &'static str = "this server";

    fn sizes(&self) -> Sizes {
        Sizes {
            starts: 10,
            single_runs: 300,
            throughput_runs: 1_000,
            cancels: 100,
            stored: &[1_000, 20_000, 100_000],
            lists: 1_000,
            list_time: Duration::from_secs(10),
        }
    }

    async fn start(&self, only_gateway: bool) -> Result<Stack, Failure> {
        let stack = self.start_on(self.places.fresh_data()?).await?;
        if !only_gateway {
            stack.wait_for_workers(1).await?;
        }
        Ok(stack)
    }

    async fn seed(&self, stack: &Stack, numbers: Range<usize>) -> Result<(), Failure> {
        seed(stack, numbers).await
    }
}

/// Submits runs that nobody takes: our own server is fast enough for that.
pub(crate) async fn seed(stack: &Stack, numbers: Range<usize>) -> Result<(), Failure> {
    let first = numbers.start;
    let request = |number: usize| {
        let is_rare = (first + number).is_multiple_of(RARE_EVERY);
        http::submit(if is_rare { "rare" } else { "common" }, UNSERVED)
    };
    let outcome =
        load::send_all(stack.address, SEEDING_CONNECTIONS, numbers.len(), request, |_| Ok(())).await?;
    match outcome.example {
        Some(problem) => Err(format!("{} runs were refused while seeding: {problem}", outcome.failed).into()),
        None => Ok(()),
    }
}
