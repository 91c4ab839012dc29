//! Logs as text: bytes that only ever grow, of which any part can be had.

use pyoco_ports::LogStream;
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{Got, end, get, submitted, write, write_as};

on_every_store!(
    the_text_says_time_task_and_stream_of_each_line,
    a_part_is_sent_when_it_is_asked_for,
    bytes_that_are_not_there_are_refused,
    what_cannot_be_followed_is_ignored,
    a_part_is_continued_only_if_nothing_changed,
    a_download_is_resumed_while_the_log_grows,
    a_long_log_is_sent_page_by_page,
    some_lines_have_a_text_of_their_own,
);

const TEXT: (&str, &str) = ("accept", "text/plain");

async fn part(site: &Site, job: &str, range: &str) -> Got {
    get(site, &format!("/jobs/{job}/logs"), &[TEXT, ("range", range)]).await
}

async fn the_text_says_time_task_and_stream_of_each_line(site: Site) {
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}/logs");
    let empty = get(&site, &path, &[TEXT]).await;
    assert_eq!((empty.status, empty.text.as_str(), empty.header("content-length")), (200, "", Some("0")));
    write(&site, &job, &["10 rows", "\u{1b}[31mred\u{1b}[0m\u{1b}[2J\r\u{7} 日本語"]).await;
    write_as(&site, &job, None, LogStream::Engine, &["about all"]).await;
    let got = get(&site, &path, &[TEXT]).await;
    let lines: Vec<&str> = got.text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    let red = "load stdout | \u{1b}[31mred\u{1b}[0m\\x1b[2J\\x0d\\x07 日本語";
    assert_eq!(lines, ["load stdout | 10 rows", red, "- engine | about all"]);
    assert!(got.text.starts_with("2023-11-14T22:13:2") && got.text.ends_with('\n'));
    assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(got.header("accept-ranges"), Some("bytes"));
    assert_eq!(got.header("content-length"), Some(got.text.len().to_string().as_str()));
    let run = get(&site, &format!("/runs/{job}/logs"), &[TEXT]).await;
    assert_eq!((run.text, run.headers.get("etag")), (got.text, got.headers.get("etag")));
}

async fn a_part_is_sent_when_it_is_asked_for(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["one", "two", "three"]).await;
    let whole = get(&site, &format!("/jobs/{job}/logs"), &[TEXT]).await;
    let (text, length) = (whole.text.as_str(), whole.text.len());
    for (range, first, last) in [
        ("bytes=0-", 0, length - 1),
        ("bytes=0-0", 0, 0),
        ("bytes=5-60", 5, 60),
        ("bytes=50-", 50, length - 1),
        ("bytes=50-99999999", 50, length - 1),
        ("bytes=-7", length - 7, length - 1),
        ("bytes=-99999999", 0, length - 1),
        (&format!("bytes={}-", length - 1), length - 1, length - 1),
    ] {
        let got = part(&site, &job, range).await;
        assert_eq!((got.status, got.text.as_str()), (206, &text[first..=last]), "{range}");
        assert_eq!(
            got.header("content-range"),
            Some(format!("bytes {first}-{last}/{length}").as_str()),
            "{range}"
        );
        assert_eq!(got.header("content-length"), Some((last + 1 - first).to_string().as_str()), "{range}");
        assert_eq!(got.headers.get("etag"), whole.headers.get("etag"));
        assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
    }
}

async fn bytes_that_are_not_there_are_refused(site: Site) {
    let job = submitted(&site).await;
    for range in ["bytes=0-", "bytes=-1"] {
        let got = part(&site, &job, range).await;
        assert_eq!(
            (got.code(416).as_str(), got.header("content-range")),
            ("RANGE_NOT_SATISFIABLE", Some("bytes */0"))
        );
    }
    write(&site, &job, &["one"]).await;
    let length = get(&site, &format!("/jobs/{job}/logs"), &[TEXT]).await.text.len();
    for range in [&format!("bytes={length}-"), "bytes=99999999999999999999-", "bytes=-0"] {
        let got = part(&site, &job, range).await;
        assert_eq!(got.code(416), "RANGE_NOT_SATISFIABLE", "{range}");
        assert_eq!(got.header("content-range"), Some(format!("bytes */{length}").as_str()));
    }
    let run = get(&site, &format!("/runs/{job}/logs"), &[TEXT, ("range", "bytes=999-")]).await;
    assert!(run.status == 416 && run.json()["detail"].is_string(), "{}", run.text);
    assert_eq!(run.header("content-range"), Some(format!("bytes */{length}").as_str()));
}

