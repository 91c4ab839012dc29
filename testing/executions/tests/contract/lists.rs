//! Lists of executions: filters, order and cursor.

use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testkit::{claim, start_node, worker};
use serde_json::{Value, json};

on_every_store!(
    a_list_shows_what_it_is_asked_for,
    a_list_is_filtered_by_time,
    a_list_goes_on_behind_its_cursor,
);

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["executionId"].as_str().unwrap().to_owned()).collect()
}

const ONE: &str = "flow: {graph: a}\ntasks: {a: {}}\n";

async fn a_list_shows_what_it_is_asked_for(site: Site) {
    site.graph("one", ONE).await;
    site.graph("work", "flow: {graph: w}\ntasks: {w: {callable: 'm:w'}}\n").await;
    assert_eq!(site.shown("/executions").await, json!({"items": [], "nextCursor": null}));
    let completed = site.started_with(&json!({"graphId": "one", "tags": ["red", "blue"]})).await;
    site.run(&completed, "a").await;
    let failed = site.started_with(&json!({"graphId": "one", "tags": ["red"]})).await;
    site.node(&failed, "a", "start", json!({})).await;
    site.node(&failed, "a", "fail", json!({"error": {"message": "boom"}})).await;
    let canceled = site.started("one").await;
    site.done(&format!("/executions/{canceled}/cancel"), &json!({})).await;
    let created = site.created_with(&json!({"graphId": "one", "tag": "gpu"})).await;
    let canceling = site.started("work").await;
    site.as_worker(&canceling, &worker(0), claim("job-1", None)).await;
    site.as_worker(&canceling, &worker(1), start_node("w")).await;
    site.done(&format!("/executions/{canceling}/cancel"), &json!({})).await;
    let every = [&canceling, &created, &canceled, &failed, &completed].map(Clone::clone);
    assert_eq!(ids(&site.shown("/executions").await), every);
    for (query, wanted) in [
        ("status=ACTIVE", vec![&canceling, &created]),
        ("status=COMPLETED", vec![&completed]),
        ("status=FAILED", vec![&failed]),
        ("status=CANCELED", vec![&canceled]),
        ("graphId=work", vec![&canceling]),
        ("graphId=nothing", vec![]),
        ("tag=red", vec![&failed, &completed]),
        ("tag=blue", vec![&completed]),
        ("tag=gpu", vec![&created]),
        ("tag=default", vec![&canceling, &canceled]),
        ("tag=red&status=FAILED&graphId=one", vec![&failed]),
        ("tag=red&status=CANCELED", vec![]),
        ("limit=2", vec![&canceling, &created]),
    ] {
        let wanted: Vec<String> = wanted.into_iter().cloned().collect();
        assert_eq!(ids(&site.shown(&format!("/executions?{query}")).await), wanted, "{query}");
    }
    let page = site.shown("/executions").await;
    for item in page["items"].as_array().unwrap() {
        let read: pyoco_api::ExecutionSummary = serde_json::from_value(item.clone()).unwrap();
        assert!(read.extra.is_empty() && read.created_at <= read.updated_at, "{item}");
        assert_eq!(serde_json::to_value(read).unwrap(), *item);
    }
    let item = |position: usize| &page["items"][position];
    assert_eq!((&item(0)["status"], &item(0)["cancelRequested"]), (&json!("ACTIVE"), &json!(true)));
    assert_eq!((&item(1)["status"], &item(1)["cancelRequested"]), (&json!("ACTIVE"), &json!(false)));
    assert_eq!((&item(2)["status"], &item(2)["cancelRequested"]), (&json!("CANCELED"), &json!(true)));
    assert_eq!((&item(3)["status"], &item(3)["error"]), (&json!("FAILED"), &json!("boom")));
    assert_eq!(item(4)["tags"], json!(["red", "blue"]));
}

async fn a_list_is_filtered_by_time(site: Site) {
    site.graph("one", ONE).await;
    let early = site.started("one").await;
    site.hands.forward(100);
    let late = site.started("one").await;
    site.hands.forward(100);
    site.run(&early, "a").await;
    assert_eq!(ids(&site.shown("/executions").await), [early.clone(), late.clone()]);
    // 100 s, 150 s and 250 s after the beginning of the tests' time.
    let (first, second) = ("2023-11-14T22:14:10Z", "2023-11-15T07:15:50%2B09:00");
    for (query, wanted) in [
        (format!("createdAfter={first}"), vec![&late]),
        (format!("createdBefore={first}"), vec![&early]),
        (format!("updatedAfter={second}"), vec![&early]),
        (format!("updatedBefore={second}"), vec![&late]),
        (format!("createdBefore={first}&updatedAfter={second}"), vec![&early]),
        (format!("createdAfter={first}&updatedAfter={second}"), vec![]),
        ("createdAfter=2000-01-01T00:00:00Z".to_owned(), vec![&early, &late]),
        ("updatedBefore=2000-01-01T00:00:00Z".to_owned(), vec![]),
    ] {
        let wanted: Vec<String> = wanted.into_iter().cloned().collect();
        assert_eq!(ids(&site.shown(&format!("/executions?{query}")).await), wanted, "{query}");
    }
}

async fn a_list_goes_on_behind_its_cursor(site: Site) {
    site.graph("one", ONE).await;
    let mut all = Vec::new();
    for position in 0..7 {
        let tags = if position % 2 == 0 { json!(["even"]) } else { json!(["odd"]) };
        all.push(site.created_with(&json!({"graphId": "one", "tags": tags})).await);
    }
    all.reverse();
    let even: Vec<String> = all.iter().step_by(2).cloned().collect();
    for (query, wanted) in [("", all), ("&tag=even&status=ACTIVE", even)] {
        let (mut found, mut path) = (Vec::new(), format!("/executions?limit=2{query}"));
        loop {
            let page = site.shown(&path).await;
            found.extend(ids(&page));
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            path = format!("/executions?limit=2{query}&cursor={cursor}");
        }
        assert_eq!(found, wanted, "{query}");
    }
}
