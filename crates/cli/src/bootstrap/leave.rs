//! `leave`: has a controller take a server out of its cluster, waits until its copies are elsewhere, and stops it.

use std::time::Duration;

use pyoco_bootstrap::folder::Folder;
use pyoco_bootstrap::leaving::{self, Answer, Left, Petitioner, Word};
use pyoco_bootstrap::pidfile::{self, Named};
use pyoco_bootstrap::{conf, setup};
use serde_json::json;

use super::arguments::{Common, Leave};
use super::{FOLDER, down, refused, unconfirmed, up};
use crate::errors::Failure;
use crate::output;

const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn run(common: &Common, leave: &Leave) -> Result<(), Failure> {
    if !leave.confirm {
        return Err(unconfirmed("leave"));
    }
    if leave.controller.is_empty() {
        return Err(refused("leave requires --controller").hint("nats-bootstrap controller start runs one"));
    }
    let server = match &leave.server_name {
        Some(name) => name.clone(),
        None => own_name(leave),
    };
    if !server.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')) {
        return Err(refused(format!("{server:?} is no name of a server")));
    }
    // Before anything is changed: it could not be finished.
    is_right_process(common, leave)?;
    let request = leave.request_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let petitioner = Petitioner::new().map_err(Failure::unexpected)?;
    let mut reasons = Vec::new();
    for controller in &leave.controller {
        match petitioner.leave(controller, &request, &server, leave.nats_url.as_deref()).await {
            Err(why) => reasons.push(format!("{controller}: {why}")),
            Ok(answer) => {
                let result = answered(&answer, &server)?;
                if !common.json {
                    output::line(&format!("leave: {}", result.replace('_', " ")))?;
                }
                let patience = Duration::from_secs(leave.wait_sec);
                let (left, kept) = match moved(&petitioner, controller, &server, patience).await {
                    Moved::Away(left) => (left, None),
                    Moved::Held(left) => {
                        let kept = still_held(&server, &left);
                        (left, Some(kept))
                    }
                    Moved::Unknown(why) => return Err(not_known(&server, &why)),
                };
                let stopped = if kept.is_none() { stop_own(common, leave).await? } else { None };
                if common.json {
                    let (held, lacking) = (left.held, left.lacking);
                    output::json(&json!({"request_id": request, "server_name": server, "result": result,
                                         "held": held, "lacking": lacking, "stopped": stopped}))?;
                }
                return kept.map_or(Ok(()), Err);
            }
        }
    }
    if leave.stop_anyway {
        output::aside(&format!(
            "warning: controller unavailable ({}); nothing was stopped",
            reasons.join("; ")
        ));
        return Ok(());
    }
    Err(refused("controller unavailable").note("reason", reasons.join("; ")))
}

/// The name in the configuration of the folder, else what a server of this machine is called.
fn own_name(leave: &Leave) -> String {
    let folder = leave.datafolder.clone().unwrap_or_else(|| FOLDER.into());
    let conf = Folder::new(&folder).ok().and_then(|folder| std::fs::read_to_string(folder.conf()).ok());
    conf.as_deref().and_then(conf::name).unwrap_or_else(|| setup::usual_name(4222))
}

/// The word of the original for it.
fn answered(answer: &Answer, server: &str) -> Result<&'static str, Failure> {
    match answer {
        Answer::Done => Ok("ok"),
        Answer::Already => Ok("already_done"),
        Answer::WouldLose(streams) => Err(Failure::new(format!(
            "nobody but {server} is known to have all of {}, which would be lost; nothing was changed",
            streams.join(", ")
        ))
        .hint("nats-bootstrap raise --replicas 3 puts copies elsewhere; nats-bootstrap backup copies them")),
        Answer::Refused(why) => Err(Failure::new(format!("leave failed: {why}"))),
    }
}

/// What has become of the copies on the server.
enum Moved {
    /// None counts any more. Some streams may have too few elsewhere.
    Away(Left),
    /// Some still count at the end of the wait.
    Held(Left),
    /// Nobody could say until the end of the wait.
    Unknown(String),
}

/// Waits until nothing counts on the server any more.
async fn moved(petitioner: &Petitioner, controller: &str, server: &str, patience: Duration) -> Moved {
    let end = tokio::time::Instant::now() + patience;
    loop {
        let last = match petitioner.left(controller, server).await {
            Word::Unable => return Moved::Away(Left::default()),
            Word::Told(left) if left.held.is_empty() => {
                // Nowhere is room for another copy: it waits for a server, not for time.
                if !left.lacking.is_empty() {
                    output::aside(&format!(
                        "with fewer copies than they should have: {}; join another server",
                        left.lacking.join(", ")
                    ));
                }
                return Moved::Away(left);
            }
            Word::Told(left) => Moved::Held(left),
            // Servers that elect a leader tell a moment later.
            Word::Unknown(why) => Moved::Unknown(why),
        };
        if tokio::time::Instant::now() >= end {
            return last;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn still_held(server: &str, left: &Left) -> Failure {
    Failure::new(format!(
        "{server} is taken out, but {} still count on it; it was not stopped",
        left.held.join(", ")
    ))
    .hint("say it again, with a longer --wait-sec; if nothing changes, join another server for the copies")
}

fn not_known(server: &str, why: &str) -> Failure {
    Failure::new(format!(
        "{server} is taken out, but nobody knows what still counts on it; it was not stopped"
    ))
    .note("reason", why)
    .hint("say it again when the servers and the controller answer; nats-bootstrap doctor tells which do not")
}

/// Whether the server that was named is one of another folder.
fn is_elsewhere(leave: &Leave) -> bool {
    leave.server_name.as_ref().is_some_and(|name| *name != own_name(leave))
}

/// The process that would be stopped is the server of the folder, or there is none.
fn is_right_process(common: &Common, leave: &Leave) -> Result<(), Failure> {
    let Named::Ours(process) = pidfile::read(&common.pid_file) else { return Ok(()) };
    if is_elsewhere(leave) {
        return Ok(());
    }
    let path = leave.datafolder.clone().unwrap_or_else(|| FOLDER.into());
    let folder = Folder::new(&path).map_err(|error| Failure::file(&path.to_string_lossy(), &error))?;
    if leaving::is_server_of(&process, &folder) {
        return Ok(());
    }
    let (conf, file) = (folder.conf(), common.pid_file.display());
    Err(Failure::new(format!(
        "{file} names {process}, which was not started with {}; nothing was stopped",
        conf.display()
    ))
    .hint(format!("give the --pid-file that up or join had for {}", path.display())))
}

/// The server of this folder, if it runs here. One that was named may run elsewhere.
async fn stop_own(common: &Common, leave: &Leave) -> Result<Option<i32>, Failure> {
    if is_elsewhere(leave) || pidfile::read(&common.pid_file) == Named::Nobody {
        output::aside("no server of this folder was stopped");
        return Ok(None);
    }
    // Long may have passed since.
    is_right_process(common, leave)?;
    let (pid, _) = down::stop(common, up::END).await?;
    if !common.json {
        output::line("down: ok")?;
    }
    Ok(Some(pid))
}
