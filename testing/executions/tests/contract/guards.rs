//! What the state does not allow is refused with 409, and what is not there with 404. Nothing is written then.

use pyoco_testing_executions::{Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    an_execution_is_started_once,
    only_what_has_ended_is_archived,
    what_has_ended_is_not_canceled,
    a_node_does_not_run_before_its_execution_or_its_dependencies,
    a_node_is_where_it_is,
    another_attempt_than_the_one_that_is_meant_is_refused,
    what_a_worker_runs_is_not_driven_from_outside,
    what_is_not_there_is_told_so,
);

const CHAIN: &str = "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n";

#[track_caller]
fn says(error: &Value, message: &str) {
    assert_eq!(error["message"], message);
}

async fn an_execution_is_started_once(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    let error = site.refused(&execution, "/start", &json!({}), 409, "COMMAND_REJECTED").await;
    says(&error, "StartExecution rejected because execution is already started");
    site.run(&execution, "a").await;
    site.run(&execution, "b").await;
    let error = site.refused(&execution, "/start", &json!({}), 409, "COMMAND_REJECTED").await;
    says(&error, "StartExecution rejected because execution is COMPLETED");
}

async fn only_what_has_ended_is_archived(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    let error = site.refused(&execution, "/archive", &json!({}), 409, "COMMAND_REJECTED").await;
    says(&error, "ArchiveExecution rejected because execution is still active");
    site.done(&format!("/executions/{execution}/start"), &json!({})).await;
    site.refused(&execution, "/archive", &json!({}), 409, "COMMAND_REJECTED").await;
    site.done(&format!("/executions/{execution}/cancel"), &json!({})).await;
    site.done(&format!("/executions/{execution}/archive"), &json!({"reason": "done with"})).await;
    assert!(site.execution(&execution).await["archivedAt"].is_string());
    assert_eq!(site.status(&execution).await, "CANCELED");
}

