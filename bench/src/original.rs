//! pyoco-server of PyPI: a nats-server, a gateway and two workers, from packages that the bench installs.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::broker::{self, Sync};
use crate::flows::SERVED;
use crate::process::{Process, free_address, timed_start};
use crate::subject::{Places, RARE_EVERY, Sizes, Stack, Subject};
use crate::{Failure, packages};

const WORKERS: usize = 2;

/// The original, installed.
pub(crate) struct Original<'a> {
    places: &'a Places,
    sync: Sync,
}

impl<'a> Original<'a> {
    /// Installs the pinned packages, unless they are there.
    pub(crate) async fn install(places: &'a Places, python: &Path) -> Result<Self, Failure> {
        packages::of_python(python, &places.original, &places.venv, &places.logs).await?;
        Ok(Self { places, sync: Sync::Default })
    }

    /// The same on a nats-server that syncs in this way.
    pub(crate) fn with_sync(&self, sync: Sync) -> Self {
        Self { places: self.places, sync }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.places.venv.join("bin").join(program));
        command.env("PYTHONPATH", &self.places.flows).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

impl Subject for Original<'_> {
    const NAME: &'static str = "pyoco-server 0.5.1";

    fn sizes(&self) -> Sizes {
        Sizes {
            starts: 3,
            single_runs: 300,
            throughput_runs: 1_000,
            // It looks once a second, and its worker overwrites a cancel that comes while it writes: that task never learns of it.
            cancels: 0,
            stored: &[1_000, 20_000],
            // Each leaves a consumer behind, of which it can have 1,000 in five minutes.
            lists: 60,
            list_time: Duration::from_secs(30),
        }
    }

    async fn start(&self, only_gateway: bool) -> Result<Stack, Failure> {
        let data = self.places.fresh_data()?;
        let logs = &self.places.logs;
        let (nats, storage) = broker::start("original-nats", self.places, self.sync, data.path()).await?;
        let url = storage.url();

        let address = free_address().await?;
        let mut command = self.command("pyoco-server");
        // In the data folder there is no .env of the person's.
        command.current_dir(data.path());
        command.args([
            "up",
            "--host",
            "127.0.0.1",
            "--port",
            &address.port().to_string(),
            "--nats-url",
            &url,
        ]);
        let gateway = timed_start(address, || Process::start("original-gateway", &mut command, logs)).await?;

        let mut others = vec![nats];
        let workers = if only_gateway { 0 } else { WORKERS };
        for number in 0..workers {
            let name = format!("original-worker-{number}");
            let mut command = self.command("pyoco-worker");
            command.current_dir(data.path());
            command.args(["--nats-url", &url, "--tags", SERVED, "--worker-id", &name]);
            command.args(["--flow-resolver", "bench_flows:get_flow"]);
            others.push(Process::start(&name, &mut command, logs)?);
        }
        let stack = Stack::new(address, gateway, others, Some(storage), data);
        if !only_gateway {
            stack.wait_for_workers(WORKERS).await?;
        }
        Ok(stack)
    }

    async fn seed(&self, stack: &Stack, numbers: Range<usize>) -> Result<(), Failure> {
        let storage = stack.storage.ok_or("the original stores runs in a nats-server")?;
        let mut command = self.command("python");
        command.arg(self.places.original.join("seed_runs.py")).arg(storage.url());
        command.args([numbers.start, numbers.len(), RARE_EVERY].map(|number| number.to_string()));
        Process::start("original-seed", &mut command, &self.places.logs)?.finish().await
    }
}

/// A Python for the original: the one that was asked for, or 3.12. On 3.11 its worker stops taking jobs after a few runs.
pub(crate) async fn find_python(asked: Option<PathBuf>) -> Result<PathBuf, Failure> {
    const PROGRAM: &str =
        "import sys; assert sys.version_info >= (3, 12), sys.version; print(sys.executable)";
    let candidates = asked.map_or_else(|| vec!["python3.12".into(), "python3".into()], |asked| vec![asked]);
    for candidate in &candidates {
        // Where pyenv gives out several versions, it wants to be told which; nobody else reads the variable.
        let mut command = Command::new(candidate);
        command.args(["-c", PROGRAM]).env("PYENV_VERSION", "3.12").kill_on_drop(true);
        if let Ok(output) = command.output().await
            && output.status.success()
        {
            return Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()));
        }
    }
    Err(format!("no Python 3.12 or later among {candidates:?}").into())
}
