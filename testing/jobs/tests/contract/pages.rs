//! Logs as JSON: pages, tokens, filters and entity tags, for jobs and runs alike.

use pyoco_ports::LogStream;
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{Got, ask, end, get, submitted, write, write_as};
use serde_json::{Value, json};

on_every_store!(
    a_page_shows_lines_as_they_were_written,
    pages_go_on_behind_a_token_for_as_long_as_the_log_grows,
    lines_are_filtered_by_task_and_stream,
    a_client_that_has_the_log_is_told_so,
    a_look_at_the_head_reads_nothing,
    a_token_of_another_log_is_refused,
    what_is_wrong_is_told_in_the_words_of_the_surface,
    the_form_is_the_one_that_is_liked_best,
);

fn messages(page: &Value) -> Vec<String> {
    let entries = page["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
}

async fn a_page_shows_lines_as_they_were_written(site: Site) {
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}/logs");
    let empty = site.shown(&path).await;
    assert_eq!(empty["entries"], json!([]));
    assert_eq!(
        site.shown(&format!("{path}?sinceToken={}", empty["nextToken"].as_str().unwrap())).await,
        empty
    );
    write(&site, &job, &["10 rows", "日本語 \u{1f680} \u{1b}[2J \u{0}"]).await;
    write_as(&site, &job, None, LogStream::Engine, &["about all"]).await;
    write_as(&site, &job, Some("each/2/load"), LogStream::Stderr, &[""]).await;
    let page = site.shown(&path).await;
    let entries = page["entries"].as_array().unwrap();
    let first = entries[0]["timestamp"].as_str().unwrap();
    assert!(first.starts_with("2023-11-14T22:13:2") && first.ends_with('Z'), "{first}");
    let shown: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!([entry["seq"], entry["message"], entry["task"], entry["attempt"], entry["stream"]])
        })
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            [1, "10 rows", "load", 1, "stdout"],
            [2, "日本語 \u{1f680} \u{1b}[2J \u{0}", "load", 1, "stdout"],
            [3, "about all", null, 0, "engine"],
            [4, "", "each/2/load", 1, "stderr"],
        ])
    );
    let read: pyoco_api::LogPage = serde_json::from_value(page.clone()).unwrap();
    assert!(read.entries.iter().all(|entry| entry.extra.is_empty()));
    // The run of the same name has the same log.
    let (of_job, of_run) =
        (get(&site, &path, &[]).await, get(&site, &format!("/runs/{job}/logs"), &[]).await);
    assert_eq!((of_job.text.as_str(), of_job.header("etag")), (of_run.text.as_str(), of_run.header("etag")));
}

