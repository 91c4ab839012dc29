//! Wheels on a worker, with a real Python and a real pip: what a run imports, and what becomes of it when the shelf changes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::mem_forget,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and says what it has measured"
)]

mod ground;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use ground::*;
use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_core::state::{Phase, Root, State};
use pyoco_engine::Clock as _;
use pyoco_ports::{NewWheel, StoreError, WheelBytes, Wheels as _, WorkerRegistry as _};
use pyoco_testkit::{wheel, wheel_for, worker_id};
use pyoco_wheels::{Sha256Digest, WheelName};
use pyoco_worker::{Options, WheelOptions, Worker};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// Says which version of the package `tools` it has.
const TASKS: &str = r#"
import os, subprocess, sys, time

def version():
    import tools
    return tools.VERSION

def version_if_any():
    try:
        import tools
    except ImportError:
        return None
    return tools.VERSION

def first(flag):
    import tools
    print("waiting")
    while not os.path.exists(flag):
        time.sleep(0.01)
    return tools.VERSION

def later():
    # Not imported by anybody before.
    import tools.late
    child = subprocess.run([sys.executable, "-c", "import tools; print(tools.VERSION)"], capture_output=True, text=True)
    return [tools.late.VERSION, child.stdout.strip()]
"#;

const VERSION: &str = "flow: {graph: 'v'}\ntasks: {v: {callable: 'tasks:version'}}\n";
const VERSION_IF_ANY: &str = "flow: {graph: 'v'}\ntasks: {v: {callable: 'tasks:version_if_any'}}\n";
const LONG: &str = "flow: {graph: 'first >> later'}\ntasks:\n  first: {callable: 'tasks:first', inputs: {flag: $ctx.params.flag}}\n  later: {callable: 'tasks:later'}\n";

struct Whole(Option<Vec<u8>>);

#[async_trait]
impl WheelBytes for Whole {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.take())
    }
}

fn tools(version: &str) -> (String, Vec<u8>) {
    let code = format!("VERSION = '{version}'\ndef main():\n    print('tool', VERSION)\n");
    let late = format!("VERSION = '{version}'\n");
    let scripts = "[console_scripts]\ntool = tools:main\n";
    let files = [
        ("tools/__init__.py", code.as_str()),
        ("tools/late.py", &late),
        ("{dist_info}/entry_points.txt", scripts),
    ];
    wheel("tools", version, &files)
}

impl Ground {
    async fn put(&self, (name, bytes): (String, Vec<u8>)) -> String {
        self.put_for(&[], (name, bytes)).await
    }

