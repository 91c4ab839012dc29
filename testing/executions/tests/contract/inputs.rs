//! What is not as it has to be is refused with 422 (or 413), every problem with its path, and nothing is written.

use pyoco_testing_executions::{Answer, Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    a_command_needs_a_key,
    a_body_is_a_json_object_or_nothing,
    every_member_has_its_kind_and_its_bounds,
    every_problem_is_told_at_once,
    what_is_too_large_is_refused,
    nothing_of_a_refused_creation_is_left,
    queries_are_checked,
);

const CHAIN: &str = "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n";

async fn a_command_needs_a_key(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    let before = site.events(&execution).await;
    let node = format!("/executions/{execution}/nodes/a");
    let paths =
        ["start", "cancel", "archive", "retry"].map(|command| format!("/executions/{execution}/{command}"));
    let nodes = ["start", "progress", "wait", "resume", "success", "fail", "cancel"];
    let nodes = nodes.map(|command| format!("{node}/{command}"));
    for path in paths.iter().chain(&nodes).map(String::as_str).chain(["/executions"]) {
        let request = site.client.post(site.url(path)).json(&json!({"graphId": "chain"}));
        let answer = Answer::of(request.send().await.unwrap()).await;
        answer.denied(422, "IDEMPOTENCY_KEY_REQUIRED");
    }
    let start = site.url(&format!("{node}/start"));
    for wrong in [&b""[..], "é".as_bytes(), "x".repeat(256).as_bytes()] {
        let value = reqwest::header::HeaderValue::from_bytes(wrong).unwrap();
        let request = site.client.post(&start).header("x-idempotency-key", value);
        Answer::of(request.send().await.unwrap()).await.denied(422, "INVALID_IDEMPOTENCY_KEY");
    }
    let twice = site.client.post(&start).header("x-idempotency-key", "a").header("idempotency-key", "b");
    Answer::of(twice.send().await.unwrap()).await.denied(422, "INVALID_IDEMPOTENCY_KEY");
    for wrong in ["x".repeat(129), "é".to_owned()] {
        let value = reqwest::header::HeaderValue::from_bytes(wrong.as_bytes()).unwrap();
        let request =
            site.client.post(&start).header("x-idempotency-key", "k").header("x-correlation-id", value);
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.paths("INVALID_INPUT"), ["X-Correlation-Id"]);
    }
    assert_eq!(site.events(&execution).await, before);
}

/// Posts bytes as they are.
async fn raw(site: &Site, path: &str, body: impl Into<reqwest::Body>) -> Answer {
    let request = site.client.post(site.url(path)).header("x-idempotency-key", "raw");
    Answer::of(request.body(body).send().await.unwrap()).await
}

async fn a_body_is_a_json_object_or_nothing(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    let start = format!("/executions/{execution}/start");
    let before = site.events(&execution).await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let malformed = ["{", "x", "[]", "5", "\"a\"", "{\"a\":1,\"a\":2}", "{\"n\":NaN}", deep.as_str()];
    for body in malformed {
        for path in ["/executions", &start, &format!("/executions/{execution}/nodes/a/success")] {
            let answer = raw(&site, path, body.to_owned()).await;
            assert_eq!(answer.paths("INVALID_INPUT"), ["body"], "{path} {body}");
        }
    }
    let answer = raw(&site, &start, &b"{\"a\": \"\xff\"}"[..]).await;
    assert_eq!(answer.paths("INVALID_INPUT"), ["body"]);
    for nothing in ["", "null", "{}"] {
        assert_eq!(raw(&site, "/executions", nothing).await.paths("INVALID_INPUT"), ["graphId"]);
    }
    assert_eq!(site.events(&execution).await, before);
    // Start, cancel and archive need no body; no type is asked for.
    for command in ["start", "cancel", "archive"] {
        let path = format!("/executions/{execution}/{command}");
        let answer = raw(&site, &path, "").await;
        assert_eq!(answer.status, 202, "{path}: {}", answer.json);
    }
}

