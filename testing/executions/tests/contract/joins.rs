//! Forks and joins, as their events tell of them, for all four policies.

use pyoco_testing_executions::{Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    a_fork_names_its_branches_and_all_success_waits_for_every_one,
    all_success_fails_with_a_branch,
    any_success_passes_with_the_first,
    any_success_without_one_fails,
    all_done_passes_however_its_branches_end,
    a_custom_join_passes_by_its_own_rule,
);

async fn diamond(site: &Site, join: &str) -> String {
    let tasks = format!("{{s: {{}}, a: {{}}, b: {{}}, c: {{}}, end: {{join: {join}}}}}");
    site.graph("diamond", &format!("flow: {{graph: 's >> (a & b & c) >> end'}}\ntasks: {tasks}\n")).await;
    let execution = site.started("diamond").await;
    site.run(&execution, "s").await;
    for branch in ["a", "b", "c"] {
        site.node(&execution, branch, "start", json!({})).await;
    }
    execution
}

async fn gates(site: &Site, execution: &str) -> Vec<Value> {
    let gates = site.payloads(execution, "JOIN_GATE_UPDATED").await;
    for gate in &gates {
        let mut names: Vec<&str> = gate.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        let wanted = [
            "canceledBranches",
            "completedBranches",
            "expectedBranches",
            "failedBranches",
            "isPassable",
            "nodeId",
            "policy",
        ];
        assert_eq!(names, wanted);
        assert_eq!(gate["expectedBranches"], json!(["a", "b", "c"]));
    }
    gates
}

async fn passed(site: &Site, execution: &str) -> usize {
    site.payloads(execution, "JOIN_PASSED").await.len()
}

async fn ok(site: &Site, execution: &str, branch: &str) {
    site.node(execution, branch, "success", json!({})).await;
}

async fn bad(site: &Site, execution: &str, branch: &str) {
    site.node(execution, branch, "fail", json!({"error": {"message": "boom"}})).await;
}

async fn a_fork_names_its_branches_and_all_success_waits_for_every_one(site: Site) {
    let execution = diamond(&site, "ALL_SUCCESS").await;
    let forks = site.payloads(&execution, "FORK_OPENED").await;
    assert_eq!(forks.len(), 1);
    assert_eq!(forks[0]["branchIds"], json!(["a", "b", "c"]));
    let fork = forks[0]["nodeId"].as_str().unwrap();
    assert_eq!(site.node_of(&execution, fork).await["nodeType"], "Fork");
    for branch in ["b", "a"] {
        ok(&site, &execution, branch).await;
        assert_eq!(passed(&site, &execution).await, 0);
        site.refused(&execution, "/nodes/end/start", &json!({}), 409, "COMMAND_REJECTED").await;
    }
    ok(&site, &execution, "c").await;
    let gates = gates(&site, &execution).await;
    let last = gates.last().unwrap();
    assert_eq!((&last["policy"], &last["isPassable"]), (&json!("ALL_SUCCESS"), &json!(true)));
    assert_eq!(last["completedBranches"], json!(["a", "b", "c"]));
    assert_eq!((&last["failedBranches"], &last["canceledBranches"]), (&json!([]), &json!([])));
    assert!(gates.iter().rev().skip(1).all(|gate| gate["isPassable"] == false), "{gates:?}");
    let join = site.payloads(&execution, "JOIN_PASSED").await;
    assert_eq!(join, [json!({"nodeId": last["nodeId"]})]);
    assert_eq!(site.node_of(&execution, last["nodeId"].as_str().unwrap()).await["nodeType"], "Join");
    site.run(&execution, "end").await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

async fn all_success_fails_with_a_branch(site: Site) {
    let execution = diamond(&site, "ALL_SUCCESS").await;
    ok(&site, &execution, "a").await;
    bad(&site, &execution, "b").await;
    // What runs may end; nothing new begins.
    site.refused(&execution, "/nodes/end/start", &json!({}), 409, "COMMAND_REJECTED").await;
    ok(&site, &execution, "c").await;
    let shown = site.execution(&execution).await;
    assert_eq!((&shown["status"], &shown["failedNodeId"]), (&json!("FAILED"), &json!("b")));
    assert_eq!(shown["error"]["message"], "boom");
    assert_eq!(passed(&site, &execution).await, 0);
}

async fn any_success_passes_with_the_first(site: Site) {
    let execution = diamond(&site, "ANY_SUCCESS").await;
    bad(&site, &execution, "a").await;
    assert_eq!(passed(&site, &execution).await, 0);
    ok(&site, &execution, "b").await;
    let last = gates(&site, &execution).await.pop().unwrap();
    assert_eq!((&last["policy"], &last["isPassable"]), (&json!("ANY_SUCCESS"), &json!(true)));
    assert_eq!((&last["completedBranches"], &last["failedBranches"]), (&json!(["b"]), &json!(["a"])));
    assert_eq!(passed(&site, &execution).await, 1);
    site.run(&execution, "end").await;
    bad(&site, &execution, "c").await;
    assert_eq!(passed(&site, &execution).await, 1);
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

async fn any_success_without_one_fails(site: Site) {
    let execution = diamond(&site, "ANY_SUCCESS").await;
    for branch in ["a", "b", "c"] {
        assert_eq!(site.status(&execution).await, "ACTIVE");
        bad(&site, &execution, branch).await;
    }
    assert_eq!(site.status(&execution).await, "FAILED");
    assert_eq!(passed(&site, &execution).await, 0);
    let last = gates(&site, &execution).await.pop().unwrap();
    assert_eq!((&last["isPassable"], &last["failedBranches"]), (&json!(false), &json!(["a", "b", "c"])));
}

async fn all_done_passes_however_its_branches_end(site: Site) {
    let execution = diamond(&site, "ALL_DONE").await;
    bad(&site, &execution, "a").await;
    site.node(&execution, "b", "cancel", json!({})).await;
    assert_eq!(passed(&site, &execution).await, 0);
    ok(&site, &execution, "c").await;
    let gates = gates(&site, &execution).await;
    let last = gates.last().unwrap();
    assert_eq!((&last["policy"], &last["isPassable"]), (&json!("ALL_DONE"), &json!(true)));
    let branches = ["completedBranches", "failedBranches", "canceledBranches"].map(|name| last[name].clone());
    assert_eq!(branches, [json!(["c"]), json!(["a"]), json!(["b"])]);
    assert_eq!(passed(&site, &execution).await, 1);
    site.run(&execution, "end").await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
}

async fn a_custom_join_passes_by_its_own_rule(site: Site) {
    let rule = "{policy: CUSTOM, when: '$ctx.branches.completed >= 2'}";
    let execution = diamond(&site, rule).await;
    ok(&site, &execution, "a").await;
    bad(&site, &execution, "b").await;
    assert_eq!(passed(&site, &execution).await, 0);
    ok(&site, &execution, "c").await;
    let last = gates(&site, &execution).await.pop().unwrap();
    assert_eq!((&last["policy"], &last["isPassable"]), (&json!("CUSTOM"), &json!(true)));
    assert_eq!(passed(&site, &execution).await, 1);
    site.run(&execution, "end").await;
    assert_eq!(site.status(&execution).await, "COMPLETED");
    // Where it can hold no more, the execution fails.
    let execution = diamond(&site, rule).await;
    bad(&site, &execution, "a").await;
    bad(&site, &execution, "b").await;
    ok(&site, &execution, "c").await;
    assert_eq!((passed(&site, &execution).await, site.status(&execution).await.as_str()), (0, "FAILED"));
}