    async fn put_for(&self, tags: &[&str], (name, bytes): (String, Vec<u8>)) -> String {
        let wheel = NewWheel {
            name: name.parse().unwrap(),
            size_bytes: bytes.len() as u64,
            sha256: Sha256Digest::of_bytes(Sha256::digest(&bytes).into()),
            at: self.clock.now(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            content_type: "application/octet-stream".to_owned(),
        };
        self.store.put_wheel(wheel, &mut Whole(Some(bytes))).await.unwrap().unwrap();
        name
    }

    async fn delete(&self, name: &str) {
        let name: WheelName = name.parse().unwrap();
        self.store.delete_wheel(&name, self.clock.now()).await.unwrap().unwrap();
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("synced")
    }

    fn wheel_options(&self) -> WheelOptions {
        WheelOptions::new(self.dir(), self.python.clone())
    }

    fn syncing(&self) -> Worker {
        self.syncing_as("w1", self.wheel_options())
    }

    fn syncing_as(&self, id: &str, wheels: WheelOptions) -> Worker {
        let mut options = Options::new(worker_id(id), vec![Tag::default()]);
        (options.concurrency, options.heartbeat_every) = (4, Duration::from_millis(20));
        options.wheels = Some(wheels);
        self.worker_with(options)
    }

    /// What a worker shows of its wheels.
    async fn shown(&self, worker: &Worker) -> Value {
        worker.close().await;
        let record = self.store.worker(&worker.options().worker).await.unwrap().unwrap();
        serde_json::from_slice::<Value>(&record.body).unwrap()["wheel_sync"].clone()
    }

    /// One run of a worker that is there for it alone.
    async fn run_on(&self, worker: &Worker, yaml: &str) -> State {
        let execution = self.submit("main", Some(yaml), json!({})).await;
        let ran = worker.run_once(Duration::from_secs(1)).await.unwrap();
        assert_eq!(ran, Some(execution.clone()));
        self.engine.state(&execution).await.unwrap()
    }

    async fn ended(&self, execution: &ExecutionId) -> State {
        let look = async {
            loop {
                let state = self.engine.state(execution).await.unwrap();
                if state.phase.is_terminal() {
                    return state;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), look).await.expect("it does not end")
    }
}

fn results(state: &State) -> Value {
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    state.context.root(Root::Results).clone()
}

fn names(state: &State) -> Option<Vec<String>> {
    Some(state.wheels.as_ref()?.iter().map(|wheel| wheel.name.clone()).collect())
}

fn folders(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn files(dir: &Path) -> BTreeSet<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256Digest::of_bytes(Sha256::digest(bytes).into()).to_string()
}

#[tokio::test]
async fn a_run_imports_what_a_wheel_brought_and_says_which_it_was() {
    let ground = Ground::new(TASKS);
    let made = tools("1.0");
    let hash = sha256(&made.1);
    let name = ground.put(made).await;
    let worker = ground.syncing();
    // The callable itself is in the wheel too: it is imported when the flow is loaded.
    let yaml =
        "flow: {graph: 'v >> w'}\ntasks: {v: {callable: 'tasks:version'}, w: {callable: 'tools:main'}}\n";
    let state = ground.run_on(&worker, yaml).await;
    assert_eq!(results(&state)["v"], "1.0");
    let used = state.wheels.unwrap();
    assert_eq!(
        (used[0].name.as_str(), used[0].version.as_str(), &used[0].sha256),
        (name.as_str(), "1.0", &hash)
    );
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(ground.dir().join(".installed.json")).unwrap()).unwrap();
    let entry = &manifest[&name];
    assert_eq!((&entry["package_name"], &entry["package_version"]), (&json!("tools"), &json!("1.0")));
    assert_eq!((&entry["sha256_hex"], &entry["nuid"]), (&json!(hash), &json!("upload-1")));
    assert!(entry["installed_at"].as_f64().unwrap() > 1e9 && entry["size_bytes"].as_u64().unwrap() > 0);
    let shown = ground.shown(&worker).await;
    assert_eq!((&shown["enabled"], &shown["last_result"]), (&json!(true), &json!("ok")));
    assert_eq!((&shown["selected_wheels"], &shown["updated_count"]), (&json!([name]), &json!(1)));
    assert_eq!(shown["installed_wheels"][0]["package_version"], "1.0");
    assert!(shown["last_error"].is_null() && shown["last_synced_at"].is_number());
}

#[tokio::test]
async fn a_worker_that_does_not_install_wheels_says_so_and_its_runs_name_none() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let worker = ground.worker();
    let state = ground.run_on(&worker, VERSION_IF_ANY).await;
    assert_eq!((results(&state), names(&state)), (json!({"v": null}), None));
    let shown = ground.shown(&worker).await;
    assert_eq!((&shown["enabled"], &shown["last_result"]), (&json!(false), &json!("disabled")));
}

#[tokio::test]
async fn an_empty_shelf_is_fine() {
    let ground = Ground::new(TASKS);
    let worker = ground.syncing();
    let state = ground.run_on(&worker, VERSION_IF_ANY).await;
    assert_eq!((results(&state), names(&state)), (json!({"v": null}), Some(Vec::new())));
    assert_eq!(ground.shown(&worker).await["last_result"], "ok");
}

