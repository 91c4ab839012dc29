//! Every call of the client: what it sends, and what it makes of the answer.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use pyoco_client::api::{RunStatus, SubmitRequest};
use pyoco_client::{Client, Error, RunDelta, RunFilter, WorkerFilter};
use serde_json::json;
use support::{Gateway, Reply, json, run};

fn client(gateway: &Gateway) -> Client {
    Client::new(gateway.url()).unwrap()
}

fn only(gateway: &Gateway) -> support::Asked {
    let asked = gateway.asked();
    assert_eq!(asked.len(), 1);
    asked.into_iter().next().unwrap()
}

#[tokio::test]
async fn submit_run_sends_what_was_given_and_nothing_else() {
    let gateway = Gateway::start(|_, _| json(200, r#"{"run_id":"r-1","status":"PENDING","new":1}"#));
    let params = json!({"x": 1, "é": [null]}).as_object().unwrap().clone();
    let request =
        SubmitRequest { flow_name: "main".into(), params, tag: Some("gpu".into()), tags: vec!["a b".into()] };
    let answer = client(&gateway).submit_run(&request).await.unwrap();
    assert_eq!((answer.run_id.as_str(), answer.status), ("r-1", RunStatus::Pending));
    assert_eq!(answer.json(), &json!({"run_id": "r-1", "status": "PENDING", "new": 1}));
    let asked = only(&gateway);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/runs"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    let sent = json!({"flow_name": "main", "params": {"x": 1, "é": [null]}, "tag": "gpu", "tags": ["a b"]});
    assert_eq!(asked.json(), sent);

    let bare = SubmitRequest { flow_name: "main".into(), ..SubmitRequest::default() };
    client(&gateway).submit_run(&bare).await.unwrap();
    assert_eq!(gateway.asked()[1].json(), json!({"flow_name": "main", "params": {}}));
}

#[tokio::test]
async fn submit_run_yaml_sends_a_file_and_two_fields() {
    let gateway = Gateway::start(|_, _| json(200, r#"{"run_id":"r-1","status":"PENDING"}"#));
    client(&gateway).submit_run_yaml("flow: {graph: é}\n", "main", "default").await.unwrap();
    let asked = only(&gateway);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/runs/yaml"));
    let boundary =
        asked.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = String::from_utf8(asked.body.clone()).unwrap();
    let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{body}");
    assert!(parts[1].contains("name=\"workflow\"; filename=\"flow.yaml\""), "{body}");
    assert!(parts[1].contains("application/x-yaml"), "{body}");
    assert!(parts[1].ends_with("\r\n\r\nflow: {graph: é}\n\r\n"), "{body}");
    assert!(parts[2].contains("name=\"flow_name\"") && parts[2].ends_with("\r\n\r\nmain\r\n"), "{body}");
    assert!(parts[3].contains("name=\"tag\"") && parts[3].ends_with("\r\n\r\ndefault\r\n"), "{body}");
}

#[tokio::test]
async fn a_submission_under_a_key_carries_it_and_another_carries_none() {
    let gateway = Gateway::start(|_, _| json(200, r#"{"run_id":"r-1","status":"PENDING"}"#));
    let client = client(&gateway);
    let request = SubmitRequest { flow_name: "main".into(), ..SubmitRequest::default() };
    client.submit_run_with_key(&request, "k-1").await.unwrap();
    client.submit_run_yaml_with_key("flow: {graph: a}\n", "main", "default", "k-2").await.unwrap();
    client.submit_run(&request).await.unwrap();
    client.submit_run_yaml("flow: {graph: a}\n", "main", "default").await.unwrap();
    let asked = gateway.asked();
    let keys: Vec<Option<&str>> = asked.iter().map(|asked| asked.header("x-idempotency-key")).collect();
    assert_eq!(keys, [Some("k-1"), Some("k-2"), None, None]);
    assert_eq!(asked[0].json(), asked[2].json());
    for odd in ["a\nb: c", "a\0b"] {
        let error = client.submit_run_with_key(&request, odd).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
    }
    assert_eq!(gateway.asked().len(), 4);
}

#[tokio::test]
async fn runs_are_read_with_and_without_records() {
    let gateway = Gateway::start(|_, _| run("RUNNING"));
    let answer = client(&gateway).get_run("r-1").await.unwrap();
    assert_eq!((answer.status, answer.tasks["a"].as_str()), (RunStatus::Running, "SUCCEEDED"));
    client(&gateway).get_run_with_records("r-1").await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/runs/r-1", "/runs/r-1?include=records"]);
}

#[tokio::test]
async fn an_id_of_any_characters_stays_one_part_of_the_path() {
    let gateway = Gateway::start(|_, _| run("RUNNING"));
    client(&gateway).get_run("a/../b?c#d é%").await.unwrap();
    assert_eq!(only(&gateway).target, "/runs/a%2F..%2Fb%3Fc%23d%20%C3%A9%25");
}

#[tokio::test]
async fn tasks_are_read() {
    let body = json!({
        "run_id": "r-1", "flow_name": "main", "status": "COMPLETED", "tasks": {"a": "SUCCEEDED"},
        "task_records": {"a": {"state": "SUCCEEDED", "output": 1}}, "task_records_truncated": false,
    });
    let gateway = Gateway::start(move |_, _| json(200, body.to_string()));
    let answer = client(&gateway).get_tasks("r-1").await.unwrap();
    assert_eq!(answer.task_records["a"].output, json!(1));
    assert_eq!(only(&gateway).target, "/runs/r-1/tasks");
}

#[tokio::test]
async fn lists_send_only_the_filters_that_were_given() {
    let gateway = Gateway::start(|_, _| json(200, r#"[{"run_id":"r-1","status":"RUNNING"}]"#));
    let client = client(&gateway);
    let answer = client.list_runs(&RunFilter::default()).await.unwrap();
    assert_eq!((answer.len(), answer[0].run_id.as_str()), (1, "r-1"));
    let filter = RunFilter {
        status: Some("RUNNING".into()),
        flow: Some("a&b".into()),
        tag: Some(String::new()),
        full: true,
        limit: Some(7),
    };
    client.list_runs(&filter).await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/runs", "/runs?status=RUNNING&flow=a%26b&include=full&limit=7"]);
}

#[tokio::test]
async fn a_list_is_understood_in_both_forms() {
    let page = r#"{"items":[{"run_id":"r-1","status":"RUNNING"}],"next_cursor":"abc"}"#;
    let gateway = Gateway::start(move |asked, _| match asked.target.as_str() {
        "/runs?cursor=" => json(200, r#"[{"run_id":"r-2","status":"FAILED"}]"#),
        _ => json(200, page),
    });
    let client = client(&gateway);
    let runs = client.list_runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.json(), &json!([{"run_id": "r-1", "status": "RUNNING"}]));
    let page = client.list_runs_vnext(&RunFilter::default(), &RunDelta::default()).await.unwrap();
    assert_eq!(page.json(), &json!({"items": [{"run_id": "r-2", "status": "FAILED"}], "next_cursor": null}));
    let delta = RunDelta {
        updated_after: Some(12.5),
        cursor: Some("abc=".into()),
        workflow_yaml_sha256: Some("00ff".into()),
    };
    let page = client.list_runs_vnext(&RunFilter::default(), &delta).await.unwrap();
    assert_eq!(page.next_cursor.as_deref(), Some("abc"));
    let last = gateway.asked().pop().unwrap().target;
    assert_eq!(last, "/runs?updated_after=12.5&cursor=abc%3D&workflow_yaml_sha256=00ff");
}

#[tokio::test]
async fn cancel_asks_once_and_shows_the_run() {
    let gateway = Gateway::start(|_, _| run("CANCELLING"));
    let answer = client(&gateway).cancel_run("r-1", None).await.unwrap();
    assert_eq!(answer.status, RunStatus::Cancelling);
    let asked = only(&gateway);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/runs/r-1/cancel"));
}

#[tokio::test]
async fn workers_are_listed_and_hidden() {
    let gateway = Gateway::start(|asked, _| match asked.method.as_str() {
        "PATCH" => json(200, r#"{"worker_id":"w","hidden":true,"updated_at":1.5}"#),
        _ => json(200, r#"[{"worker_id":"w","state":"IDLE","tags":["a"]}]"#),
    });
    let client = client(&gateway);
    let workers = client.get_workers(&WorkerFilter::default()).await.unwrap();
    assert_eq!((workers[0].worker_id.as_str(), workers[0].tags.len()), ("w", 1));
    let filter = WorkerFilter {
        scope: Some("all".into()),
        state: Some("IDLE".into()),
        include_hidden: Some(true),
        limit: Some(3),
    };
    client.get_workers(&filter).await.unwrap();
    let patched = client.patch_worker_hidden("w 1", true).await.unwrap();
    assert!(patched.hidden);
    let asked = gateway.asked();
    assert_eq!(asked[0].target, "/workers");
    assert_eq!(asked[1].target, "/workers?scope=all&state=IDLE&include_hidden=true&limit=3");
    assert_eq!((asked[2].target.as_str(), asked[2].json()), ("/workers/w%201", json!({"hidden": true})));
}

#[tokio::test]
async fn metrics_are_text() {
    let gateway =
        Gateway::start(|_, _| Reply::Whole(200, "text/plain; version=0.0.4", "pyoco_runs_total 1\n".into()));
    assert_eq!(client(&gateway).get_metrics().await.unwrap(), "pyoco_runs_total 1\n");
    assert_eq!(only(&gateway).target, "/metrics");
}

#[tokio::test]
async fn the_key_goes_with_every_request_in_the_header_that_was_chosen() {
    let gateway = Gateway::start(|_, _| run("RUNNING"));
    let plain = Client::builder(gateway.url()).api_key("pyoco_k.s").build().unwrap();
    plain.get_run("r-1").await.unwrap();
    let named = Client::builder(gateway.url()).api_key("k2").api_key_header("X-Other").build().unwrap();
    named.get_run("r-1").await.unwrap();
    Client::builder(gateway.url()).api_key("").build().unwrap().get_run("r-1").await.unwrap();
    let asked = gateway.asked();
    assert_eq!(asked[0].header("x-api-key"), Some("pyoco_k.s"));
    assert_eq!((asked[1].header("x-api-key"), asked[1].header("x-other")), (None, Some("k2")));
    assert_eq!(asked[2].header("x-api-key"), None);
    assert!(asked[2].header("user-agent").unwrap().starts_with("pyoco-client/"));
    assert!(!format!("{plain:?}").contains("pyoco_k.s"), "the key shows in a debug print");
}

#[tokio::test]
async fn a_base_url_may_have_a_path_and_a_last_slash() {
    let gateway = Gateway::start(|_, _| run("RUNNING"));
    for end in ["/", "", "/pyoco", "/pyoco/"] {
        Client::new(format!("{}{end}", gateway.url())).unwrap().get_run("r").await.unwrap();
    }
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/runs/r", "/runs/r", "/pyoco/runs/r", "/pyoco/runs/r"]);
}
