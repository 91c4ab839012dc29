//! `POST /runs`.

use pyoco_core::ids::Tag;
use pyoco_gateway::{ServerLimits, Settings};
use serde_json::{Value, json};

use crate::support::{Answer, Server};

#[tokio::test]
async fn a_submitted_run_is_answered_kept_and_queued() {
    let server = Server::start().await;
    let body = json!({"flow_name": "main", "params": {"é": [1.5, null]}, "tag": "gpu", "tags": ["a b", ""], "new": 1});
    let answer = server.post("/runs", &body).await;
    assert_eq!(answer.status, 200);
    let run = answer.json["run_id"].as_str().unwrap();
    assert_eq!(answer.json, json!({"run_id": run, "status": "PENDING"}));
    assert_eq!(server.store.depth(&Tag::new("gpu").unwrap()).await.unwrap(), 1);
    let shown = server.get(&format!("/runs/{run}")).await.json;
    for (name, wanted) in [
        ("run_id", json!(run)),
        ("flow_name", json!("main")),
        ("tag", json!("gpu")),
        ("tags", json!(["a b", ""])),
        ("params", json!({"é": [1.5, null]})),
        ("status", json!("PENDING")),
    ] {
        assert_eq!(shown[name], wanted, "{name}");
    }
}

#[tokio::test]
async fn what_is_not_said_has_the_contracts_defaults() {
    let settings = Settings { default_tag: Tag::new("cpu").unwrap(), ..Settings::default() };
    let server = Server::with(settings, ServerLimits::default()).await;
    for body in [json!({"flow_name": " "}), json!({"flow_name": " ", "tag": null, "tags": [], "params": {}})]
    {
        let answer = server.post("/runs", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        let shown = server.get(&format!("/runs/{}", answer.json["run_id"].as_str().unwrap())).await.json;
        assert_eq!((&shown["flow_name"], &shown["params"]), (&json!(" "), &json!({})));
        assert_eq!((&shown["tag"], &shown["tags"]), (&json!("cpu"), &json!(["cpu"])));
    }
}

#[tokio::test]
async fn each_wrong_input_is_named_as_the_original_names_it() {
    let server = Server::start().await;
    let before = server.stored().await;
    let pattern = "^[A-Za-z0-9_-]+$";
    let mismatch = format!("String should match pattern '{pattern}'");
    let text = "Input should be a valid string";
    let cases = [
        (json!({}), "missing", json!(["body", "flow_name"]), "Field required", json!({}), Value::Null),
        (json!({"flow_name": 5}), "string_type", json!(["body", "flow_name"]), text, json!(5), Value::Null),
        (
            json!({"flow_name": null}),
            "string_type",
            json!(["body", "flow_name"]),
            text,
            Value::Null,
            Value::Null,
        ),
        (
            json!({"flow_name": ""}),
            "string_too_short",
            json!(["body", "flow_name"]),
            "String should have at least 1 character",
            json!(""),
            json!({"min_length": 1}),
        ),
        (
            json!({"flow_name": "m", "params": null}),
            "dict_type",
            json!(["body", "params"]),
            "Input should be a valid dictionary",
            Value::Null,
            Value::Null,
        ),
        (
            json!({"flow_name": "m", "tag": "a.b"}),
            "string_pattern_mismatch",
            json!(["body", "tag"]),
            mismatch.as_str(),
            json!("a.b"),
            json!({"pattern": pattern}),
        ),
        (
            json!({"flow_name": "m", "tag": "a\n"}),
            "string_pattern_mismatch",
            json!(["body", "tag"]),
            mismatch.as_str(),
            json!("a\n"),
            json!({"pattern": pattern}),
        ),
        (
            json!({"flow_name": "m", "tag": 1}),
            "string_type",
            json!(["body", "tag"]),
            text,
            json!(1),
            Value::Null,
        ),
        (
            json!({"flow_name": "m", "tags": null}),
            "list_type",
            json!(["body", "tags"]),
            "Input should be a valid list",
            Value::Null,
            Value::Null,
        ),
        (
            json!({"flow_name": "m", "tags": ["x", 2]}),
            "string_type",
            json!(["body", "tags", 1]),
            text,
            json!(2),
            Value::Null,
        ),
        (
            json!([1]),
            "model_attributes_type",
            json!(["body"]),
            "Input should be a valid dictionary or object to extract fields from",
            json!([1]),
            Value::Null,
        ),
        (
            Value::Null,
            "model_attributes_type",
            json!(["body"]),
            "Input should be a valid dictionary or object to extract fields from",
            Value::Null,
            Value::Null,
        ),
    ];
    for (body, kind, loc, msg, input, ctx) in cases {
        let answer = server.post("/runs", &body).await;
        let problem = answer.problem();
        let found = (&problem["type"], &problem["loc"], &problem["msg"], &problem["input"], &problem["ctx"]);
        assert_eq!(found, (&json!(kind), &loc, &json!(msg), &input, &ctx), "{body}");
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0002");
        assert_eq!(answer.json["msg_id"], "MSG-PYOCO-0002");
    }
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn all_wrong_inputs_are_named_at_once() {
    let server = Server::start().await;
    let answer = server.post("/runs", &json!({"params": 1, "tag": "", "tags": 1})).await;
    let kinds: Vec<&str> = answer
        .detail(422)
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["missing", "dict_type", "string_pattern_mismatch", "list_type"]);
}

#[tokio::test]
async fn a_body_that_is_not_declared_as_json_is_taken_for_text() {
    let server = Server::start().await;
    let text = r#"{"flow_name":"main"}"#;
    for content_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let mut request = server.client.post(server.url("/runs")).body(text);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.problem()["type"], "model_attributes_type");
        assert_eq!(answer.problem()["input"], text);
    }
    let empty = Answer::of(server.client.post(server.url("/runs")).send().await.unwrap()).await;
    let missing = json!({"type": "missing", "loc": ["body"], "msg": "Field required", "input": null});
    assert_eq!(empty.problem(), &missing);
}