async fn what_cannot_be_followed_is_ignored(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["one", "two"]).await;
    let whole = get(&site, &format!("/jobs/{job}/logs"), &[TEXT]).await;
    for range in [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=9-3",
        "bytes=x-y",
        "lines=0-1",
        "bytes=0-1,2-3",
        "bytes=0-,0-,0-,0-,0-,0-",
    ] {
        let got = part(&site, &job, range).await;
        assert_eq!((got.status, &got.text, got.header("content-range")), (200, &whole.text, None), "{range}");
    }
    // JSON has no parts.
    let json = get(&site, &format!("/jobs/{job}/logs"), &[("range", "bytes=0-3")]).await;
    assert_eq!((json.status, json.json()["entries"].as_array().unwrap().len()), (200, 2));
}

async fn a_part_is_continued_only_if_nothing_changed(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["one"]).await;
    let path = format!("/jobs/{job}/logs");
    let tag = get(&site, &path, &[TEXT]).await.header("etag").unwrap().to_owned();
    let continued =
        async |tag: &str| get(&site, &path, &[TEXT, ("range", "bytes=3-"), ("if-range", tag)]).await.status;
    assert_eq!(continued(&tag).await, 206);
    for other in [&format!("W/{tag}"), "\"other\"", "Wed, 18 Feb 2099 12:00:00 GMT"] {
        assert_eq!(continued(other).await, 200, "{other}");
    }
    write(&site, &job, &["two"]).await;
    assert_eq!(continued(&tag).await, 200);
    // Bytes that are not there are no reason to refuse one who would get all anyway.
    let beyond = get(&site, &path, &[TEXT, ("range", "bytes=9999-"), ("if-range", &tag)]).await;
    assert_eq!(beyond.status, 200);
}

/// As `curl -C -` does: what is there is asked for no more.
async fn a_download_is_resumed_while_the_log_grows(site: Site) {
    let job = submitted(&site).await;
    let mut have = String::new();
    for round in 0..8 {
        let texts: Vec<String> = (0..50).map(|line| format!("round {round} line {line} 行")).collect();
        write(&site, &job, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let got = part(&site, &job, &format!("bytes={}-", have.len())).await;
        assert_eq!(got.status, 206);
        have.push_str(&got.text);
        if round == 3 {
            // The connection broke in the middle of a line.
            have.truncate(have.len() - 10);
            while !have.is_char_boundary(have.len()) {
                have.pop();
            }
        }
    }
    end(&site, &job).await;
    have.push_str(&part(&site, &job, &format!("bytes={}-", have.len())).await.text);
    assert_eq!(have, get(&site, &format!("/jobs/{job}/logs"), &[TEXT]).await.text);
    assert_eq!(have.lines().count(), 402, "with what the engine said of the end");
    assert_eq!(part(&site, &job, &format!("bytes={}-", have.len())).await.status, 416);
}

async fn a_long_log_is_sent_page_by_page(site: Site) {
    let job = submitted(&site).await;
    let text = "x".repeat(1_000);
    for _ in 0..5 {
        write(&site, &job, &vec![text.as_str(); 500]).await;
    }
    let got = get(&site, &format!("/jobs/{job}/logs"), &[TEXT]).await;
    assert_eq!((got.status, got.text.lines().count()), (200, 2_500));
    let length = got.text.len();
    assert_eq!(got.header("content-length"), Some(length.to_string().as_str()));
    for (first, last) in [(1_500_000, 1_500_010), (1_000_000, 2_300_000), (length - 5, length - 1)] {
        let part = part(&site, &job, &format!("bytes={first}-{last}")).await;
        assert!(part.text == got.text[first..=last], "{first}-{last}");
    }
    let filtered = get(&site, &format!("/jobs/{job}/logs?task=load"), &[TEXT]).await;
    assert!(filtered.text == got.text);
}

async fn some_lines_have_a_text_of_their_own(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["one", "two", "three"]).await;
    let path = format!("/jobs/{job}/logs");
    let token = site.shown(&format!("{path}?limit=1")).await["nextToken"].as_str().unwrap().to_owned();
    for (query, wanted) in [
        (format!("sinceToken={token}"), vec!["two", "three"]),
        ("limit=2".to_owned(), vec!["one", "two"]),
        (format!("sinceToken={token}&limit=1"), vec!["two"]),
        ("task=save".to_owned(), vec![]),
    ] {
        let got = get(&site, &format!("{path}?{query}"), &[TEXT, ("range", "bytes=0-3")]).await;
        assert_eq!((got.status, got.header("accept-ranges")), (200, Some("none")), "{query}");
        let texts: Vec<&str> = got.text.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(texts, wanted, "{query}");
    }
}
