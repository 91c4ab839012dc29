//! Tasks that are commands: their arguments, environment, output, and how they end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::mem_forget,
    reason = "a test stops at the first surprise"
)]

mod ground;

use ground::*;
use pyoco_core::json::Json;
use pyoco_core::plan::{Input, Runner, TaskSpec};
use pyoco_core::state::{Phase, Root};
use pyoco_core::trace::TraceContext;
use pyoco_ports::LogStream;
use pyoco_worker::{Call, End, Runtime as _, Urgency};
use serde_json::json;

fn command(argv: &[&str]) -> Runner {
    Runner::Command(argv.iter().map(|word| (*word).to_owned()).collect())
}

fn shell(script: &str) -> Runner {
    command(&["sh", "-c", script])
}

async fn run(ground: &Ground, runner: &Runner) -> End {
    ground.runtime.run(call(runner), quiet()).await
}

#[tokio::test]
async fn a_command_gives_its_exit_code_and_what_it_wrote() {
    let ground = Ground::new("");
    let end = run(&ground, &command(&["printf", "%s|", "a b", "$HOME", "*"])).await;
    assert_eq!(value(&end), json!({"exit_code": 0, "stdout": "a b|$HOME|*|"}), "nothing is interpolated");
    let end = run(&ground, &shell("echo out; echo err >&2; pwd; echo; echo")).await;
    let folder = ground.folder.path().canonicalize().unwrap();
    assert_eq!(value(&end)["stdout"], json!(format!("out\n{}", folder.display())));
    assert_eq!(ground.lines.of(LogStream::Stderr), ["err"]);
    assert_eq!(ground.lines.of(LogStream::Stdout)[0..2], ["a b|$HOME|*|", "out"]);
}

#[tokio::test]
async fn only_the_end_of_much_output_is_kept_in_the_result() {
    let ground = Ground::new("");
    let end = run(&ground, &shell("i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done")).await;
    let output = value(&end);
    assert_eq!(output["stdout_truncated"], json!(true));
    let text = output["stdout"].as_str().unwrap();
    assert!(text.len() <= 32 * 1024 && text.ends_with("line 8999"));
    assert_eq!(ground.lines.of(LogStream::Stdout).len(), 9000);
}

#[tokio::test]
async fn a_command_that_fails_says_how_and_quotes_its_last_words() {
    let ground = Ground::new("");
    for (runner, text) in [
        (
            shell("echo first >&2; echo 'no such host' >&2; exit 3"),
            "command 'sh' ended with exit code 3: no such host",
        ),
        (shell("kill -SEGV $$"), "command 'sh' was ended by signal 11 (SIGSEGV)"),
        (
            command(&["no-such-program"]),
            "command 'no-such-program' cannot be started: No such file or directory (os error 2)",
        ),
    ] {
        assert_eq!(error(&run(&ground, &runner).await).text(), text);
    }
    let end = run(&ground, &shell("echo a >&2; echo b >&2; exit 3")).await;
    assert_eq!(json!(error(&end).detail), json!({"exit_code": 3, "stderr": "a\nb"}));
}

#[tokio::test]
async fn inputs_become_variables_and_the_environment_may_be_narrowed() {
    let ground = Ground::with(&[], |options| {
        options.env.insert("SHOWN".to_owned(), "1".to_owned());
        options.env.insert("SECRET".to_owned(), "2".to_owned());
    });
    let mut task = TaskSpec::new(
        "t",
        shell("echo \"$WHO $DATA [$SHOWN] [$SECRET] $PYOCO_TASK $PYOCO_NODE_ID $PYOCO_ATTEMPT\""),
    );
    task.inputs.insert("WHO".to_owned(), Input::Lit(Json(json!("it's me"))));
    task.inputs.insert("DATA".to_owned(), Input::Lit(Json(json!({"n": [1, null]}))));
    let end = ground.runtime.run(call_of(task.clone(), Some(&["SHOWN"])), quiet()).await;
    assert_eq!(value(&end)["stdout"], json!("it's me {\"n\":[1,null]} [1] [] t t 1"));
    let End::Succeeded { inputs: Some(inputs), .. } = end else { panic!("{end:?}") };
    assert_eq!(json!(inputs), json!({"WHO": "it's me", "DATA": {"n": [1, null]}}));
    task.inputs.insert("S".to_owned(), Input::Env("SECRET".to_owned()));
    let end = ground.runtime.run(call_of(task.clone(), Some(&["SHOWN"])), quiet()).await;
    assert_eq!(error(&end).text(), "\"Environment variable 'SECRET' not found.\"");
    task.inputs.clear();
    task.inputs.insert("a=b".to_owned(), Input::Lit(Json(json!(1))));
    let end = ground.runtime.run(call_of(task, None), quiet()).await;
    assert_eq!(error(&end).text(), "input 'a=b' cannot become an environment variable: its name is not one");
}

