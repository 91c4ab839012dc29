//! The same command for many executions: which are found, which are passed over, and that nothing is done twice.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{Access, Admitted, NotAdmitted, Settings};
use pyoco_testing_executions::{Kind, Site, on_every_store};
use pyoco_testkit::{claim, start_node, worker};
use serde_json::{Value, json};

on_every_store!(
    a_cancel_of_many_ends_what_runs_and_passes_over_the_rest,
    a_dry_run_says_what_would_be_done_and_does_nothing,
    every_filter_narrows,
    many_are_done_page_by_page_and_each_once,
    a_retry_of_many_repeats_each_once,
    a_repeat_under_the_same_key_is_told_the_same_and_makes_nothing,
    two_who_retry_at_once_make_one_of_each,
    what_was_put_away_or_deleted_is_not_retried,
    what_is_not_as_it_has_to_be_is_refused_and_nothing_happens,
    nobody_reaches_what_is_anothers,
);

const ONE: &str = "flow: {graph: a}\ntasks: {a: {}}\n";
const BULK: &str = "/executions/bulk";

async fn bulk(site: &Site, body: &Value) -> Value {
    site.post(BULK, body).await.expect(200)
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

/// Which were passed over, and why.
fn skipped(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = report["skipped"].as_array().unwrap().iter();
    let mut skipped: Vec<_> = list.map(|skip| (text(&skip["id"]), text(&skip["why"]))).collect();
    skipped.sort();
    skipped
}

async fn failed(site: &Site, graph: &str) -> String {
    let execution = site.started(graph).await;
    site.node(&execution, "a", "start", json!({})).await;
    site.node(&execution, "a", "fail", json!({"error": {"message": "boom"}})).await;
    execution
}

async fn completed(site: &Site) -> String {
    let execution = site.started("one").await;
    site.run(&execution, "a").await;
    execution
}

/// One that a worker holds, so that a cancel of it takes until the worker has heard of it.
async fn held(site: &Site) -> String {
    site.graph("work", "flow: {graph: w}\ntasks: {w: {callable: 'm:w'}}\n").await;
    let execution = site.started("work").await;
    site.as_worker(&execution, &worker(0), claim("job-1", None)).await;
    site.as_worker(&execution, &worker(1), start_node("w")).await;
    execution
}

async fn a_cancel_of_many_ends_what_runs_and_passes_over_the_rest(site: Site) {
    site.graph("one", ONE).await;
    let (created, started) = (site.created("one").await, site.started("one").await);
    let (held, ended) = (held(&site).await, completed(&site).await);
    let body = json!({"action": "cancel", "all": true, "reason": "enough"});
    let answer = site.send(BULK, "k", &body).await;
    let report: pyoco_api::BulkReport = serde_json::from_value(answer.json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), answer.json, "its form is the described one");
    assert_eq!((answer.status, report.dry_run, report.matched), (200, false, 3), "{}", answer.json);
    assert_eq!(report.next_cursor, None);
    // Newest change first, as every list.
    assert_eq!(report.done, [held.clone(), started.clone(), created.clone()]);
    assert!(report.created.is_empty() && report.skipped.is_empty() && report.failed.is_empty());
    for execution in [&created, &started] {
        assert_eq!(site.status(execution).await, "CANCELED");
    }
    let shown = site.execution(&held).await;
    assert_eq!((&shown["status"], &shown["cancelReason"]), (&json!("ACTIVE"), &json!("enough")));
    assert_eq!(site.status(&ended).await, "COMPLETED");
    // All of it is one thread, which the answer names.
    let thread = answer.header("x-correlation-id");
    for execution in [&created, &started, &held] {
        let events = site.events(execution).await;
        let requested = events.iter().find(|event| event["type"] == "EXECUTION_CANCEL_REQUESTED").unwrap();
        assert_eq!(requested["correlationId"], thread, "{requested}");
    }
    // Whoever asks for them by name finds that there is nothing to do.
    let body = json!({"action": "cancel", "filter": {"status": ["ACTIVE", "COMPLETED", "CANCELED"]}});
    let again = bulk(&site, &body).await;
    assert_eq!((&again["matched"], &again["done"]), (&json!(4), &json!([])), "{again}");
    let mut wanted = vec![(held, "ALREADY_CANCELING".to_owned())];
    wanted.extend([created, started, ended].map(|execution| (execution, "ALREADY_ENDED".to_owned())));
    wanted.sort();
    assert_eq!(skipped(&again), wanted);
}

