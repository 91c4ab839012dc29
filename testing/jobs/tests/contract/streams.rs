//! Logs as server-sent events: every line once and in order, whoever comes back goes on behind what they saw.

use std::time::Duration;

use pyoco_gateway::Settings;
use pyoco_ports::LogStream;
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{end, get, submitted, submitted_with, write, write_as};
use serde_json::json;

on_every_store!(
    lines_are_told_as_they_are_written_and_then_the_end,
    whoever_comes_back_goes_on_behind_what_they_saw,
    lines_of_another_gateway_are_told_too,
    filtered_lines_keep_their_numbers,
    a_wrong_place_is_refused,
    a_silent_stream_gives_signs_of_life,
    only_so_many_streams_are_open_at_once,
);

async fn lines_are_told_as_they_are_written_and_then_the_end(site: Site) {
    let job = submitted_with(&site, &json!({"parameters": {"p": 1}, "tags": ["t"]})).await;
    write(&site, &job, &["before"]).await;
    let mut of_job = site.stream_at(&format!("/jobs/{job}/logs/stream"), None).await;
    let mut of_run = site.stream_at(&format!("/runs/{job}/logs/stream"), None).await;
    assert_eq!(of_job.next().await.unwrap().data["message"], "before");
    write(&site, &job, &["line\nbreak \u{2028}", "two"]).await;
    let told = of_job.take(2).await;
    assert_eq!((told[0].id, told[0].event.as_str()), (Some(2), "logEntry"));
    let page = site.shown(&format!("/jobs/{job}/logs")).await;
    assert_eq!((&told[0].data, &told[1].data), (&page["entries"][1], &page["entries"][2]));
    end(&site, &job).await;
    let mut rest = of_job.to("status").await;
    let last = rest.pop().unwrap();
    assert!(rest.iter().all(|told| told.data["stream"] == "engine"), "{rest:?}");
    let mut wanted = site.shown(&format!("/jobs/{job}")).await;
    wanted.as_object_mut().unwrap().remove("parameters");
    assert_eq!((&last.data, &last.data["status"]), (&wanted, &json!("canceled")));
    let told = of_run.to("status").await;
    assert_eq!(told.last().unwrap().data, json!({"run_id": job, "status": "CANCELLED"}));
    let ids: Vec<u64> = told.iter().filter_map(|told| told.id).collect();
    let lines = ids.len() as u64 - 1;
    // The end has the number of the last line.
    assert_eq!(ids, (1..=lines).chain([lines]).collect::<Vec<_>>());
    assert_eq!(last.id, Some(lines));
}

async fn whoever_comes_back_goes_on_behind_what_they_saw(site: Site) {
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}/logs/stream");
    write(&site, &job, &["1", "2", "3", "4"]).await;
    let mut stream = site.stream_at(&path, Some(2)).await;
    assert_eq!(stream.take(2).await.iter().map(|told| told.id.unwrap()).collect::<Vec<_>>(), [3, 4]);
    let token =
        site.shown(&format!("/jobs/{job}/logs?limit=3")).await["nextToken"].as_str().unwrap().to_owned();
    let with_token = format!("{path}?sinceToken={token}");
    assert_eq!(site.stream_at(&with_token, None).await.next().await.unwrap().id, Some(4));
    // The number wins.
    assert_eq!(site.stream_at(&with_token, Some(1)).await.next().await.unwrap().id, Some(2));
    end(&site, &job).await;
    let told = site.stream_at(&path, Some(4)).await.to("status").await;
    let last = told.last().unwrap().id.unwrap();
    for seen in [Some(last), None] {
        let header = seen.map(|seen| seen.to_string());
        let headers: Vec<(&str, &str)> = header.iter().map(|seen| ("last-event-id", seen.as_str())).collect();
        let got = get(&site, &path, &headers).await;
        // A browser that has everything is told not to come back; one that begins is told everything.
        assert_eq!(got.status, if seen.is_some() { 204 } else { 200 });
        let events = got.text.matches("event: ").count() as u64;
        assert_eq!(events, if seen.is_some() { 0 } else { last + 1 });
    }
    let run = get(&site, &format!("/runs/{job}/logs/stream"), &[("last-event-id", &last.to_string())]).await;
    assert_eq!(run.status, 204);
}

async fn lines_of_another_gateway_are_told_too(site: Site) {
    let other = site.beside().await;
    let job = submitted(&site).await;
    let mut stream = other.stream_at(&format!("/jobs/{job}/logs/stream"), None).await;
    for round in 1..=5 {
        write(&site, &job, &["a", "b"]).await;
        let told = stream.take(2).await;
        assert_eq!(told[1].id, Some(round * 2));
    }
    end(&site, &job).await;
    assert_eq!(stream.to("status").await.last().unwrap().data["status"], "canceled");
}

async fn filtered_lines_keep_their_numbers(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["1"]).await;
    write_as(&site, &job, Some("save"), LogStream::Stderr, &["2"]).await;
    write(&site, &job, &["3"]).await;
    let path = format!("/jobs/{job}/logs/stream?task=save&stream=stderr");
    let mut stream = site.stream_at(&path, None).await;
    assert_eq!(stream.next().await.unwrap().id, Some(2));
    end(&site, &job).await;
    let told = stream.to("status").await;
    assert_eq!(told.len(), 1, "{told:?}");
    // Also with filters there is an end to coming back.
    let last = told[0].id.unwrap().to_string();
    assert_eq!(get(&site, &path, &[("last-event-id", &last)]).await.status, 204);
}

async fn a_wrong_place_is_refused(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["1"]).await;
    for wrong in ["x", "-1", "1.5", "2", "99999999999999999999"] {
        let got = get(&site, &format!("/jobs/{job}/logs/stream"), &[("last-event-id", wrong)]).await;
        assert_eq!(got.code(400), "BAD_REQUEST", "{wrong}");
        let run = get(&site, &format!("/runs/{job}/logs/stream"), &[("last-event-id", wrong)]).await;
        assert!(
            run.status == 400 && run.json()["detail"].as_str().unwrap().starts_with("invalid Last-Event-ID")
        );
    }
    let answer = site.get(&format!("/jobs/{job}/logs/stream?stream=x")).await;
    assert_eq!(answer.paths("INVALID_INPUT"), ["stream"]);
}

async fn a_silent_stream_gives_signs_of_life(site: Site) {
    let settings = Settings { watch_heartbeat: Duration::from_millis(30), ..Settings::default() };
    let quick = site.again(settings).await;
    let job = submitted(&site).await;
    let mut response = quick.client.get(quick.url(&format!("/jobs/{job}/logs/stream"))).send().await.unwrap();
    for _ in 0..3 {
        assert_eq!(response.chunk().await.unwrap().unwrap(), ": alive\n\n");
    }
}

async fn only_so_many_streams_are_open_at_once(site: Site) {
    let narrow = site.again(Settings { max_watches: 1, ..Settings::default() }).await;
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}/logs/stream");
    let open = narrow.stream_at(&path, None).await;
    let got = get(&narrow, &path, &[]).await;
    assert_eq!((got.code(503).as_str(), got.header("retry-after")), ("UNAVAILABLE", Some("1")));
    drop(open);
}