#[tokio::test]
async fn a_run_keeps_the_version_it_began_with_and_the_next_one_has_the_newer() {
    let ground = Ground::new(TASKS);
    let first = ground.put(tools("1.0")).await;
    let worker = Arc::new(ground.syncing());
    let working = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let flag = ground.folder.path().join("flag");
    let long = ground.submit("main", Some(LONG), json!({"flag": flag})).await;
    ground.lines.after("waiting").await;
    let second = ground.put(tools("2.0")).await;
    // Nobody waits for an interval: the shelf was heard to change.
    let short = ground.submit("main", Some(VERSION), json!({})).await;
    let short = ground.ended(&short).await;
    assert_eq!((results(&short), names(&short)), (json!({"v": "2.0"}), Some(vec![second])));
    std::fs::write(&flag, "").unwrap();
    let long = ground.ended(&long).await;
    // Also in a module that it had not imported yet, and in a process that the task starts.
    assert_eq!(results(&long), json!({"first": "1.0", "later": ["1.0", "1.0"]}));
    assert_eq!(names(&long), Some(vec![first]));
    worker.close().await;
    working.await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_installed_leaves_what_is_there_and_is_tried_again() {
    let ground = Ground::new(TASKS);
    let good = ground.put(tools("1.0")).await;
    let worker = ground.syncing();
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
    let bad = ground.put(("broken-1.0-py3-none-any.whl".to_owned(), b"no archive at all".to_vec())).await;
    let state = ground.run_on(&worker, VERSION).await;
    assert_eq!((results(&state), names(&state)), (json!({"v": "1.0"}), Some(vec![good.clone()])));
    assert_eq!(folders(&ground.dir().join("sets")).len(), 1, "nothing of it is to be seen");
    assert!(folders(&ground.dir().join("making")).is_empty());
    let other = ground.syncing_as("w2", ground.wheel_options());
    // One that starts now takes up what there was, although what there is cannot be installed.
    assert_eq!(results(&ground.run_on(&other, VERSION).await)["v"], "1.0");
    let shown = ground.shown(&other).await;
    assert_eq!(shown["last_result"], "error");
    let error = shown["last_error"].as_str().unwrap();
    assert!(error.contains("broken") && error.len() <= 2_000, "{error}");
    assert_eq!(shown["installed_wheels"][0]["wheel_name"], json!(good));
    // The pause after a failure does not hold whoever hears that the shelf has changed.
    ground.delete(&bad).await;
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
    let shown = ground.shown(&worker).await;
    assert_eq!((&shown["last_result"], &shown["last_error"]), (&json!("ok"), &Value::Null));
}

#[tokio::test]
async fn a_wheel_that_was_taken_from_the_shelf_is_gone_for_the_next_run() {
    let ground = Ground::new(TASKS);
    let name = ground.put(tools("1.0")).await;
    let worker = ground.syncing();
    assert_eq!(results(&ground.run_on(&worker, VERSION_IF_ANY).await)["v"], "1.0");
    ground.delete(&name).await;
    let state = ground.run_on(&worker, VERSION_IF_ANY).await;
    assert_eq!((results(&state), names(&state)), (json!({"v": null}), Some(Vec::new())));
    let manifest = std::fs::read_to_string(ground.dir().join(".installed.json")).unwrap();
    assert_eq!(manifest, "{}");
    let shown = ground.shown(&worker).await;
    assert_eq!((&shown["removed_wheels"], &shown["selected_count"]), (&json!([name]), &json!(0)));
    assert_eq!(shown["installed_wheels"], json!([]));
}

#[tokio::test]
async fn only_wheels_for_this_worker_and_its_python_are_taken() {
    let ground = Ground::new(TASKS);
    ground.put_for(&["gpu"], wheel("cuda_tools", "1.0", &[("cuda_tools.py", "")])).await;
    let mine = ground.put_for(&["gpu", "default"], tools("1.0")).await;
    let foreign = [("fast.so", "")];
    let skipped = ground.put(wheel_for("cp27-cp27m-win_amd64", "fast", "1.0", &foreign)).await;
    let worker = ground.syncing();
    let state = ground.run_on(&worker, VERSION).await;
    assert_eq!(names(&state), Some(vec![mine.clone()]));
    let shown = ground.shown(&worker).await;
    assert_eq!(
        (&shown["selected_wheels"], &shown["skipped_incompatible_count"]),
        (&json!([mine]), &json!(1))
    );
    let wanted = json!([{"wheel_name": skipped, "package_name": "fast", "package_version": "1.0", "reason": "unsupported_wheel_tags"}]);
    assert_eq!(shown["skipped_incompatible"], wanted);
}

#[tokio::test]
async fn a_wheel_for_this_very_python_wins_over_the_general_one() {
    let ground = Ground::new(TASKS);
    let script = "import sys, sysconfig; v = f'cp3{sys.version_info[1]}'; print(f'{v}-{v}-' + sysconfig.get_platform().replace('-', '_').replace('.', '_'))";
    let said = std::process::Command::new(python()).args(["-c", script]).output().unwrap();
    let tag = String::from_utf8(said.stdout).unwrap().trim().to_owned();
    let own = ground.put(wheel_for(&tag, "tools", "1.0", &[("tools.py", "VERSION = 'own'\n")])).await;
    let state = ground.run_on(&ground.syncing(), VERSION).await;
    assert_eq!((results(&state)["v"].as_str(), names(&state)), (Some("own"), Some(vec![own])));
}

#[tokio::test]
async fn a_wheel_wins_over_the_environment_and_a_flow_over_the_wheel() {
    let files = [
        ("tasks.py", TASKS),
        ("elsewhere/tools.py", "VERSION = 'of the environment'\n"),
        ("flows/own/flow.yaml", VERSION),
        ("flows/own/tools.py", "VERSION = 'of the flow'\n"),
    ];
    let ground = Ground::with(&files, |options| {
        options.flows_dir = Some(options.folder.join("flows"));
        let elsewhere = options.folder.join("elsewhere").display().to_string();
        options.env.insert("PYTHONPATH".to_owned(), elsewhere);
    });
    let worker = ground.syncing();
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "of the environment");
    ground.put(tools("1.0")).await;
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
    let own = ground.submit("own", None, json!({})).await;
    assert_eq!(worker.run_once(Duration::from_secs(1)).await.unwrap(), Some(own.clone()));
    assert_eq!(results(&ground.engine.state(&own).await.unwrap())["v"], "of the flow");
}

