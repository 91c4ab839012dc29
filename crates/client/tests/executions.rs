//! Executions, nodes, graphs and waits: what each call sends, and what it makes of the answer.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use pyoco_client::api::{
    BulkAction, BulkFilter, BulkRequest, CreateExecution, ErrorInfo, FailNode, PutWaiting, ReportProgress,
    ResumeNode, RetryExecution, StartNode, Status, SucceedNode, Why,
};
use pyoco_client::{Client, CommandOptions, Error, ExecutionFilter, GraphFormat, WaitFilter};
use serde_json::{Value, json};
use support::{Asked, Gateway, json, no_content};

fn client(gateway: &Gateway) -> Client {
    Client::new(gateway.url()).unwrap()
}

/// A gateway that accepts every command.
fn accepting() -> Gateway {
    Gateway::start(|asked, _| {
        let body = json!({
            "executionId": "e-1", "command": "C", "accepted": true, "correlationId": "c-1",
            "idempotencyKey": asked.header("x-idempotency-key"),
        });
        json(202, body.to_string())
    })
}

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn an_execution_is_created_under_a_key_and_as_part_of_a_thread() {
    let gateway = accepting();
    let request = CreateExecution {
        graph_id: "approval".to_owned(),
        input: object(&json!({"x": [null, 1.5]})),
        tag: Some("gpu".to_owned()),
        tags: vec!["a b".to_owned()],
        graph_version: Some(3),
    };
    let options = CommandOptions { correlation_id: Some("c-1".to_owned()), ..CommandOptions::under("k 1") };
    let answer = client(&gateway).create_execution(&request, &options).await.unwrap();
    assert_eq!((answer.execution_id.as_str(), answer.idempotency_key.as_str()), ("e-1", "k 1"));
    let asked = gateway.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/executions"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        (asked.header("x-idempotency-key"), asked.header("x-correlation-id")),
        (Some("k 1"), Some("c-1"))
    );
    let sent = json!({"graphId": "approval", "input": {"x": [null, 1.5]}, "tag": "gpu", "tags": ["a b"], "graphVersion": 3});
    assert_eq!(asked.json(), sent);
}

#[tokio::test]
async fn many_are_asked_at_once_and_each_is_answered_for() {
    let gateway = Gateway::start(|_, _| {
        let body = json!({
            "action": "retry", "dryRun": false, "matched": 3, "done": ["a"], "created": ["n"],
            "skipped": [{"id": "b", "why": "ALREADY_RETRIED"}],
            "failed": [{"id": "c", "code": "UNAVAILABLE", "message": "later"}], "nextCursor": "on",
        });
        json(200, body.to_string())
    });
    let filter = BulkFilter { status: vec!["FAILED".to_owned()], ..BulkFilter::default() };
    let request = BulkRequest {
        action: BulkAction::Retry,
        filter: Some(filter),
        all: false,
        dry_run: false,
        limit: Some(7),
        cursor: Some("here".to_owned()),
        reason: None,
    };
    let answer = client(&gateway).bulk(&request, &CommandOptions::under("k")).await.unwrap();
    assert_eq!((answer.matched, answer.done[0].as_str(), answer.created[0].as_str()), (3, "a", "n"));
    assert_eq!(answer.skipped[0].why, "ALREADY_RETRIED");
    assert_eq!((answer.failed[0].code.as_str(), answer.next_cursor.as_deref()), ("UNAVAILABLE", Some("on")));
    let asked = gateway.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/executions/bulk"));
    assert_eq!(asked.header("x-idempotency-key"), Some("k"));
    let sent = json!({"action": "retry", "filter": {"status": ["FAILED"]}, "limit": 7, "cursor": "here"});
    assert_eq!(asked.json(), sent);
}

