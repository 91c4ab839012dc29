//! Python tasks in real processes: what they are given, what they give back, and what is left of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::mem_forget,
    reason = "a test stops at the first surprise"
)]

mod ground;

use std::time::Duration;

use ground::*;
use pyoco_core::event::Encoding;
use pyoco_core::ids::Attempt;
use pyoco_core::plan::{Input, Runner, TaskSpec};
use pyoco_core::state::{Phase, Root};
use pyoco_ports::{Blobs as _, LogStream};
use pyoco_worker::{End, Runtime as _, Urgency};
use serde_json::{Value, json};

/// Two tasks in a row: `a` from the module, then `b`.
const CHAIN: &str =
    "flow: {graph: 'a >> b'}\ntasks:\n  a: {callable: 'tasks:a'}\n  b: {callable: 'tasks:b'}\n";

fn callable(address: &str) -> Runner {
    Runner::Callable(address.to_owned())
}

#[tokio::test]
async fn a_function_is_called_and_its_value_comes_back() {
    let ground = Ground::new("def t():\n    return {'n': 1, 'list': [1.5, None, True, 'é']}\n");
    assert_eq!(value(&ground.run("tasks:t").await), json!({"n": 1, "list": [1.5, null, true, "é"]}));
}

#[tokio::test]
async fn arguments_come_from_inputs_then_params_then_results() {
    let ground = Ground::new(
        "def a():\n    return {'deep': [1, 2]}\n\ndef b(a, p, q, d='default', *, k=None, **kw):\n    return [a, p, q, d, k, kw]\n",
    );
    let yaml = "flow: {graph: 'a >> b'}\ntasks:\n  a: {callable: 'tasks:a'}\n  b:\n    callable: 'tasks:b'\n    inputs: {p: $node.a.output.deep, q: $ctx.params.x, k: $env.GROUND}\n    outputs: [scratch.total.b]\n";
    let mut env: std::collections::HashMap<String, String> = std::env::vars().collect();
    env.insert("GROUND".to_owned(), "soil".to_owned());
    let ground = Ground::with(
        &[("tasks.py", &std::fs::read_to_string(ground.folder.path().join("tasks.py")).unwrap())],
        |options| options.env = env,
    );
    for _ in 0..2 {
        // The second time the worker knows the signature, and sends everything along.
        let state = ground.flow(yaml, json!({"x": 7, "p": "hidden by the input", "kw": 3})).await;
        assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
        let wanted = json!([{"deep": [1, 2]}, [1, 2], 7, "default", "soil", {"kw": 3}]);
        assert_eq!(state.context.root(Root::Results)["b"], wanted);
        assert_eq!(state.context.root(Root::Scratch), &json!({"total": {"b": wanted}}));
    }
}

#[tokio::test]
async fn a_selector_that_finds_nothing_fails_with_the_text_of_the_original() {
    let ground = Ground::new("def t(x):\n    return x\n");
    let texts = [
        (Input::Param("k".to_owned()), "\"Param 'k' not found in context.\""),
        (Input::Env("NOT_SET_AT_ALL".to_owned()), "\"Environment variable 'NOT_SET_AT_ALL' not found.\""),
        (Input::Node { node: "n".to_owned(), path: Vec::new() }, "\"Node 'n' result not found in context.\""),
        (
            Input::Invalid { text: "$x".to_owned(), message: "Invalid reference".to_owned() },
            "Invalid reference",
        ),
    ];
    for (input, text) in texts {
        let mut task = TaskSpec::new("t", callable("tasks:t"));
        task.inputs.insert("x".to_owned(), input);
        let end = ground.runtime.run(call_of(task, None), quiet()).await;
        assert_eq!(error(&end).text(), text);
        assert!(error(&end).traceback().is_some());
    }
    let end = ground.run("tasks:t").await;
    assert_eq!(error(&end).text(), "t() missing 1 required positional argument: 'x'");
}

