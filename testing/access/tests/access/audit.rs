//! The audit trail over HTTP: who did what stands there, and nothing that is nobody's business.

use std::sync::Arc;
use std::time::Duration;

use pyoco_testing_access::{Scene, Staff};
use pyoco_testing_executions::{Answer, Site, on_every_store};
use pyoco_testing_jobs::{Socket, get, submitted};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

on_every_store!(
    every_change_says_who_did_it_and_from_where,
    what_was_refused_and_what_was_cut_off_stands_there_too,
    a_flood_at_the_door_is_one_entry,
    a_worker_that_was_hidden_stands_there_before_the_answer,
    the_trail_is_read_page_by_page_and_by_what_is_asked_for,
    without_keys_everybody_sees_everything,
);

/// A word that must not be told again.
const SECRET: &str = "s3cr3t-of-ann";

async fn of(site: &Site, who: &str) -> Site {
    site.for_one(Arc::new(Staff), Some(who)).await
}

async fn send(request: RequestBuilder) -> Answer {
    Answer::of(request.send().await.unwrap()).await
}

async fn items(who: &Site, query: &str) -> Vec<Value> {
    who.engine.trail().flush().await;
    let page = who.shown(&format!("/audit?limit=1000{query}")).await;
    page["items"].as_array().unwrap().clone()
}

/// The one entry of that kind.
async fn only(who: &Site, action: &str) -> Value {
    let mut found = items(who, &format!("&action={action}")).await;
    assert_eq!(found.len(), 1, "{action}: {found:?}");
    found.remove(0)
}

