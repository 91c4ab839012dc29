//! How Python tasks end when they should not go on: crashes, signals, deadlines, and a worker that dies.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::mem_forget,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod ground;

use std::io::BufRead as _;
use std::time::Duration;

use ground::*;
use pyoco_core::plan::Runner;
use pyoco_core::state::Phase;
use pyoco_ports::LogStream;
use pyoco_worker::{End, Runtime as _, Urgency};
use serde_json::json;

fn callable(address: &str) -> Runner {
    Runner::Callable(address.to_owned())
}

/// Says its own pid and that of a grandchild, then never ends.
const FAMILY: &str = r#"
import os, signal, subprocess, sys, time
def family():
    child = subprocess.Popen(["sh", "-c", "sleep 600 & echo grandchild $!; wait"])
    print("host", os.getpid(), flush=True)
    print("child", child.pid, flush=True)
    while True:
        time.sleep(600)
def loop():
    print("host", os.getpid(), flush=True)
    while True:
        pass
def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("host", os.getpid(), flush=True)
    while True:
        time.sleep(600)
def tidy():
    try:
        print("host", os.getpid(), flush=True)
        time.sleep(600)
    finally:
        print("tidied up", flush=True)
def ok():
    return os.getpid()
"#;

async fn family(ground: &Ground) -> [String; 3] {
    [
        ground.lines.after("host ").await,
        ground.lines.after("child ").await,
        ground.lines.after("grandchild ").await,
    ]
}

#[tokio::test]
async fn a_process_that_dies_under_its_task_fails_it_and_is_replaced() {
    let tasks = r#"
import ctypes, os, signal, sys
def segfault():
    print("about to fall", file=sys.stderr)
    ctypes.string_at(0)
def exits(): os._exit(7)
def killed(): os.kill(os.getpid(), signal.SIGKILL)
def silent(): os.closerange(3, 256); return 1
def ok(): return "well"
"#;
    let ground = Ground::new(tasks);
    for (name, texts) in [
        ("segfault", ["the process of the task was ended by signal 11 (SIGSEGV)", "about to fall"]),
        ("exits", ["the process of the task ended with exit code 7", ""]),
        ("killed", ["was ended by signal 9 (SIGKILL)", "perhaps because memory ran out"]),
        ("silent", ["the process of the task ", ""]),
    ] {
        let end = ground.run(&format!("tasks:{name}")).await;
        let text = error(&end).text();
        assert!(texts.iter().all(|part| text.contains(part)), "{name}: {text}");
        assert_eq!(value(&ground.run("tasks:ok").await), json!("well"));
    }
}

#[tokio::test]
async fn dropping_an_attempt_ends_the_host_its_children_and_theirs_at_once() {
    let ground = Ground::new(FAMILY);
    let mut running = Box::pin(ground.runtime.run(call(&callable("tasks:family")), quiet()));
    let pids = tokio::select! {
        end = &mut running => panic!("{end:?}"),
        pids = family(&ground) => pids,
    };
    assert!(pids.iter().all(|pid| is_alive(pid)));
    drop(running);
    for pid in &pids {
        until_gone(pid).await;
    }
    assert!(matches!(ground.run("tasks:ok").await, End::Succeeded { .. }));
}

#[tokio::test]
async fn an_endless_loop_ends_at_its_deadline() {
    let ground = Ground::new(FAMILY);
    let yaml = "version: 2\nflow: {graph: 'a'}\ntasks: {a: {callable: 'tasks:loop', timeout_sec: 0.5}}\n";
    let state = ground.flow(yaml, json!({})).await;
    assert_eq!(state.phase, Phase::Failed);
    assert_eq!(state.last_error.as_deref(), Some("Task 'a' exceeded timeout of 0.5s"));
    until_gone(&ground.lines.after("host ").await).await;
}

#[tokio::test]
async fn a_task_that_is_ended_may_tidy_up() {
    let ground = Ground::new(FAMILY);
    for name in ["tidy", "loop"] {
        ground.lines.lines.lock().unwrap().clear();
        let (urgency, stop) = stop();
        let running = ground.runtime.run(call(&callable(&format!("tasks:{name}"))), stop);
        let ending = async {
            let pid = ground.lines.after("host ").await;
            urgency.send_replace(Urgency::Asked);
            urgency.send_replace(Urgency::Ending);
            pid
        };
        let (end, pid) = tokio::join!(running, ending);
        assert_eq!(end, End::Stopped);
        until_gone(&pid).await;
        let tidied = ground.lines.of(LogStream::Stdout).contains(&"tidied up".to_owned());
        assert_eq!(tidied, name == "tidy");
    }
}

