//! The same executions on the older surface: a graph is run by its name, and a cancel says why.

use pyoco_testing_executions::{Answer, Site, on_every_store};
use serde_json::json;

on_every_store!(
    a_graph_is_run_by_its_name_through_runs,
    a_repeat_of_a_run_is_recognised_although_its_name_was_registered_since,
    a_cancel_through_runs_takes_a_reason,
);

async fn submit(site: &Site, key: &str, flow: &str) -> String {
    let request = site.client.post(site.url("/runs")).header("x-idempotency-key", key);
    let answer = Answer::of(request.json(&json!({"flow_name": flow})).send().await.unwrap()).await;
    answer.expect(200)["run_id"].as_str().unwrap().to_owned()
}

async fn a_graph_is_run_by_its_name_through_runs(site: Site) {
    site.graph("g", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let run = submit(&site, "k", "g").await;
    let shown = site.execution(&run).await;
    assert_eq!((&shown["graphVersion"], &shown["status"]), (&json!(1), &json!("ACTIVE")));
    // It is started already, and its nodes are driven from outside like those of any other.
    site.run(&run, "a").await;
    site.run(&run, "b").await;
    assert_eq!(site.shown(&format!("/runs/{run}")).await["status"], "COMPLETED");
    // A name that nobody has registered is the workers' business, as before.
    let run = submit(&site, "other", "nobody-knows").await;
    assert_eq!(site.shown(&format!("/runs/{run}")).await["status"], "PENDING");
    assert_eq!(site.execution(&run).await["graphVersion"], json!(null));
}

async fn a_repeat_of_a_run_is_recognised_although_its_name_was_registered_since(site: Site) {
    let run = submit(&site, "k", "g").await;
    site.graph("g", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    assert_eq!(submit(&site, "k", "g").await, run);
}

async fn a_cancel_through_runs_takes_a_reason(site: Site) {
    site.graph("g", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    for (body, reason) in [
        ("{\"reason\": \"enough\"}", json!("enough")),
        ("", json!(null)),
        ("not json", json!(null)),
        ("{\"reason\": 5}", json!(null)),
    ] {
        let run = site.started("g").await;
        let answer =
            site.client.post(site.url(&format!("/runs/{run}/cancel"))).body(body).send().await.unwrap();
        assert_eq!(Answer::of(answer).await.expect(200)["status"], "CANCELLED");
        let requested = site.payloads(&run, "EXECUTION_CANCEL_REQUESTED").await;
        assert_eq!(requested[0]["reason"], reason, "{body}");
        assert_eq!(site.execution(&run).await["cancelReason"], reason, "{body}");
    }
}