async fn pages_go_on_behind_a_token_for_as_long_as_the_log_grows(site: Site) {
    let job = submitted(&site).await;
    let (mut written, mut read, mut token) = (0, Vec::new(), String::new());
    for round in 0..6 {
        let texts: Vec<String> = (0..round * 3).map(|number| format!("{round}.{number}")).collect();
        write(&site, &job, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
        written += texts.len();
        loop {
            let page = site.shown(&format!("/jobs/{job}/logs?limit=4{token}")).await;
            let entries = page["entries"].as_array().unwrap();
            assert!(entries.len() <= 4);
            read.extend(entries.iter().map(|entry| entry["seq"].as_u64().unwrap()));
            token = format!("&sinceToken={}", page["nextToken"].as_str().unwrap());
            if entries.is_empty() {
                break;
            }
        }
        assert_eq!(read, (1..=written as u64).collect::<Vec<_>>());
    }
    // Another gateway understands the token, also after the first one was restarted.
    let other = site.beside().await;
    assert_eq!(other.shown(&format!("/jobs/{job}/logs?limit=4{token}")).await["entries"], json!([]));
    drop(other);
    let site = site.restarted().await;
    write(&site, &job, &["after the restart"]).await;
    assert_eq!(
        messages(&site.shown(&format!("/jobs/{job}/logs?{}", &token[1..])).await),
        ["after the restart"]
    );
}

async fn lines_are_filtered_by_task_and_stream(site: Site) {
    let job = submitted(&site).await;
    write_as(&site, &job, Some("load"), LogStream::Stdout, &["a"]).await;
    write_as(&site, &job, Some("load"), LogStream::Stderr, &["b"]).await;
    write_as(&site, &job, Some("each/1/load"), LogStream::Stdout, &["c"]).await;
    write_as(&site, &job, Some("save"), LogStream::Stdout, &["d"]).await;
    write_as(&site, &job, None, LogStream::Engine, &["e"]).await;
    for (query, wanted) in [
        ("", vec!["a", "b", "c", "d", "e"]),
        ("task=load", vec!["a", "b", "c"]),
        ("task=each/1/load", vec!["c"]),
        ("stream=stdout", vec!["a", "c", "d"]),
        ("stream=engine", vec!["e"]),
        ("task=load&stream=stdout", vec!["a", "c"]),
        ("task=load&stream=stdout&limit=1", vec!["a"]),
        ("task=nothing", vec![]),
    ] {
        let page = site.shown(&format!("/jobs/{job}/logs?{query}")).await;
        assert_eq!(messages(&page), wanted, "{query}");
        // All of it was looked at, or as far as the page goes.
        let token = page["nextToken"].as_str().unwrap();
        let rest = site.shown(&format!("/jobs/{job}/logs?sinceToken={token}")).await;
        let left = if query.contains("limit") { vec!["b", "c", "d", "e"] } else { vec![] };
        assert_eq!(messages(&rest), left, "{query}");
        let text = get(&site, &format!("/jobs/{job}/logs?{query}"), &[("accept", "text/plain")]).await;
        let texts: Vec<&str> = text.text.lines().map(|line| line.split_once(" | ").unwrap().1).collect();
        assert_eq!(texts, wanted, "{query}");
        let ranges = if query.is_empty() { "bytes" } else { "none" };
        assert_eq!(text.header("accept-ranges"), Some(ranges), "{query}");
    }
}

fn tag(got: &Got) -> String {
    assert_eq!(got.header("cache-control"), Some("no-cache"));
    assert_eq!(got.header("vary"), Some("accept"));
    let tag = got.header("etag").expect("an entity tag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    tag
}

async fn a_client_that_has_the_log_is_told_so(site: Site) {
    let job = submitted(&site).await;
    for kind in ["application/json", "text/plain"] {
        let path = format!("/runs/{job}/logs");
        write(&site, &job, &["one"]).await;
        let old = tag(&get(&site, &path, &[("accept", kind)]).await);
        for known in [old.clone(), format!("W/{old}"), format!("\"x\", {old}"), "*".to_owned()] {
            let got = get(&site, &path, &[("accept", kind), ("if-none-match", &known)]).await;
            assert_eq!((got.status, got.text.as_str()), (304, ""), "{known}");
            assert_eq!(tag(&got), old);
            let head = ask(&site, "HEAD", &path, &[("accept", kind), ("if-none-match", &known)]).await;
            assert_eq!(head.status, 304);
        }
        // Nothing is compared with a range when the client has all.
        let both = [("accept", kind), ("if-none-match", &old), ("range", "bytes=0-")];
        assert_eq!(get(&site, &path, &both).await.status, 304);
        write(&site, &job, &["two"]).await;
        let got = get(&site, &path, &[("accept", kind), ("if-none-match", &old)]).await;
        assert_eq!(got.status, 200);
        assert_ne!(tag(&got), old);
    }
    let json = tag(&get(&site, &format!("/jobs/{job}/logs"), &[]).await);
    let text = tag(&get(&site, &format!("/jobs/{job}/logs"), &[("accept", "text/plain")]).await);
    assert_ne!(json, text);
    let other = submitted(&site).await;
    assert_ne!(tag(&get(&site, &format!("/jobs/{other}/logs"), &[]).await), json);
    // To be closed is a change, too, and the last one.
    end(&site, &job).await;
    let closed = tag(&get(&site, &format!("/jobs/{job}/logs"), &[]).await);
    assert_ne!(closed, json);
}

async fn a_look_at_the_head_reads_nothing(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["one", "two"]).await;
    let path = format!("/jobs/{job}/logs");
    let json = ask(&site, "HEAD", &path, &[]).await;
    assert_eq!((json.status, json.header("content-type")), (200, Some("application/json")));
    assert_eq!((json.header("content-length"), json.text.as_str()), (None, ""));
    assert_eq!(tag(&json), tag(&get(&site, &path, &[]).await));
    let text = ask(&site, "HEAD", &path, &[("accept", "text/plain"), ("range", "bytes=0-3")]).await;
    let whole = get(&site, &path, &[("accept", "text/plain")]).await;
    assert_eq!((text.status, text.header("accept-ranges")), (200, Some("bytes")));
    assert_eq!(text.header("content-length"), Some(whole.text.len().to_string().as_str()));
}

async fn a_token_of_another_log_is_refused(site: Site) {
    let (ours, theirs) = (submitted(&site).await, submitted(&site).await);
    write(&site, &ours, &["one", "two"]).await;
    write(&site, &theirs, &["one"]).await;
    let token = |page: Value| page["nextToken"].as_str().unwrap().to_owned();
    let their = token(site.shown(&format!("/jobs/{theirs}/logs")).await);
    let list = site.shown("/jobs?limit=1").await["nextToken"].as_str().unwrap().to_owned();
    // Half a token, and one of our own that was made up for a line that is not there.
    let half = token(site.shown(&format!("/jobs/{ours}/logs")).await).split_at(20).0.to_owned();
    let beyond = pyoco_testing_jobs::made_up_token(&ours, 3);
    for wrong in [&their, &list, &half, &beyond, "x", "%00", &"A".repeat(9_000)] {
        for part in ["logs", "logs/stream", "ws"] {
            let got = get(&site, &format!("/jobs/{ours}/{part}?sinceToken={wrong}"), &[]).await;
            assert_eq!(got.code(400), "BAD_TOKEN", "{part} {wrong}");
        }
        let got = get(&site, &format!("/runs/{ours}/logs?sinceToken={wrong}"), &[]).await;
        assert_eq!(got.status, 400);
        assert!(got.json()["detail"].as_str().unwrap().starts_with("invalid sinceToken"), "{}", got.text);
    }
}

async fn what_is_wrong_is_told_in_the_words_of_the_surface(site: Site) {
    let job = submitted(&site).await;
    for (query, path) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("stream=stdin", "stream"),
        (&format!("task={}", "x".repeat(2_049)), "task"),
    ] {
        let answer = site.get(&format!("/jobs/{job}/logs?{query}")).await;
        assert_eq!(answer.paths("INVALID_INPUT"), [path]);
        let run = get(&site, &format!("/runs/{job}/logs?{query}"), &[]).await;
        assert_eq!((run.status, &run.json()["detail"][0]["loc"]), (422, &json!(["query", path])));
    }
}

async fn the_form_is_the_one_that_is_liked_best(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["one"]).await;
    let path = format!("/jobs/{job}/logs");
    for (accept, kind) in [
        ("*/*", "application/json"),
        ("text/plain, application/json", "application/json"),
        ("text/plain;q=0.9, application/json;q=0.1", "text/plain; charset=utf-8"),
        ("text/*", "text/plain; charset=utf-8"),
    ] {
        let got = get(&site, &path, &[("accept", accept)]).await;
        assert_eq!((got.status, got.header("content-type")), (200, Some(kind)), "{accept}");
    }
    let neither = [("accept", "text/html")];
    assert_eq!(get(&site, &path, &neither).await.code(406), "NOT_ACCEPTABLE");
    let run = get(&site, &format!("/runs/{job}/logs"), &neither).await;
    assert!(run.status == 406 && run.json()["detail"].is_string());
}
