//! What an accepted command is answered, and each of its repeats.

use std::collections::BTreeSet;

use pyoco_gateway::Settings;
use pyoco_testing_executions::{Answer, Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    an_execution_is_driven_from_outside_to_its_end,
    every_accepted_command_is_answered_with_the_five_members,
    a_repeat_is_answered_as_the_first_time_and_does_nothing,
    a_repeat_is_recognised_when_the_command_would_be_refused_by_now,
    a_key_with_another_input_is_refused,
    a_key_counts_for_its_endpoint_only,
    a_refused_command_does_not_use_its_key_up,
    concurrent_duplicates_have_one_effect,
    a_repeat_is_recognised_by_another_gateway_and_after_a_restart,
    what_a_name_stands_for_later_does_not_change_a_repeat,
    without_a_key_one_is_made_up_if_the_operator_allows_it,
);

const CHAIN: &str = "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n";

async fn an_execution_is_driven_from_outside_to_its_end(site: Site) {
    site.graph("chain", CHAIN).await;
    let body = json!({"graphId": "chain", "input": {"x": [1.5, "é"]}, "tags": ["red", "blue"]});
    let answer = site.post("/executions", &body).await;
    assert_eq!(answer.status, 202, "{}", answer.json);
    let execution = answer.json["executionId"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("location"), format!("/executions/{execution}"));
    let shown = site.execution(&execution).await;
    assert_eq!(shown["status"], "ACTIVE");
    assert_eq!((&shown["startedAt"], &shown["cancelRequestedAt"]), (&Value::Null, &Value::Null));
    assert_eq!((&shown["graphId"], &shown["graphVersion"]), (&json!("chain"), &json!(1)));
    assert_eq!((&shown["input"], &shown["tags"]), (&json!({"x": [1.5, "é"]}), &json!(["red", "blue"])));
    site.done(&format!("/executions/{execution}/start"), &json!({})).await;
    for node in ["a", "b"] {
        let start = json!({"attempt": 1, "workerId": "worker-1"});
        site.node(&execution, node, "start", start).await;
        let progress = json!({"progress": 42, "message": "processing...", "metrics": {"rows": 3}});
        site.node(&execution, node, "progress", progress).await;
        let shown = site.node_of(&execution, node).await;
        assert_eq!(shown["status"], "RUNNING");
        assert_eq!((&shown["attempt"], &shown["workerId"]), (&json!(1), &json!("worker-1")));
        assert_eq!((&shown["progress"], &shown["message"]), (&json!(42.0), &json!("processing...")));
        site.node(&execution, node, "success", json!({"output": {"n": 1}})).await;
        let shown = site.node_of(&execution, node).await;
        assert_eq!((&shown["status"], &shown["output"]), (&json!("SUCCEEDED"), &json!({"n": 1})));
    }
    let shown = site.execution(&execution).await;
    assert_eq!(shown["status"], "COMPLETED");
    assert!(shown["endedAt"].is_string() && shown["nodes"].as_array().unwrap().len() >= 2, "{shown}");
    let metrics = site.payloads(&execution, "NODE_PROGRESS_REPORTED").await;
    assert_eq!(metrics[0]["metrics"], json!({"rows": 3}));
    // It is the same execution that the other surface shows.
    let run = site.shown(&format!("/runs/{execution}")).await;
    assert_eq!((&run["status"], &run["flow_name"]), (&json!("COMPLETED"), &json!("chain")));
}

/// Sends a command under a key and a thread of the test's choice.
async fn under(site: &Site, path: &str, key: &str, thread: Option<&str>, body: &Value) -> Answer {
    let mut request = site.client.post(site.url(path)).header("x-idempotency-key", key);
    if let Some(thread) = thread {
        request = request.header("x-correlation-id", thread);
    }
    Answer::of(request.json(body).send().await.unwrap()).await
}