#[tokio::test]
async fn json_that_is_broken_ambiguous_or_endless_is_refused_and_leaves_nothing() {
    let server = Server::start().await;
    let before = server.stored().await;
    let broken: &[&[u8]] = &[
        b"{",
        b"{\"flow_name\":\"m\"",
        b"{\"flow_name\":\"m\"} x",
        b"\xef\xbb\xbf{\"flow_name\":\"m\"}",
        b"{\"flow_name\":\"\xff\"}",
        b"{\"flow_name\":\"\\ud800\"}",
        b"{\"flow_name\":\"m\",\"params\":{\"x\":NaN}}",
        b"{\"flow_name\":\"m\",\"params\":{\"x\":-Infinity}}",
        b"{\"flow_name\":\"m\",\"params\":{\"x\":1e400}}",
    ];
    for body in broken {
        let answer = server.post_bytes("/runs", body.to_vec()).await;
        let problem = answer.problem();
        assert_eq!((&problem["type"], &problem["input"]), (&json!("json_invalid"), &json!({})), "{body:?}");
        assert_eq!(problem["loc"][0], "body");
        assert!(problem["loc"][1].is_u64() && problem["ctx"]["error"].is_string(), "{problem}");
    }
    let deep = format!("{{\"flow_name\":\"m\",\"params\":{{\"x\":{}1{}}}}}", "[".repeat(62), "]".repeat(62));
    let duplicate = r#"{"flow_name":"m","flow_name":"n"}"#.to_owned();
    let nested = r#"{"flow_name":"m","params":{"a":{"k":1,"k":2}}}"#.to_owned();
    let huge = r#"{"flow_name":"m","params":{"n":100000000000000000000}}"#.to_owned();
    for body in [deep, duplicate, nested, huge, "[".repeat(100_000)] {
        let answer = server.post_bytes("/runs", body.clone()).await;
        assert_eq!(answer.problem()["type"], "value_error", "{body:.80}");
    }
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn the_deepest_and_longest_body_that_is_allowed_is_taken() {
    let server = Server::start().await;
    let deep = format!("{{\"flow_name\":\"m\",\"params\":{{\"x\":{}1{}}}}}", "[".repeat(61), "]".repeat(61));
    assert_eq!(server.post_bytes("/runs", deep).await.status, 200);
    let long = format!("{{\"flow_name\":\"m\",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat(1_000_000));
    assert_eq!(server.post_bytes("/runs", long).await.status, 200);
    // What fits as a body but not as a record is too large too, and not an error of ours.
    let edge = format!("{{\"flow_name\":\"m\",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat((1 << 20) - 40));
    let answer = server.post_bytes("/runs", edge).await;
    assert_eq!(answer.status, 413, "{}", answer.json);
}

#[tokio::test]
async fn a_long_input_is_not_repeated_in_full() {
    let server = Server::start().await;
    let answer = server.post("/runs", &json!({"more": "x".repeat(50_000)})).await;
    assert!(answer.problem()["input"].as_str().unwrap().len() < 1_000);
}

#[tokio::test]
async fn parameters_are_never_repeated_in_an_error() {
    let server = Server::start().await;
    let answer = server.post("/runs", &json!({"params": {"password": "a secret"}, "tag": "t"})).await;
    assert_eq!(answer.problem()["input"], json!({"params": null, "tag": "t"}));
    for params in [json!("a secret"), json!(["a secret"])] {
        let answer = server.post("/runs", &json!({"flow_name": "main", "params": params})).await;
        assert_eq!((answer.status, &answer.problem()["input"]), (422, &Value::Null));
    }
}

#[tokio::test]
async fn a_repeat_under_the_same_key_makes_no_second_run() {
    let server = Server::start().await;
    let post = |name: &'static str, key: &str, body: Value| {
        let request = server.client.post(server.url("/runs")).header(name, key).json(&body);
        async move { Answer::of(request.send().await.unwrap()).await }
    };
    let body = json!({"flow_name": "main", "params": {"x": 1}});
    let first = post("x-idempotency-key", "k-1", body.clone()).await;
    assert_eq!(first.status, 200);
    // Members in another order mean the same.
    let again = post("idempotency-key", "k-1", json!({"params": {"x": 1}, "flow_name": "main"})).await;
    assert_eq!((again.status, &again.json), (200, &first.json));
    let run = first.json["run_id"].as_str().unwrap().to_owned();
    server.claim(&run).await;
    assert_eq!(post("x-idempotency-key", "k-1", body.clone()).await.json, first.json);
    assert_eq!(server.stored().await.0.len(), 1);
    let other = post("x-idempotency-key", "k-1", json!({"flow_name": "other"})).await;
    assert_eq!(other.detail(409), "this idempotency key was used with another request");
    assert_ne!(post("x-idempotency-key", "k-2", body).await.json, first.json);
    assert_eq!(server.stored().await.0.len(), 2);
}

#[tokio::test]
async fn the_same_key_at_the_same_time_makes_one_run() {
    let server = Server::start().await;
    let posts = (0..16).map(|_| {
        let body = json!({"flow_name": "main"});
        let request = server.client.post(server.url("/runs")).header("x-idempotency-key", "k").json(&body);
        async move { Answer::of(request.send().await.unwrap()).await }
    });
    let answers = futures_util::future::join_all(posts).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.json == answers[0].json));
    let (rows, jobs, _) = server.stored().await;
    assert_eq!((rows.len(), jobs), (1, 1));
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let server = Server::start().await;
    let before = server.stored().await;
    let long = "x".repeat(256);
    for key in ["", long.as_str(), "sch\u{f6}n"] {
        let request = server.client.post(server.url("/runs")).header("x-idempotency-key", key.as_bytes());
        let answer = Answer::of(request.json(&json!({"flow_name": "main"})).send().await.unwrap()).await;
        assert!(answer.detail(400).as_str().unwrap().starts_with("invalid X-Idempotency-Key"), "{key}");
    }
    let request = server.client.post(server.url("/runs")).header("x-idempotency-key", "a");
    let request = request.header("idempotency-key", "b").json(&json!({"flow_name": "main"}));
    assert_eq!(Answer::of(request.send().await.unwrap()).await.status, 400);
    assert_eq!(server.stored().await, before);
}
