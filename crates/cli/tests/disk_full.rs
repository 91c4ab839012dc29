//! A disk that fills up under a running server: what cannot be kept is refused, what was accepted stays, and when there is room again
//! everything goes on by itself.
//!
//! The disk is a small file system of the server's own, which takes a mount namespace; where nobody may make one, the test says so.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use pyoco_client::api::RunStatus;
use serde_json::{Value, json};

use support::{PATIENCE, Running, Site};

const FLOW: &str = "version: 2\nflow: {graph: 'echo'}\ntasks:\n  echo: {callable: 'echo_tasks:echo'}\n";
const TASKS: &str = "def echo(text=''): return len(text)\n";
/// How often the disk fills up.
const ROUNDS: usize = 4;
/// The size of what is submitted: a few of them fill what is left.
const TEXT: usize = 20_000;

/// Mounts a small disk for one process and its children, and runs that process.
const ON_A_SMALL_DISK: &str =
    r#"mkdir -p "$0" && mount -t tmpfs -o size=24m,mode=700 pyoco "$0" && exec "$@""#;

fn namespace() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount"]).stdin(Stdio::null());
    command
}

fn can_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut probe = namespace();
    probe.args(["sh", "-c", ON_A_SMALL_DISK]).arg(folder.path()).arg("true");
    probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The server's command, on a small disk.
fn on_a_small_disk(site: &Site) -> Command {
    let plain = site.command(0);
    let mut command = namespace();
    command.args(["sh", "-c", ON_A_SMALL_DISK]).arg(site.path("data"));
    command.arg(plain.get_program()).args(plain.get_args());
    command.envs(&site.env).current_dir(plain.get_current_dir().unwrap());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Takes whatever room is left.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).unwrap();
    let block = vec![0; 64 * 1024];
    let mut size = block.len();
    while size > 0 {
        match file.write(&block[..size]) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => size /= 2,
            Err(error) => panic!("the ballast: {error}"),
        }
    }
}

/// What became of a submission.
enum Asked {
    Accepted(String),
    Refused(u16),
}

async fn submit(http: &reqwest::Client, url: &str, number: usize) -> Asked {
    let body = json!({"flow_name": "echo", "params": {"text": "x".repeat(TEXT), "number": number}});
    let answer = http.post(format!("{url}/runs")).json(&body).send().await.unwrap();
    match answer.status().as_u16() {
        200 => Asked::Accepted(answer.json::<Value>().await.unwrap()["run_id"].as_str().unwrap().to_owned()),
        status => {
            assert!(
                answer.headers().contains_key("retry-after"),
                "{status} without a word when to come back"
            );
            Asked::Refused(status)
        }
    }
}

async fn listed(running: &Running) -> usize {
    let text = running.client.get_metrics().await.unwrap();
    let counts = text.lines().filter_map(|line| line.strip_prefix("pyoco_runs_total{"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

#[tokio::test]
async fn a_full_disk_refuses_loses_nothing_and_goes_on_when_there_is_room_again() {
    if !can_mount() {
        eprintln!("skipped: nobody here may mount a file system of their own");
        return;
    }
    let site = Site::new().flow("echo", FLOW, TASKS);
    let mut running = site.start_with(on_a_small_disk(&site));
    let data = PathBuf::from(format!("/proc/{}/root{}", running.pid(), site.path("data").display()));
    // Keeps the disk when the server has ended.
    let disk = File::open(&data).unwrap();
    let ballast = data.join("ballast");
    let http = reqwest::Client::new();
    let (mut accepted, mut number) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        fill(&ballast);
        let since = Instant::now();
        let mut refused = 0;
        while refused < 20 {
            assert!(since.elapsed() < PATIENCE, "round {round}: a full disk takes everything");
            number += 1;
            match submit(&http, &running.url, number).await {
                Asked::Accepted(run) => accepted.push(run),
                Asked::Refused(status) => {
                    assert!([503, 507].contains(&status), "round {round}: {status}");
                    refused += 1;
                }
            }
        }
        // Who only looks notices nothing.
        if let Some(run) = accepted.last() {
            running.client.get_run(run).await.unwrap();
        }
        std::fs::remove_file(&ballast).unwrap();
        let since = Instant::now();
        loop {
            number += 1;
            if let Asked::Accepted(run) = submit(&http, &running.url, number).await {
                accepted.push(run);
                break;
            }
            assert!(since.elapsed() < PATIENCE, "round {round}: there is room, and nothing is taken");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for run in &accepted {
            let ended = running.until_ended(run).await;
            assert_eq!(ended.status, RunStatus::Completed, "round {round}: {:?}", ended.error);
        }
        assert_eq!(listed(&running).await, accepted.len(), "round {round}: what was refused is not there");
    }
    running.signal(Signal::SIGTERM);
    assert!(running.wait().success());
    // What is on the disk is sound, and is all of it.
    let copy = Site::new().flow("echo", FLOW, TASKS);
    std::fs::create_dir(copy.path("data")).unwrap();
    for entry in std::fs::read_dir(format!("/proc/self/fd/{}", disk.as_raw_fd())).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copy.path("data").join(entry.file_name())).unwrap();
        }
    }
    let again = copy.start();
    for run in &accepted {
        assert_eq!(again.client.get_run(run).await.unwrap().status, RunStatus::Completed);
    }
    assert_eq!(listed(&again).await, accepted.len());
}
