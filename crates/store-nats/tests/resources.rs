//! The streams and buckets: made as the contract says, kept as they are found, refused when they cannot serve.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::time::Duration;

use ground::{Other, append, open, server, server_with, settings, texts};
use pyoco_store_nats::{NatsStore, OpenError};
use serde_json::{Value, json};

const ALL: [&str; 13] = [
    "PYOCO_WORK",
    "PYOCO_DLQ",
    "KV_pyoco_runs",
    "KV_pyoco_workers",
    "KV_pyoco_auth",
    "PYOCO_EVENTS",
    "PYOCO_LOGS",
    "PYOCO_GRAPHS",
    "PYOCO_RETENTION",
    "PYOCO_AUDIT",
    "OBJ_pyoco_blobs",
    "OBJ_pyoco_wheels",
    "KV_pyoco_wheel_history",
];

/// Checks members of a configuration; one that the server leaves out is `null`.
#[track_caller]
fn has(config: &Value, wanted: &Value) {
    for (name, value) in wanted.as_object().unwrap() {
        let found = config.get(name).cloned().unwrap_or(Value::Null);
        let is_left_out = found.is_null() && (*value == json!(false) || *value == json!(0));
        assert!(found == *value || is_left_out, "{}: {name} is {found}, not {value}", config["name"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_made_as_the_contract_says() {
    let server = server();
    open(&server).await;
    let other = Other::connect(&server).await;
    let second = 1_000_000_000_u64;
    has(
        &other.config("PYOCO_WORK").await,
        &json!({"subjects": ["pyoco.work.>"], "retention": "workqueue", "discard": "old", "storage": "file",
               "max_msgs": -1, "max_bytes": -1, "max_age": 0, "num_replicas": 1, "duplicate_window": 120 * second}),
    );
    has(
        &other.config("PYOCO_DLQ").await,
        &json!({"subjects": ["pyoco.dlq.>"], "retention": "limits", "discard": "old", "storage": "file",
               "max_age": 604_800 * second, "max_msgs": 100_000, "max_bytes": 536_870_912}),
    );
    has(
        &other.config("PYOCO_AUDIT").await,
        &json!({"subjects": ["pyoco.audit.>"], "retention": "limits", "discard": "old", "storage": "file",
               "max_age": 7_776_000 * second, "max_msgs": -1, "max_bytes": 268_435_456, "allow_direct": true,
               "duplicate_window": 120 * second}),
    );
    let bucket = json!({"retention": "limits", "discard": "new", "storage": "file", "max_msgs_per_subject": 1,
                        "allow_rollup_hdrs": true, "deny_delete": true, "allow_msg_ttl": true, "allow_direct": false,
                        "num_replicas": 1});
    let (runs, workers) = (other.config("KV_pyoco_runs").await, other.config("KV_pyoco_workers").await);
    let auth = other.config("KV_pyoco_auth").await;
    has(&runs, &bucket);
    has(&auth, &bucket);
    has(&workers, &bucket);
    has(&runs, &json!({"subjects": ["$KV.pyoco_runs.>"], "max_age": 0, "duplicate_window": 120 * second}));
    has(&auth, &json!({"subjects": ["$KV.pyoco_auth.>"], "max_age": 0, "duplicate_window": 120 * second}));
    has(
        &workers,
        &json!({"subjects": ["$KV.pyoco_workers.>"], "max_age": 15 * second, "duplicate_window": 15 * second}),
    );
    let history = other.config("KV_pyoco_wheel_history").await;
    has(&history, &bucket);
    has(
        &history,
        &json!({"subjects": ["$KV.pyoco_wheel_history.>"], "max_age": 7_776_000 * second, "duplicate_window": 120 * second}),
    );
    has(
        &other.config("OBJ_pyoco_wheels").await,
        &json!({"subjects": ["$O.pyoco_wheels.C.>", "$O.pyoco_wheels.M.>"], "retention": "limits", "discard": "new",
               "storage": "file", "max_age": 0, "allow_direct": true, "allow_rollup_hdrs": true, "max_bytes": 536_870_912}),
    );
    let kept = json!({"retention": "limits", "discard": "new", "storage": "file", "max_age": 0, "allow_direct": true});
    for (stream, subjects) in [
        ("PYOCO_EVENTS", json!(["pyoco.events.>"])),
        ("PYOCO_LOGS", json!(["pyoco.logs.>"])),
        ("OBJ_pyoco_blobs", json!(["$O.pyoco_blobs.C.>", "$O.pyoco_blobs.M.>"])),
    ] {
        let config = other.config(stream).await;
        has(&config, &kept);
        has(&config, &json!({"subjects": subjects}));
    }
    has(&other.config("PYOCO_EVENTS").await, &json!({"deny_delete": true}));
    has(
        &other.config("PYOCO_GRAPHS").await,
        &json!({"subjects": ["pyoco.graphs.>"], "retention": "limits", "discard": "new", "storage": "file", "max_age": 0,
               "max_msgs_per_subject": -1, "deny_delete": true}),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_there_is_kept_as_it_is() {
    let server = server();
    let other = Other::connect(&server).await;
    // As an operator or an older peer may have made them: nothing of it is ours to change.
    let made = [
        json!({"name": "PYOCO_WORK", "subjects": ["pyoco.work.>", "more.work"], "retention": "workqueue",
               "max_bytes": 9_000_000, "description": "ours"}),
        json!({"name": "PYOCO_DLQ", "subjects": ["pyoco.dlq.>"], "max_msgs": 7}),
        json!({"name": "KV_pyoco_runs", "subjects": ["$KV.pyoco_runs.>"], "max_msgs_per_subject": 5,
               "allow_direct": false, "discard": "new", "deny_delete": true, "allow_rollup_hdrs": true}),
        json!({"name": "KV_pyoco_workers", "subjects": ["$KV.pyoco_workers.>"], "max_msgs_per_subject": 1,
               "max_age": 60_000_000_000_u64, "allow_direct": true, "discard": "new"}),
        json!({"name": "KV_pyoco_auth", "subjects": ["$KV.pyoco_auth.>"], "max_msgs_per_subject": 9, "allow_direct": true}),
        json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "max_bytes": 50_000_000, "discard": "new"}),
        json!({"name": "PYOCO_LOGS", "subjects": ["pyoco.logs.>"], "max_age": 3_600_000_000_000_u64}),
        json!({"name": "PYOCO_GRAPHS", "subjects": ["pyoco.graphs.>"], "max_bytes": 50_000_000, "discard": "new"}),
        json!({"name": "OBJ_pyoco_blobs", "subjects": ["$O.pyoco_blobs.C.>", "$O.pyoco_blobs.M.>"],
               "allow_rollup_hdrs": true, "discard": "new"}),
        json!({"name": "PYOCO_RETENTION", "subjects": ["pyoco.tombstones.*", "pyoco.uses.>"], "max_msgs_per_subject": 1,
               "discard": "new", "description": "ours"}),
        json!({"name": "PYOCO_AUDIT", "subjects": ["pyoco.audit.>"], "max_msgs": 9}),
        json!({"name": "OBJ_pyoco_wheels", "subjects": ["$O.pyoco_wheels.C.>", "$O.pyoco_wheels.M.>"],
               "allow_rollup_hdrs": true, "discard": "new", "max_bytes": 70_000_000}),
        json!({"name": "KV_pyoco_wheel_history", "subjects": ["$KV.pyoco_wheel_history.>"], "max_msgs_per_subject": 3}),
    ];
    for config in &made {
        other.api(&format!("STREAM.CREATE.{}", config["name"].as_str().unwrap()), config).await;
    }
    let mut before = Vec::new();
    for stream in ALL {
        before.push(other.config(stream).await);
    }
    let mut settings = settings(&server);
    settings.workers_ttl = Duration::from_secs(99);
    settings.dlq_max_bytes = 1_000_000;
    let store = NatsStore::open(settings, None).await.unwrap();
    append(&store, "e", 0, "1").await.unwrap();
    append(&store, "e", 1, vec![b'x'; 2 << 20]).await.unwrap();
    append(&store, "e", 2, "3").await.unwrap();
    assert_eq!(texts(&store, "e").await.len(), 3);
    for (stream, before) in ALL.iter().zip(before) {
        assert_eq!(other.config(stream).await, before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_serve_is_refused_by_its_name_and_reason() {
    let flawed = [
        (json!({"name": "PYOCO_WORK", "subjects": ["pyoco.work.>"]}), "retention is limits"),
        (
            json!({"name": "PYOCO_WORK", "subjects": ["jobs.>"], "retention": "workqueue"}),
            "does not listen to pyoco.work.>",
        ),
        (
            json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "max_age": 60_000_000_000_u64}),
            "max_age",
        ),
        (json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "max_msgs": 10}), "discard old"),
        (
            json!({"name": "PYOCO_GRAPHS", "subjects": ["pyoco.graphs.>"], "max_msgs_per_subject": 1}),
            "discard old",
        ),
        (
            json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "storage": "memory"}),
            "kept in memory",
        ),
        (
            json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "persist_mode": "async"}),
            "persist_mode",
        ),
        (json!({"name": "PYOCO_DLQ", "subjects": ["pyoco.dlq.>"], "no_ack": true}), "no_ack"),
    ];
    for (config, wanted) in flawed {
        let server = server();
        let other = Other::connect(&server).await;
        let name = config["name"].as_str().unwrap().to_owned();
        other.api(&format!("STREAM.CREATE.{name}"), &config).await;
        let opened = NatsStore::open(settings(&server), None).await;
        let error = opened.expect_err(&format!("{name} {wanted}: {}", other.config(&name).await));
        let text = error.to_string();
        assert!(matches!(error, OpenError::Unusable { .. }), "{text}");
        assert!(text.contains(&name) && text.contains(wanted), "{text}");
        // Without it, what is needed is made.
        other.api(&format!("STREAM.DELETE.{name}"), &Value::Null).await;
        open(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_together_agree_on_what_is_made() {
    let server = server();
    let starts: Vec<_> = (0..6)
        .map(|number| {
            let mut settings = settings(&server);
            // Each would make another one.
            settings.workers_ttl = Duration::from_secs(10 + number);
            tokio::spawn(NatsStore::open(settings, None))
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_room_says_so() {
    let server = server_with(
        "accounts { a { jetstream: { max_file: 10MB }, users: [{user: a, password: a}] } }\nno_auth_user: a",
    );
    let error = NatsStore::open(settings(&server), None).await.unwrap_err();
    assert!(matches!(&error, OpenError::NotMade { name, .. } if name == "PYOCO_DLQ"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_full_says_so_and_keeps_what_it_has() {
    let server = server();
    let other = Other::connect(&server).await;
    let config =
        json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "max_msgs": 3, "discard": "new"});
    other.api("STREAM.CREATE.PYOCO_EVENTS", &config).await;
    let store = open(&server).await;
    for number in 0..3 {
        append(&store, "e", number, "x").await.unwrap();
    }
    assert_eq!(ground::kind(append(&store, "e", 3, "x").await), pyoco_ports::ErrorKind::Full);
    assert_eq!(texts(&store, "e").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_would_mean_something_else_are_refused_before_anything_is_sent() {
    let server = server();
    for name in ["a.>", "a b", "", "$JS.API", "x\r\ny"] {
        let mut settings = settings(&server);
        settings.work_subject_prefix = name.to_owned();
        let error = NatsStore::open(settings, None).await.unwrap_err();
        assert!(matches!(error, OpenError::Name { .. }), "{error}");
    }
    assert_eq!(server.ask("/varz")["total_connections"], 0);
}
