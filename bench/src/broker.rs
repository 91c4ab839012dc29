//! A nats-server: the same program for the original, for ours and for the bare loop, with one of two ways to sync.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::Failure;
use crate::http::{Address, Connection};
use crate::process::{Process, free_address};
use crate::subject::Places;

/// When a nats-server writes to the disk what it has answered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Every two minutes, its own choice.
    Default,
    /// Before each answer.
    Always,
}

impl Sync {
    pub(crate) const ALL: [Self; 2] = [Self::Default, Self::Always];
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default sync",
            Self::Always => "sync_interval: always",
        })
    }
}

/// Where a nats-server listens.
#[derive(Clone, Copy)]
pub(crate) struct Storage {
    address: Address,
    monitor: Address,
}

impl Storage {
    pub(crate) fn url(self) -> String {
        format!("nats://{}", self.address)
    }

    /// How many messages all its clients have sent it so far.
    pub(crate) async fn received(self) -> Result<f64, Failure> {
        let told = Connection::open(self.monitor).await?.get("/varz").await?.json()?;
        Ok(told.get("in_msgs").and_then(Value::as_f64).ok_or("/varz has no in_msgs")?)
    }
}

/// Starts one that keeps its streams in `data`.
pub(crate) async fn start(
    name: &str,
    places: &Places,
    sync: Sync,
    data: &Path,
) -> Result<(Process, Storage), Failure> {
    let storage = Storage { address: free_address().await?, monitor: free_address().await? };
    let sync = match sync {
        Sync::Default => "",
        Sync::Always => "sync_interval: always",
    };
    let (address, monitor) = (storage.address, storage.monitor);
    let settings =
        format!("listen: \"{address}\"\nhttp: \"{monitor}\"\njetstream {{ store_dir: {data:?}\n {sync} }}\n");
    let file = data.join("nats.conf");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(program(places));
    command.arg("-c").arg(file);
    let mut process = Process::start(name, &mut command, &places.logs)?;
    process.wait_for_port(address).await?;
    Ok((process, storage))
}

/// The one that comes with the original's packages, the one of the tests, or one on the PATH.
fn program(places: &Places) -> PathBuf {
    let installed = [&places.venv, &places.test_venv].map(|venv| venv.join("bin/nats-server"));
    installed.into_iter().find(|program| program.exists()).unwrap_or_else(|| "nats-server".into())
}
