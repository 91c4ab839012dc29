//! Our server on a nats-server: a gateway, and workers that are processes of their own or one inside it.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;

use crate::Failure;
use crate::broker::{self, Sync};
use crate::flows::SERVED;
use crate::ours;
use crate::process::{Process, free_address, timed_start};
use crate::subject::{Places, Sizes, Stack, Subject};

/// Our gateway and workers, built, and the interpreter for their tasks.
#[derive(Clone)]
pub(crate) struct Distributed<'a> {
    pub(crate) places: &'a Places,
    pub(crate) python: PathBuf,
    pub(crate) sync: Sync,
    /// Worker processes.
    pub(crate) workers: usize,
    /// Runs at once of each.
    pub(crate) runs_at_once: usize,
    /// Instead of the worker processes the gateway has one worker inside, which runs as many at once as they would together.
    pub(crate) is_together: bool,
}

impl Distributed<'_> {
    /// Whether everything is built.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match [&self.places.server, &self.places.worker].into_iter().find(|program| !program.exists()) {
            Some(program) => Err(format!("{} is missing: {}", program.display(), ours::BUILD).into()),
            None => Ok(()),
        }
    }

    /// What a worker takes, and how.
    fn serve(&self, command: &mut Command, runs_at_once: usize) {
        command.args(["--tags", SERVED, "--flow-resolver", "bench_flows:get_flow"]);
        command.arg("--python").arg(&self.python);
        command.args(["--concurrency", &runs_at_once.to_string()]);
    }

    fn command(&self, program: &PathBuf, stack: &tempfile::TempDir) -> Command {
        let mut command = Command::new(program);
        command.env("PYTHONPATH", &self.places.flows).env("PYTHONDONTWRITEBYTECODE", "1");
        // There is no .env of the person's.
        command.current_dir(stack.path());
        command
    }
}

impl Subject for Distributed<'_> {
    const NAME: &'static str = "this server on NATS";

    fn sizes(&self) -> Sizes {
        Sizes {
            starts: 0,
            single_runs: 150,
            throughput_runs: 1_000,
            cancels: 100,
            stored: &[20_000],
            lists: 1_000,
            list_time: Duration::from_secs(10),
        }
    }

    async fn start(&self, only_gateway: bool) -> Result<Stack, Failure> {
        let data = self.places.fresh_data()?;
        let logs = &self.places.logs;
        let (nats, storage) = broker::start("ours-nats", self.places, self.sync, data.path()).await?;
        let url = storage.url();

        let address = free_address().await?;
        let mut command = self.command(&self.places.server, &data);
        command.args(["up", "--host", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--nats-url", &url]);
        let is_together = self.is_together && !only_gateway;
        if is_together {
            self.serve(command.arg("--with-worker"), self.workers * self.runs_at_once);
        }
        let gateway = timed_start(address, || Process::start("ours-gateway", &mut command, logs)).await?;

        let mut others = vec![nats];
        let workers = if only_gateway || is_together { 0 } else { self.workers };
        for number in 0..workers {
            let name = format!("ours-worker-{number}");
            let mut command = self.command(&self.places.worker, &data);
            command.args(["--nats-url", &url, "--worker-id", &name]);
            self.serve(&mut command, self.runs_at_once);
            others.push(Process::start(&name, &mut command, logs)?);
        }
        let stack = Stack::new(address, gateway, others, Some(storage), data);
        stack.wait_for_workers(workers.max(usize::from(is_together))).await?;
        Ok(stack)
    }

    async fn seed(&self, stack: &Stack, numbers: Range<usize>) -> Result<(), Failure> {
        ours::seed(stack, numbers).await
    }
}