async fn every_accepted_command_is_answered_with_the_five_members(site: Site) {
    site.graph("all", "flow: {graph: 'a >> b >> c >> d'}\ntasks: {a: {}, b: {}, c: {}, d: {}}\n").await;
    let execution = site.created("all").await;
    let other = site.started("all").await;
    let none = json!({});
    let steps = [
        (&execution, "/start", "StartExecution", none.clone()),
        (&execution, "/nodes/a/start", "StartNode", json!({"attempt": 1})),
        (&execution, "/nodes/a/progress", "ReportNodeProgress", json!({"progress": 0})),
        (&execution, "/nodes/a/wait", "PutNodeWaiting", json!({"waitKey": "k", "prompt": {"q": 1}})),
        (&execution, "/nodes/a/resume", "ResumeNode", json!({"resumeKey": "k"})),
        (&execution, "/nodes/a/success", "SucceedNode", none.clone()),
        (&execution, "/nodes/b/start", "StartNode", none.clone()),
        (&execution, "/nodes/b/cancel", "CancelNode", json!({"reason": "not needed"})),
        (&other, "/nodes/a/start", "StartNode", none.clone()),
        (
            &other,
            "/nodes/a/fail",
            "FailNode",
            json!({"error": {"code": "E", "message": "m", "detail": {"d": 1}}}),
        ),
        (&other, "/archive", "ArchiveExecution", json!({"reason": "old"})),
        (&other, "/retry", "RetryExecution", none),
    ];
    for (position, (execution, path, command, body)) in steps.into_iter().enumerate() {
        let (key, thread) = (format!("key {position}"), format!("thread {position}"));
        let path = format!("/executions/{execution}{path}");
        let named = (position % 2 == 0).then_some(thread.as_str());
        let answer = under(&site, &path, &key, named, &body).await;
        assert_eq!(answer.status, 202, "{path}: {}", answer.json);
        let members: BTreeSet<&str> = answer.json.as_object().unwrap().keys().map(String::as_str).collect();
        let wanted = ["executionId", "command", "accepted", "correlationId", "idempotencyKey"];
        assert_eq!(members, BTreeSet::from(wanted), "{path}");
        if command != "RetryExecution" {
            assert_eq!(answer.json["executionId"], json!(execution), "{path}");
        }
        assert_eq!((&answer.json["command"], &answer.json["accepted"]), (&json!(command), &json!(true)));
        assert_eq!(answer.json["idempotencyKey"], json!(key));
        let correlation = answer.json["correlationId"].as_str().unwrap();
        assert_eq!(answer.header("x-correlation-id"), correlation);
        match named {
            Some(thread) => assert_eq!(correlation, thread),
            None => assert!(!correlation.is_empty()),
        }
        // The thread stands in what happened because of it.
        let about = answer.json["executionId"].as_str().unwrap();
        let events = site.events(about).await;
        assert!(events.iter().any(|event| event["correlationId"] == correlation), "{path}: {events:?}");
        // A repeat: 200, and the very same body.
        let again = under(&site, &path, &key, None, &body).await;
        assert_eq!((again.status, &again.json), (200, &answer.json), "{path}");
        assert_eq!(site.events(about).await, events, "{path}");
    }
    let failed = site.payloads(&other, "NODE_FAILED").await;
    assert_eq!(failed[0]["error"], json!({"code": "E", "message": "m", "detail": {"d": 1}}));
    assert_eq!(site.payloads(&other, "EXECUTION_ARCHIVED").await, [json!({"reason": "old"})]);
    let canceled = site.payloads(&execution, "NODE_CANCEL_REQUESTED").await;
    assert_eq!(canceled, [json!({"nodeId": "b", "reason": "not needed"})]);
}

async fn a_repeat_is_answered_as_the_first_time_and_does_nothing(site: Site) {
    site.graph("chain", CHAIN).await;
    let body = json!({"graphId": "chain", "input": {"b": 1, "a": 2}});
    let first = under(&site, "/executions", "k", Some("t-1"), &body).await;
    assert_eq!(first.status, 202);
    // The same input in another order is the same input; the other thread is not the one it was answered with.
    let again = r#"{"input": {"a": 2, "b": 1}, "graphId": "chain", "unknown": true}"#;
    let request = site.client.post(site.url("/executions")).header("idempotency-key", "k");
    let again = request.header("x-correlation-id", "t-2").body(again).send().await.unwrap();
    let again = Answer::of(again).await;
    assert_eq!((again.status, &again.json), (200, &first.json));
    assert_eq!(again.header("location"), first.header("location"));
    let execution = first.json["executionId"].as_str().unwrap();
    let cancel = format!("/executions/{execution}/cancel");
    let first = under(&site, &cancel, "c", None, &json!({"reason": "enough"})).await;
    assert_eq!(first.status, 202);
    let before = site.events(execution).await;
    for _ in 0..3 {
        let again = under(&site, &cancel, "c", None, &json!({"reason": "enough"})).await;
        assert_eq!((again.status, &again.json), (200, &first.json));
    }
    assert_eq!(site.events(execution).await, before);
}

