//! `GET /runs/{id}/watch`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyoco_gateway::{ServerLimits, Settings};
use pyoco_store_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::support::{Answer, Server, read_to_end};

/// An open watch, read event by event.
struct Events {
    response: reqwest::Response,
    text: String,
}

#[derive(Debug)]
struct Event {
    name: String,
    id: Option<String>,
    data: Value,
    raw: String,
}

impl Events {
    async fn open(server: &Server, path: &str, last: Option<&str>) -> Self {
        let mut request = server.client.get(server.url(path));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{:?}", response.text().await);
        Self { response, text: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let raw = self.text.drain(..end + 2).collect::<String>();
                return Some(Event::read(raw));
            }
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.response.chunk()).await;
            let chunk = chunk.expect("something is sent in time").unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next snapshot.
    async fn snapshot(&mut self) -> Event {
        loop {
            let event = self.next().await.expect("the watch goes on");
            if event.name == "snapshot" {
                return event;
            }
        }
    }
}

impl Event {
    fn read(raw: String) -> Self {
        let field = |name: &str| {
            let found: Vec<&str> = raw.lines().filter_map(|line| line.strip_prefix(name)).collect();
            assert!(found.len() <= 1, "{raw}");
            found.first().map(|value| (*value).to_owned())
        };
        let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
        Self { name: field("event: ").unwrap(), id: field("id: "), data, raw }
    }
}

async fn quick() -> Server {
    let settings = Settings { watch_heartbeat: Duration::from_millis(100), ..Settings::default() };
    Server::with(settings, ServerLimits::default()).await
}

#[tokio::test]
async fn a_watch_shows_the_run_at_once_and_each_change_as_it_happens() {
    let server = Server::start().await;
    let answer = server.post("/runs", &json!({"flow_name": "mäin", "params": {"x": "日本"}})).await;
    let run = answer.json["run_id"].as_str().unwrap().to_owned();
    let mut events = Events::open(&server, &format!("/runs/{run}/watch"), None).await;
    let headers = events.response.headers();
    for (name, wanted) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
    ] {
        assert_eq!(headers.get(name).map(|value| value.to_str().unwrap()), Some(wanted));
    }
    let first = events.next().await.unwrap();
    assert!(first.raw.starts_with("event: snapshot\ndata: {") && first.raw.is_ascii(), "{}", first.raw);
    assert_eq!((&first.data["run_id"], &first.data["snapshot"]["flow_name"]), (&json!(run), &json!("mäin")));
    assert_eq!(first.data["snapshot"]["params"], json!({"x": "日本"}));
    assert!(first.data["ts"].is_f64() && first.data["snapshot"].get("task_records").is_none());
    assert_eq!(first.data["snapshot"]["status"], "PENDING");
    assert_eq!(first.data["snapshot"]["waiting"][0]["reason"], "no_worker");

    let begun = Instant::now();
    server.claim(&run).await;
    let claimed = events.next().await.unwrap();
    assert_eq!(claimed.data["snapshot"]["status"], "RUNNING");
    assert_eq!(claimed.data["snapshot"].get("waiting"), None);
    assert!(
        begun.elapsed() < Duration::from_millis(400),
        "told, not found out by asking: {:?}",
        begun.elapsed()
    );
    server.run_task(&run, "a", json!(1)).await;
    server.run_task(&run, "b", json!(2)).await;
    let mut last = claimed;
    while last.data["snapshot"]["status"] != "COMPLETED" {
        let next = events.snapshot().await;
        let number = |event: &Event| event.id.as_ref().unwrap().parse::<u64>().unwrap();
        assert!(number(&next) >= number(&last));
        last = next;
    }
    let state = server.engine.state(&pyoco_core::ids::ExecutionId::new(&run).unwrap()).await.unwrap();
    assert_eq!(last.id, Some(state.events.0.to_string()));
}

