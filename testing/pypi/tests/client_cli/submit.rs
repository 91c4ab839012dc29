//! `submit`, `submit-yaml`, `get` and `tasks`.

use pyoco_pypi::{Site, WORKER};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::keys;

#[tokio::test(flavor = "multi_thread")]
async fn params_come_from_the_file_then_from_the_object_then_one_by_one() {
    let site = Site::without_worker().await;
    let yaml = site.file("params.yaml", "a: file\nb: file\nc: file\nlist: [1, 2.5]\nnothing: null\n");
    let given =
        ["--params-file", &yaml, "--params", r#"{"b": "object", "c": "object", "deep": {"é": [true]}}"#];
    let single = ["--param", "c=7", "--param", "name=alice", "--param", "empty=", "--param", r#"flag=true"#];
    let run = site.submit("sum", &[&given[..], &single[..]].concat()).await;
    let wanted = json!({
        "a": "file", "b": "object", "c": 7, "list": [1, 2.5], "nothing": null, "deep": {"é": [true]},
        "name": "alice", "empty": "", "flag": true,
    });
    assert_eq!(site.client(&["get", &run]).await.json()["params"], wanted);

    let json_file = site.file("params.json", r#"{"a": 1e3, "big": 12345678901234567890}"#);
    let run = site.submit("sum", &["--params-file", &json_file]).await;
    let params = &site.client(&["get", &run]).await.json()["params"];
    assert_eq!(params, &json!({"a": 1000.0, "big": 12_345_678_901_234_567_890_u64}));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_shows_what_it_was_submitted_with() {
    let site = Site::without_worker().await;
    let answer = site.client(&["submit", "--tag", "green", "--tags", "a, b c ,é,"]).await.json();
    assert_eq!(keys(&answer), ["run_id", "status"].into());
    assert_eq!(answer["status"], "PENDING");
    let run = answer["run_id"].as_str().unwrap();
    assert_eq!(run.len(), 36, "{run}");

    let waiting = site.client(&["get", run]).await.json();
    let at = &waiting["updated_at"];
    assert!(at.is_f64() && &waiting["heartbeat_at"] == at);
    for (name, wanted) in [
        ("run_id", json!(run)),
        ("flow_name", json!("main")),
        ("tag", json!("green")),
        ("tags", json!(["a", "b c", "é"])),
        ("tenant_id", Value::Null),
        ("api_key_id", Value::Null),
        ("status", json!("PENDING")),
        ("params", json!({})),
        ("tasks", json!({})),
        ("start_time", Value::Null),
        ("end_time", Value::Null),
        ("error", Value::Null),
    ] {
        assert_eq!(waiting.get(name), Some(&wanted), "{name}");
    }
    for absent in ["task_records", "task_records_truncated", "worker_id", "worker_alive"] {
        assert!(waiting.get(absent).is_none(), "{absent}");
    }
    assert_eq!(site.client(&["get", run, "--records"]).await.json()["task_records"], json!({}));

    for (given, tag, tags) in [
        (&[][..], "default", "default"),
        (&["--tag", "blue"], "blue", "blue"),
        (&["--tags", "x"], "default", "x"),
    ] {
        let run = site.submit("main", given).await;
        let shown = site.client(&["get", &run]).await.json();
        assert_eq!((&shown["tag"], &shown["tags"]), (&json!(tag), &json!([tags])), "{given:?}");
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_completes_is_shown_with_its_tasks() {
    let site = Site::start().await;
    let run = site.submit("sum", &["--param", "x=20", "--param", "y=1"]).await;
    let full = site.ended(&run).await;
    assert_eq!((&full["status"], &full["error"]), (&json!("COMPLETED"), &Value::Null));
    let (start, end) = (full["start_time"].as_f64().unwrap(), full["end_time"].as_f64().unwrap());
    assert!(start <= end && end <= full["updated_at"].as_f64().unwrap());
    assert_eq!(full["tasks"], json!({"add": "SUCCEEDED", "double": "SUCCEEDED"}));
    let records = &full["task_records"];
    assert_eq!(records["add"]["inputs"], json!({"x": 20, "y": 1}));
    assert_eq!((&records["add"]["output"], &records["double"]["output"]), (&json!(21), &json!(42)));
    for record in [&records["add"], &records["double"]] {
        assert_eq!(record["state"], "SUCCEEDED");
        assert_eq!((&record["error"], &record["traceback"]), (&Value::Null, &Value::Null));
        assert_eq!(record["artifacts"], json!({}));
        assert!(
            ["started_at", "ended_at", "duration_ms"].iter().all(|time| record[time].is_f64()),
            "{record}"
        );
    }
    assert_eq!((&full["worker_id"], &full["worker_alive"]), (&json!(WORKER), &json!(true)));
    assert_eq!((&full["worker_hidden"], &full["worker_tags"]), (&json!(false), &json!(["default", "blue"])));
    assert!(full["worker_state"].is_string() && full["worker_heartbeat_at"].is_f64());

    let short = site.client(&["get", &run]).await.json();
    let left_out: Vec<_> = keys(&full).difference(&keys(&short)).copied().collect();
    assert_eq!(left_out, ["task_records"]);

    let tasks = site.client(&["tasks", &run]).await.json();
    let wanted = ["run_id", "flow_name", "status", "tasks", "task_records", "task_records_truncated"];
    assert_eq!(keys(&tasks), wanted.into());
    assert_eq!(tasks["task_records_truncated"], false);
    assert!(
        ["run_id", "flow_name", "status", "tasks", "task_records"]
            .iter()
            .all(|name| tasks[name] == full[name])
    );
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_says_why() {
    let site = Site::start().await;
    let run = site.submit("broken", &[]).await;
    let full = site.ended(&run).await;
    assert_eq!((&full["status"], &full["error"]), (&json!("FAILED"), &json!("fällt um")));
    assert_eq!(full["tasks"]["fall"], "FAILED");
    let record = &full["task_records"]["fall"];
    assert_eq!(
        (&record["state"], &record["error"], &record["output"]),
        (&json!("FAILED"), &json!("fällt um"), &Value::Null)
    );
    assert!(record["traceback"].as_str().unwrap().trim_end().ends_with("ValueError: fällt um"));
    assert_ne!(full["tasks"]["after"], "SUCCEEDED");

    let run = site.submit("nobody_knows_it", &[]).await;
    let full = site.ended(&run).await;
    assert_eq!(
        (&full["status"], &full["error"]),
        (&json!("FAILED"), &json!("flow_not_found: 'nobody_knows_it'"))
    );
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_is_sent_along_runs_with_its_defaults() {
    let site = Site::start().await;
    let text = "version: 1\nflow:\n  graph: add >> double\n  defaults: {x: 4, y: 5, note: é}\n\
                tasks:\n  add: {callable: 'sum_tasks:add'}\n  double: {callable: 'sum_tasks:double'}\n";
    let file = site.file("flow.yaml", text);
    let submit = ["submit-yaml", "--workflow-file", &file, "--flow-name", " sent ", "--tag", "blue"];
    let answer = site.client(&submit).await.json();
    assert_eq!((keys(&answer), &answer["status"]), (["run_id", "status"].into(), &json!("PENDING")));
    let run = answer["run_id"].as_str().unwrap();
    let full = site.ended(run).await;
    assert_eq!(full["status"], "COMPLETED", "{full}");
    assert_eq!(full["task_records"]["double"]["output"], 18);
    assert_eq!(full["params"], json!({"x": 4, "y": 5, "note": "é"}));
    assert_eq!(
        (&full["flow_name"], &full["tag"], &full["tags"]),
        (&json!("sent"), &json!("blue"), &json!(["blue"]))
    );
    assert_eq!(full["workflow_yaml_bytes"], text.len());
    let sha256: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(full["workflow_yaml_sha256"], json!(sha256));

    let other = site.submit("sum", &[]).await;
    site.ended(&other).await;
    let found = site.client(&["list-vnext", "--workflow-yaml-sha256", &sha256]).await.json();
    assert_eq!(found["next_cursor"], Value::Null);
    let ids: Vec<_> = found["items"].as_array().unwrap().iter().map(|item| &item["run_id"]).collect();
    assert_eq!(ids, [run]);
    let none = site.client(&["list-vnext", "--workflow-yaml-sha256", &"0".repeat(64)]).await.json();
    assert_eq!(none, json!({"items": [], "next_cursor": null}));
    site.stop().await;
}