async fn a_repeat_is_recognised_when_the_command_would_be_refused_by_now(site: Site) {
    site.graph("one", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    let create = site.send("/executions", "k", &json!({"graphId": "one"})).await.expect(202);
    let execution = create["executionId"].as_str().unwrap();
    let steps =
        ["start", "nodes/a/start", "nodes/a/success"].map(|step| format!("/executions/{execution}/{step}"));
    let mut first = Vec::new();
    for path in &steps {
        first.push(site.send(path, "k", &json!({})).await.expect(202));
    }
    assert_eq!(site.status(execution).await, "COMPLETED");
    let before = site.events(execution).await;
    for (path, first) in steps.iter().zip(&first) {
        assert_eq!(site.send(path, "k", &json!({})).await.expect(200), *first, "{path}");
        site.send(path, "new", &json!({})).await.denied(409, "COMMAND_REJECTED");
    }
    assert_eq!(site.send("/executions", "k", &json!({"graphId": "one"})).await.expect(200), create);
    assert_eq!(site.events(execution).await, before);
}

async fn a_key_with_another_input_is_refused(site: Site) {
    site.graph("chain", CHAIN).await;
    site.graph("other", CHAIN).await;
    assert_eq!(site.send("/executions", "k", &json!({"graphId": "chain"})).await.status, 202);
    for body in [
        json!({"graphId": "other"}),
        json!({"graphId": "chain", "input": {"x": 1}}),
        json!({"graphId": "chain", "tags": ["x"]}),
    ] {
        site.send("/executions", "k", &body).await.denied(409, "IDEMPOTENCY_KEY_REUSED");
    }
    let execution = site.started("chain").await;
    let start = format!("/executions/{execution}/nodes/a/start");
    assert_eq!(site.send(&start, "s", &json!({"workerId": "w"})).await.status, 202);
    let before = site.events(&execution).await;
    let error = site.send(&start, "s", &json!({"workerId": "v"})).await;
    let message = error.denied(409, "IDEMPOTENCY_KEY_REUSED")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("StartNode rejected because "), "{message}");
    assert_eq!(site.events(&execution).await, before);
}

async fn a_key_counts_for_its_endpoint_only(site: Site) {
    site.graph("wide", "flow: {graph: a}\ntasks: {a: {}, b: {}}\n").await;
    let execution = site.send("/executions", "k", &json!({"graphId": "wide"})).await.expect(202);
    let execution = execution["executionId"].as_str().unwrap();
    for path in ["start", "nodes/a/start", "nodes/b/start", "nodes/a/success", "nodes/b/success", "archive"] {
        let answer = site.send(&format!("/executions/{execution}/{path}"), "k", &json!({})).await;
        assert_eq!(answer.status, 202, "{path}: {}", answer.json);
    }
    // Nor does it count for another execution.
    let other = site.created("wide").await;
    assert_eq!(site.send(&format!("/executions/{other}/start"), "k", &json!({})).await.status, 202);
}

async fn a_refused_command_does_not_use_its_key_up(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    let start = format!("/executions/{execution}/nodes/a/start");
    site.send(&start, "k", &json!({})).await.denied(409, "COMMAND_REJECTED");
    site.done(&format!("/executions/{execution}/start"), &json!({})).await;
    assert_eq!(site.send(&start, "k", &json!({"workerId": "other"})).await.status, 202);
}

async fn concurrent_duplicates_have_one_effect(site: Site) {
    site.graph("chain", CHAIN).await;
    let beside = site.beside().await;
    let created = together(&site, &beside, "/executions", &json!({"graphId": "chain"})).await;
    let execution = created["executionId"].as_str().unwrap().to_owned();
    assert_eq!(site.shown("/executions").await["items"].as_array().unwrap().len(), 1);
    for (path, body) in [
        ("start", json!({})),
        ("nodes/a/start", json!({"attempt": 1})),
        ("nodes/a/progress", json!({"progress": 10})),
        ("nodes/a/success", json!({"output": [1]})),
        ("cancel", json!({})),
    ] {
        together(&site, &beside, &format!("/executions/{execution}/{path}"), &body).await;
    }
    for kind in [
        "EXECUTION_CREATED",
        "EXECUTION_STARTED",
        "NODE_STARTED",
        "NODE_PROGRESS_REPORTED",
        "NODE_SUCCEEDED",
        "EXECUTION_CANCEL_REQUESTED",
        "EXECUTION_CANCELED",
    ] {
        assert_eq!(site.payloads(&execution, kind).await.len(), 1, "{kind}");
    }
}

