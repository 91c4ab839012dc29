//! Lists, however they are asked for: nothing of another tenant, also not behind a place in its list.

use std::sync::Arc;

use pyoco_testing_access::{Scene, Staff};
use pyoco_testing_executions::{Site, on_every_store};
use serde_json::Value;

on_every_store!(
    no_question_brings_out_what_is_anothers,
    a_place_in_anothers_list_leads_nowhere,
    what_belongs_to_no_tenant_is_nobodys_who_has_one,
);

async fn two(site: &Site) -> (Site, Site) {
    let ann = site.for_one(Arc::new(Staff), Some("ann")).await;
    (ann, site.for_one(Arc::new(Staff), Some("bob")).await)
}

async fn no_question_brings_out_what_is_anothers(site: Site) {
    let (ann, bob) = two(&site).await;
    let scene = Scene::set(&ann).await;
    for path in [
        "/runs?limit=200",
        "/runs?include=full",
        "/runs?status=PENDING",
        "/runs?flow=flow",
        "/runs?tag=default",
        "/jobs?tag=anns-own",
        "/jobs?tagAny=anns-own",
        "/jobs?status=pending&status=running&status=failed",
        "/jobs?flow=analysis",
        "/tags?prefix=a",
        "/executions?graphId=flow",
        "/executions?status=ACTIVE",
        "/waits?olderThanSec=0",
        "/graphs?limit=200",
    ] {
        let text = bob.shown(path).await.to_string();
        assert!(!text.contains("anns"), "{path}: {text}");
        let ids = [&scene.job, &scene.run, &scene.created, &scene.waiting, &scene.ready[0], &scene.failed[0]];
        assert!(ids.iter().all(|id| !text.contains(*id)), "{path}: {text}");
    }
    let text = ann.shown("/executions?graphId=flow").await.to_string();
    assert!(text.contains(&scene.waiting), "there is something to find: {text}");
}

async fn a_place_in_anothers_list_leads_nowhere(site: Site) {
    let (ann, bob) = two(&site).await;
    Scene::set(&ann).await;
    ann.client
        .post(ann.url(&format!("/jobs/{}/tags", one_job(&ann).await)))
        .json(&tag("second"))
        .send()
        .await
        .unwrap();
    for (list, query, next) in [
        ("/runs?updated_after=0&limit=1", "cursor", "next_cursor"),
        ("/jobs?limit=1", "nextToken", "nextToken"),
        ("/tags?limit=1", "nextToken", "nextToken"),
        ("/executions?limit=1", "cursor", "nextCursor"),
        ("/graphs?limit=1", "cursor", "nextCursor"),
    ] {
        let page = ann.shown(list).await;
        let place = page[next].as_str().unwrap_or_else(|| panic!("{list} goes on: {page}"));
        let there = format!("{list}&{query}={place}");
        let behind = ann.get(&there).await.expect(200);
        assert!(!is_bare(&behind), "there is something to find: {there} {behind}");
        let got = bob.get(&there).await;
        // A place that is not of his list may be refused; nothing is shown in any case.
        assert!(got.status == 400 || (got.status == 200 && is_bare(&got.json)), "{there}: {}", got.json);
    }
}

fn tag(tag: &str) -> Value {
    serde_json::json!({"tag": tag})
}

async fn one_job(ann: &Site) -> String {
    ann.shown("/jobs").await["jobs"][0]["id"].as_str().unwrap().to_owned()
}

/// No list in it has anything.
fn is_bare(page: &Value) -> bool {
    let members = page.as_object().unwrap();
    members.values().filter_map(Value::as_array).all(Vec::is_empty)
}

async fn what_belongs_to_no_tenant_is_nobodys_who_has_one(site: Site) {
    // Made before keys were asked for.
    let run = pyoco_testing_jobs::submitted(&site).await;
    let (ann, bob) = two(&site).await;
    for who in [&ann, &bob] {
        for path in [format!("/runs/{run}"), format!("/jobs/{run}"), format!("/executions/{run}")] {
            assert_eq!(who.get(&path).await.status, 404, "{path}");
        }
        assert_eq!(who.shown("/runs").await, serde_json::json!([]));
    }
    assert_eq!(site.shown(&format!("/runs/{run}")).await["run_id"], run);
}