async fn a_dry_run_says_what_would_be_done_and_does_nothing(site: Site) {
    site.graph("one", ONE).await;
    let (active, failed) = (site.started("one").await, failed(&site, "one").await);
    let before = (site.events(&active).await, site.events(&failed).await, site.shown("/executions").await);
    for (action, wanted) in [("cancel", &active), ("retry", &failed)] {
        let report = bulk(&site, &json!({"action": action, "filter": {"flow": "one"}, "dryRun": true})).await;
        let told = json!({
            "action": action, "dryRun": true, "matched": 1, "done": [wanted], "created": [], "skipped": [],
            "failed": [], "nextCursor": null,
        });
        assert_eq!(report, told);
    }
    let after = (site.events(&active).await, site.events(&failed).await, site.shown("/executions").await);
    assert_eq!(after, before);
}

async fn every_filter_narrows(site: Site) {
    site.graph("one", ONE).await;
    site.graph("two", ONE).await;
    let early = site.created_with(&json!({"graphId": "one", "tags": ["red", "blue"]})).await;
    site.hands.forward(100);
    let late = site.started_with(&json!({"graphId": "two", "tag": "gpu", "tags": ["red"]})).await;
    site.hands.forward(100);
    site.node(&late, "a", "start", json!({})).await;
    // 50 s and 150 s after the beginning of the tests' time.
    let (first, second) = ("2023-11-14T22:14:10Z", "2023-11-15T07:15:50+09:00");
    for (filter, wanted) in [
        (json!({"flow": "one"}), vec![&early]),
        (json!({"flow": "nothing"}), vec![]),
        (json!({"tag": "gpu"}), vec![&late]),
        (json!({"label": "red"}), vec![&late, &early]),
        (json!({"label": "blue"}), vec![&early]),
        (json!({"status": ["PENDING"]}), vec![&early]),
        (json!({"status": ["RUNNING", "CANCELLING"]}), vec![&late]),
        (json!({"status": ["ACTIVE"]}), vec![&late, &early]),
        (json!({"status": ["FAILED", "CANCELLED", "CANCELED", "COMPLETED"]}), vec![]),
        (json!({"createdAfter": first}), vec![&late]),
        (json!({"createdBefore": first}), vec![&early]),
        (json!({"updatedAfter": second}), vec![&late]),
        (json!({"updatedBefore": second, "flow": null}), vec![&early]),
        (json!({"label": "red", "createdAfter": first, "flow": "one"}), vec![]),
    ] {
        let report = bulk(&site, &json!({"action": "cancel", "filter": filter, "dryRun": true})).await;
        assert_eq!(texts(&report["done"]), wanted.into_iter().cloned().collect::<Vec<_>>(), "{filter}");
    }
}

