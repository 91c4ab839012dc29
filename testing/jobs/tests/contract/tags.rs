//! Tags of jobs: any text of a person, found again in every spelling; and none is lost when two change them at once.

use pyoco_testing_executions::{Answer, Site, on_every_store};
use pyoco_testing_jobs::{ask, get, submitted, submitted_with};
use serde_json::{Value, json};
use tokio::task::JoinSet;

on_every_store!(
    tags_are_added_and_removed,
    any_text_of_a_person_is_a_tag,
    what_is_no_tag_is_refused,
    a_job_has_no_more_than_64_tags,
    two_gateways_change_tags_at_once_and_none_is_lost,
    tags_in_use_are_counted,
    tags_in_use_go_on_behind_a_token,
);

async fn add(site: &Site, job: &str, tag: &str) -> Answer {
    let request = site.client.post(site.url(&format!("/jobs/{job}/tags")));
    Answer::of(request.json(&json!({"tag": tag})).send().await.unwrap()).await
}

/// The path of a tag, percent-encoded to the last byte.
fn path(job: &str, tag: &str) -> String {
    let encoded: String = tag.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("/jobs/{job}/tags/{encoded}")
}

async fn tags(site: &Site, job: &str) -> Value {
    site.shown(&format!("/jobs/{job}/tags")).await
}

async fn tags_are_added_and_removed(site: Site) {
    let job = submitted_with(&site, &json!({"parameters": {}, "tags": ["urgent"]})).await;
    assert_eq!(tags(&site, &job).await, json!(["urgent"]));
    for _ in 0..2 {
        assert_eq!(add(&site, &job, "data").await.expect(200), json!(["urgent", "data"]));
    }
    for _ in 0..2 {
        let removed = ask(&site, "DELETE", &path(&job, "urgent"), &[]).await;
        assert_eq!((removed.status, removed.text.as_str()), (204, ""));
        assert_eq!(tags(&site, &job).await, json!(["data"]));
    }
    assert_eq!(site.shown(&format!("/jobs/{job}")).await["tags"], json!(["data"]));
    assert_eq!(site.shown("/jobs?tag=data").await["jobs"][0]["id"], json!(job));
    assert_eq!(site.shown("/jobs?tag=urgent").await, json!({"jobs": []}));
}

async fn any_text_of_a_person_is_a_tag(site: Site) {
    let job = submitted(&site).await;
    let written =
        ["two words", "日本語 タグ", "🚀", "a/b", "50%", "?q=1&x#y", "...", "\"quoted\"", "  around  "];
    let kept = ["two words", "日本語 タグ", "🚀", "a/b", "50%", "?q=1&x#y", "...", "\"quoted\"", "around"];
    for (written, kept) in written.iter().zip(kept) {
        assert!(add(&site, &job, written).await.expect(200).as_array().unwrap().contains(&json!(kept)));
        let found = site.client.get(site.url("/jobs")).query(&[("tag", written)]).send().await.unwrap();
        assert_eq!(Answer::of(found).await.expect(200)["jobs"][0]["id"], json!(job), "{written}");
    }
    // Two spellings of one text are one tag.
    let before = tags(&site, &job).await.as_array().unwrap().len();
    add(&site, &job, "cafe\u{301}").await.expect(200);
    let after = add(&site, &job, "caf\u{e9}").await.expect(200);
    assert_eq!((after.as_array().unwrap().len(), &after[before]), (before + 1, &json!("caf\u{e9}")));
    assert_eq!(ask(&site, "DELETE", &path(&job, "cafe\u{301}"), &[]).await.status, 204);
    assert_eq!(tags(&site, &job).await.as_array().unwrap().len(), before);
    for kept in kept {
        assert_eq!(ask(&site, "DELETE", &path(&job, kept), &[]).await.status, 204, "{kept}");
    }
    assert_eq!(tags(&site, &job).await, json!([]));
    // Clients rewrite a path of dots before they send it, so nobody could take such a tag away again.
    add(&site, &job, "..").await.expect(422);
}

async fn what_is_no_tag_is_refused(site: Site) {
    let job = submitted(&site).await;
    for wrong in ["", "  \u{3000} ", "a\nb", "\u{0}", "\u{9b}", &"x".repeat(129), &"語".repeat(500_000 / 3)]
    {
        assert_eq!(add(&site, &job, wrong).await.paths("INVALID_INPUT"), ["tag"]);
    }
    add(&site, &job, &"語".repeat(128)).await.expect(200);
    for (body, paths) in [
        (json!({}), vec!["tag"]),
        (json!({"tag": 5}), vec!["tag"]),
        (json!({"tag": "x", "tags": []}), vec!["tags"]),
        (json!([]), vec!["body"]),
    ] {
        let request = site.client.post(site.url(&format!("/jobs/{job}/tags"))).json(&body);
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.paths("INVALID_INPUT"), paths, "{body}");
    }
    assert_eq!(tags(&site, &job).await.as_array().unwrap().len(), 1);
}

async fn a_job_has_no_more_than_64_tags(site: Site) {
    let most: Vec<String> = (0..64).map(|number| format!("t{number}")).collect();
    let job = submitted_with(&site, &json!({"parameters": {}, "tags": most})).await;
    add(&site, &job, "one more").await.denied(422, "INVALID_INPUT");
    assert_eq!(tags(&site, &job).await, json!(most));
    // One that it has is no more.
    add(&site, &job, "t7").await.expect(200);
    assert_eq!(ask(&site, "DELETE", &path(&job, "t0"), &[]).await.status, 204);
    add(&site, &job, "one more").await.expect(200);
}