#[tokio::test]
async fn a_watch_goes_on_after_the_end_of_its_run_until_its_time_is_over() {
    let server = quick().await;
    let run = server.submit().await;
    server.post(&format!("/runs/{run}/cancel"), &json!({})).await;
    let begun = Instant::now();
    let mut events = Events::open(&server, &format!("/runs/{run}/watch?timeout_sec=1"), None).await;
    assert_eq!(events.next().await.unwrap().data["snapshot"]["status"], "CANCELLED");
    let mut beats = 0;
    while let Some(event) = events.next().await {
        assert_eq!((event.name.as_str(), event.id), ("heartbeat", None));
        assert_eq!(event.data.as_object().unwrap().keys().collect::<Vec<_>>(), ["run_id", "ts"]);
        beats += 1;
    }
    assert!((5..=10).contains(&beats), "{beats}");
    assert!(begun.elapsed() >= Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn the_default_heartbeat_comes_before_the_originals_clients_give_up() {
    let server = Server::start().await;
    let run = server.submit().await;
    let mut events = Events::open(&server, &format!("/runs/{run}/watch"), None).await;
    events.next().await.unwrap();
    let begun = Instant::now();
    assert_eq!(events.next().await.unwrap().name, "heartbeat");
    assert!((2.0..3.5).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_watch_is_resumed_behind_what_was_seen() {
    let server = quick().await;
    let run = server.submit().await;
    let path = format!("/runs/{run}/watch");
    let seen = Events::open(&server, &path, None).await.next().await.unwrap().id.unwrap();
    // Seen already: only a sign of life comes.
    let mut events = Events::open(&server, &path, Some(&seen)).await;
    assert_eq!(events.next().await.unwrap().name, "heartbeat");
    // What happens while it is open comes, as ever.
    server.claim(&run).await;
    server.run_task(&run, "a", json!(1)).await;
    assert_eq!(events.snapshot().await.data["snapshot"]["status"], "RUNNING");
    // What happened meanwhile comes at once.
    let mut events = Events::open(&server, &path, Some(&seen)).await;
    let next = events.next().await.unwrap();
    assert_eq!((next.name.as_str(), &next.data["snapshot"]["tasks"]["a"]), ("snapshot", &json!("SUCCEEDED")));
    assert!(next.id.unwrap().parse::<u64>().unwrap() > seen.parse::<u64>().unwrap());
}

#[tokio::test]
async fn a_last_event_id_that_is_none_is_refused() {
    let server = Server::start().await;
    let run = server.submit().await;
    for last in ["abc", "-1", "1.5", "+1", "99999999999999999999999", "1000", "\u{e9}"] {
        let request = server.client.get(server.url(&format!("/runs/{run}/watch")));
        let answer = Answer::of(request.header("last-event-id", last.as_bytes()).send().await.unwrap()).await;
        assert!(answer.detail(400).as_str().unwrap().starts_with("invalid Last-Event-ID"), "{last}");
    }
    let mut events = Events::open(&server, &format!("/runs/{run}/watch"), Some("")).await;
    assert_eq!(events.next().await.unwrap().name, "snapshot");
}

#[tokio::test]
async fn what_is_older_than_since_is_not_shown() {
    let server = quick().await;
    let run = server.submit().await;
    let at = server.get(&format!("/runs/{run}")).await.json["updated_at"].as_f64().unwrap();
    let mut events = Events::open(&server, &format!("/runs/{run}/watch?since={at}"), None).await;
    assert_eq!(events.next().await.unwrap().name, "snapshot");
    let mut events =
        Events::open(&server, &format!("/runs/{run}/watch?since={}&include=records", at + 0.001), None).await;
    assert_eq!(events.next().await.unwrap().name, "heartbeat");
    server.hands.forward(1);
    server.claim(&run).await;
    let next = events.snapshot().await;
    assert!(next.data["snapshot"]["task_records"].is_object());
    assert!(next.data["snapshot"].get("worker_alive").is_none());
}

#[tokio::test]
async fn errors_come_before_the_stream_begins() {
    let server = Server::start().await;
    let run = server.submit().await;
    assert_eq!(server.get("/runs/nobody/watch").await.detail(404), "run not found");
    for (query, kind) in [
        ("timeout_sec=0", "greater_than_equal"),
        ("timeout_sec=601", "less_than_equal"),
        ("timeout_sec=x", "int_parsing"),
        ("since=x", "float_parsing"),
    ] {
        let answer = server.get(&format!("/runs/{run}/watch?{query}")).await;
        assert_eq!(answer.problem()["type"], kind, "{query}");
    }
}

#[tokio::test]
async fn more_watches_than_there_is_room_for_are_told_to_come_back() {
    let settings = Settings { max_watches: 2, ..Settings::default() };
    let server = Server::with(settings, ServerLimits::default()).await;
    let run = server.submit().await;
    let path = format!("/runs/{run}/watch");
    let one = Events::open(&server, &path, None).await;
    let two = Events::open(&server, &path, None).await;
    let third = server.get(&path).await;
    assert_eq!(third.detail(503), "too many watches are open");
    assert_eq!(third.headers.get("retry-after").unwrap(), "1");
    drop((one, two));
    // The room is free once the server has noticed that they left.
    let mut tries = 0;
    while server.client.get(server.url(&path)).send().await.unwrap().status() != 200 {
        tries += 1;
        assert!(tries < 200, "the room stays taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_nobody_up_and_is_let_go() {
    let settings = Settings { max_run_snapshot_bytes: 4 << 20, ..Settings::default() };
    let limits = ServerLimits { write_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let server = Server::with(settings, limits).await;
    let run = server.submit().await;
    server.claim(&run).await;
    server.run_task(&run, "a", json!("x".repeat(500_000))).await;
    let mut deaf = server.connect().await;
    let request = format!("GET /runs/{run}/watch?include=full HTTP/1.1\r\nhost: x\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut deaf, request.as_bytes()).await.unwrap();
    let mut events = Events::open(&server, &format!("/runs/{run}/watch?include=full"), None).await;
    let listener = tokio::spawn(async move {
        let version = |event: &Event| event.data["snapshot"]["version"].as_u64();
        let mut seen = Vec::new();
        while seen.last().copied().flatten() < Some(65) {
            seen.push(version(&events.snapshot().await));
        }
        seen
    });
    server.ask(&run, &pyoco_testkit::worker(1), pyoco_testkit::start_node("b")).await;
    for percent in 0..60 {
        let progress = pyoco_testkit::progress("b", f64::from(percent));
        server.ask(&run, &pyoco_testkit::worker(1), progress).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Others hear of it all the same, in order.
    let seen = listener.await.unwrap();
    assert!(seen.is_sorted() && seen.last() == Some(&Some(65)), "{seen:?}");
    tokio::time::sleep(Duration::from_millis(600)).await;
    let left = read_to_end(&mut deaf).await;
    assert!(!left.ends_with("0\r\n\r\n"), "it was cut off");
}

#[tokio::test]
async fn a_server_that_stops_ends_its_watches() {
    let mut server = Server::start().await;
    let run = server.submit().await;
    let mut events = Events::open(&server, &format!("/runs/{run}/watch"), None).await;
    events.next().await.unwrap();
    server.shutdown.cancel();
    assert!(events.next().await.is_none(), "a clean end, not a cut");
    tokio::time::timeout(Duration::from_secs(5), &mut server.served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn those_who_watch_hear_of_a_cancel_also_when_its_caller_hung_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Default::default()).unwrap();
    let settings = Settings { watch_heartbeat: Duration::from_millis(200), ..Settings::default() };
    let server = Server::on(Arc::new(store), settings, ServerLimits::default()).await;
    let mut cancelled = 0;
    for _ in 0..30 {
        let run = server.submit().await;
        let mut events = Events::open(&server, &format!("/runs/{run}/watch"), None).await;
        events.snapshot().await;
        let mut caller = server.connect().await;
        let request = format!("POST /runs/{run}/cancel HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut caller, request.as_bytes()).await.unwrap();
        drop(caller);
        // A heartbeat later it has happened, or was never heard.
        let mut event = events.next().await.unwrap();
        let status = server.get(&format!("/runs/{run}")).await.json["status"].clone();
        if status == "CANCELLED" {
            cancelled += 1;
            // It may have happened just now; a few heartbeats later everybody knows.
            for _ in 0..3 {
                if event.name == "heartbeat" {
                    event = events.next().await.unwrap();
                }
            }
            assert_eq!((event.name.as_str(), &event.data["snapshot"]["status"]), ("snapshot", &status));
        }
    }
    assert!(cancelled > 0, "at least some were heard before the line was cut");
}

#[tokio::test]
async fn whoever_watches_all_runs_is_told_of_every_change_and_of_nothing_else() {
    let server = Server::start().await;
    let mut events = Events::open(&server, "/runs/watch", None).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.name.as_str(), first.data["ts"].is_f64()), ("changed", true));
    let run = server.submit().await;
    assert_eq!(events.next().await.unwrap().name, "changed");
    // To look is no change.
    server.get(&format!("/runs/{run}")).await;
    assert_eq!(events.next().await.unwrap().name, "heartbeat");
    server.claim(&run).await;
    assert_eq!(events.next().await.unwrap().name, "changed");
}

#[tokio::test]
async fn a_watch_of_all_runs_lasts_as_long_as_it_was_asked_for() {
    let server = Server::start().await;
    let mut events = Events::open(&server, "/runs/watch?timeout_sec=1", None).await;
    assert_eq!(events.next().await.unwrap().name, "changed");
    assert!(events.next().await.is_none());
    assert_eq!(
        server.get("/runs/watch?timeout_sec=0").await.problem()["loc"],
        json!(["query", "timeout_sec"])
    );
}
