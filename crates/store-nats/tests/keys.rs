//! Records of API keys on a real server, beside the admin tool of PyPI.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ground::{Other, open, server, settings, timed};
use pyoco_core::ids::KeyId;
use pyoco_ports::{KeyRecords as _, StoredKey};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::{Cluster, NatsServer, Options};
use serde_json::{Value, json};

const STREAM: &str = "KV_pyoco_auth";

fn key(id: &str) -> KeyId {
    KeyId::new(id).unwrap()
}

fn subject(id: &str) -> String {
    format!("$KV.pyoco_auth.api_keys.{id}")
}

async fn put(store: &NatsStore, id: &str, record: &str, over: Option<u64>) -> bool {
    store.put_key(&key(id), record.as_bytes().to_vec(), over).await.unwrap()
}

async fn get(store: &NatsStore, id: &str) -> Option<StoredKey> {
    store.key(&key(id)).await.unwrap()
}

/// The records of a list, by id, as text.
async fn list(store: &NatsStore) -> BTreeMap<String, String> {
    let keys = store.keys().await.unwrap();
    let count = keys.len();
    let text = |stored: StoredKey| String::from_utf8(stored.record).unwrap();
    let keys: BTreeMap<_, _> =
        keys.into_iter().map(|(id, stored)| (id.as_str().to_owned(), text(stored))).collect();
    assert_eq!(keys.len(), count, "each once");
    keys
}