/// The same command 32 times at once, through two gateways: one 202, else 200, and one body.
async fn together(site: &Site, beside: &Site, path: &str, body: &Value) -> Value {
    let key = format!("once {path}");
    let mut sent = tokio::task::JoinSet::new();
    for position in 0..32 {
        let through = if position % 2 == 0 { site } else { beside };
        let request = through.client.post(through.url(path)).header("x-idempotency-key", &key).json(body);
        sent.spawn(async move { Answer::of(request.send().await.unwrap()).await });
    }
    let answers = sent.join_all().await;
    let firsts = answers.iter().filter(|answer| answer.status == 202).count();
    let repeats = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((firsts, repeats), (1, 31), "{path}: {answers:?}");
    assert!(answers.iter().all(|answer| answer.json == answers[0].json), "{path}: {answers:?}");
    answers[0].json.clone()
}

async fn a_repeat_is_recognised_by_another_gateway_and_after_a_restart(site: Site) {
    site.graph("chain", CHAIN).await;
    let created = site.send("/executions", "k", &json!({"graphId": "chain"})).await.expect(202);
    let execution = created["executionId"].as_str().unwrap().to_owned();
    let start = format!("/executions/{execution}/start");
    let started = site.send(&start, "s", &json!({})).await.expect(202);
    let beside = site.beside().await;
    assert_eq!(beside.send(&start, "s", &json!({})).await.expect(200), started);
    drop(beside);
    let site = site.restarted().await;
    assert_eq!(site.send("/executions", "k", &json!({"graphId": "chain"})).await.expect(200), created);
    assert_eq!(site.send(&start, "s", &json!({})).await.expect(200), started);
    site.send(&start, "new", &json!({})).await.denied(409, "COMMAND_REJECTED");
    assert_eq!(site.payloads(&execution, "EXECUTION_STARTED").await.len(), 1);
}

async fn what_a_name_stands_for_later_does_not_change_a_repeat(site: Site) {
    site.graph("chain", CHAIN).await;
    let first = site.send("/executions", "k", &json!({"graphId": "chain"})).await.expect(202);
    site.graph("chain", "flow: {graph: 'a >> b >> c'}\ntasks: {a: {}, b: {}, c: {}}\n").await;
    assert_eq!(site.send("/executions", "k", &json!({"graphId": "chain"})).await.expect(200), first);
    let deleted = site.client.delete(site.url("/graphs/chain")).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    assert_eq!(site.send("/executions", "k", &json!({"graphId": "chain"})).await.expect(200), first);
    let shown = site.execution(first["executionId"].as_str().unwrap()).await;
    assert_eq!(shown["graphVersion"], 1);
}

async fn without_a_key_one_is_made_up_if_the_operator_allows_it(site: Site) {
    site.graph("chain", CHAIN).await;
    let lenient = site.again(Settings { idempotency_key_required: false, ..Settings::default() }).await;
    let create = || async {
        let request = lenient.client.post(lenient.url("/executions")).json(&json!({"graphId": "chain"}));
        Answer::of(request.send().await.unwrap()).await.expect(202)
    };
    let (one, other) = (create().await, create().await);
    for name in ["executionId", "idempotencyKey", "correlationId"] {
        assert!(
            one[name].as_str().is_some_and(|text| !text.is_empty()) && one[name] != other[name],
            "{name}"
        );
    }
    // The key that was shown is the one that counts.
    let key = one["idempotencyKey"].as_str().unwrap();
    assert_eq!(lenient.send("/executions", key, &json!({"graphId": "chain"})).await.expect(200), one);
    let start = format!("/executions/{}/start", one["executionId"].as_str().unwrap());
    assert_eq!(lenient.client.post(lenient.url(&start)).send().await.unwrap().status(), 202);
}
