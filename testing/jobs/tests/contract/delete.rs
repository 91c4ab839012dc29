//! Deleting jobs: what goes on is cancelled, what has ended is hidden, and everything else is no error.

use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{ask, get, submitted};
use serde_json::json;

on_every_store!(a_job_is_cancelled_first_and_hidden_then, what_is_not_there_is_deleted_without_complaint);

async fn a_job_is_cancelled_first_and_hidden_then(site: Site) {
    site.graph("analysis", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let job = submitted(&site).await;
    site.node(&job, "a", "start", json!({})).await;
    let path = format!("/jobs/{job}");
    let deleted = ask(&site, "DELETE", &path, &[]).await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
    let shown = site.shown(&path).await;
    assert_eq!(shown["status"], "canceled", "{shown}");
    assert!(shown["cancelRequestedAt"].is_string());
    assert_eq!(site.execution(&job).await["cancelReason"], "job deleted");
    assert_eq!(site.shown("/jobs").await["jobs"][0]["id"], json!(job));
    for _ in 0..2 {
        assert_eq!(ask(&site, "DELETE", &path, &[]).await.status, 204);
        for part in ["", "/logs", "/logs/stream", "/tags"] {
            assert_eq!(get(&site, &format!("{path}{part}"), &[]).await.code(404), "JOB_NOT_FOUND", "{part}");
        }
    }
    assert_eq!(site.shown("/jobs").await, json!({"jobs": []}));
    assert_eq!(site.shown("/tags").await, json!({"tags": []}));
    // Its history stays.
    assert_eq!(site.status(&job).await, "CANCELED");
    assert_eq!(get(&site, &format!("/runs/{job}/logs"), &[]).await.status, 200);
    let tags =
        site.client.post(site.url(&format!("{path}/tags"))).json(&json!({"tag": "x"})).send().await.unwrap();
    assert_eq!(tags.status(), 404);
}

async fn what_is_not_there_is_deleted_without_complaint(site: Site) {
    for path in [
        "/jobs/nothing",
        "/jobs/a.b",
        "/jobs/%ff",
        "/jobs/nothing/tags/x",
        "/jobs/a.b/tags/x",
        "/jobs/x/tags/%00",
    ] {
        let deleted = ask(&site, "DELETE", path, &[]).await;
        assert_eq!((deleted.status, deleted.text.as_str()), (204, ""), "{path}");
    }
}
