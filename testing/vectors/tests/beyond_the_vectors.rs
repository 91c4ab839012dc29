//! Decisions of ours that no open vector shows, on flows of our own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use pyoco_vectors::vector::Vector;
use pyoco_vectors::{Outcome, Run, run_alone};
use serde_json::{Value, json};

/// Runs a graph of tasks that are all functions of one module; `more` adds fields of a vector.
async fn run(graph: &str, tasks: &[&str], source: &str, more: &Value) -> Run {
    let tasks: String = tasks.iter().map(|task| format!("  {task}: {{callable: 'vt:{task}'}}\n")).collect();
    let mut vector = json!({
        "name": "own",
        "level": "core",
        "loader": "server",
        "flow_yaml": format!("flow:\n  graph: |\n    {graph}\ntasks:\n{tasks}"),
        "tasks_py": source,
    });
    vector.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let vector: Vector = serde_json::from_value(vector).unwrap();
    match run_alone(&vector).await.unwrap() {
        Outcome::Ran(run) => *run,
        Outcome::Refused(message) => panic!("{message}"),
    }
}

fn none() -> Value {
    json!({})
}

#[tokio::test]
async fn a_coroutine_is_awaited() {
    let run = run("a", &["a"], "async def a():\n    return 7\n", &none()).await;
    assert_eq!(run.observed()["outputs"], json!({"a": 7}));
}

#[tokio::test]
async fn an_output_that_cannot_travel_fails_only_the_task_that_reads_it() {
    let source = "def a():\n    return (lambda: 1)\ndef b():\n    return 2\ndef c(a):\n    return a\n";
    let observed = run("a >> b >> c", &["a", "b", "c"], source, &none()).await.observed();
    assert_eq!(observed["tasks"], json!({"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "FAILED"}));
    assert!(observed["error"].as_str().unwrap().contains("'a'"), "{}", observed["error"]);
}

#[tokio::test]
async fn what_tasks_print_past_python_never_reaches_the_wire() {
    let source = "import os, subprocess\ndef a():\n    os.write(1, b'{\"id\": 1}')\n    subprocess.run(['echo', 'x'])\n    return input() if False else 1\n";
    assert_eq!(run("a", &["a"], source, &none()).await.observed()["run_status"], "COMPLETED");
}

#[tokio::test]
async fn changes_of_tasks_that_run_together_are_merged_by_key() {
    let source = "import time\ndef a(ctx):\n    time.sleep(0.05)\n    ctx.scratch['a'] = 1\ndef b(ctx):\n    time.sleep(0.05)\n    ctx.scratch['b'] = [2]\ndef c(ctx):\n    del ctx.scratch['a']\n    return sorted(ctx.scratch)\n";
    let observed = run("(a & b) >> c", &["a", "b", "c"], source, &none()).await.observed();
    assert_eq!(observed["scratch"], json!({"b": [2]}));
    assert_eq!(observed["outputs"]["c"], json!(["b"]));
}

#[tokio::test]
async fn an_isolated_timeout_fails_what_depends_on_it_and_nothing_else() {
    let source = "import time\ndef a():\n    time.sleep(5)\ndef b():\n    return 1\ndef c():\n    return 1\n";
    let policies = json!({"policies": {"a": {"timeout_sec": 0.1, "fail_policy": "isolate"}}});
    let run = run("a >> b; c", &["a", "b", "c"], source, &policies).await;
    let observed = run.observed();
    assert_eq!(observed["run_status"], "COMPLETED");
    assert_eq!(observed["tasks"], json!({"a": "FAILED", "b": "FAILED", "c": "SUCCEEDED"}));
    assert!(observed["error"].as_str().unwrap().ends_with("exceeded timeout of 0.1s"));
    assert!(run.elapsed().unwrap() < 5.0, "nobody waits for an attempt that was given up");
}

#[tokio::test]
async fn a_cancel_interrupts_retrying() {
    let source = "def a():\n    raise ValueError('again')\n";
    let more = json!({"policies": {"a": {"retries": 100}}, "cancel": {"on_start": "a", "delay": 0.15}});
    let run = run("a", &["a"], source, &more).await;
    assert_eq!(run.observed()["run_status"], "CANCELLED");
    assert_eq!(run.observed()["tasks"], json!({"a": "CANCELLED"}));
    assert!(run.calls.len() < 5, "{:?}", run.calls);
}

#[tokio::test]
async fn a_callable_that_cannot_be_imported_is_left_out_and_said() {
    let run = run("a", &["a", "ghost"], "def a():\n    return 1\n", &none()).await;
    assert_eq!(run.observed()["tasks"], json!({"a": "SUCCEEDED"}));
    let warnings = run.snapshot["warnings"].to_string();
    assert!(warnings.contains("'ghost'") && warnings.contains("no attribute"), "{warnings}");
}

#[tokio::test]
async fn a_result_that_a_later_task_overwrites_in_place_is_its_own_copy_until_merged() {
    let source = "def a():\n    return {1: [1]}\ndef b(a):\n    a[1].append(2)\n    return a[1]\n";
    let observed = run("a >> b", &["a", "b"], source, &none()).await.observed();
    assert_eq!(observed["outputs"], json!({"a": {"1": [1]}, "b": [1, 2]}));
    assert_eq!(observed["results"]["a"], json!({"1": [1, 2]}));
}