async fn every_change_says_who_did_it_and_from_where(site: Site) {
    let (ann, boss) = (of(&site, "ann").await, of(&site, "ann-rules").await);
    ann.graph("g", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let body = json!({"flow_name": "main", "params": {"password": SECRET}, "tags": ["nightly"]});
    let request = ann.client.post(ann.url("/runs")).json(&body);
    let request = request.header("x-correlation-id", "thread-7").header("x-forwarded-for", "203.0.113.9");
    let run = send(request).await.expect(200)["run_id"].as_str().unwrap().to_owned();
    let cancel = ann.client.post(ann.url(&format!("/runs/{run}/cancel")));
    send(cancel.json(&json!({"reason": "enough"}))).await.expect(200);
    let job = submitted(&ann).await;
    let tags = format!("/jobs/{job}/tags");
    send(ann.client.post(ann.url(&tags)).json(&json!({"tag": "urgent"}))).await.expect(200);
    send(ann.client.delete(ann.url(&format!("{tags}/urgent")))).await.expect(204);
    let mut socket = Socket::open(&ann, &format!("/jobs/{job}/ws"), &[("x-api-key", "ann")]).await.unwrap();
    socket.say(r#"{"type":"cancel","reason":"over the socket"}"#).await;
    socket.to_the_end().await;
    let execution = ann.started("g").await;
    ann.node(&execution, "a", "start", json!({})).await;
    ann.node(&execution, "a", "fail", json!({"error": {"message": SECRET}})).await;
    let retried = ann.done(&format!("/executions/{execution}/retry"), &json!({})).await;

    let submit = only(&boss, "runs.submit").await;
    let source = submit["source"].as_str().unwrap();
    assert!(source.starts_with("127.0.0.1:"), "headers are not believed: {submit}");
    for (name, wanted) in [
        ("actor", json!({"keyId": "ann", "role": "submit"})),
        ("tenant", json!("anns-team")),
        ("target", json!(run)),
        ("correlationId", json!("thread-7")),
        ("status", json!(200)),
        ("outcome", json!("ok")),
        ("details", json!({})),
    ] {
        assert_eq!(submit[name], wanted, "{name}: {submit}");
    }
    for (action, target, details) in [
        ("runs.cancel", &run, json!({"reason": "enough"})),
        ("jobs.submit", &job, json!({})),
        ("jobs.tag.add", &job, json!({})),
        ("jobs.tag.remove", &job, json!({"tag": "urgent"})),
        ("jobs.cancel", &job, json!({"reason": "over the socket"})),
        ("executions.start", &execution, json!({})),
        ("executions.node.fail", &execution, json!({"nodeId": "a"})),
        ("executions.retry", &execution, json!({"made": retried["executionId"]})),
        ("graphs.put", &"g".to_owned(), json!({})),
    ] {
        let entry = only(&boss, action).await;
        assert_eq!(
            (&entry["target"], &entry["details"], &entry["outcome"]),
            (&json!(target), &details, &json!("ok")),
            "{entry}"
        );
        assert_eq!(entry["actor"]["keyId"], "ann", "{entry}");
    }
    let text = json!(items(&boss, "").await).to_string();
    assert!(!text.contains(SECRET) && !text.contains("nightly"), "what a run was given is not told: {text}");
}

async fn what_was_refused_and_what_was_cut_off_stands_there_too(site: Site) {
    let (ann, boss) = (of(&site, "ann").await, of(&site, "ann-rules").await);
    send(ann.client.post(ann.url("/runs/nothing/cancel"))).await.expect(404);
    let entry = only(&boss, "runs.cancel").await;
    assert_eq!(
        (&entry["outcome"], &entry["status"], &entry["target"]),
        (&json!("refused"), &json!(404), &json!("nothing"))
    );
    send(ann.client.post(ann.url("/jobs")).header("content-encoding", "gzip")).await.expect(415);
    assert_eq!(only(&boss, "jobs.submit").await["status"], 415);
    // What leads nowhere, or only looks, is none.
    send(ann.client.post(ann.url("/nothing"))).await.expect(404);
    send(ann.client.put(ann.url("/runs"))).await.expect(405);
    ann.shown("/runs").await;
    assert_eq!(items(&boss, "").await.len(), 2);
    // Whoever goes away before the answer is remembered.
    let mut stream = tokio::net::TcpStream::connect(ann.address).await.unwrap();
    let head = "POST /runs HTTP/1.1\r\nhost: x\r\nx-api-key: ann\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream);
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let [entry] = items(&boss, "&action=runs.submit").await.as_slice() {
                return entry.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let entry = waited.await.unwrap();
    assert_ne!(entry["outcome"], "ok", "{entry}");
    assert_eq!(entry["actor"]["keyId"], "ann", "{entry}");
}

async fn a_flood_at_the_door_is_one_entry(site: Site) {
    let (guarded, boss) = (site.for_one(Arc::new(Staff), None).await, of(&site, "ann-rules").await);
    for number in 0..40 {
        let request = guarded.client.post(guarded.url("/runs")).json(&json!({"flow_name": SECRET}));
        let (request, status) = match number % 2 {
            0 => (request, 401),
            _ => (request.header("x-api-key", SECRET), 403),
        };
        send(request).await.expect(status);
    }
    let entries = items(&boss, "").await;
    let counts: Vec<u64> = entries.iter().map(|entry| entry["details"]["count"].as_u64().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 40, "{entries:?}");
    assert!(counts.len() <= 5, "one a second, however many there are: {counts:?}");
    for entry in &entries {
        assert_eq!((&entry["action"], &entry["tenant"]), (&json!("door.refused"), &Value::Null));
        assert_eq!((&entry["outcome"], &entry["actor"]), (&json!("refused"), &Value::Null));
    }
    assert!(!json!(entries).to_string().contains(SECRET), "{entries:?}");
    // It is nobody's, so every admin is told.
    assert_eq!(items(&of(&site, "bob-rules").await, "&action=door").await.len(), counts.len());
}

async fn a_worker_that_was_hidden_stands_there_before_the_answer(site: Site) {
    let (ann, boss) = (of(&site, "ann").await, of(&site, "ann-rules").await);
    let scene = Scene::set(&ann).await;
    let patch = ann.client.patch(ann.url(&format!("/workers/{}", scene.worker)));
    send(patch.json(&json!({"hidden": true}))).await.expect(200);
    // Nobody was asked to write anything out.
    let page = boss.shown("/audit?action=workers").await;
    let [entry] = page["items"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!((&entry["target"], &entry["outcome"]), (&json!(scene.worker), &json!("ok")), "{entry}");
}

async fn the_trail_is_read_page_by_page_and_by_what_is_asked_for(site: Site) {
    let (ann, boss) = (of(&site, "ann").await, of(&site, "ann-rules").await);
    let mut runs = Vec::new();
    for _ in 0..5 {
        let made = send(ann.client.post(ann.url("/runs")).json(&json!({"flow_name": "f"}))).await.expect(200);
        runs.push(made["run_id"].as_str().unwrap().to_owned());
    }
    ann.engine.trail().flush().await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = boss.shown(&format!("/audit?limit=2&cursor={cursor}")).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|entry| entry["target"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    runs.reverse();
    assert_eq!(seen, runs, "newest first, each once");
    assert_eq!(items(&boss, &format!("&target={}", runs[2])).await.len(), 1);
    assert_eq!(items(&boss, "&action=runs").await.len(), 5);
    assert_eq!(items(&boss, "&action=run").await.len(), 0);
    let newest = items(&boss, "").await[0]["at"].as_str().unwrap().to_owned();
    assert_eq!(items(&boss, &format!("&since={newest}")).await.len(), 1);
    assert_eq!(items(&boss, &format!("&until={newest}")).await.len(), 4);
    // Who may not see it, and what makes no sense.
    assert_eq!(
        get(&site.for_one(Arc::new(Staff), None).await, "/audit", &[]).await.code(401),
        "UNAUTHENTICATED"
    );
    for who in ["ann", "ann-reads", "eve"] {
        assert_eq!(get(&of(&site, who).await, "/audit", &[]).await.code(403), "FORBIDDEN", "{who}");
    }
    assert_eq!(get(&ann, "/audit", &[("x-api-key", "ann-rules")]).await.status, 400, "two credentials");
    for query in ["limit=0", "limit=1001", "limit=x", "since=now", "until=1", "cursor=abc", "cursor=WzEsN10"]
    {
        assert_eq!(get(&boss, &format!("/audit?{query}"), &[]).await.code(422), "INVALID_INPUT", "{query}");
    }
    let long = "x".repeat(257);
    assert_eq!(get(&boss, &format!("/audit?target={long}"), &[]).await.code(422), "INVALID_INPUT");
    // Another tenant sees nothing of it, also not behind her place.
    let bob = of(&site, "bob-rules").await;
    let page = boss.shown("/audit?limit=1").await;
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(bob.shown(&format!("/audit?cursor={cursor}")).await["items"], json!([]));
    assert_eq!(items(&bob, "&action=runs").await, Vec::<Value>::new());
}

async fn without_keys_everybody_sees_everything(site: Site) {
    let ann = of(&site, "ann").await;
    submitted(&ann).await;
    submitted(&site).await;
    let entries = items(&site, "&action=jobs.submit").await;
    let actors: Vec<&Value> = entries.iter().map(|entry| &entry["actor"]["keyId"]).collect();
    assert_eq!(actors, [&Value::Null, &json!("ann")]);
}