#[tokio::test]
async fn each_attempt_sees_its_own_span_and_never_that_of_the_worker() {
    let of_worker = "00-11111111111111111111111111111111-1111111111111111-01";
    let tasks = "import os\n\ndef t():\n    return os.environ.get('TRACEPARENT')\n";
    let ground = Ground::with(&[("tasks.py", tasks)], |options| {
        options.env.insert("TRACEPARENT".to_owned(), of_worker.to_owned());
        options.hosts = 1;
    });
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let spans = [given, &given.replace('b', "c")].map(|text| TraceContext::parse(text).unwrap());
    let python = Runner::Callable("tasks:t".to_owned());
    // The same process runs them all, so what one attempt had must not be left to the next.
    for trace in [None, Some(spans[0]), Some(spans[1]), None] {
        let seen = trace.map(|trace| trace.to_string());
        let end = ground.runtime.run(Call { trace, ..call(&python) }, quiet()).await;
        assert_eq!(value(&end), json!(seen));
        let echo = shell("echo \"$TRACEPARENT\"");
        let end = ground.runtime.run(Call { trace, ..call(&echo) }, quiet()).await;
        assert_eq!(value(&end)["stdout"], json!(seen.unwrap_or_default()));
    }
    let mut task = TaskSpec::new("t", shell("echo \"$TRACEPARENT\""));
    task.inputs.insert("TRACEPARENT".to_owned(), Input::Lit(Json(json!("mine"))));
    let end = ground.runtime.run(Call { trace: Some(spans[0]), ..call_of(task, None) }, quiet()).await;
    assert_eq!(value(&end)["stdout"], json!("mine"));
}

#[tokio::test]
async fn commands_and_functions_pass_values_to_each_other() {
    let tasks = "def a():\n    return {'name': 'Ada', 'much': ['x' * 100] * 1000}\n\ndef c(b, path):\n    return [b, path]\n\ndef p():\n    return {1, 2}\n";
    let ground = Ground::new(tasks);
    let yaml = "version: 2\nflow: {graph: 'a >> b >> c'}\ntasks:\n  a: {callable: 'tasks:a'}\n  b: {command: [sh, -c, 'echo hello $NAME from $X'], inputs: {NAME: $node.a.output.name, X: $ctx.params.x}}\n  c: {callable: 'tasks:c', inputs: {path: $node.b.output.stdout}}\n";
    let state = ground.flow(yaml, json!({"x": 5})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    let b = json!({"exit_code": 0, "stdout": "hello Ada from 5"});
    assert_eq!(state.context.root(Root::Results)["c"], json!([b, "hello Ada from 5"]));
    let yaml = "version: 2\nflow: {graph: 'p >> b'}\ntasks:\n  p: {callable: 'tasks:p'}\n  b: {command: ['true'], inputs: {V: $node.p.output}}\n";
    let state = ground.flow(yaml, json!({})).await;
    let text = state.last_error.unwrap();
    assert_eq!(
        text,
        "the value of 'p' cannot be read: it is a Python object, and commands are given JSON only"
    );
}

const FAMILY: &str = "sleep 600 & echo child $!; echo host $$; wait";

#[tokio::test]
async fn dropping_an_attempt_ends_the_command_and_its_children() {
    let ground = Ground::new("");
    let runner = shell(FAMILY);
    let mut running = Box::pin(ground.runtime.run(call(&runner), quiet()));
    let pids = tokio::select! {
        end = &mut running => panic!("{end:?}"),
        pids = async { [ground.lines.after("host ").await, ground.lines.after("child ").await] } => pids,
    };
    assert!(pids.iter().all(|pid| is_alive(pid)));
    drop(running);
    for pid in &pids {
        until_gone(pid).await;
    }
}

#[tokio::test]
async fn a_command_that_is_asked_to_stop_gets_the_signal_and_one_that_ends_leaves_no_child() {
    let ground = Ground::new("");
    let (urgency, stop) = stop();
    let runner = shell(FAMILY);
    let running = ground.runtime.run(call(&runner), stop);
    let asking = async {
        let pid = ground.lines.after("child ").await;
        urgency.send_replace(Urgency::Asked);
        pid
    };
    let (end, pid) = tokio::join!(running, asking);
    assert_eq!(end, End::Stopped);
    until_gone(&pid).await;
    ground.lines.lines.lock().unwrap().clear();
    let end = run(&ground, &shell("sleep 600 & echo child $!")).await;
    assert!(matches!(end, End::Succeeded { .. }), "it does not wait for what it left behind");
    until_gone(&ground.lines.after("child ").await).await;
}