#[tokio::test]
async fn the_context_is_pyocos_and_what_changed_is_kept_also_on_failure() {
    let tasks = r#"
def a(ctx):
    assert ctx.params == {"n": 1, "gone": 2, "list": [1]} and isinstance(ctx.params, dict)
    assert ctx.get_result("nobody") is None and ctx.loop is None and ctx.loops == () and not ctx.is_cancelled
    assert ctx.get_var("x", 5) == 5 and "PATH" in ctx.env and dict(**ctx.params)["n"] == 1
    del ctx.params["gone"]
    ctx.params["list"].append(2)
    ctx.scratch["s"] = {"k": (1, 2)}
    ctx.scratch.setdefault("t", []).append(1)
    path = ctx.save_artifact("sub/report.txt", "héllo")
    assert open(path, encoding="utf-8").read() == "héllo"
    return path

def b(ctx, list):
    assert list == [1, 2] and ctx.scratch["s"] == {"k": (1, 2)} and "gone" not in ctx.params
    list.append(3)
    ctx.results["extra"] = ctx.artifacts["sub/report.txt"]["type"]
    raise ValueError("after the changes")
"#;
    let ground = Ground::new(tasks);
    let state = ground.flow(CHAIN, json!({"n": 1, "gone": 2, "list": [1]})).await;
    assert_eq!(state.last_error.as_deref(), Some("after the changes"));
    assert_eq!(state.context.root(Root::Params), &json!({"n": 1, "list": [1, 2, 3]}));
    assert_eq!(state.context.root(Root::Scratch), &json!({"s": {"k": [1, 2]}, "t": [1]}));
    assert_eq!(state.context.root(Root::Results)["extra"], json!("str"));
    let saved = state.context.root(Root::Artifacts)["sub/report.txt"]["path"].as_str().unwrap().to_owned();
    let folder = ground.folder.path().canonicalize().unwrap().join("artifacts").join(state.id.as_str());
    assert_eq!(saved, folder.join("sub/report.txt").to_str().unwrap());
}