async fn consumers(other: &Other) -> Value {
    other.api(&format!("STREAM.INFO.{STREAM}"), &Value::Null).await["state"]["consumer_count"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_somebody_deleted_is_not_there_and_can_be_written_again() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    // As clients delete and purge a key of a bucket, and as a server marks one whose time was over.
    let marks: [&[(&str, &str)]; 3] = [
        &[("KV-Operation", "DEL")],
        &[("KV-Operation", "PURGE"), ("Nats-Rollup", "sub")],
        &[("Nats-Marker-Reason", "MaxAge")],
    ];
    for (number, mark) in marks.into_iter().enumerate() {
        let id = format!("deleted-{number}");
        assert!(put(&store, &id, "first", None).await);
        let first = get(&store, &id).await.unwrap();
        other.publish(&subject(&id), mark, "").await;
        assert_eq!(get(&store, &id).await, None, "{mark:?}");
        assert_eq!(list(&store).await, BTreeMap::new(), "{mark:?}");
        assert!(!put(&store, &id, "late", Some(first.revision)).await, "what it was made from is gone");
        assert_eq!(get(&store, &id).await, None, "{mark:?}");
        assert!(put(&store, &id, "second", None).await, "{mark:?}");
        let second = get(&store, &id).await.unwrap();
        assert!(second.record == b"second" && second.revision > first.revision, "{second:?}");
        assert!(!put(&store, &id, "late", None).await);
        other.publish(&subject(&id), &[("KV-Operation", "DEL")], "").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_processes_that_write_over_a_deletion_together_one_wins() {
    let server = server();
    let other = Other::connect(&server).await;
    let stores = [open(&server).await, open(&server).await, open(&server).await];
    for round in 0..20 {
        other.publish(&subject("contested"), &[("KV-Operation", "DEL")], "").await;
        rivals(&stores, None, round).await;
    }
}

/// Each store writes at the same time; one of them wins, and all see it at once. The revision.
async fn rivals(stores: &[Arc<NatsStore>], over: Option<u64>, round: u64) -> u64 {
    let attempts: Vec<_> = stores
        .iter()
        .enumerate()
        .map(|(number, store)| {
            let (store, record) = (Arc::clone(store), format!("{round} {number}"));
            tokio::spawn(async move { put(&store, "contested", &record, over).await.then_some(record) })
        })
        .collect();
    let mut won = Vec::new();
    for attempt in attempts {
        won.extend(attempt.await.unwrap());
    }
    assert_eq!(won.len(), 1, "in round {round}");
    let mut seen = BTreeSet::new();
    for store in stores {
        let stored = get(store, "contested").await.unwrap();
        assert_eq!(stored.record, won.first().unwrap().as_bytes(), "in round {round}");
        assert_eq!(store.keys().await.unwrap(), [(key("contested"), stored.clone())]);
        seen.insert(stored.revision);
    }
    assert_eq!(seen.len(), 1, "in round {round}");
    seen.pop_first().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_one_wins_and_everybody_sees_it_at_once() {
    let cluster = Cluster::start(3, &Options::default());
    let urls = cluster.urls();
    let servers: Vec<&str> = urls.split(',').collect();
    let mut stores = Vec::new();
    for server in &servers {
        let settings = Settings { replicas: 3, ..Settings::new(&[server]) };
        stores.push(NatsStore::open(settings, None).await.unwrap());
    }
    let mut over = None;
    for round in 0..20 {
        over = Some(rivals(&stores, over, round).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_was_deleted_has_no_keys_and_is_made_again() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let made = other.config(STREAM).await;
    assert!(put(&store, "old-key-1", "x", None).await);
    let old = get(&store, "old-key-1").await.unwrap();
    other.api(&format!("STREAM.DELETE.{STREAM}"), &Value::Null).await;
    assert_eq!(get(&store, "old-key-1").await, None);
    assert_eq!(list(&store).await, BTreeMap::new());
    assert!(!put(&store, "old-key-1", "late", Some(old.revision)).await);
    assert!(put(&store, "new-key-1", "y", None).await);
    assert_eq!(list(&store).await, BTreeMap::from([("new-key-1".to_owned(), "y".to_owned())]));
    let again = other.config(STREAM).await;
    for member in ["subjects", "max_msgs_per_subject", "discard", "deny_delete", "allow_direct", "max_age"] {
        assert_eq!(again[member], made[member], "{member}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_ten_thousand_keys_is_whole_and_leaves_no_consumer_behind() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    // Nobody's keys, or of another kind: no list shows them, and none stumbles over them.
    for odd in ["api_keys.short", "api_keys.a.b", "api_keys.with=sign", "api_keys", "other.abcdefgh"] {
        other.publish(&format!("$KV.pyoco_auth.{odd}"), &[], "odd").await;
    }
    let mut wanted = BTreeMap::new();
    for number in 0..10_000 {
        let (id, record) = (format!("{number:024x}"), format!("{{\"n\":{number}}}"));
        other.0.publish(subject(&id), record.clone().into()).await.unwrap();
        wanted.insert(id, record);
    }
    // This one is answered when those before it are stored.
    other.publish(&subject("the-last-one"), &[], "last").await;
    wanted.insert("the-last-one".to_owned(), "last".to_owned());
    let (listed, took) = timed(list(&store)).await;
    assert!(listed == wanted, "{} of {}", listed.len(), wanted.len());
    // Far below it even on a busy machine; one after the other across a network would be beyond it.
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(consumers(&other).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_nobody_says_that_there_is_no_key() {
    let mut server = server();
    let store = open(&server).await;
    assert!(put(&store, "somebody", "x", None).await);
    server.kill();
    assert!(store.key(&key("somebody")).await.unwrap_err().kind.is_retryable());
    assert!(store.keys().await.unwrap_err().kind.is_retryable());
    let refused = store.put_key(&key("somebody"), b"y".to_vec(), None).await.unwrap_err();
    assert!(refused.kind.is_retryable(), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_of_another_name_and_form_is_used_as_it_is() {
    let server = server();
    let other = Other::connect(&server).await;
    let config = json!({"name": "KV_team_keys", "subjects": ["$KV.team_keys.>"], "max_msgs_per_subject": 5,
                        "allow_direct": true, "discard": "new", "deny_delete": true, "allow_rollup_hdrs": true});
    other.api("STREAM.CREATE.KV_team_keys", &config).await;
    let before = other.config("KV_team_keys").await;
    let settings = Settings { auth_bucket: "team_keys".to_owned(), ..settings(&server) };
    let store = NatsStore::open(settings, None).await.unwrap();
    let mut over = None;
    for record in ["1", "2", "3"] {
        assert!(put(&store, "somebody", record, over).await);
        let stored = get(&store, "somebody").await.unwrap();
        assert_eq!(stored.record, record.as_bytes());
        over = Some(stored.revision);
    }
    assert_eq!(list(&store).await, BTreeMap::from([("somebody".to_owned(), "3".to_owned())]));
    assert_eq!(other.config("KV_team_keys").await, before);
    // Nothing of it stands where it was not told to.
    let elsewhere = other.api(&format!("STREAM.INFO.{STREAM}"), &Value::Null).await;
    assert_eq!(elsewhere["error"]["err_code"], 10059, "{elsewhere}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_whose_name_would_mean_something_else_is_refused() {
    let server = server();
    for name in ["a.>", "a b", "", "$JS.API"] {
        let settings = Settings { auth_bucket: name.to_owned(), ..settings(&server) };
        let error = NatsStore::open(settings, None).await.unwrap_err().to_string();
        assert!(error.contains("bucket of API keys"), "{error}");
    }
}

/// One command line of the admin tool of pyoco-server 0.5.1: its exit code and what it answered.
async fn admin(server: &NatsServer, arguments: &[&str]) -> (Option<i32>, Value) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/pyoco-server-admin");
    assert!(program.is_file(), "there is no pyoco-server-admin in .venv; `make test` installs it");
    let mut command = tokio::process::Command::new(program);
    command.args(["--nats-url", &server.url(), "api-key"]).args(arguments);
    command.env("PYOCO_LOAD_DOTENV", "0").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.unwrap().unwrap();
    let answer = serde_json::from_slice(&output.stdout);
    let answer = answer.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), answer)
}

fn members(stored: &StoredKey) -> Value {
    serde_json::from_slice(&stored.record).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_admin_tool_of_pypi_writes_is_found_and_what_stands_here_it_finds() {
    // Each makes the bucket on a server of its own, and makes the same.
    let (server, ours) = (server(), server());
    let (code, made) = admin(&server, &["create", "--tenant", "demo"]).await;
    assert_eq!(code, Some(0), "{made}");
    let id = made["key_id"].as_str().unwrap();
    let other = Other::connect(&server).await;
    open(&ours).await;
    assert_eq!(Other::connect(&ours).await.config(STREAM).await, other.config(STREAM).await);

    let store = open(&server).await;
    let first = get(&store, id).await.unwrap();
    let record = members(&first);
    assert_eq!((&record["key_id"], &record["tenant_id"]), (&made["key_id"], &json!("demo")));
    assert_eq!(record["revoked_at"], Value::Null);
    assert_eq!(store.keys().await.unwrap(), [(key(id), first.clone())]);
    // It revokes by writing over it without looking; whoever read before is told.
    let (code, revoked) = admin(&server, &["revoke", "--key-id", id]).await;
    assert_eq!(code, Some(0), "{revoked}");
    let second = get(&store, id).await.unwrap();
    assert_ne!(second.revision, first.revision);
    assert_eq!(members(&second)["revoked_at"], revoked["revoked_at"]);
    assert!(!put(&store, id, "{}", Some(first.revision)).await);

    // One that is written here, with a member that it does not know.
    let mut mine = record;
    mine["key_id"] = json!("written-here");
    mine["created_at"] = json!(1.5);
    mine["role"] = json!("read");
    assert!(put(&store, "written-here", &mine.to_string(), None).await);
    let (_, listed) = admin(&server, &["list"]).await;
    let ids: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["key_id"]).collect();
    assert_eq!(ids, [id, "written-here"]);
    assert_eq!(
        listed[1],
        json!({"key_id": "written-here", "tenant_id": "demo", "created_at": 1.5, "revoked_at": null})
    );
    let (code, revoked) = admin(&server, &["revoke", "--key-id", "written-here"]).await;
    assert_eq!(code, Some(0), "{revoked}");
    assert_eq!(members(&get(&store, "written-here").await.unwrap())["revoked_at"], revoked["revoked_at"]);
}