#[tokio::test]
async fn tasks_that_a_wheel_registers_are_found() {
    let ground = Ground::new(TASKS);
    let plugin = "def register(registry):\n    @registry.task(name='shout', inputs={'text': 'hey'})\n    def shout(text):\n        return text.upper()\n";
    let entry = "[pyoco.tasks]\nmine = loud:register\n";
    ground.put(wheel("loud", "1.0", &[("loud.py", plugin), ("{dist_info}/entry_points.txt", entry)])).await;
    let state = ground.run_on(&ground.syncing(), "flow: {graph: 'shout'}\n").await;
    assert_eq!(results(&state), json!({"shout": "HEY"}));
}

#[tokio::test]
async fn a_command_finds_the_programs_and_the_modules_of_a_wheel() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let yaml = "version: 2\nflow: {graph: 'program >> module'}\ntasks:\n  program: {command: [tool]}\n  module: {command: [python3, -c, 'import tools; print(tools.__file__)']}\n";
    let state = ground.run_on(&ground.syncing(), yaml).await;
    let found = results(&state);
    assert_eq!(found["program"]["stdout"], "tool 1.0");
    let sets = ground.dir().join("sets").display().to_string();
    assert!(found["module"]["stdout"].as_str().unwrap().starts_with(&sets), "{found}");
}