#[tokio::test]
async fn every_command_has_its_path_and_sends_only_what_was_given() {
    let gateway = accepting();
    let client = client(&gateway);
    let options = CommandOptions::under("k");
    let (id, node) = ("e/1", "retry/2/fetch é");
    let why = Why { reason: Some("enough".to_owned()) };
    client.start_execution(id, &options).await.unwrap();
    client.cancel_execution(id, &why, &options).await.unwrap();
    client.archive_execution(id, &Why::default(), &options).await.unwrap();
    client.retry_execution(id, &RetryExecution::default(), &options).await.unwrap();
    let retry = RetryExecution { input: Some(object(&json!({"x": 2}))), from_node: Some("a".to_owned()) };
    client.retry_execution(id, &retry, &options).await.unwrap();
    let start = StartNode { attempt: Some(2), worker_id: Some("me".to_owned()) };
    client.start_node(id, node, &start, &options).await.unwrap();
    let progress = ReportProgress {
        progress: Some(42.0),
        message: Some("half".to_owned()),
        metrics: Some(object(&json!({"rows": 1}))),
    };
    client.report_progress(id, node, &progress, &options).await.unwrap();
    let wait = PutWaiting { wait_key: Some("w".to_owned()), prompt: Some(object(&json!({"q": "?"}))) };
    client.put_node_waiting(id, node, &wait, &options).await.unwrap();
    let resume = ResumeNode { resume_key: Some("w".to_owned()), output: json!({"ok": true}) };
    client.resume_node(id, node, &resume, &options).await.unwrap();
    client
        .succeed_node(id, node, &SucceedNode { output: json!([1]), attempt: None }, &options)
        .await
        .unwrap();
    let error = ErrorInfo { code: Some("E".to_owned()), ..ErrorInfo::default() };
    client.fail_node(id, node, &FailNode { error: Some(error), attempt: Some(1) }, &options).await.unwrap();
    client.cancel_node(id, node, &why, &options).await.unwrap();
    let sent: Vec<(String, Value)> =
        gateway.asked().iter().map(|asked| (asked.target.clone(), asked.json())).collect();
    let on_node = |command: &str| format!("/executions/e%2F1/nodes/retry%2F2%2Ffetch%20%C3%A9/{command}");
    let expected = [
        ("/executions/e%2F1/start".to_owned(), json!({})),
        ("/executions/e%2F1/cancel".to_owned(), json!({"reason": "enough"})),
        ("/executions/e%2F1/archive".to_owned(), json!({})),
        ("/executions/e%2F1/retry".to_owned(), json!({})),
        ("/executions/e%2F1/retry".to_owned(), json!({"input": {"x": 2}, "fromNode": "a"})),
        (on_node("start"), json!({"attempt": 2, "workerId": "me"})),
        (on_node("progress"), json!({"progress": 42.0, "message": "half", "metrics": {"rows": 1}})),
        (on_node("wait"), json!({"waitKey": "w", "prompt": {"q": "?"}})),
        (on_node("resume"), json!({"resumeKey": "w", "output": {"ok": true}})),
        (on_node("success"), json!({"output": [1]})),
        (on_node("fail"), json!({"error": {"code": "E"}, "attempt": 1})),
        (on_node("cancel"), json!({"reason": "enough"})),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_new_command_has_a_new_key_and_keeps_it() {
    let gateway = accepting();
    let client = client(&gateway);
    let (first, second) = (CommandOptions::new(), CommandOptions::default());
    for options in [&first, &first, &second] {
        client.start_execution("e-1", options).await.unwrap();
    }
    let keys: Vec<String> =
        gateway.asked().iter().map(|asked| asked.header("x-idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys, [&first.idempotency_key[..], &first.idempotency_key, &second.idempotency_key]);
    assert_ne!(keys[0], keys[2]);
}

#[tokio::test]
async fn what_no_header_can_carry_is_not_sent() {
    let gateway = accepting();
    let thread = CommandOptions { correlation_id: Some("a\nb".to_owned()), ..CommandOptions::new() };
    for options in [CommandOptions::under("a\nb: c"), thread] {
        let error = client(&gateway).start_execution("e-1", &options).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
    }
    assert_eq!(gateway.asked().len(), 0);
}

#[tokio::test]
async fn an_execution_is_read_as_it_is_and_as_it_was() {
    let gateway = Gateway::start(|_, _| {
        let body = json!({
            "executionId": "e-1", "graphId": "g", "status": "ACTIVE", "seq": 7, "new": 1,
            "createdAt": "2026-01-31T00:00:00Z",
            "nodes": [{"nodeId": "a", "nodeType": "Wait", "status": "WAITING", "attempt": 1,
                       "waiting": {"since": "2026-01-31T00:00:01Z", "waitKey": "k", "prompt": {"q": "?"}}}],
        });
        json(200, body.to_string())
    });
    let execution = client(&gateway).get_execution("e-1", None).await.unwrap();
    assert_eq!((execution.status, execution.seq), (Status::Active, 7));
    assert_eq!(execution.nodes[0].waiting.as_ref().unwrap().wait_key.as_deref(), Some("k"));
    assert_eq!(execution.json()["new"], 1);
    client(&gateway).get_execution("e-1", Some(3)).await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/executions/e-1", "/executions/e-1?at=3"]);
}

#[tokio::test]
async fn a_list_sends_only_the_filters_that_were_given() {
    let gateway = Gateway::start(|_, _| {
        let item = json!({
            "executionId": "e-1", "graphId": "g", "status": "CANCELED", "cancelRequested": true,
            "createdAt": "2026-01-31T00:00:00Z", "updatedAt": "2026-01-31T00:00:00Z", "tags": ["t"],
        });
        json(200, json!({"items": [item], "nextCursor": "c2"}).to_string())
    });
    let page = client(&gateway).list_executions(&ExecutionFilter::default()).await.unwrap();
    assert_eq!((page.items[0].status, page.next_cursor.as_deref()), (Status::Canceled, Some("c2")));
    let text = |text: &str| Some(text.to_owned());
    let filter = ExecutionFilter {
        status: text("ACTIVE"),
        graph_id: text("a b"),
        tag: text(""),
        created_after: text("2026-01-31T00:00:00+01:00"),
        created_before: text("1"),
        updated_after: text("2"),
        updated_before: text("3"),
        limit: Some(5),
        cursor: text("c1"),
    };
    client(&gateway).list_executions(&filter).await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    let all = "/executions?status=ACTIVE&graphId=a+b&createdAfter=2026-01-31T00%3A00%3A00%2B01%3A00&createdBefore=1\
               &updatedAfter=2&updatedBefore=3&cursor=c1&limit=5";
    assert_eq!(targets, ["/executions", all]);
}

#[tokio::test]
async fn events_come_page_by_page() {
    let gateway = Gateway::start(|_, _| {
        let event = json!({
            "seq": 3, "eventId": "x", "executionId": "e-1", "type": "NODE_READY", "occurredAt": "2026-01-31T00:00:00Z",
            "actor": {"kind": "system"}, "schemaVersion": 1, "payload": {"nodeId": "a"},
        });
        json(200, json!({"executionId": "e-1", "events": [event], "lastSeq": 9, "next": 3}).to_string())
    });
    let page = client(&gateway).get_events("e-1", 2, Some(1)).await.unwrap();
    assert_eq!((page.events[0].kind.as_str(), page.last_seq, page.next), ("NODE_READY", 9, Some(3)));
    assert_eq!(page.events[0].payload["nodeId"], "a");
    client(&gateway).get_events("e-1", 0, None).await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/executions/e-1/events?after=2&limit=1", "/executions/e-1/events?after=0"]);
}

#[tokio::test]
async fn graphs_are_put_read_listed_and_deleted() {
    let gateway = Gateway::start(|asked, _| match (asked.method.as_str(), asked.path()) {
        ("DELETE", _) => no_content(),
        (_, "/graphs") => json(200, r#"{"items":[],"nextCursor":null}"#),
        _ => json(
            201,
            r#"{"graphId":"a b","version":2,"createdAt":"2026-01-31T00:00:00Z","flowVersion":2,"source":"s",
                "nodes":[{"nodeId":"a","nodeType":"Task","runner":"external"},{"nodeId":"f","nodeType":"Fork","runner":null}]}"#,
        ),
    });
    let client = client(&gateway);
    let graph = client.put_graph("a b", "flow: {graph: é}\n", GraphFormat::Yaml, None).await.unwrap();
    assert_eq!((graph.version, graph.nodes[1].runner.as_deref()), (2, None));
    client.put_graph("a b", "{}", GraphFormat::Json, Some(1)).await.unwrap();
    assert_eq!(client.get_graph("a b", Some(2)).await.unwrap().source.as_deref(), Some("s"));
    client.get_graph("a b", None).await.unwrap();
    assert_eq!(client.list_graphs(Some(2), Some("c")).await.unwrap().items.len(), 0);
    client.list_graphs(None, None).await.unwrap();
    client.delete_graph("a b", Some(2)).await.unwrap();
    client.delete_graph("a b", None).await.unwrap();
    let asked = gateway.asked();
    let line = |asked: &Asked| format!("{} {}", asked.method, asked.target);
    assert_eq!(
        asked.iter().map(line).collect::<Vec<_>>(),
        [
            "PUT /graphs/a%20b",
            "PUT /graphs/a%20b",
            "GET /graphs/a%20b?version=2",
            "GET /graphs/a%20b",
            "GET /graphs?limit=2&cursor=c",
            "GET /graphs",
            "DELETE /graphs/a%20b",
            "DELETE /graphs/a%20b",
        ]
    );
    assert_eq!(asked[0].body, "flow: {graph: é}\n".as_bytes());
    let kinds: Vec<_> = asked.iter().take(2).map(|asked| asked.header("content-type").unwrap()).collect();
    assert_eq!(kinds, ["application/yaml", "application/json"]);
    let matches: Vec<_> = [0, 1, 6, 7].map(|at: usize| asked[at].header("if-match")).to_vec();
    assert_eq!(matches, [None, Some("\"1\""), Some("\"2\""), None]);
}

#[tokio::test]
async fn waits_are_listed() {
    let gateway = Gateway::start(|_, _| {
        let wait = json!({
            "executionId": "e-1", "graphId": "g", "nodeId": "a", "waitKey": "k", "prompt": {"q": 1},
            "since": "2026-01-31T00:00:00Z", "tags": ["t"],
        });
        json(200, json!({"items": [wait], "nextCursor": null}).to_string())
    });
    let page = client(&gateway).list_waits(&WaitFilter::default()).await.unwrap();
    assert_eq!((page.items[0].node_id.as_str(), page.items[0].wait_key.as_deref()), ("a", Some("k")));
    let filter = WaitFilter {
        tag: Some("a&b".to_owned()),
        older_than_sec: Some(1.5),
        limit: Some(2),
        cursor: Some("c".to_owned()),
    };
    client(&gateway).list_waits(&filter).await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/waits", "/waits?tag=a%26b&cursor=c&olderThanSec=1.5&limit=2"]);
}

#[tokio::test]
async fn a_refusal_carries_its_code_and_its_message() {
    let gateway = Gateway::start(|_, _| {
        json(
            409,
            r#"{"error":{"code":"COMMAND_REJECTED","message":"StartNode rejected because x","details":{}}}"#,
        )
    });
    let options = CommandOptions::new();
    let error = client(&gateway).start_node("e", "n", &StartNode::default(), &options).await.unwrap_err();
    let Error::Status(refused) = &error else { panic!("{error:?}") };
    assert_eq!(refused.status, 409);
    assert_eq!(refused.code(), Some("COMMAND_REJECTED"));
    assert_eq!(refused.message().as_deref(), Some("StartNode rejected because x"));
    assert!(!error.is_passing());
    assert_eq!(
        error.to_string(),
        "HTTP 409 POST /executions/e/nodes/n/start: COMMAND_REJECTED: StartNode rejected because x"
    );
}