async fn every_member_has_its_kind_and_its_bounds(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    site.node(&execution, "a", "start", json!({})).await;
    let at = |path: &str| format!("/executions/{execution}/{path}");
    let before = site.events(&execution).await;
    let (text, object, whole) = (wrong_texts(), wrong_objects(), wrong_counts());
    let long = |length: usize| json!("x".repeat(length));
    let mut cases: Vec<(String, &str, Vec<Value>)> = vec![
        ("/executions".to_owned(), "graphId", [text.clone(), vec![Value::Null, long(257)]].concat()),
        ("/executions".to_owned(), "input", object.clone()),
        ("/executions".to_owned(), "tag", [text.clone(), vec![json!(""), json!("a b"), long(129)]].concat()),
        (
            "/executions".to_owned(),
            "tags",
            [object.clone(), vec![json!({})]]
                .concat()
                .into_iter()
                .filter(|value| !value.is_array())
                .collect(),
        ),
        ("/executions".to_owned(), "graphVersion", whole.clone()),
        (at("cancel"), "reason", [text.clone(), vec![long(2_001)]].concat()),
        (at("archive"), "reason", [text.clone(), vec![long(2_001)]].concat()),
        (at("retry"), "input", object.clone()),
        (at("retry"), "fromNode", [text.clone(), vec![json!(""), long(2_049)]].concat()),
        (at("nodes/a/start"), "attempt", whole.clone()),
        (at("nodes/a/start"), "workerId", [text.clone(), vec![json!(""), long(513)]].concat()),
        (
            at("nodes/a/progress"),
            "progress",
            vec![json!(101), json!(-1), json!(100.001), json!("1"), json!(true), json!([]), json!({})],
        ),
        (at("nodes/a/progress"), "message", [text.clone(), vec![long(4_001)]].concat()),
        (at("nodes/a/progress"), "metrics", object.clone()),
        (at("nodes/a/wait"), "waitKey", [text.clone(), vec![long(257)]].concat()),
        (at("nodes/a/wait"), "prompt", object.clone()),
        (at("nodes/a/resume"), "resumeKey", [text.clone(), vec![long(257)]].concat()),
        (at("nodes/a/success"), "attempt", whole.clone()),
        (at("nodes/a/fail"), "attempt", whole),
        (at("nodes/a/fail"), "error", object.clone()),
        (at("nodes/a/cancel"), "reason", [text.clone(), vec![long(2_001)]].concat()),
    ];
    for (path, name, wrong) in cases.drain(..) {
        for value in wrong {
            let mut body = json!({"graphId": "chain"});
            body[name] = value;
            let answer = site.post(&path, &body).await;
            assert_eq!(answer.paths("INVALID_INPUT"), [name], "{path} {body}");
        }
    }
    for (name, wrong) in
        [("code", [text.clone(), vec![long(257)]].concat()), ("message", text), ("detail", object)]
    {
        for value in wrong {
            let body = json!({"error": {name: value}});
            let answer = site.post(&at("nodes/a/fail"), &body).await;
            assert_eq!(answer.paths("INVALID_INPUT"), [format!("error.{name}")], "{body}");
        }
    }
    let answer = site.post("/executions", &json!({"graphId": "chain", "tags": ["a", 1, {}]})).await;
    assert_eq!(answer.paths("INVALID_INPUT"), ["tags.1", "tags.2"]);
    assert_eq!(site.events(&execution).await, before);
    // What is just inside the bounds is fine.
    for progress in [json!(0), json!(100), json!(99.5)] {
        site.node(&execution, "a", "progress", json!({"progress": progress, "message": "x".repeat(4_000)}))
            .await;
    }
    site.node(&execution, "a", "fail", json!({"error": {"detail": null, "code": "c"}, "attempt": null}))
        .await;
}

fn wrong_texts() -> Vec<Value> {
    vec![json!(1), json!(true), json!(["x"]), json!({"x": 1})]
}

fn wrong_objects() -> Vec<Value> {
    vec![json!(1), json!(false), json!(["x"]), json!("x")]
}

fn wrong_counts() -> Vec<Value> {
    vec![json!(0), json!(-1), json!(1.5), json!("1"), json!(true), json!([1]), json!({})]
}

async fn every_problem_is_told_at_once(site: Site) {
    let body = json!({"graphId": 1, "input": [], "tag": 2, "tags": [3], "graphVersion": -4, "more": 5});
    let answer = site.post("/executions", &body).await;
    assert_eq!(answer.paths("INVALID_INPUT"), ["graphId", "input", "tag", "tags.0", "graphVersion"]);
    let message = answer.json["error"]["message"].as_str().unwrap();
    assert!(message.contains("graphId: ") && message.contains("; tags.0: "), "{message}");
}