#[tokio::test]
async fn a_file_that_was_damaged_on_the_worker_is_fetched_again() {
    let ground = Ground::new(TASKS);
    let (name, bytes) = tools("1.0");
    let file = ground.dir().join("files").join(format!("{}.whl", sha256(&bytes)));
    ground.put((name, bytes.clone())).await;
    let worker = ground.syncing();
    ground.run_on(&worker, VERSION).await;
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    std::fs::write(&file, flipped).unwrap();
    // Another set with the same wheel is made of that file.
    ground.put(wheel("other", "1.0", &[("other.py", "")])).await;
    let state = ground.run_on(&worker, VERSION).await;
    assert_eq!((results(&state)["v"].as_str(), names(&state).unwrap().len()), (Some("1.0"), 2));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn a_wheel_that_was_damaged_on_the_shelf_is_never_imported() {
    let ground = Ground::new(TASKS);
    let name = ground.put(tools("1.0")).await;
    ground.faults.flipped.store(1, Ordering::SeqCst);
    let worker = ground.syncing();
    // It never had a set, so it takes nothing: a run that began without would keep that.
    let execution = ground.submit("main", Some(VERSION), json!({})).await;
    assert_eq!(worker.run_once(Duration::from_millis(10)).await.unwrap(), None);
    assert!(ground.engine.state(&execution).await.unwrap().claim.is_none());
    assert!(files(&ground.dir().join("files")).is_empty() && folders(&ground.dir().join("sets")).is_empty());
    let shown = ground.shown(&worker).await;
    assert_eq!(shown["last_result"], "error");
    let error = shown["last_error"].as_str().unwrap();
    assert!(error.contains(&name) && error.contains("damaged"), "{error}");
}

/// A run in the hands of a worker that lets go of it after its first task has begun.
async fn interrupted(ground: &Ground) -> ExecutionId {
    let worker = Arc::new(ground.syncing());
    let working = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let flag = ground.folder.path().join("flag");
    let execution = ground.submit("main", Some(LONG), json!({"flag": flag})).await;
    ground.lines.after("waiting").await;
    worker.abandon();
    worker.close().await;
    working.await.unwrap();
    std::fs::write(flag, "").unwrap();
    execution
}

#[tokio::test]
async fn whoever_goes_on_with_a_run_uses_the_wheels_it_began_with() {
    let ground = Ground::new(TASKS);
    let first = ground.put(tools("1.0")).await;
    let execution = interrupted(&ground).await;
    ground.put(tools("2.0")).await;
    let mut wheels = ground.wheel_options();
    wheels.dir = ground.folder.path().join("elsewhere");
    let other = ground.syncing_as("w2", wheels);
    assert_eq!(other.run_once(Duration::from_secs(1)).await.unwrap(), Some(execution.clone()));
    let state = ground.engine.state(&execution).await.unwrap();
    assert_eq!(results(&state), json!({"first": "1.0", "later": ["1.0", "1.0"]}));
    assert_eq!(names(&state), Some(vec![first]));
}

#[tokio::test]
async fn a_run_whose_wheel_is_gone_goes_on_where_it_is_still_known_and_fails_elsewhere() {
    for is_known in [true, false] {
        let ground = Ground::new(TASKS);
        let first = ground.put(tools("1.0")).await;
        let execution = interrupted(&ground).await;
        ground.delete(&first).await;
        let mut wheels = ground.wheel_options();
        if !is_known {
            wheels.dir = ground.folder.path().join("elsewhere");
        }
        let other = ground.syncing_as("w2", wheels);
        assert_eq!(other.run_once(Duration::from_secs(1)).await.unwrap(), Some(execution.clone()));
        let state = ground.engine.state(&execution).await.unwrap();
        if is_known {
            assert_eq!(results(&state), json!({"first": "1.0", "later": ["1.0", "1.0"]}));
        } else {
            assert_eq!(state.phase, Phase::Failed);
            let error = state.last_error.unwrap();
            assert!(error.contains(&first) && error.contains("upload"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_run_with_wheels_fails_on_a_worker_that_installs_none_and_says_why() {
    let ground = Ground::new(TASKS);
    let first = ground.put(tools("1.0")).await;
    let execution = interrupted(&ground).await;
    let other = ground.worker_with(Options::new(worker_id("w2"), vec![Tag::default()]));
    assert_eq!(other.run_once(Duration::from_secs(1)).await.unwrap(), Some(execution.clone()));
    let state = ground.engine.state(&execution).await.unwrap();
    assert_eq!(state.phase, Phase::Failed);
    let error = state.last_error.unwrap();
    assert!(error.contains(&first) && error.contains("--wheel-sync"), "{error:?}");
}

#[tokio::test]
async fn what_a_killed_worker_left_is_removed_and_what_another_makes_is_not() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let left = ground.dir().join("making/one-left");
    write(&left.join("set/tools/__init__.py"), "VERSION = 'half'\n");
    write(&ground.dir().join("files/half.whl"), "no set has it");
    let worker = ground.syncing();
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
    assert!(!left.exists() && folders(&ground.dir().join("making")).is_empty());
    assert_eq!(files(&ground.dir().join("files")).len(), 1);
    // Somebody else is at work in the same folder.
    let lock = std::fs::File::open(ground.dir().join("making.lock")).unwrap();
    lock.lock_shared().unwrap();
    write(&left.join("set/tools/__init__.py"), "");
    ground.put(tools("2.0")).await;
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "2.0");
    assert!(left.exists());
}

#[tokio::test]
async fn going_back_to_a_known_set_takes_no_installation() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let worker = ground.syncing();
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
    let second = ground.put(tools("2.0")).await;
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "2.0");
    ground.delete(&second).await;
    let begin = Instant::now();
    worker.sync_wheels().await;
    let switched = begin.elapsed();
    eprintln!("the switch to a known set took {switched:?}");
    assert!(switched < Duration::from_secs(1), "{switched:?}");
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
}

#[tokio::test]
async fn old_sets_go_but_the_last_few_and_those_in_use() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let worker = ground.syncing();
    let held = worker.sync_wheels().await.unwrap();
    for version in 2..=7 {
        ground.put(tools(&format!("{version}.0"))).await;
        worker.sync_wheels().await.unwrap();
    }
    let kept = folders(&ground.dir().join("sets"));
    // The current one, the one before it, which was in use when it was replaced, three more, and the one that is held.
    assert!(kept.len() <= 6 && held.path().is_dir(), "{kept:?}");
    assert_eq!(files(&ground.dir().join("files")).len(), kept.len());
}

#[tokio::test]
async fn workers_may_share_a_folder() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let workers: Vec<Worker> =
        ["w1", "w2", "w3"].iter().map(|id| ground.syncing_as(id, ground.wheel_options())).collect();
    let (one, two, three) =
        tokio::join!(workers[0].sync_wheels(), workers[1].sync_wheels(), workers[2].sync_wheels());
    let path = one.unwrap().path().to_owned();
    assert_eq!((two.unwrap().path(), three.unwrap().path()), (path.as_path(), path.as_path()));
    assert_eq!(results(&ground.run_on(&workers[1], VERSION).await)["v"], "1.0");
    assert!(folders(&ground.dir().join("making")).is_empty());
}

