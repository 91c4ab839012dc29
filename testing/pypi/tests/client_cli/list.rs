//! `list` and `list-vnext`.

use std::collections::BTreeSet;

use pyoco_pypi::Site;
use serde_json::{Value, json};

use crate::keys;

const HEAD: [&str; 5] = ["run_id", "status", "flow_name", "tag", "updated_at"];

fn ids(items: &Value) -> Vec<String> {
    items.as_array().unwrap().iter().map(|item| item["run_id"].as_str().unwrap().to_owned()).collect()
}

/// Seven runs that wait: odd ones are `green`, and the third asks for another flow. The last comes first.
async fn seven(site: &Site) -> Vec<String> {
    let mut runs = Vec::new();
    for number in 0..7 {
        let flow = if number == 2 { "other" } else { "sum" };
        let tag = if number % 2 == 1 { "green" } else { "default" };
        runs.insert(0, site.submit(flow, &["--tag", tag]).await);
    }
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_newest_first_and_filtered_exactly() {
    let site = Site::without_worker().await;
    assert_eq!(site.client(&["list"]).await.json(), json!([]));
    assert_eq!(site.client(&["list", "--output", "table"]).await.text(), "(no items)\n");
    let runs = seven(&site).await;
    let cancelled = &runs[3];
    site.client(&["cancel", "--run-id", cancelled]).await.text();

    // What changed last is first.
    let mut wanted = runs.clone();
    wanted.retain(|run| run != cancelled);
    wanted.insert(0, cancelled.clone());
    let all = site.client(&["list"]).await.json();
    assert_eq!(ids(&all), wanted);
    let summary = [
        "run_id",
        "flow_name",
        "tag",
        "tags",
        "tenant_id",
        "api_key_id",
        "status",
        "updated_at",
        "heartbeat_at",
        "error",
    ];
    assert!(all.as_array().unwrap().iter().all(|item| keys(item) == summary.into()), "{all}");

    let green: BTreeSet<_> = [&runs[1], &runs[3], &runs[5]].into();
    for (filter, matching) in [
        (&["--status", "CANCELLED"][..], [cancelled].into()),
        (&["--status", "cancelled"], BTreeSet::new()),
        (&["--flow", "other"], [&runs[4]].into()),
        (&["--flow", "Other"], BTreeSet::new()),
        (&["--tag", "green"], green.clone()),
        (&["--tag", "green", "--flow", "sum", "--status", "PENDING"], [&runs[1], &runs[5]].into()),
        (&["--limit", "1"], [cancelled].into()),
        (&["--tag", "green", "--limit", "200"], green),
    ] {
        let found = site.client(&[&["list"], filter].concat()).await.json();
        assert_eq!(
            ids(&found),
            wanted.iter().filter(|run| matching.contains(run)).cloned().collect::<Vec<_>>(),
            "{filter:?}"
        );
    }
    let full = site.client(&["list", "--full", "--flow", "other"]).await.json();
    assert_eq!(
        (&full[0]["params"], &full[0]["task_records"], &full[0]["tasks"]),
        (&json!({}), &json!({}), &json!({}))
    );

    let table = site.client(&["list", "--output", "table", "--limit", "2"]).await.table();
    let updated = all[0]["updated_at"].to_string();
    assert_eq!(table.len(), 3);
    assert_eq!(table[0], HEAD);
    assert_eq!(table[1], [cancelled, "CANCELLED", "sum", "green", &updated]);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_to_the_end_and_hold_each_run_once() {
    let site = Site::without_worker().await;
    let runs = seven(&site).await;
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    let mut sizes = Vec::new();
    loop {
        let mut arguments = vec!["list-vnext", "--updated-after", "0", "--limit", "3"];
        arguments.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let page = site.client(&arguments).await.json();
        assert_eq!(keys(&page), ["items", "next_cursor"].into());
        sizes.push(page["items"].as_array().unwrap().len());
        seen.extend(ids(&page["items"]));
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            assert_eq!(page["next_cursor"], Value::Null);
            break;
        }
    }
    assert_eq!((seen, sizes), (runs.clone(), vec![3, 3, 1]));

    // A page that takes all there is has nothing behind it, and filters go with any page.
    let exact = site.client(&["list-vnext", "--updated-after", "0", "--limit", "7"]).await.json();
    assert_eq!((ids(&exact["items"]), &exact["next_cursor"]), (runs.clone(), &Value::Null));
    let first = site.client(&["list-vnext", "--updated-after", "0", "--limit", "2"]).await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let green = ["list-vnext", "--tag", "green", "--flow", "sum", "--status", "PENDING", "--cursor", cursor];
    assert_eq!(ids(&site.client(&green).await.json()["items"]), [&*runs[3], &*runs[5]]);

    // Only what changed after, not at, that moment.
    let full = ["list-vnext", "--updated-after", "0", "--full"];
    let items = site.client(&full).await.json()["items"].clone();
    assert!(items.as_array().unwrap().iter().all(|item| item["task_records"] == json!({})));
    let third = items[2]["updated_at"].to_string();
    let after = site.client(&["list-vnext", "--updated-after", &third]).await.json();
    assert_eq!(ids(&after["items"]), runs[..2]);
    // Without anything of the new form, the server answers in the old one; the client makes the difference up.
    assert_eq!(
        site.client(&["list-vnext"]).await.json(),
        json!({"items": site.client(&["list"]).await.json(), "next_cursor": null})
    );

    let said =
        site.client(&["list-vnext", "--updated-after", "0", "--limit", "2", "--output", "table"]).await;
    let table = said.table();
    assert_eq!((table.len(), &table[0][..]), (4, &HEAD.map(str::to_owned)[..]));
    assert_eq!(table[3], [format!("next_cursor: {cursor}")]);
    let none = site.client(&["list-vnext", "--updated-after", "99999999999", "--output", "table"]).await;
    assert_eq!(none.text(), "(no items)\n");
    site.stop().await;
}