/// Some gateways add and others remove, all at once: what is left is exactly what was added and not removed.
async fn two_gateways_change_tags_at_once_and_none_is_lost(site: Site) {
    let old: Vec<String> = (0..20).map(|number| format!("old {number}")).collect();
    let job = submitted_with(&site, &json!({"parameters": {}, "tags": old})).await;
    let other = site.beside().await;
    let mut changes = JoinSet::new();
    for number in 0..20 {
        for (position, gateway) in [&site, &other].into_iter().enumerate() {
            let client = gateway.client.clone();
            let (tags, old) = (
                gateway.url(&format!("/jobs/{job}/tags")),
                gateway.url(&path(&job, &format!("old {number}"))),
            );
            changes.spawn(async move {
                // Under such a crowd a gateway may say that it is busy: then it is asked again, as Retry-After says.
                let body = json!({"tag": format!("new {position}/{number}")});
                loop {
                    let added = client.post(&tags).json(&body).send().await.unwrap();
                    match added.status().as_u16() {
                        200 => break,
                        status => assert!(status == 503 && added.headers().contains_key("retry-after")),
                    }
                }
                loop {
                    match client.delete(&old).send().await.unwrap().status().as_u16() {
                        204 => break,
                        status => assert_eq!(status, 503),
                    }
                }
            });
        }
    }
    while let Some(changed) = changes.join_next().await {
        changed.unwrap();
    }
    let mut wanted: Vec<String> =
        (0..2).flat_map(|position| (0..20).map(move |number| format!("new {position}/{number}"))).collect();
    wanted.sort();
    for gateway in [&site, &other] {
        let left = tags(gateway, &job).await;
        let mut left: Vec<String> = serde_json::from_value(left).unwrap();
        left.sort();
        assert_eq!(left, wanted);
    }
}

async fn tags_in_use_are_counted(site: Site) {
    assert_eq!(site.shown("/tags").await, json!({"tags": []}));
    for tags in [json!(["a", "ab", "日本"]), json!(["a", "b"]), json!(["日本語"])] {
        submitted_with(&site, &json!({"parameters": {}, "tags": tags})).await;
    }
    let counts = |page: Value| -> Vec<(String, u64)> {
        let tags = page["tags"].as_array().unwrap().clone();
        tags.iter()
            .map(|tag| (tag["tag"].as_str().unwrap().to_owned(), tag["count"].as_u64().unwrap()))
            .collect()
    };
    let named = |wanted: &[(&str, u64)]| -> Vec<(String, u64)> {
        wanted.iter().map(|(tag, count)| ((*tag).to_owned(), *count)).collect()
    };
    let all = named(&[("a", 2), ("ab", 1), ("b", 1), ("日本", 1), ("日本語", 1)]);
    assert_eq!(counts(site.shown("/tags").await), all);
    assert_eq!(counts(site.shown("/tags?prefix=a").await), named(&[("a", 2), ("ab", 1)]));
    assert_eq!(counts(site.shown("/tags?prefix=%E6%97%A5").await), named(&[("日本", 1), ("日本語", 1)]));
    assert_eq!(site.shown("/tags?prefix=zzz").await, json!({"tags": []}));
    let job = site.shown("/jobs?tag=ab").await["jobs"][0]["id"].as_str().unwrap().to_owned();
    ask(&site, "DELETE", &path(&job, "a"), &[]).await;
    assert_eq!(counts(site.shown("/tags?prefix=a").await), named(&[("a", 1), ("ab", 1)]));
    // A job that was deleted is counted no more.
    for _ in 0..2 {
        ask(&site, "DELETE", &format!("/jobs/{job}"), &[]).await;
    }
    assert_eq!(counts(site.shown("/tags").await), named(&[("a", 1), ("b", 1), ("日本語", 1)]));
}

async fn tags_in_use_go_on_behind_a_token(site: Site) {
    let tags: Vec<String> = (0..7).map(|number| format!("t{number}")).collect();
    submitted_with(&site, &json!({"parameters": {}, "tags": tags})).await;
    let (mut found, mut query) = (Vec::new(), "limit=2&prefix=t".to_owned());
    loop {
        let page = site.shown(&format!("/tags?{query}")).await;
        let names =
            page["tags"].as_array().unwrap().iter().map(|tag| tag["tag"].as_str().unwrap().to_owned());
        found.extend(names);
        let Some(next) = page["nextToken"].as_str() else { break };
        query = format!("limit=2&prefix=t&nextToken={next}");
    }
    assert_eq!(found, tags);
    let page = site.shown("/tags?limit=2&prefix=t").await;
    let token = page["nextToken"].as_str().unwrap();
    for query in
        [format!("nextToken={token}"), format!("prefix=x&nextToken={token}"), "nextToken=x".to_owned()]
    {
        assert_eq!(get(&site, &format!("/tags?{query}"), &[]).await.code(400), "BAD_TOKEN", "{query}");
    }
    for (query, path) in
        [("limit=0", "limit"), ("limit=1001", "limit"), (&format!("prefix={}", "x".repeat(129)), "prefix")]
    {
        assert_eq!(site.get(&format!("/tags?{query}")).await.paths("INVALID_INPUT"), [path]);
    }
}
