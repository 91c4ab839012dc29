//! Jobs and their labels: what each call sends, and what it makes of the answer.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use pyoco_client::api::{JobStatus, SubmitJob};
use pyoco_client::{Client, Error, JobFilter, TagFilter};
use serde_json::json;
use support::{Asked, Gateway, json, no_content};

fn client(gateway: &Gateway) -> Client {
    Client::new(gateway.url()).unwrap()
}

fn job() -> serde_json::Value {
    json!({
        "id": "j-1", "status": "running", "createdAt": "2026-02-18T12:00:00Z", "startedAt": "2026-02-18T12:01:00Z",
        "completedAt": null, "tags": ["urgent"], "new": 1,
    })
}

fn line(asked: &Asked) -> String {
    format!("{} {}", asked.method, asked.target)
}

#[tokio::test]
async fn a_job_is_submitted_with_what_was_given_and_nothing_else() {
    let gateway = Gateway::start(|_, _| json(201, job().to_string()));
    let least = client(&gateway).submit_job(&SubmitJob::default(), None).await.unwrap();
    assert_eq!(
        (least.id.as_str(), least.status, &least.json()["new"]),
        ("j-1", JobStatus::Running, &json!(1))
    );
    let request = SubmitJob {
        parameters: json!({"input": "data.csv"}).as_object().unwrap().clone(),
        tags: vec!["売上 Q3".to_owned()],
        flow: Some("report".to_owned()),
        tag: Some("gpu".to_owned()),
    };
    client(&gateway).submit_job(&request, Some("k 1")).await.unwrap();
    let asked = gateway.asked();
    assert_eq!((line(&asked[0]), asked[0].json()), ("POST /jobs".to_owned(), json!({"parameters": {}})));
    assert_eq!(asked[0].header("x-idempotency-key"), None);
    assert_eq!(
        asked[1].json(),
        json!({"parameters": {"input": "data.csv"}, "tags": ["売上 Q3"], "flow": "report", "tag": "gpu"})
    );
    assert_eq!(asked[1].header("x-idempotency-key"), Some("k 1"));
}

#[tokio::test]
async fn jobs_are_read_listed_and_deleted() {
    let gateway = Gateway::start(|asked, _| match (asked.method.as_str(), asked.path()) {
        ("DELETE", _) => no_content(),
        (_, "/jobs") => json(200, json!({"jobs": [job()], "nextToken": "t2"}).to_string()),
        _ => json(200, job().to_string()),
    });
    let client = client(&gateway);
    assert_eq!(client.get_job("a/b").await.unwrap().tags, ["urgent"]);
    let page = client.list_jobs(&JobFilter::default()).await.unwrap();
    assert_eq!((page.jobs.len(), page.next_token.as_deref()), (1, Some("t2")));
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let filter = JobFilter {
        tags: texts(&["a b", "c&d"]),
        any_tags: texts(&["急ぎ"]),
        statuses: texts(&["running", "failed"]),
        flow: Some(String::new()),
        created_after: Some("2026-01-31T00:00:00+01:00".to_owned()),
        created_before: Some("2".to_owned()),
        limit: Some(5),
        next_token: Some("t1".to_owned()),
    };
    client.list_jobs(&filter).await.unwrap();
    client.delete_job("j-1").await.unwrap();
    assert_eq!(
        gateway.asked().iter().map(line).collect::<Vec<_>>(),
        [
            "GET /jobs/a%2Fb",
            "GET /jobs",
            "GET /jobs?tag=a+b&tag=c%26d&tagAny=%E6%80%A5%E3%81%8E&status=running&status=failed\
             &createdAfter=2026-01-31T00%3A00%3A00%2B01%3A00&createdBefore=2&nextToken=t1&limit=5",
            "DELETE /jobs/j-1",
        ]
    );
}

#[tokio::test]
async fn labels_are_read_added_removed_and_listed() {
    let gateway = Gateway::start(|asked, _| match (asked.method.as_str(), asked.path()) {
        ("DELETE", _) => no_content(),
        (_, "/tags") => json(200, r#"{"tags":[{"tag":"urgent","count":3}],"nextToken":"t"}"#),
        _ => json(200, r#"["urgent","a/b"]"#),
    });
    let client = client(&gateway);
    assert_eq!(*client.job_tags("j-1").await.unwrap(), ["urgent", "a/b"]);
    assert_eq!(client.add_tag("j-1", "a/b").await.unwrap().len(), 2);
    client.remove_tag("j-1", "a/b ☕?").await.unwrap();
    let page = client.list_tags(&TagFilter::default()).await.unwrap();
    assert_eq!(
        (page.tags[0].tag.as_str(), page.tags[0].count, page.next_token.as_deref()),
        ("urgent", 3, Some("t"))
    );
    let filter =
        TagFilter { prefix: Some("Q3 ".to_owned()), limit: Some(7), next_token: Some("t".to_owned()) };
    client.list_tags(&filter).await.unwrap();
    let asked = gateway.asked();
    assert_eq!(
        asked.iter().map(line).collect::<Vec<_>>(),
        [
            "GET /jobs/j-1/tags",
            "POST /jobs/j-1/tags",
            "DELETE /jobs/j-1/tags/a%2Fb%20%E2%98%95%3F",
            "GET /tags",
            "GET /tags?prefix=Q3+&nextToken=t&limit=7",
        ]
    );
    assert_eq!(asked[1].json(), json!({"tag": "a/b"}));
}

#[tokio::test]
async fn what_no_path_can_carry_is_not_sent() {
    let gateway = Gateway::start(|_, _| no_content());
    for tag in ["", ".", ".."] {
        let error = client(&gateway).remove_tag("j-1", tag).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
    }
    assert_eq!(gateway.asked().len(), 0);
}
