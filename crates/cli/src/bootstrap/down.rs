//! `down`: stops what `up` has started, and nothing else.

use std::time::Duration;

use pyoco_bootstrap::pidfile::{self, Named};
use pyoco_bootstrap::process::{self, Stopped};
use serde_json::json;

use super::arguments::{Common, Down};
use super::{refused, unconfirmed};
use crate::errors::Failure;
use crate::output;

pub(super) async fn run(common: &Common, down: &Down) -> Result<(), Failure> {
    if !down.confirm {
        return Err(unconfirmed("down"));
    }
    let (pid, is_killed) = stop(common, Duration::from_secs(down.wait_sec)).await?;
    if common.json {
        return output::json(&json!({"down": "ok", "pid": pid, "killed": is_killed}));
    }
    output::line("down: ok")
}

/// Stops the process that the file names, if that is certain; says which it was, and whether it was killed.
pub(super) async fn stop(common: &Common, patience: Duration) -> Result<(i32, bool), Failure> {
    let (path, shown) = (&common.pid_file, common.pid_file.display());
    let process = match pidfile::read(path) {
        Named::Ours(process) => process,
        Named::Nobody => {
            return Err(refused(format!("down failed: there is no {shown}"))
                .hint("run it in the folder where up was run, or give --pid-file"));
        }
        Named::Ended(pid) => {
            return Err(refused(format!("down failed: {shown} is stale, pid {pid} has ended"))
                .hint("nothing was stopped; remove the file, or let the next up do it"));
        }
        Named::Another(pid, name) => {
            return Err(refused(format!("down failed: {shown} is stale, pid {pid} is {name} now"))
                .hint("nothing was stopped; remove the file, or let the next up do it"));
        }
        Named::Unproven(pid, name) => {
            return Err(refused(format!(
                "down failed: {shown} names {name} (pid {pid}), which nats-bootstrap did not start"
            ))
            .hint(format!("nothing was stopped; if it is the right one: kill {pid}")));
        }
        Named::Unreadable(why) => return Err(refused(format!("down failed: {shown}: {why}"))),
    };
    let failed = |error: std::io::Error| refused(format!("down failed: {process}: {error}"));
    let stopped = process::stop(&process, patience).await.map_err(failed)?;
    pidfile::release(path, &process).map_err(failed)?;
    if stopped == Stopped::Killed {
        output::aside(&format!("it did not end within {} s and was killed", patience.as_secs()));
    }
    Ok((process.pid, stopped == Stopped::Killed))
}