async fn many_are_done_page_by_page_and_each_once(site: Site) {
    site.graph("one", ONE).await;
    let mut all = Vec::new();
    for _ in 0..45 {
        all.push(site.started("one").await);
    }
    let (mut done, mut pages, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let body = json!({"action": "cancel", "filter": {"flow": "one"}, "limit": 20, "cursor": cursor});
        // The same key all the way: it counts for each execution by itself.
        let report = site.send(BULK, "all of them", &body).await.expect(200);
        assert!(report["matched"].as_u64().unwrap() <= 20, "{report}");
        assert_eq!((&report["skipped"], &report["failed"]), (&json!([]), &json!([])), "{report}");
        done.extend(texts(&report["done"]));
        pages += 1;
        cursor = report["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert!((3..=4).contains(&pages), "{pages}");
    all.reverse();
    assert_eq!(done, all);
    for execution in &all {
        assert_eq!(site.payloads(execution, "EXECUTION_CANCEL_REQUESTED").await.len(), 1);
    }
}

async fn a_retry_of_many_repeats_each_once(site: Site) {
    site.graph("one", ONE).await;
    let (first, second) = (failed(&site, "one").await, failed(&site, "one").await);
    let canceled = site.created("one").await;
    site.done(&format!("/executions/{canceled}/cancel"), &json!({})).await;
    let (good, active) = (completed(&site).await, site.started("one").await);
    let report = bulk(&site, &json!({"action": "retry", "filter": {"flow": "one"}})).await;
    let done = texts(&report["done"]);
    assert_eq!(done, [canceled.clone(), second.clone(), first.clone()], "{report}");
    let created = texts(&report["created"]);
    for (old, new) in done.iter().zip(&created) {
        assert_eq!(site.execution(old).await["retriedBy"], json!(new));
        let shown = site.execution(new).await;
        assert_eq!((&shown["retryOf"], &shown["status"]), (&json!(old), &json!("ACTIVE")));
    }
    let states = json!({"status": ["ACTIVE", "COMPLETED", "FAILED", "CANCELED"]});
    let again = bulk(&site, &json!({"action": "retry", "filter": states})).await;
    assert_eq!((&again["done"], &again["created"]), (&json!([]), &json!([])), "{again}");
    let why =
        |list: &[String], why: &str| list.iter().map(|id| (id.clone(), why.to_owned())).collect::<Vec<_>>();
    let mut wanted = why(&done, "ALREADY_RETRIED");
    wanted.extend(why(&created, "STILL_ACTIVE"));
    wanted.extend(why(&[active], "STILL_ACTIVE"));
    wanted.extend(why(&[good], "COMPLETED"));
    wanted.sort();
    assert_eq!(skipped(&again), wanted);
    // When the new one fails too, it is the one that is repeated, not both.
    let new = &created[2];
    site.node(new, "a", "start", json!({})).await;
    site.node(new, "a", "fail", json!({"error": {"message": "boom"}})).await;
    let third = bulk(&site, &json!({"action": "retry", "filter": {"status": ["FAILED"]}})).await;
    assert_eq!(texts(&third["done"]), std::slice::from_ref(new), "{third}");
}

async fn a_repeat_under_the_same_key_is_told_the_same_and_makes_nothing(site: Site) {
    site.graph("one", ONE).await;
    failed(&site, "one").await;
    failed(&site, "one").await;
    let body = json!({"action": "retry", "filter": {"status": ["FAILED"]}});
    let first = site.send(BULK, "k", &body).await.expect(200);
    assert_eq!(texts(&first["created"]).len(), 2, "{first}");
    let count = || async { site.shown("/executions").await["items"].as_array().unwrap().len() };
    let before = count().await;
    let site_again = site.send(BULK, "k", &body).await.expect(200);
    for list in ["done", "created"] {
        assert_eq!(sorted(texts(&site_again[list])), sorted(texts(&first[list])), "{site_again}");
    }
    let other = site.send(BULK, "another", &body).await.expect(200);
    assert_eq!((&other["done"], skipped(&other).len()), (&json!([]), 2), "{other}");
    assert_eq!(count().await, before);
}

async fn two_who_retry_at_once_make_one_of_each(site: Site) {
    site.graph("one", ONE).await;
    let mut all = Vec::new();
    for _ in 0..12 {
        all.push(failed(&site, "one").await);
    }
    let beside = site.beside().await;
    let body = json!({"action": "retry", "filter": {"status": ["FAILED"]}});
    let (one, other) = tokio::join!(bulk(&site, &body), bulk(&beside, &body));
    let made = sorted([texts(&one["created"]), texts(&other["created"])].concat());
    let mut linked = Vec::new();
    for execution in &all {
        linked.push(site.execution(execution).await["retriedBy"].as_str().unwrap().to_owned());
    }
    assert_eq!(made, sorted(linked), "{one} {other}");
}

async fn what_was_put_away_or_deleted_is_not_retried(site: Site) {
    site.graph("one", ONE).await;
    let (archived, deleted) = (failed(&site, "one").await, failed(&site, "one").await);
    site.done(&format!("/executions/{archived}/archive"), &json!({})).await;
    let request = site.client.delete(site.url(&format!("/jobs/{deleted}")));
    assert_eq!(request.send().await.unwrap().status(), 204);
    let report = bulk(&site, &json!({"action": "retry", "filter": {"status": ["FAILED"]}})).await;
    let mut wanted = vec![(archived, "ARCHIVED".to_owned()), (deleted, "DELETED".to_owned())];
    wanted.sort();
    assert_eq!((&report["done"], skipped(&report)), (&json!([]), wanted));
}

async fn what_is_not_as_it_has_to_be_is_refused_and_nothing_happens(site: Site) {
    site.graph("one", ONE).await;
    let execution = site.started("one").await;
    let before = site.events(&execution).await;
    for (body, paths) in [
        (json!({}), vec!["action", "filter"]),
        (json!({"action": "cancel"}), vec!["filter"]),
        (json!({"action": "cancel", "filter": {}}), vec!["filter"]),
        (json!({"action": "cancel", "filter": {"status": []}}), vec!["filter"]),
        (json!({"action": "cancel", "filter": {"flow": null}, "all": false}), vec!["filter"]),
        (json!({"action": "cancel", "filter": {"flow": "one"}, "all": true}), vec!["all"]),
        (json!({"action": "cancel", "filter": {"flwo": "one"}}), vec!["filter.flwo"]),
        (json!({"action": "cancel", "all": true, "filters": {"flow": "one"}}), vec!["filters"]),
        (json!({"action": "cancel", "all": "true"}), vec!["all", "filter"]),
        (json!({"action": "archive", "all": true}), vec!["action"]),
        (json!({"action": 1, "all": true, "dryRun": 1}), vec!["action", "dryRun"]),
        (json!({"action": "retry", "all": true, "reason": "why"}), vec!["reason"]),
        (json!({"action": "cancel", "all": true, "reason": "x".repeat(2_001)}), vec!["reason"]),
        (json!({"action": "cancel", "all": true, "limit": 0, "cursor": "!"}), vec!["limit", "cursor"]),
        (json!({"action": "cancel", "all": true, "limit": 1_001}), vec!["limit"]),
        (
            json!({"action": "cancel", "filter": {
                "status": ["RUNNING", "DONE", 1], "flow": "", "tag": 1, "label": "x".repeat(257),
                "createdAfter": "yesterday", "updatedBefore": 5,
            }}),
            vec![
                "filter.status.1",
                "filter.status.2",
                "filter.flow",
                "filter.tag",
                "filter.label",
                "filter.createdAfter",
                "filter.updatedBefore",
            ],
        ),
        (json!({"action": "cancel", "filter": ["flow"]}), vec!["filter"]),
    ] {
        let answer = site.post(BULK, &body).await;
        assert_eq!(answer.paths("INVALID_INPUT"), paths, "{body}");
    }
    let bare = site.client.post(site.url(BULK)).json(&json!({"action": "cancel", "all": true})).send().await;
    let code = bare.unwrap().json::<Value>().await.unwrap()["error"]["code"].clone();
    assert_eq!(code, "IDEMPOTENCY_KEY_REQUIRED");
    let got = site.client.get(site.url(BULK)).send().await.unwrap();
    assert_eq!(got.status(), 405);
    assert_eq!(site.events(&execution).await, before);
}

/// Two people of two tenants.
struct Two;

#[async_trait]
impl Access for Two {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        let name = secret.ok_or(NotAdmitted::NothingShown)?;
        let tenant = TenantId::new(&format!("{name}s-team")).unwrap();
        Ok(Admitted { tenant: Some(tenant), key: Some(name.to_owned()), ..Default::default() })
    }
}

async fn nobody_reaches_what_is_anothers(site: Site) {
    let ann = site.for_one(Arc::new(Two), Some("ann")).await;
    let bob = site.for_one(Arc::new(Two), Some("bob")).await;
    for one in [&ann, &bob] {
        one.graph("one", ONE).await;
    }
    let (hers, failed_of_hers) = (ann.started("one").await, failed(&ann, "one").await);
    let his = bob.started("one").await;
    let before = (ann.events(&hers).await, ann.execution(&failed_of_hers).await);
    let canceled = bulk(&bob, &json!({"action": "cancel", "all": true})).await;
    assert_eq!((&canceled["matched"], texts(&canceled["done"])), (&json!(1), vec![his.clone()]));
    let retried = bulk(&bob, &json!({"action": "retry", "all": true})).await;
    assert_eq!(texts(&retried["done"]), [his]);
    assert_eq!((ann.events(&hers).await, ann.execution(&failed_of_hers).await), before);
    // What is made anew is as much hers, and says by whom.
    let retried = bulk(&ann, &json!({"action": "retry", "all": true})).await;
    let new = texts(&retried["created"]).remove(0);
    assert_eq!(ann.events(&new).await[0]["actor"], json!({"kind": "user", "id": "api_key:ann"}));
    assert_eq!(bob.get(&format!("/executions/{new}")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_key_is_required_many_are_done_without_one() {
    let settings = Settings { idempotency_key_required: false, ..Settings::default() };
    let site = Site::open_with(Kind::Memory, settings).await;
    site.graph("one", ONE).await;
    let execution = failed(&site, "one").await;
    let body = json!({"action": "retry", "all": true});
    let answer = site.client.post(site.url(BULK)).json(&body).send().await.unwrap();
    let report: Value = answer.json().await.unwrap();
    assert_eq!(texts(&report["done"]), [execution], "{report}");
}