#[tokio::test]
async fn a_task_that_changes_nothing_reports_nothing() {
    let tasks = "def a(ctx, data):\n    return (ctx.params['data'], sorted(ctx.results), list(ctx.scratch.items()))\n";
    let ground = Ground::new(tasks);
    let yaml = "flow: {graph: 'a'}\ntasks: {a: {callable: 'tasks:a'}}\n";
    let state = ground.flow(yaml, json!({"data": {"x": [1, {"y": null}]}})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    let task = &state.tasks[0];
    assert_eq!(task.attempts.len(), 1);
    assert_eq!(state.context.root(Root::Params), &json!({"data": {"x": [1, {"y": null}]}}));
    assert_eq!(state.context.refs.len(), 1, "only the tuple of the result: {:?}", state.context.refs);
}

#[tokio::test]
async fn an_artifact_name_may_not_leave_the_folder_of_its_run() {
    let tasks = r#"
import os
def t(ctx):
    refused = []
    os.symlink("/tmp", os.path.join(ctx.artifact_dir, "link"))
    for name in ("../x", "/tmp/x", "a/../../x", "link/x", "."):
        try:
            ctx.save_artifact(name, b"x")
        except ValueError as error:
            refused.append(str(error))
    return refused
"#;
    let ground = Ground::new(tasks);
    let refused = value(&ground.run("tasks:t").await);
    assert_eq!(refused.as_array().unwrap().len(), 5);
    assert_eq!(refused[0], json!("Artifact name '../x' leaves the folder of its run."));
}

#[tokio::test]
async fn values_that_are_not_json_travel_as_pickles_and_show_their_repr() {
    let tasks = r#"
import datetime, enum
class Color(enum.IntEnum):
    RED = 1
class Box:
    def __init__(self, n): self.n = n
    def __repr__(self): return f"Box({self.n})"
def a():
    return {"when": datetime.date(2024, 1, 2), "set": {1}, "box": Box(3), "color": Color.RED, "big": 2**70, 1: "x"}
def b(a):
    assert a["when"].year == 2024 and a["set"] == {1} and a["box"].n == 3 and a["color"] is Color.RED
    assert a["big"] == 2**70 and a[1] == "x"
    return (1, 2), float("nan"), "\ud800"
"#;
    let ground = Ground::new(tasks);
    let state = ground.flow(CHAIN, json!({})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    assert_eq!(
        state.context.root(Root::Results)["a"],
        json!(
            "{'when': datetime.date(2024, 1, 2), 'set': {1}, 'box': Box(3), 'color': <Color.RED: 1>, 'big': 1180591620717411303424, 1: 'x'}"
        )
    );
    assert_eq!(state.context.root(Root::Results)["b"], json!("((1, 2), nan, '\\ud800')"));
    assert_eq!(state.context.refs.get("results.a").unwrap().encoding, Encoding::Pickle);
}

#[tokio::test]
async fn a_value_that_cannot_be_kept_fails_only_whoever_reads_it() {
    let tasks = "def a():\n    return lambda: 1\n\ndef b():\n    return 'fine'\n\ndef c(a):\n    return 1\n\ndef d(ctx):\n    return ctx.results['a']\n";
    let ground = Ground::new(tasks);
    let state = ground.flow(CHAIN, json!({})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    assert!(
        state.context.root(Root::Results)["a"].as_str().unwrap().starts_with("<function a.<locals>.<lambda>")
    );
    for reader in ["c", "d"] {
        let state = ground.flow(&CHAIN.replace("tasks:b", &format!("tasks:{reader}")), json!({})).await;
        assert_eq!(state.phase, Phase::Failed);
        let text = state.last_error.unwrap();
        assert!(text.starts_with("The value of 'a' (<function a.<locals>.<lambda>"), "{text}");
        assert!(text.ends_with(") is neither JSON nor can it be pickled."), "{text}");
    }
}

#[tokio::test]
async fn large_values_stand_outside_the_log_and_are_read_when_they_are_needed() {
    let tasks = r#"
def a(ctx):
    ctx.scratch["large"] = {"text": "y" * 100_000}
    return ["x" * 50] * 4000
def b(ctx):
    assert len(ctx.scratch["large"]["text"]) == 100_000
    assert len(ctx.results["a"]) == 4000 and ctx.results["a"][0] == "x" * 50
    ctx.scratch["large"]["more"] = 1
    return len(ctx.results.get("a"))
"#;
    let ground = Ground::new(tasks);
    let yaml =
        CHAIN.replace("callable: 'tasks:b'", "callable: 'tasks:b', outputs: [scratch.large.deep.inside]");
    let state = ground.flow(&yaml, json!({})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    let shown = state.context.root(Root::Results)["a"].as_str().unwrap();
    assert!(shown.len() < 2000 && shown.starts_with("[\"xxxxx"), "{shown}");
    let reference = state.context.refs.get("results.a").unwrap();
    assert_eq!(reference.encoding, Encoding::Json);
    let bytes = ground.store.get_blob(&reference.digest).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap().as_array().unwrap().len(), 4000);
    let large = state.context.refs.get("scratch.large").unwrap();
    let bytes = ground.store.get_blob(&large.digest).await.unwrap().unwrap();
    let large: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((large["more"].clone(), large["deep"]["inside"].clone()), (json!(1), json!(4000)));
}

#[tokio::test]
async fn an_async_function_is_awaited() {
    let ground = Ground::new(
        "import asyncio\nasync def t():\n    await asyncio.sleep(0.01)\n    return await asyncio.to_thread(lambda: 'threaded')\n",
    );
    assert_eq!(value(&ground.run("tasks:t").await), json!("threaded"));
}

#[tokio::test]
async fn an_error_has_its_text_and_the_users_part_of_the_traceback() {
    let tasks = "def inner():\n    raise RuntimeError('böse')\n\ndef t():\n    inner()\n\ndef u():\n    assert False\n";
    let ground = Ground::new(tasks);
    let end = ground.run("tasks:t").await;
    let traceback = error(&end).traceback().unwrap();
    assert_eq!((error(&end).text(), error(&end).code.as_deref()), ("böse", Some("RuntimeError")));
    assert!(
        traceback.contains("tasks.py\", line 5, in t") && traceback.contains("line 2, in inner"),
        "{traceback}"
    );
    assert!(!traceback.contains("pyoco"), "{traceback}");
    assert_eq!(error(&ground.run("tasks:u").await).text(), "AssertionError");
}

#[tokio::test]
async fn what_cannot_be_imported_fails_the_task_and_says_why() {
    let ground = Ground::with(
        &[("broken.py", "import nowhere_to_be_found\n"), ("odd.py", "x = = 1\n"), ("tasks.py", "")],
        |_| {},
    );
    for (address, text) in [
        ("missing:t", "No module named 'missing'"),
        ("tasks:t", "module 'tasks' has no attribute 't'"),
        ("broken:t", "No module named 'nowhere_to_be_found'"),
        ("odd:t", "invalid syntax (odd.py, line 1)"),
    ] {
        let end = ground.run(address).await;
        assert_eq!(error(&end).text(), text);
    }
    let end = ground.run("broken:t").await;
    let traceback = error(&end).traceback().unwrap();
    assert!(traceback.contains("broken.py\", line 1") && !traceback.contains("importlib"), "{traceback}");
}

#[tokio::test]
async fn a_task_that_exits_fails_and_leaves_the_process_to_the_next() {
    let tasks = r#"
import os, sys
def three(): sys.exit(3)
def words(): sys.exit("no more")
def interrupt(): raise KeyboardInterrupt
def pid(): return os.getpid()
"#;
    let ground = Ground::new(tasks);
    let before = value(&ground.run("tasks:pid").await);
    for (name, text) in [
        ("three", "the task called sys.exit(3)"),
        ("words", "the task called sys.exit('no more')"),
        ("interrupt", "the task was interrupted (KeyboardInterrupt)"),
    ] {
        assert_eq!(error(&ground.run(&format!("tasks:{name}")).await).text(), text);
    }
    assert_eq!(value(&ground.run("tasks:pid").await), before);
}

#[tokio::test]
async fn what_a_task_does_to_its_process_is_undone_before_the_next() {
    let tasks = r#"
import os, sys, signal, io
def mess():
    os.environ["LEFT"] = "x"; os.environ.pop("PATH"); os.chdir("/")
    sys.stdout = io.StringIO()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return os.getpid()
def look():
    print("still heard")
    return [os.environ.get("LEFT"), "PATH" in os.environ, os.getcwd(), os.getpid(), callable(signal.getsignal(signal.SIGTERM))]
"#;
    let ground = Ground::new(tasks);
    let pid = value(&ground.run("tasks:mess").await);
    let folder = ground.folder.path().canonicalize().unwrap();
    let wanted = json!([null, true, folder.to_str().unwrap(), pid, true]);
    assert_eq!(value(&ground.run("tasks:look").await), wanted);
    assert_eq!(ground.lines.of(LogStream::Stdout), ["still heard"]);
}

#[tokio::test]
async fn a_task_that_leaves_a_thread_or_a_child_behind_takes_its_process_with_it() {
    let tasks = r#"
import os, subprocess, threading, time
def thread():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return os.getpid()
def child():
    return [os.getpid(), subprocess.Popen(["sleep", "60"]).pid]
def waited():
    subprocess.run(["true"])
    t = threading.Thread(target=print); t.start(); t.join()
    return os.getpid()
def forked():
    if os.fork() == 0:
        return "the child must not answer"
    os.wait()
    return os.getpid()
"#;
    let ground = Ground::new(tasks);
    let first = value(&ground.run("tasks:thread").await).to_string();
    until_gone(&first).await;
    let second = value(&ground.run("tasks:child").await);
    until_gone(&second[0].to_string()).await;
    until_gone(&second[1].to_string()).await;
    let third = value(&ground.run("tasks:waited").await);
    assert_eq!(value(&ground.run("tasks:forked").await), third, "nothing was left, so it stays");
    // A thread that a module starts when it is imported belongs to the module.
    let module = "import os, threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\ndef t():\n    return os.getpid()\n";
    ground.write("busy.py", module);
    let busy = value(&ground.run("busy:t").await);
    assert_eq!(value(&ground.run("busy:t").await), busy);
}

#[tokio::test]
async fn lines_are_stored_before_the_end_and_while_the_task_runs() {
    let tasks = r#"
import os, subprocess, sys
def t():
    print("one"); print("two", file=sys.stderr)
    os.write(1, b"raw \xff bytes\n")
    subprocess.run(["echo", "from a child"])
    print("no line break", end="")
def waits(ctx):
    print("ready", os.getpid())
    while not ctx.is_cancelled:
        pass
    return "saw it"
"#;
    let ground = Ground::new(tasks);
    assert_eq!(value(&ground.run("tasks:t").await), Value::Null);
    assert_eq!(
        ground.lines.of(LogStream::Stdout),
        ["one", "raw \u{fffd} bytes", "from a child", "no line break"]
    );
    assert_eq!(ground.lines.of(LogStream::Stderr), ["two"]);
    let (urgency, stop) = stop();
    let running = ground.runtime.run(call(&callable("tasks:waits")), stop);
    let asking = async {
        let pid = ground.lines.after("ready ").await;
        urgency.send_replace(Urgency::Asked);
        pid
    };
    let (end, pid) = tokio::join!(running, asking);
    assert_eq!(value(&end), json!("saw it"));
    until_gone(&pid).await;
}

#[tokio::test]
async fn two_hundred_megabytes_of_output_pass_through_little_memory() {
    let tasks = "import sys\ndef t():\n    line = 'x' * 99 + '\\n'\n    for _ in range(2000):\n        sys.stdout.write(line * 1000)\n    sys.stdout.write('y' * 200_000)\n";
    let ground = Ground::new(tasks);
    ground.lines.only_count.store(true, std::sync::atomic::Ordering::SeqCst);
    ground.run("tasks:t").await;
    let bytes = ground.lines.bytes.load(std::sync::atomic::Ordering::SeqCst);
    // The last line is split in four.
    assert_eq!(bytes, 200_000_000 + 200_000 + 4);
    let largest = ground.lines.largest_batch.load(std::sync::atomic::Ordering::SeqCst);
    assert!(largest <= 512 * 1024, "{largest}");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 150_000, "{peak} kB");
}

#[tokio::test]
async fn a_flow_that_exposes_variables_hides_the_others() {
    let tasks = "import os\ndef t():\n    raw = open('/proc/self/environ').read()\n    return [os.environ.get('SHOWN'), os.environ.get('SECRET'), 'SECRET' in raw, 'PATH' in os.environ]\ndef u(x):\n    return x\n";
    let ground = Ground::with(&[("tasks.py", tasks)], |options| {
        options.env.insert("SHOWN".to_owned(), "1".to_owned());
        options.env.insert("SECRET".to_owned(), "2".to_owned());
    });
    assert_eq!(value(&ground.run("tasks:t").await), json!(["1", "2", true, true]));
    let task = TaskSpec::new("t", callable("tasks:t"));
    let end = ground.runtime.run(call_of(task, Some(&["SHOWN"])), quiet()).await;
    assert_eq!(value(&end), json!(["1", null, false, true]));
    for (name, found) in [("SHOWN", true), ("PATH", false)] {
        let mut task = TaskSpec::new("t", callable("tasks:u"));
        task.inputs.insert("x".to_owned(), Input::Env(name.to_owned()));
        let end = ground.runtime.run(call_of(task, Some(&["SHOWN"])), quiet()).await;
        assert_eq!(matches!(end, End::Succeeded { .. }), found, "{name}");
    }
}

#[tokio::test]
async fn a_module_that_was_edited_is_not_served_stale_to_a_new_run() {
    let ground = Ground::with(
        &[
            ("tasks.py", "import part\nimport os\ndef t():\n    return [part.N, os.getpid()]\n"),
            ("part.py", "N = 1\n"),
        ],
        |_| {},
    );
    let first = value(&ground.run("tasks:t").await);
    assert_eq!(value(&ground.run("tasks:t").await), first, "the process stays warm");
    // As long as before, within the same second.
    ground.write("part.py", "N = 2\n");
    let second = value(&ground.run("tasks:t").await);
    assert_eq!((first[0].clone(), second[0].clone()), (json!(1), json!(2)));
    // Within one run the code does not change under it.
    let mut again = call(&callable("tasks:t"));
    let end = ground.runtime.run(again.clone(), quiet()).await;
    ground.write("part.py", "N = 3\n");
    again.attempt = Attempt(2);
    assert_eq!(value(&ground.runtime.run(again, quiet()).await), value(&end));
    // A module that could not be imported can be, once it is mended.
    ground.write("late.py", "import nothing_of_the_kind\n");
    assert!(matches!(ground.run("late:t").await, End::Failed { .. }));
    ground.write("late.py", "def t():\n    return 'mended'\n");
    assert_eq!(value(&ground.run("late:t").await), json!("mended"));
}

#[tokio::test]
async fn a_decorated_task_is_reduced_to_its_function() {
    let tasks = "from pyoco import task\nfrom pyoco.core.models import Task\n@task\ndef t(n=1):\n    return n\nu = Task(func=lambda: 'object', name='other')\n";
    let ground = Ground::new(tasks);
    assert_eq!(value(&ground.run("tasks:t").await), json!(1));
    assert_eq!(value(&ground.run("tasks:u").await), json!("object"));
}

#[tokio::test]
async fn without_python_the_message_says_how_to_choose_one() {
    let ground = Ground::with(&[("tasks.py", "")], |options| options.python = "no-such-python".into());
    let end = ground.run("tasks:t").await;
    let text = error(&end).text();
    assert!(text.contains("'no-such-python'") && text.contains("--python or PYOCO_PYTHON"), "{text}");
    let ground = Ground::with(&[("tasks.py", "")], |options| options.python = "true".into());
    assert!(error(&ground.run("tasks:t").await).text().contains("does not seem to be Python"));
}

#[tokio::test]
async fn hosts_are_kept_within_their_limit_and_leave_when_they_are_not_needed() {
    let tasks = "import os, time\ndef t():\n    time.sleep(0.2)\n    return os.getpid()\n";
    let ground = Ground::with(&[("tasks.py", tasks)], |options| {
        (options.hosts, options.keep_warm, options.idle) = (2, 1, Duration::from_millis(300));
    });
    let runs = tokio::join!(ground.run("tasks:t"), ground.run("tasks:t"), ground.run("tasks:t"));
    let pids = [value(&runs.0).to_string(), value(&runs.1).to_string(), value(&runs.2).to_string()];
    let mut different = pids.to_vec();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 2, "three tasks, two processes");
    let alive = || different.iter().filter(|pid| is_alive(pid)).count();
    assert_eq!(alive(), 2);
    let leaving = async {
        while alive() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), leaving).await.expect("one of them leaves");
    ground.runtime.close().await;
    assert_eq!(alive(), 0);
    assert_eq!(error(&ground.run("tasks:t").await).text(), "the worker has stopped running tasks");
}