/// A program named uv in front of the path.
fn with_uv(ground: &Ground, script: &str) -> WheelOptions {
    let bin = ground.folder.path().join("uv-bin");
    write(&bin.join("uv"), &format!("#!/bin/sh\n{script}"));
    std::fs::set_permissions(bin.join("uv"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = ground.wheel_options();
    let path = options.python.env.get("PATH").unwrap().clone();
    options.python.env.insert("PATH".to_owned(), format!("{}:{path}", bin.display()));
    options
}

#[tokio::test]
async fn uv_is_used_where_there_is_one() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let (record, python) = (ground.folder.path().join("arguments"), python());
    let script = format!(
        "echo \"$@\" > '{}'\nwhile [ $# -gt 0 ]; do\n  case \"$1\" in --target) target=$2; shift;; *.whl) files=\"$files $1\";; esac\n  shift\ndone\nexec '{}' -m pip install --quiet --no-deps --no-index --target \"$target\" $files\n",
        record.display(),
        std::path::absolute(&python).unwrap_or(python).display(),
    );
    let worker = ground.syncing_as("w1", with_uv(&ground, &script));
    assert_eq!(results(&ground.run_on(&worker, VERSION).await)["v"], "1.0");
    let arguments = std::fs::read_to_string(record).unwrap();
    for wanted in
        ["pip install", "--no-deps", "--no-index", "--target", "--python", "tools-1.0-py3-none-any.whl"]
    {
        assert!(arguments.contains(wanted), "{wanted} is not in {arguments}");
    }
}

/// The real one, on machines that have it.
#[tokio::test]
async fn a_real_uv_installs_what_pip_does() {
    let ground = Ground::new(TASKS);
    let path = ground.python.env.get("PATH").unwrap();
    if !std::env::split_paths(path).any(|folder| folder.join("uv").is_file()) {
        eprintln!("there is no uv on the path: not tried");
        return;
    }
    ground.put(tools("1.0")).await;
    let yaml = "version: 2\nflow: {graph: 'v >> program'}\ntasks: {v: {callable: 'tasks:version'}, program: {command: [tool]}}\n";
    let found = results(&ground.run_on(&ground.syncing(), yaml).await);
    assert_eq!((&found["v"], &found["program"]["stdout"]), (&json!("1.0"), &json!("tool 1.0")));
}

#[tokio::test]
async fn an_installation_that_takes_too_long_is_ended_with_all_it_started() {
    let ground = Ground::new(TASKS);
    ground.put(tools("1.0")).await;
    let pid = ground.folder.path().join("pid");
    let script = format!("sleep 600 &\necho $! > '{}'\necho 'still at it'\nwait\n", pid.display());
    let mut options = with_uv(&ground, &script);
    options.install_timeout = Duration::from_millis(500);
    let worker = ground.syncing_as("w1", options);
    assert!(worker.sync_wheels().await.is_none());
    until_gone(std::fs::read_to_string(pid).unwrap().trim()).await;
    assert!(folders(&ground.dir().join("making")).is_empty());
    ground.submit("main", Some(VERSION), json!({})).await;
    assert_eq!(worker.run_once(Duration::from_millis(10)).await.unwrap(), None, "it never had a set");
    let shown = ground.shown(&worker).await;
    let error = shown["last_error"].as_str().unwrap();
    assert!(error.contains("PYOCO_WHEEL_INSTALL_TIMEOUT_SEC") && error.contains("still at it"), "{error}");
}

#[tokio::test]
async fn lists_in_the_registry_are_short_and_so_are_errors() {
    let ground = Ground::new(TASKS);
    for number in 0..60 {
        ground.put(wheel_for("cp27-cp27m-win_amd64", &format!("w{number}"), "1.0", &[("w.py", "")])).await;
    }
    let worker = ground.syncing();
    ground.run_on(&worker, VERSION_IF_ANY).await;
    let shown = ground.shown(&worker).await;
    assert_eq!(shown["skipped_incompatible_count"], 60);
    assert_eq!(shown["skipped_incompatible"].as_array().unwrap().len(), 50);
}
