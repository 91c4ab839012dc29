//! Nodes that wait for a person: they wait by themselves, are listed, and go on when they are answered with their key.

use pyoco_testing_executions::{Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    a_wait_node_waits_by_itself_and_ends_with_the_answer,
    a_node_that_is_put_to_wait_runs_on_when_it_is_resumed,
    the_wrong_key_resumes_nothing,
    what_waits_is_listed_newest_first,
    a_list_of_waits_goes_on_behind_its_cursor,
    what_no_longer_waits_is_not_listed,
);

const APPROVAL: &str = "flow: {graph: 'build >> approve >> deploy'}
tasks:
  build: {}
  approve: {wait: {key: release-7, prompt: {text: 'Deploy?', choices: [yes, no]}}}
  deploy: {}
";

async fn a_wait_node_waits_by_itself_and_ends_with_the_answer(site: Site) {
    site.graph("approval", APPROVAL).await;
    let execution = site.started("approval").await;
    site.run(&execution, "build").await;
    let shown = site.node_of(&execution, "approve").await;
    assert_eq!((&shown["status"], &shown["nodeType"]), (&json!("WAITING"), &json!("Wait")));
    let waiting = site.payloads(&execution, "NODE_WAITING").await;
    assert_eq!(waiting.len(), 1);
    assert_eq!((&waiting[0]["nodeId"], &waiting[0]["waitKey"]), (&json!("approve"), &json!("release-7")));
    assert_eq!(waiting[0]["prompt"]["text"], "Deploy?");
    assert_eq!(shown["waiting"]["waitKey"], "release-7");
    assert_eq!(site.execution(&execution).await["parked"], true);
    // It is not started or ended like a task.
    for command in ["start", "success", "wait"] {
        let path = format!("/nodes/approve/{command}");
        site.refused(&execution, &path, &json!({}), 409, "COMMAND_REJECTED").await;
    }
    let answer = json!({"resumeKey": "release-7", "output": {"approved": true, "by": "ann"}});
    site.node(&execution, "approve", "resume", answer).await;
    let shown = site.node_of(&execution, "approve").await;
    assert_eq!(shown["status"], "SUCCEEDED");
    assert_eq!(shown["output"], json!({"approved": true, "by": "ann"}));
    let requested = site.payloads(&execution, "NODE_RESUME_REQUESTED").await;
    assert_eq!(
        (&requested[0]["resumeKey"], &requested[0]["requestedBy"]["kind"]),
        (&json!("release-7"), &json!("user"))
    );
    assert_eq!(site.payloads(&execution, "NODE_RESUMED").await, [json!({"nodeId": "approve"})]);
    site.run(&execution, "deploy").await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

async fn a_node_that_is_put_to_wait_runs_on_when_it_is_resumed(site: Site) {
    site.graph("one", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    let execution = site.started("one").await;
    site.node(&execution, "a", "start", json!({})).await;
    site.node(&execution, "a", "wait", json!({"waitKey": "approval-123", "prompt": {"q": "ok?"}})).await;
    assert_eq!(site.shown("/waits").await["items"][0]["waitKey"], "approval-123");
    site.node(&execution, "a", "resume", json!({"resumeKey": "approval-123"})).await;
    assert_eq!(site.node_of(&execution, "a").await["status"], "RUNNING");
    assert_eq!(site.shown("/waits").await["items"], json!([]));
    // Without a key anybody may go on.
    site.node(&execution, "a", "wait", json!({})).await;
    site.node(&execution, "a", "resume", json!({})).await;
    site.node(&execution, "a", "success", json!({})).await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

async fn the_wrong_key_resumes_nothing(site: Site) {
    site.graph("approval", APPROVAL).await;
    let execution = site.started("approval").await;
    site.refused(&execution, "/nodes/approve/resume", &json!({}), 409, "COMMAND_REJECTED").await;
    site.run(&execution, "build").await;
    for body in [json!({}), json!({"resumeKey": "release-8"}), json!({"resumeKey": ""})] {
        let error = site.refused(&execution, "/nodes/approve/resume", &body, 409, "COMMAND_REJECTED").await;
        assert_eq!(error["message"], "ResumeNode rejected because resumeKey is not the waitKey of the node");
    }
    site.node(&execution, "approve", "resume", json!({"resumeKey": "release-7"})).await;
}

/// Starts an execution that waits at once, under a label.
async fn waiting(site: &Site, label: &str) -> String {
    site.started_with(&json!({"graphId": "ask", "tags": [label]})).await
}

const ASK: &str =
    "flow: {graph: 'ask >> after'}\ntasks: {ask: {wait: {key: k, prompt: {p: 1}}}, after: {}}\n";

fn executions(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["executionId"].as_str().unwrap().to_owned()).collect()
}

async fn what_waits_is_listed_newest_first(site: Site) {
    site.graph("ask", ASK).await;
    assert_eq!(site.shown("/waits").await, json!({"items": [], "nextCursor": null}));
    let old = waiting(&site, "red").await;
    site.hands.forward(100);
    let new = waiting(&site, "blue").await;
    let page = site.shown("/waits").await;
    assert_eq!(executions(&page), [new.clone(), old.clone()]);
    let item = &page["items"][0];
    for (name, wanted) in [
        ("graphId", json!("ask")),
        ("nodeId", json!("ask")),
        ("waitKey", json!("k")),
        ("prompt", json!({"p": 1})),
        ("tags", json!(["blue"])),
    ] {
        assert_eq!(item[name], wanted, "{name}");
    }
    assert!(item["since"].as_str().unwrap().ends_with('Z'), "{item}");
    assert_eq!(executions(&site.shown("/waits?tag=red").await), [old.as_str()]);
    assert_eq!(executions(&site.shown("/waits?tag=green").await), [""; 0]);
    assert_eq!(executions(&site.shown("/waits?olderThanSec=50").await), [old.as_str()]);
    assert_eq!(executions(&site.shown("/waits?olderThanSec=0").await), [new, old.clone()]);
    assert_eq!(executions(&site.shown("/waits?olderThanSec=1000").await), [""; 0]);
    // The other surface says the same of it.
    let run = site.shown(&format!("/runs/{old}")).await;
    assert_eq!(run["waiting"][0]["node_id"], "ask");
}

async fn a_list_of_waits_goes_on_behind_its_cursor(site: Site) {
    site.graph("ask", ASK).await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(waiting(&site, "x").await);
    }
    all.reverse();
    let (mut found, mut path) = (Vec::new(), "/waits?limit=2".to_owned());
    loop {
        let page = site.shown(&path).await;
        found.extend(executions(&page));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/waits?limit=2&cursor={cursor}");
    }
    assert_eq!(found, all);
}

async fn what_no_longer_waits_is_not_listed(site: Site) {
    site.graph("ask", ASK).await;
    let (resumed, canceled, failed) =
        (waiting(&site, "x").await, waiting(&site, "x").await, waiting(&site, "x").await);
    assert_eq!(executions(&site.shown("/waits").await).len(), 3);
    site.node(&resumed, "ask", "resume", json!({"resumeKey": "k"})).await;
    site.done(&format!("/executions/{canceled}/cancel"), &json!({})).await;
    site.node(&failed, "ask", "fail", json!({})).await;
    assert_eq!(site.shown("/waits").await["items"], json!([]));
    assert_eq!(site.shown("/waits?tag=x").await["items"], json!([]));
}