async fn what_has_ended_is_not_canceled(site: Site) {
    site.graph("one", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    for (end, status) in [("success", "COMPLETED"), ("fail", "FAILED")] {
        let execution = site.started("one").await;
        site.node(&execution, "a", "start", json!({})).await;
        site.node(&execution, "a", end, json!({})).await;
        assert_eq!(site.status(&execution).await, status);
        let error = site.refused(&execution, "/cancel", &json!({}), 409, "COMMAND_REJECTED").await;
        says(&error, &format!("CancelExecution rejected because execution is {status}"));
        assert_eq!(site.status(&execution).await, status);
        for (path, body) in [
            ("/nodes/a/start", json!({})),
            ("/nodes/a/progress", json!({"progress": 1})),
            ("/nodes/a/success", json!({})),
            ("/nodes/a/fail", json!({})),
            ("/nodes/a/cancel", json!({})),
        ] {
            site.refused(&execution, path, &body, 409, "COMMAND_REJECTED").await;
        }
    }
}

async fn a_node_does_not_run_before_its_execution_or_its_dependencies(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    for (command, body) in all_of_a_node() {
        let path = format!("/nodes/a/{command}");
        let error = site.refused(&execution, &path, &body, 409, "COMMAND_REJECTED").await;
        assert!(error["message"].as_str().unwrap().ends_with("execution is not started"), "{error}");
    }
    site.done(&format!("/executions/{execution}/start"), &json!({})).await;
    for (command, body) in all_of_a_node() {
        let path = format!("/nodes/b/{command}");
        let error = site.refused(&execution, &path, &body, 409, "COMMAND_REJECTED").await;
        let said = error["message"].as_str().unwrap();
        assert!(said.ends_with("what node \"b\" depends on has not ended"), "{error}");
    }
    site.run(&execution, "a").await;
    site.run(&execution, "b").await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

fn all_of_a_node() -> [(&'static str, Value); 7] {
    [
        ("start", json!({"attempt": 1})),
        ("progress", json!({"progress": 50})),
        ("wait", json!({"waitKey": "k"})),
        ("resume", json!({"resumeKey": "k"})),
        ("success", json!({"output": 1})),
        ("fail", json!({"error": {"message": "m"}})),
        ("cancel", json!({})),
    ]
}

async fn a_node_is_where_it_is(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    let refused = async |node: &str, commands: &[&str], status: &str| {
        for (command, body) in all_of_a_node().iter().filter(|(command, _)| commands.contains(command)) {
            let path = format!("/nodes/{node}/{command}");
            let error = site.refused(&execution, &path, body, 409, "COMMAND_REJECTED").await;
            let said = error["message"].as_str().unwrap();
            assert!(said.ends_with(&format!("node \"{node}\" is {status}")), "{path}: {error}");
        }
    };
    refused("a", &["progress", "wait", "resume", "success", "fail"], "READY").await;
    site.node(&execution, "a", "start", json!({})).await;
    refused("a", &["start", "resume"], "RUNNING").await;
    site.node(&execution, "a", "wait", json!({"waitKey": "k"})).await;
    refused("a", &["start", "wait", "success"], "WAITING").await;
    site.node(&execution, "a", "resume", json!({"resumeKey": "k"})).await;
    site.node(&execution, "a", "success", json!({})).await;
    let every = ["start", "progress", "wait", "resume", "success", "fail", "cancel"];
    refused("a", &every, "SUCCEEDED").await;
}

async fn another_attempt_than_the_one_that_is_meant_is_refused(site: Site) {
    site.graph("again", "flow: {graph: a}\ntasks: {a: {retries: 1, retry_delay_sec: 0}}\n").await;
    let execution = site.started("again").await;
    let attempt = |number: u32| json!({"attempt": number});
    let error = site.refused(&execution, "/nodes/a/start", &attempt(2), 409, "COMMAND_REJECTED").await;
    says(&error, "StartNode rejected because the attempt is 1, not 2");
    site.node(&execution, "a", "start", attempt(1)).await;
    for command in ["success", "fail"] {
        let path = format!("/nodes/a/{command}");
        site.refused(&execution, &path, &attempt(2), 409, "COMMAND_REJECTED").await;
    }
    site.node(&execution, "a", "fail", attempt(1)).await;
    assert_eq!(site.node_of(&execution, "a").await["status"], "READY");
    site.refused(&execution, "/nodes/a/start", &attempt(1), 409, "COMMAND_REJECTED").await;
    site.node(&execution, "a", "start", attempt(2)).await;
    site.refused(&execution, "/nodes/a/success", &attempt(1), 409, "COMMAND_REJECTED").await;
    site.node(&execution, "a", "success", attempt(2)).await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

async fn what_a_worker_runs_is_not_driven_from_outside(site: Site) {
    site.graph("mixed", "flow: {graph: a}\ntasks: {a: {callable: 'm:a'}, b: {}}\n").await;
    let execution = site.started("mixed").await;
    let error = site.refused(&execution, "/nodes/a/start", &json!({}), 409, "COMMAND_REJECTED").await;
    says(&error, "StartNode rejected because node \"a\" is run by a worker");
    // What is outside goes on beside it.
    site.run(&execution, "b").await;
    assert_eq!(site.status(&execution).await, "ACTIVE");
}

async fn what_is_not_there_is_told_so(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    let commands = ["start", "cancel", "archive", "retry"].map(str::to_owned);
    let nodes = all_of_a_node().map(|(command, _)| format!("nodes/a/{command}"));
    for path in commands.iter().chain(&nodes) {
        for nobody in ["00000000-0000-4000-8000-000000000000", "no%20id", "a.b"] {
            let answer = site.post(&format!("/executions/{nobody}/{path}"), &json!({})).await;
            answer.denied(404, "EXECUTION_NOT_FOUND");
        }
    }
    for path in ["", "?at=1", "/events", "/events/stream"] {
        site.get(&format!("/executions/nobody{path}")).await.denied(404, "EXECUTION_NOT_FOUND");
    }
    for (command, body) in all_of_a_node() {
        for node in ["nothing", "a%2Fb", "%0A"] {
            let path = format!("/nodes/{node}/{command}");
            site.refused(&execution, &path, &body, 404, "NODE_NOT_FOUND").await;
        }
    }
    let answer = site.post("/executions", &json!({"graphId": "nothing"})).await;
    answer.denied(404, "GRAPH_NOT_FOUND");
    let answer = site.post("/executions", &json!({"graphId": "chain", "graphVersion": 9})).await;
    answer.denied(404, "GRAPH_NOT_FOUND");
    site.get("/graphs/nothing").await.denied(404, "GRAPH_NOT_FOUND");
    // What is no path of ours is answered as everywhere.
    for path in ["/executions/x/nodes", "/executions/x/nodes/a", "/graphs/a/b", "/waits/x"] {
        let answer = site.get(path).await;
        assert_eq!((answer.status, &answer.json["detail"]), (404, &json!("Not Found")), "{path}");
    }
}