async fn what_is_too_large_is_refused(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    site.node(&execution, "a", "start", json!({})).await;
    let before = site.events(&execution).await;
    let success = format!("/executions/{execution}/nodes/a/success");
    for bytes in [2 << 20, (1 << 20) + 1, (1 << 20) - 20] {
        let answer = site.post(&success, &json!({"output": "x".repeat(bytes)})).await;
        answer.denied(413, "PAYLOAD_TOO_LARGE");
    }
    let answer =
        site.post("/executions", &json!({"graphId": "chain", "input": {"x": "y".repeat(2 << 20)}})).await;
    answer.denied(413, "PAYLOAD_TOO_LARGE");
    let request = site.client.put(site.url("/graphs/large")).header("content-type", "text/yaml");
    let answer = Answer::of(request.body("x".repeat(262_145)).send().await.unwrap()).await;
    answer.denied(413, "PAYLOAD_TOO_LARGE");
    let request = site.client.post(site.url(&success)).header("x-idempotency-key", "k");
    let packed = request.header("content-encoding", "gzip").body("{}").send().await.unwrap();
    Answer::of(packed).await.denied(415, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(site.events(&execution).await, before);
    // Just below, it fits.
    site.node(&execution, "a", "success", json!({"output": "x".repeat(1_000_000)})).await;
}

async fn nothing_of_a_refused_creation_is_left(site: Site) {
    site.graph("chain", CHAIN).await;
    for body in [
        json!({"graphId": "nothing"}),
        json!({"graphId": "chain", "graphVersion": 2}),
        json!({"graphId": "chain", "input": 1}),
        json!({}),
    ] {
        let answer = site.send("/executions", "k", &body).await;
        assert!(matches!(answer.status, 404 | 422), "{}", answer.json);
    }
    assert_eq!(site.shown("/executions").await["items"], json!([]));
    assert_eq!(site.shown("/runs").await, json!([]));
    // The key is as good as new.
    assert_eq!(site.send("/executions", "k", &json!({"graphId": "chain"})).await.status, 202);
}

async fn queries_are_checked(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    let of = |rest: &str| format!("/executions/{execution}{rest}");
    for (path, name) in [
        (of("?at=0"), "at"),
        (of("?at=2"), "at"),
        (of("?at=x"), "at"),
        (of("?at=-1"), "at"),
        (of("/events?after=x"), "after"),
        (of("/events?limit=0"), "limit"),
        (of("/events?limit=1001"), "limit"),
        (of("/events/stream?after=2"), "after"),
        (of("/events/stream?after=-1"), "after"),
        ("/executions?status=RUNNING".to_owned(), "status"),
        ("/executions?limit=201".to_owned(), "limit"),
        ("/executions?cursor=x".to_owned(), "cursor"),
        ("/executions?createdAfter=yesterday".to_owned(), "createdAfter"),
        ("/executions?createdBefore=5".to_owned(), "createdBefore"),
        ("/executions?updatedAfter=x".to_owned(), "updatedAfter"),
        ("/executions?updatedBefore=x".to_owned(), "updatedBefore"),
        ("/waits?limit=0".to_owned(), "limit"),
        ("/waits?olderThanSec=-1".to_owned(), "olderThanSec"),
        ("/waits?olderThanSec=x".to_owned(), "olderThanSec"),
        ("/waits?cursor=x".to_owned(), "cursor"),
        ("/graphs?limit=0".to_owned(), "limit"),
        ("/graphs?cursor=!".to_owned(), "cursor"),
        ("/graphs/chain?version=0".to_owned(), "version"),
        ("/graphs/chain?version=x".to_owned(), "version"),
    ] {
        assert_eq!(site.get(&path).await.paths("INVALID_INPUT"), [name], "{path}");
    }
    for last_seen in ["x", "2", "-1"] {
        let request = site.client.get(site.url(&of("/events/stream"))).header("last-event-id", last_seen);
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.paths("INVALID_INPUT"), ["Last-Event-ID"]);
    }
}