#[tokio::test]
async fn a_task_that_ignores_the_signal_ends_when_it_is_let_go() {
    let ground = Ground::new(FAMILY);
    let (urgency, stop) = stop();
    let mut running = Box::pin(ground.runtime.run(call(&callable("tasks:deaf")), stop));
    let pid = tokio::select! {
        end = &mut running => panic!("{end:?}"),
        pid = ground.lines.after("host ") => pid,
    };
    urgency.send_replace(Urgency::Ending);
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut running).await;
    assert!(waited.is_err() && is_alive(&pid), "it does not hear");
    drop(running);
    until_gone(&pid).await;
}

#[tokio::test]
async fn a_signal_that_is_not_the_workers_ends_no_task() {
    let ground = Ground::new(
        "import os, signal\ndef t():\n    os.kill(os.getpid(), signal.SIGTERM)\n    return 'still here'\n",
    );
    assert_eq!(value(&ground.run("tasks:t").await), json!("still here"));
}

#[tokio::test]
async fn a_task_that_waits_for_a_process_can_be_stopped() {
    let ground = Ground::with(&[("tasks.py", FAMILY)], |options| options.hosts = 1);
    let (urgency, first) = stop();
    let holding = ground.runtime.run(call(&callable("tasks:family")), first);
    let waiting = async {
        let pids = family(&ground).await;
        let (second_urgency, second) = stop();
        second_urgency.send_replace(Urgency::Asked);
        let end = ground.runtime.run(call(&callable("tasks:ok")), second).await;
        assert_eq!(end, End::Stopped);
        urgency.send_replace(Urgency::Ending);
        pids
    };
    let (end, pids) = tokio::join!(holding, waiting);
    assert_eq!(end, End::Stopped);
    for pid in &pids {
        until_gone(pid).await;
    }
}

#[tokio::test]
async fn dropping_the_runtime_leaves_no_process() {
    let ground = Ground::new(FAMILY);
    let pid = value(&ground.run("tasks:ok").await).to_string();
    assert!(is_alive(&pid));
    drop(ground);
    until_gone(&pid).await;
}

/// Not a test of its own: the worker that the next one kills.
#[tokio::test]
#[ignore = "started by the_death_of_a_worker_ends_its_processes"]
async fn helper_that_is_killed() {
    let ground = Ground::with(&[("tasks.py", FAMILY)], |options| options.hosts = 3);
    ground.run("tasks:ok").await;
    let idle = value(&ground.run("tasks:ok").await).to_string();
    let runtime = ground.runtime.clone();
    tokio::spawn(async move { runtime.run(call(&callable("tasks:family")), quiet()).await });
    let runtime = ground.runtime.clone();
    let [_, child, grandchild] = family(&ground).await;
    let host = ground.lines.after("host ").await;
    ground.lines.lines.lock().unwrap().clear();
    tokio::spawn(async move { runtime.run(call(&callable("tasks:loop")), quiet()).await });
    let looping = ground.lines.after("host ").await;
    println!("\npids {idle} {host} {child} {grandchild} {looping}");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_death_of_a_worker_ends_its_processes() {
    let mut helper = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_that_is_killed", "--ignored", "--nocapture"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(helper.stdout.take().unwrap());
    let pids = tokio::task::spawn_blocking(move || {
        output.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("pids ").map(str::to_owned))
    })
    .await
    .unwrap()
    .expect("the helper says who it started");
    assert!(pids.split(' ').all(is_alive), "{pids}");
    helper.kill().unwrap();
    helper.wait().unwrap();
    for pid in pids.split(' ') {
        until_gone(pid).await;
    }
}

#[tokio::test]
async fn an_attempt_that_crashed_is_tried_again() {
    let tasks = "import os\ndef t():\n    path = 'tried'\n    if not os.path.exists(path):\n        open(path, 'w').close()\n        os._exit(1)\n    return 'second time'\n";
    let ground = Ground::new(tasks);
    let yaml = "flow: {graph: \"a\\na.task.retries = 1\"}\ntasks: {a: {callable: 'tasks:t'}}\n";
    let state = ground.flow(yaml, json!({})).await;
    assert_eq!((state.phase, state.tasks[0].attempts.len()), (Phase::Completed, 2), "{:?}", state.last_error);
}
