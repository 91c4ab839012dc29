//! Lists of jobs: filters, order and tokens.

use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{get, submitted, submitted_with};
use serde_json::{Value, json};

on_every_store!(
    a_list_shows_what_it_is_asked_for,
    a_list_is_filtered_by_time,
    a_list_goes_on_behind_its_token,
    a_token_is_good_for_its_own_list_alone,
    queries_are_checked,
);

fn ids(page: &Value) -> Vec<String> {
    page["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

/// Every job of a list, over all its pages.
async fn all(site: &Site, query: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = site.shown(&format!("/jobs?{query}{token}")).await;
        found.extend(ids(&page));
        match page["nextToken"].as_str() {
            Some(next) => token = format!("&nextToken={next}"),
            None => return found,
        }
    }
}

async fn tagged(site: &Site, tags: Value) -> String {
    submitted_with(site, &json!({"parameters": {"p": 1}, "tags": tags})).await
}

async fn a_list_shows_what_it_is_asked_for(site: Site) {
    site.graph("one", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    let red = tagged(&site, json!(["red", "large"])).await;
    let blue = tagged(&site, json!(["blue", "large"])).await;
    let both = tagged(&site, json!(["red", "blue", "日本 語"])).await;
    let of_one = |tags: Value| json!({"parameters": {}, "flow": "one", "tags": tags});
    let done = submitted_with(&site, &of_one(json!(["red"]))).await;
    site.run(&done, "a").await;
    let failed = submitted_with(&site, &of_one(json!([]))).await;
    site.node(&failed, "a", "start", json!({})).await;
    site.node(&failed, "a", "fail", json!({"error": {"message": "boom"}})).await;
    let running = submitted_with(&site, &of_one(json!([]))).await;
    site.node(&running, "a", "start", json!({})).await;
    let canceled = submitted(&site).await;
    site.client.delete(site.url(&format!("/jobs/{canceled}"))).send().await.unwrap();
    for (query, wanted) in [
        ("", vec![&canceled, &running, &failed, &done, &both, &blue, &red]),
        ("tag=red", vec![&done, &both, &red]),
        ("tag=red&tag=blue", vec![&both]),
        ("tag=red&tag=large&tag=blue", vec![]),
        ("tagAny=red&tagAny=blue", vec![&done, &both, &blue, &red]),
        ("tag=large&tagAny=red&tagAny=blue", vec![&blue, &red]),
        ("tag=%E6%97%A5%E6%9C%AC+%E8%AA%9E", vec![&both]),
        ("tag=nothing", vec![]),
        ("status=pending", vec![&both, &blue, &red]),
        ("status=running&status=failed", vec![&running, &failed]),
        ("status=completed&tag=red", vec![&done]),
        ("status=canceled", vec![&canceled]),
        ("flow=one", vec![&running, &failed, &done]),
        ("flow=one&status=completed&tag=red&tagAny=blue", vec![]),
    ] {
        let wanted: Vec<String> = wanted.into_iter().cloned().collect();
        assert_eq!(all(&site, query).await, wanted, "{query}");
    }
    let page = site.shown("/jobs").await;
    let first = &page["jobs"][2];
    assert_eq!((&first["status"], &first["error"]), (&json!("failed"), &json!("boom")));
    assert!(first["startedAt"].is_string() && first["completedAt"].is_string());
    assert!(first.get("parameters").is_none() && first["flow"].is_string(), "{first}");
    // What a list says of a job is what the job says of itself.
    for listed in page["jobs"].as_array().unwrap() {
        let mut alone = site.shown(&format!("/jobs/{}", listed["id"].as_str().unwrap())).await;
        alone.as_object_mut().unwrap().remove("parameters");
        assert_eq!(alone, *listed);
    }
}

async fn a_list_is_filtered_by_time(site: Site) {
    let early = submitted(&site).await;
    site.hands.forward(100);
    let late = submitted(&site).await;
    // What changes later was not created later.
    site.client.delete(site.url(&format!("/jobs/{early}"))).send().await.unwrap();
    let between = "2023-11-14T22:14:10Z";
    assert_eq!(all(&site, &format!("createdAfter={between}")).await, std::slice::from_ref(&late));
    assert_eq!(all(&site, &format!("createdBefore={between}")).await, std::slice::from_ref(&early));
    assert_eq!(all(&site, "").await, [late, early]);
}

async fn a_list_goes_on_behind_its_token(site: Site) {
    let mut made = Vec::new();
    for position in 0..7 {
        let tags = if position % 2 == 0 { json!(["even", "all"]) } else { json!(["odd", "all"]) };
        made.push(tagged(&site, tags).await);
    }
    made.reverse();
    let even: Vec<String> = made.iter().step_by(2).cloned().collect();
    assert_eq!(all(&site, "limit=2").await, made);
    assert_eq!(all(&site, "limit=2&tag=all&tag=even").await, even);
    assert_eq!(all(&site, "limit=3&tagAny=even&tagAny=odd").await, made);
    // What comes between two pages disturbs neither.
    let first = site.shown("/jobs?limit=3").await;
    let newer = submitted(&site).await;
    let token = first["nextToken"].as_str().unwrap();
    let rest = all(&site, &format!("limit=3&nextToken={token}")).await;
    let seen: Vec<String> = ids(&first).into_iter().chain(rest).collect();
    assert_eq!(seen, made);
    assert_eq!(ids(&site.shown("/jobs?limit=1").await), [newer]);
}

async fn a_token_is_good_for_its_own_list_alone(site: Site) {
    for _ in 0..3 {
        tagged(&site, json!(["a", "b"])).await;
    }
    let page = site.shown("/jobs?limit=1&tag=a&tag=b").await;
    let token = page["nextToken"].as_str().unwrap();
    // The same list, asked for in another order and in larger pages.
    assert_eq!(ids(&site.shown(&format!("/jobs?limit=9&tag=b&tag=a&nextToken={token}")).await).len(), 2);
    let tags = site.shown("/tags?limit=1").await;
    let of_tags = tags["nextToken"].as_str().unwrap();
    let long = "A".repeat(10_000);
    for query in [
        format!("tag=a&nextToken={token}"),
        format!("tag=a&tag=b&status=pending&nextToken={token}"),
        format!("nextToken={token}x"),
        format!("nextToken={of_tags}"),
        "nextToken=%00".to_owned(),
        "nextToken=e30".to_owned(),
        format!("nextToken={long}"),
    ] {
        assert_eq!(get(&site, &format!("/jobs?{query}"), &[]).await.code(400), "BAD_TOKEN", "{query}");
    }
}

async fn queries_are_checked(site: Site) {
    let many: Vec<String> = (0..17).map(|number| format!("tag=t{number}")).collect();
    let mixed: Vec<String> =
        (0..17).map(|number| format!("tag{}=t{number}", ["", "Any"][number % 2])).collect();
    for (query, path) in [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=abc", "limit"),
        ("status=done", "status"),
        ("status=COMPLETED", "status"),
        ("createdAfter=yesterday", "createdAfter"),
        ("tag=%00", "tag"),
        ("tagAny=a%0Ab", "tagAny"),
        (&format!("tag={}", "x".repeat(129)), "tag"),
        (&format!("flow={}", "x".repeat(257)), "flow"),
        (&many.join("&"), "tag"),
        (&mixed.join("&"), "tag"),
    ] {
        let answer = site.get(&format!("/jobs?{query}")).await;
        assert_eq!(answer.paths("INVALID_INPUT"), [path], "{query}");
    }
    let sixteen = many.iter().take(16).cloned().collect::<Vec<_>>().join("&");
    assert_eq!(site.shown(&format!("/jobs?{sixteen}")).await, json!({"jobs": []}));
}
