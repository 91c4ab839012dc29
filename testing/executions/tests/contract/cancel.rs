//! Cancel wins: after its request nothing goes on, and nothing else ends the execution.

use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testkit::{claim, start_node, succeed, worker};
use serde_json::json;

on_every_store!(
    after_a_cancel_request_nothing_goes_on,
    an_execution_that_no_worker_holds_is_canceled_at_once,
    a_cancel_may_be_asked_again,
    one_node_is_canceled_and_the_rest_goes_on,
);

async fn after_a_cancel_request_nothing_goes_on(site: Site) {
    let tasks = "{w: {callable: 'm:w'}, e: {}, ready: {}, ask: {wait: {key: ok}}}";
    site.graph("mixed", &format!("flow: {{graph: w}}\ntasks: {tasks}\n")).await;
    let execution = site.started("mixed").await;
    site.node(&execution, "e", "start", json!({})).await;
    site.as_worker(&execution, &worker(0), claim("job-1", None)).await;
    site.as_worker(&execution, &worker(1), start_node("w")).await;
    let reason = json!({"reason": "changed my mind"});
    site.done(&format!("/executions/{execution}/cancel"), &reason).await;
    let shown = site.execution(&execution).await;
    assert_eq!(shown["status"], "ACTIVE");
    assert!(shown["cancelRequestedAt"].is_string(), "{shown}");
    assert_eq!(shown["cancelReason"], "changed my mind");
    assert_eq!(shown["cancelRequestedBy"]["kind"], "user");
    let requested = site.payloads(&execution, "EXECUTION_CANCEL_REQUESTED").await;
    assert_eq!(requested[0]["reason"], "changed my mind");
    assert_eq!(requested[0]["requestedBy"]["kind"], "user");
    for (path, command, body) in [
        ("/start", "StartExecution", json!({})),
        ("/nodes/ready/start", "StartNode", json!({})),
        ("/nodes/e/progress", "ReportNodeProgress", json!({"progress": 1})),
        ("/nodes/e/wait", "PutNodeWaiting", json!({})),
        ("/nodes/ask/resume", "ResumeNode", json!({"resumeKey": "ok"})),
        ("/nodes/e/success", "SucceedNode", json!({})),
        ("/nodes/e/fail", "FailNode", json!({})),
        ("/nodes/e/cancel", "CancelNode", json!({})),
    ] {
        let error = site.refused(&execution, path, &body, 409, "COMMAND_REJECTED").await;
        let message = format!("{command} rejected because execution is cancel-requested");
        assert_eq!(error["message"], json!(message));
    }
    site.refused(&execution, "/archive", &json!({}), 409, "COMMAND_REJECTED").await;
    // The worker that holds it may still say how its task ended; that does not complete it.
    site.as_worker(&execution, &worker(1), succeed("w", json!(1))).await;
    let shown = site.execution(&execution).await;
    assert_eq!(shown["status"], "CANCELED", "{shown}");
    let statuses = shown["nodes"].as_array().unwrap().iter();
    let of = |name: &str| statuses.clone().find(|node| node["nodeId"] == name).unwrap();
    assert_eq!(of("w")["status"], "SUCCEEDED");
    for name in ["e", "ready", "ask"] {
        assert_eq!(
            (&of(name)["status"], &of(name)["canceledByExecution"]),
            (&json!("CANCELED"), &json!(true))
        );
    }
}

async fn an_execution_that_no_worker_holds_is_canceled_at_once(site: Site) {
    site.graph("wide", "flow: {graph: a}\ntasks: {a: {}, b: {}}\n").await;
    let created = site.created("wide").await;
    site.done(&format!("/executions/{created}/cancel"), &json!({})).await;
    assert_eq!(site.status(&created).await, "CANCELED");
    let execution = site.started("wide").await;
    site.node(&execution, "a", "start", json!({})).await;
    site.done(&format!("/executions/{execution}/cancel"), &json!({})).await;
    let shown = site.execution(&execution).await;
    assert_eq!(shown["status"], "CANCELED");
    for node in shown["nodes"].as_array().unwrap().iter().filter(|node| node["nodeType"] == "Task") {
        assert_eq!((&node["status"], &node["canceledByExecution"]), (&json!("CANCELED"), &json!(true)));
    }
    for path in ["/start", "/nodes/a/success", "/nodes/b/start"] {
        let error = site.refused(&execution, path, &json!({}), 409, "COMMAND_REJECTED").await;
        assert!(error["message"].as_str().unwrap().ends_with("execution is CANCELED"), "{error}");
    }
}

async fn a_cancel_may_be_asked_again(site: Site) {
    site.graph("work", "flow: {graph: w}\ntasks: {w: {callable: 'm:w'}}\n").await;
    let execution = site.started("work").await;
    site.as_worker(&execution, &worker(0), claim("job-1", None)).await;
    site.as_worker(&execution, &worker(1), start_node("w")).await;
    let cancel = format!("/executions/{execution}/cancel");
    site.send(&cancel, "one", &json!({"reason": "first"})).await.expect(202);
    let before = site.events(&execution).await;
    // By somebody else, while it is under way: taken, and nothing new happens.
    site.send(&cancel, "two", &json!({"reason": "second"})).await.expect(202);
    assert_eq!(site.events(&execution).await, before);
    site.as_worker(&execution, &worker(1), succeed("w", json!(1))).await;
    assert_eq!(site.status(&execution).await, "CANCELED");
    // Repeats of both are answered as they were; a new one finds done what it asks for.
    let before = site.events(&execution).await;
    site.send(&cancel, "one", &json!({"reason": "first"})).await.expect(200);
    site.send(&cancel, "two", &json!({"reason": "second"})).await.expect(200);
    site.send(&cancel, "three", &json!({})).await.expect(202);
    site.send(&cancel, "three", &json!({})).await.expect(200);
    assert_eq!(site.events(&execution).await, before);
}

async fn one_node_is_canceled_and_the_rest_goes_on(site: Site) {
    let rest = "flow: {graph: '(a & b) >> end'}\ntasks: {a: {}, b: {}, end: {join: ANY_SUCCESS}}\n";
    site.graph("any", rest).await;
    let execution = site.started("any").await;
    site.node(&execution, "a", "start", json!({})).await;
    site.node(&execution, "a", "cancel", json!({"reason": "too slow"})).await;
    let shown = site.node_of(&execution, "a").await;
    assert_eq!((&shown["status"], &shown["canceledByExecution"]), (&json!("CANCELED"), &json!(false)));
    site.run(&execution, "b").await;
    site.run(&execution, "end").await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
    let canceled = site.payloads(&execution, "NODE_CANCELED").await;
    assert_eq!(canceled[0], json!({"nodeId": "a", "reason": "too slow"}));
}
