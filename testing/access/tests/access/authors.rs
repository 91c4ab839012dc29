//! Whose it is and who did it: on every execution, in every event, in every message to a worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Tag, Version, WorkerId};
use pyoco_core::record::Record;
use pyoco_core::time::Millis;
use pyoco_engine::Clock as _;
use pyoco_testing_access::Staff;
use pyoco_testing_executions::{Answer, Site, on_every_store};
use pyoco_testing_jobs::{Socket, submitted};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

on_every_store!(
    what_is_made_says_whose_it_is_and_who_made_it,
    workers_are_told_whose_it_is,
    every_event_says_who_did_it,
    without_keys_nobody_is_named,
);

const FLOW: &str = "version: 1\nflow: {graph: 'flow >> hello'}\ntasks: {hello: {callable: 'hello:greet'}}\n";

async fn by_name(who: &Site) -> String {
    let request = who.client.post(who.url("/runs")).json(&json!({"flow_name": "main"}));
    let made = Answer::of(request.send().await.unwrap()).await.expect(200);
    made["run_id"].as_str().unwrap().to_owned()
}

async fn by_yaml(who: &Site) -> String {
    let form =
        Form::new().text("flow_name", "main").part("workflow", Part::bytes(FLOW.as_bytes()).file_name("f"));
    let request = who.client.post(who.url("/runs/yaml")).multipart(form);
    let made = Answer::of(request.send().await.unwrap()).await.expect(200);
    made["run_id"].as_str().unwrap().to_owned()
}

async fn failed(who: &Site) -> String {
    let execution = who.started("g").await;
    who.node(&execution, "a", "start", json!({})).await;
    who.node(&execution, "a", "fail", json!({"error": {"message": "boom"}})).await;
    execution
}

async fn retried(who: &Site, execution: &str) -> String {
    let made = who.done(&format!("/executions/{execution}/retry"), &json!({})).await;
    made["executionId"].as_str().unwrap().to_owned()
}

/// Who an execution names: its tenant and its key.
async fn named(who: &Site, execution: &str) -> (Value, Value) {
    let shown = who.shown(&format!("/runs/{execution}")).await;
    (shown["tenant_id"].clone(), shown["api_key_id"].clone())
}

async fn of(site: &Site, who: &str) -> Site {
    site.for_one(Arc::new(Staff), Some(who)).await
}

async fn what_is_made_says_whose_it_is_and_who_made_it(site: Site) {
    let (ann, amy) = (of(&site, "ann").await, of(&site, "amy").await);
    ann.graph("g", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let made = [by_name(&ann).await, by_yaml(&ann).await, submitted(&ann).await, ann.created("g").await];
    for execution in &made {
        assert_eq!(named(&ann, execution).await, (json!("anns-team"), json!("ann")));
        assert_eq!(ann.events(execution).await[0]["actor"], json!({"kind": "user", "id": "api_key:ann"}));
    }
    // Whoever repeats it is who made the repeat; it stays in the house.
    let failed = failed(&ann).await;
    let repeat = retried(&amy, &failed).await;
    assert_eq!(named(&amy, &repeat).await, (json!("anns-team"), json!("amy")));
    assert_eq!(amy.events(&repeat).await[0]["actor"], json!({"kind": "user", "id": "api_key:amy"}));
    assert_eq!(named(&ann, &failed).await, (json!("anns-team"), json!("ann")));
}

async fn workers_are_told_whose_it_is(site: Site) {
    let ann = of(&site, "ann").await;
    let runs = BTreeSet::from([by_name(&ann).await, by_yaml(&ann).await, submitted(&ann).await]);
    let (store, worker) = (ann.engine.store(), WorkerId::new("w").unwrap());
    let tags = [Tag::default()];
    let mut told = BTreeSet::new();
    while told.len() < runs.len() {
        store.wait(&tags, Duration::from_secs(20)).await.unwrap();
        let taken = store.take(&tags, &worker, 10, Millis(60_000), ann.hands.now()).await.unwrap();
        assert!(!taken.is_empty(), "a job for each of them: {told:?}");
        for delivery in taken {
            let body: Value = serde_json::from_slice(&delivery.body).unwrap();
            assert_eq!(
                (&body["tenant_id"], &body["api_key_id"]),
                (&json!("anns-team"), &json!("ann")),
                "{body}"
            );
            told.insert(body["run_id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(told, runs);
}

async fn every_event_says_who_did_it(site: Site) {
    let (ann, amy) = (of(&site, "ann").await, of(&site, "amy").await);
    ann.graph("g", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let driven = failed(&ann).await;
    amy.done(&format!("/executions/{driven}/archive"), &json!({})).await;
    let run = by_name(&ann).await;
    amy.client
        .post(amy.url(&format!("/runs/{run}/cancel")))
        .send()
        .await
        .unwrap()
        .error_for_status()
        .unwrap();
    let job = submitted(&ann).await;
    let tags = amy.url(&format!("/jobs/{job}/tags"));
    amy.client.post(&tags).json(&json!({"tag": "t"})).send().await.unwrap().error_for_status().unwrap();
    amy.client.delete(format!("{tags}/t")).send().await.unwrap().error_for_status().unwrap();
    let path = format!("/jobs/{job}/ws");
    let mut socket = Socket::open(&amy, &path, &[("x-api-key", "amy")]).await.unwrap();
    socket.say(r#"{"type":"cancel"}"#).await;
    socket.to_the_end().await;
    amy.client.delete(amy.url(&format!("/jobs/{job}"))).send().await.unwrap().error_for_status().unwrap();
    let repeated = |author: &str, times: usize| vec![format!("api_key:{author}"); times];
    // Created, started, a node begun, and its failure; then put away.
    assert_eq!(authors(&ann, &driven).await, [repeated("ann", 4), repeated("amy", 1)].concat());
    assert_eq!(authors(&ann, &run).await, [repeated("ann", 1), repeated("amy", 1)].concat());
    // A tag, no tag, an end, out of sight.
    assert_eq!(authors(&ann, &job).await, [repeated("ann", 1), repeated("amy", 4)].concat());
}

/// Who wrote each record of an execution. What is only said about it stands there, too; and every event names who its record names.
async fn authors(who: &Site, execution: &str) -> Vec<String> {
    let id = ExecutionId::new(execution).unwrap();
    let stored = who.engine.store().read(&id, Version(0)).await.unwrap();
    let records = stored.iter().map(|record| Record::decode(&record.bytes).unwrap());
    records
        .map(|record| {
            assert!(record.events.iter().all(|event| event.actor == record.actor), "{record:?}");
            record.actor.id.unwrap_or_else(|| panic!("nobody wrote this of {execution}"))
        })
        .collect()
}

async fn without_keys_nobody_is_named(site: Site) {
    // What is shown counts for nothing where nothing is asked.
    let request = site.client.post(site.url("/runs")).json(&json!({"flow_name": "main"}));
    let request = request.header("x-api-key", "ann").header("authorization", "Bearer bob");
    let made = Answer::of(request.send().await.unwrap()).await.expect(200);
    let run = made["run_id"].as_str().unwrap();
    assert_eq!(named(&site, run).await, (Value::Null, Value::Null));
    assert_eq!(site.events(run).await[0]["actor"]["id"], Value::Null);
}
