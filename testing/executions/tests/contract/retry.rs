//! Repeating an execution: what succeeded is kept, the rest runs, and the two know each other.

use pyoco_testing_executions::{Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    a_retry_keeps_what_succeeded_and_runs_the_rest,
    a_retry_may_begin_earlier_and_with_other_parameters,
    only_what_has_ended_is_retried,
);

const CHAIN: &str = "flow: {graph: 'a >> b >> c'}\ntasks: {a: {}, b: {}, c: {}}\n";

async fn failed(site: &Site) -> String {
    site.graph("chain", CHAIN).await;
    let body = json!({"graphId": "chain", "input": {"x": 1}, "tags": ["red"]});
    let execution = site.started_with(&body).await;
    site.run(&execution, "a").await;
    site.node(&execution, "b", "start", json!({})).await;
    site.node(&execution, "b", "fail", json!({"error": {"message": "boom"}})).await;
    assert_eq!(site.status(&execution).await, "FAILED");
    execution
}

fn statuses(shown: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tasks = shown["nodes"].as_array().unwrap().iter().filter(|node| node["nodeType"] == "Task");
    tasks.map(|node| (text(&node["nodeId"]), text(&node["status"]))).collect()
}

fn pairs(wanted: [(&str, &str); 3]) -> Vec<(String, String)> {
    wanted.map(|(node, status)| (node.to_owned(), status.to_owned())).to_vec()
}

async fn a_retry_keeps_what_succeeded_and_runs_the_rest(site: Site) {
    let old = failed(&site).await;
    let before = site.events(&old).await;
    let answer = site.send(&format!("/executions/{old}/retry"), "k", &json!({})).await;
    assert_eq!(answer.status, 202, "{}", answer.json);
    assert_eq!(answer.json["command"], "RetryExecution");
    let new = answer.json["executionId"].as_str().unwrap().to_owned();
    assert_ne!(new, old);
    assert_eq!(answer.header("location"), format!("/executions/{new}"));
    let shown = site.execution(&new).await;
    assert_eq!(statuses(&shown), pairs([("a", "SUCCEEDED"), ("b", "READY"), ("c", "PENDING")]));
    assert_eq!((&shown["retryOf"], &shown["input"]), (&json!(old), &json!({"x": 1})));
    assert_eq!((&shown["tags"], &shown["graphVersion"]), (&json!(["red"]), &json!(1)));
    assert_eq!(site.node_of(&new, "a").await["output"], json!({"by": "a"}));
    assert_eq!(site.execution(&old).await["retriedBy"], json!(new));
    assert_eq!(site.events(&old).await, before);
    let again = site.send(&format!("/executions/{old}/retry"), "k", &json!({})).await;
    assert_eq!((again.status, &again.json), (200, &answer.json));
    site.run(&new, "b").await;
    site.run(&new, "c").await;
    assert_eq!(
        (site.status(&new).await, site.status(&old).await),
        ("COMPLETED".to_owned(), "FAILED".to_owned())
    );
}

async fn a_retry_may_begin_earlier_and_with_other_parameters(site: Site) {
    let old = failed(&site).await;
    let body = json!({"fromNode": "a", "input": {"x": 2}});
    let new = site.done(&format!("/executions/{old}/retry"), &body).await;
    let new = new["executionId"].as_str().unwrap().to_owned();
    let shown = site.execution(&new).await;
    assert_eq!(statuses(&shown), pairs([("a", "READY"), ("b", "PENDING"), ("c", "PENDING")]));
    assert_eq!(shown["input"], json!({"x": 2}));
    for node in ["a", "b", "c"] {
        site.run(&new, node).await;
    }
    // What has succeeded is repeated only from a node on.
    site.refused(&new, "/retry", &json!({}), 409, "COMMAND_REJECTED").await;
    let third = site.done(&format!("/executions/{new}/retry"), &json!({"fromNode": "c"})).await;
    let shown = site.execution(third["executionId"].as_str().unwrap()).await;
    assert_eq!(statuses(&shown), pairs([("a", "SUCCEEDED"), ("b", "SUCCEEDED"), ("c", "READY")]));
}

async fn only_what_has_ended_is_retried(site: Site) {
    let old = failed(&site).await;
    site.refused(&old, "/retry", &json!({"fromNode": "nothing"}), 404, "NODE_NOT_FOUND").await;
    let active = site.started("chain").await;
    let error = site.refused(&active, "/retry", &json!({}), 409, "COMMAND_REJECTED").await;
    assert_eq!(error["message"], "RetryExecution rejected because execution is still active");
    site.done(&format!("/executions/{active}/cancel"), &json!({})).await;
    site.done(&format!("/executions/{active}/retry"), &json!({})).await;
}
