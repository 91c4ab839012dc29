//! Jobs, and lines in their logs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_engine::Clock as _;
use pyoco_ports::{LogLine, LogStream};
use pyoco_testing_executions::{Answer, Site};
use serde_json::{Value, json};

/// A job of a flow that nobody runs: nothing is said about it but what the test says.
pub async fn submitted(site: &Site) -> String {
    submitted_with(site, &json!({"parameters": {}})).await
}

/// The same, with more to say.
pub async fn submitted_with(site: &Site, body: &Value) -> String {
    let answer = Answer::of(site.client.post(site.url("/jobs")).json(body).send().await.unwrap()).await;
    answer.expect(201)["id"].as_str().unwrap().to_owned()
}

/// Lets a task `load` write lines to its standard output.
pub async fn write(site: &Site, job: &str, texts: &[&str]) {
    write_as(site, job, Some("load"), LogStream::Stdout, texts).await;
}

/// Lets a task, or nobody in particular, write lines.
pub async fn write_as(site: &Site, job: &str, node: Option<&str>, stream: LogStream, texts: &[&str]) {
    let lines = texts.iter().map(|text| LogLine {
        node: node.map(|node| NodeId::new(node).unwrap()),
        attempt: Attempt(u32::from(node.is_some())),
        stream,
        at: site.hands.now(),
        text: (*text).to_owned(),
    });
    site.engine.lines().write(&ExecutionId::new(job).unwrap(), lines.collect()).await.unwrap();
}

/// Ends a job by a cancel, and waits until its log is closed.
pub async fn end(site: &Site, job: &str) {
    let deleted = site.client.delete(site.url(&format!("/jobs/{job}"))).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    let id = ExecutionId::new(job).unwrap();
    let mut follower = site.engine.follow_log(&id, 0).await.unwrap();
    while follower.next().await.unwrap().is_some() {}
    assert!(site.engine.log_end(&id).await.unwrap().is_closed);
}

/// A token for a line of a job, whether or not it is there.
pub fn made_up_token(job: &str, line: u64) -> String {
    URL_SAFE_NO_PAD.encode(json!([1, {"e": job, "n": line}]).to_string())
}
