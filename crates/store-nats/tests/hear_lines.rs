//! Whoever listens to a log is told what other processes write, soon, and also after everything that may happen to the line.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;
mod runs;

use std::time::{Duration, Instant};

use ground::{OPEN, Other, execution, line, open, server, until, write};
use pyoco_ports::{HearingLines, LogEnd, LogTerms, TaskLogs as _};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::NatsServer;
use runs::{Cable, SOON};

async fn hear(store: &NatsStore) -> Box<dyn HearingLines> {
    store.hear_lines(&execution("e")).await.unwrap().expect("others can write")
}

/// Waits until an end is told, and says how long that took.
async fn hears(hearing: &mut Box<dyn HearingLines>, wanted: LogEnd) -> Duration {
    let since = Instant::now();
    loop {
        let told = tokio::time::timeout(SOON, hearing.next()).await.expect("something to hear").unwrap();
        assert!(told.lines <= wanted.lines, "{told:?} is not stored");
        if told == wanted {
            return since.elapsed();
        }
    }
}

async fn hears_nothing(hearing: &mut Box<dyn HearingLines>, time: Duration) {
    let told = tokio::time::timeout(time, hearing.next()).await;
    assert!(told.is_err(), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_writes_is_told_within_a_tenth_of_a_second() {
    let server = server();
    let (writer, reader) = (open(&server).await, open(&server).await);
    write(&writer, "e", vec![line("before")]).await;
    let mut hearing = hear(&reader).await;
    write(&writer, "f", vec![line("of another")]).await;
    hears_nothing(&mut hearing, Duration::from_millis(200)).await;
    let mut times = Vec::new();
    for number in 0..200 {
        let end = write(&writer, "e", vec![line(number.to_string())]).await.end;
        times.push(hears(&mut hearing, end).await);
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    let longest = times.iter().max().unwrap();
    assert!(*longest < Duration::from_millis(100), "{longest:?}");
    // Also the end, which is no line.
    let closes = LogTerms { closes: true, ..OPEN };
    let end = writer.write_lines(&execution("e"), Vec::new(), closes).await.unwrap().end;
    assert!(hears(&mut hearing, end).await < Duration::from_millis(100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_of_a_flood_is_told_to_all_who_listen_with_few_looks() {
    let server = server();
    let (writer, reader) = (open(&server).await, open(&server).await);
    let mut hearings = Vec::new();
    for _ in 0..5 {
        hearings.push(hear(&reader).await);
    }
    let before = reader.messages_sent();
    let since = Instant::now();
    let mut end = LogEnd::default();
    for number in 0..2_000 {
        end = write(&writer, "e", vec![line(number.to_string())]).await.end;
    }
    let took = since.elapsed();
    for hearing in &mut hearings {
        assert!(hears(hearing, end).await < Duration::from_millis(100));
    }
    // One look in five milliseconds for each, and some to spare; a few after the beginning.
    let most = 5 * (took.as_millis() / 5 + 40);
    let looks = u128::from(reader.messages_sent() - before);
    assert!(looks < most, "{looks} looks in {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_when_the_server_was_restarted() {
    let mut server = server();
    let (writer, reader) = (open(&server).await, open(&server).await);
    let mut hearing = hear(&reader).await;
    for round in 0..3 {
        let end = write(&writer, "e", vec![line(format!("before {round}"))]).await.end;
        hears(&mut hearing, end).await;
        server.restart();
        // Whoever is connected first writes, also before the other one listens again.
        until("the writer is back", || writer.is_connected()).await;
        let end = write(&writer, "e", vec![line(format!("after {round}"))]).await.end;
        hears(&mut hearing, end).await;
        // From now on it is heard again.
        let end = write(&writer, "e", vec![line(format!("behind {round}"))]).await.end;
        assert!(hears(&mut hearing, end).await < Duration::from_millis(100));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_while_the_line_is_cut_is_told_when_it_is_mended() {
    let server = server();
    let writer = open(&server).await;
    let cable = Cable::to(&server).await;
    let reader = NatsStore::open(Settings::new(&[&cable.address]), None).await.unwrap();
    let mut hearing = hear(&reader).await;
    for _ in 0..3 {
        cable.cut();
        until("the loss is noticed", || !reader.is_connected()).await;
        let end = write(&writer, "e", vec![line("nobody hears it")]).await.end;
        hears_nothing(&mut hearing, Duration::from_millis(200)).await;
        cable.mend();
        until("the connection is back", || reader.is_connected()).await;
        let took = hears(&mut hearing, end).await;
        assert!(took < Duration::from_millis(300), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_stream_refused_is_never_told_and_hides_nothing() {
    let server = server();
    let (writer, reader) = (open(&server).await, open(&server).await);
    write(&writer, "e", vec![line("1")]).await;
    let mut hearing = hear(&reader).await;
    let other = Other::connect(&server).await;
    // One that was too late, and one that nobody can decide on.
    for follows in ["0", "1000"] {
        let mut headers = async_nats::HeaderMap::new();
        let claims = [
            ("Nats-Expected-Last-Subject-Sequence", follows),
            ("Pyoco-First-Line", "2"),
            ("Pyoco-Last-Line", "99"),
            ("Pyoco-First-Byte", "10"),
            ("Pyoco-End-Byte", "9999"),
        ];
        for (name, value) in claims {
            headers.insert(name, value);
        }
        let answer = other.0.request_with_headers("pyoco.logs.e", headers, "[]".into()).await.unwrap();
        assert!(String::from_utf8_lossy(&answer.payload).contains("10071"), "{answer:?}");
    }
    // By now the looks are rare.
    hears_nothing(&mut hearing, Duration::from_millis(1_500)).await;
    for _ in 0..3 {
        let end = write(&writer, "e", vec![line("2")]).await.end;
        assert!(hears(&mut hearing, end).await < Duration::from_millis(100));
        hears_nothing(&mut hearing, Duration::from_millis(300)).await;
    }
}

fn subscriptions(server: &NatsServer) -> u64 {
    server.ask("/connz?subs=true")["connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|connection| connection["subscriptions"].as_u64().unwrap())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listening_costs_nothing_while_nothing_is_written_and_ends_with_the_listener() {
    let server = server();
    let reader = open(&server).await;
    write(&reader, "e", vec![line("1")]).await;
    let before = subscriptions(&server);
    let mut hearing = hear(&reader).await;
    assert_eq!(subscriptions(&server), before + 1);
    hears_nothing(&mut hearing, Duration::from_millis(1_500)).await;
    let sent = reader.messages_sent();
    hears_nothing(&mut hearing, Duration::from_secs(3)).await;
    assert_eq!(reader.messages_sent(), sent);
    drop(hearing);
    until("the subscription is gone", || subscriptions(&server) == before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_ends_with_its_store() {
    let server = server();
    let closed = open(&server).await;
    let mut hearing = hear(&closed).await;
    closed.close().await;
    assert_eq!(tokio::time::timeout(SOON, hearing.next()).await.unwrap(), None);
    assert!(closed.hear_lines(&execution("e")).await.is_err());
    let dropped = open(&server).await;
    let mut hearing = hear(&dropped).await;
    drop(dropped);
    assert_eq!(tokio::time::timeout(SOON, hearing.next()).await.unwrap(), None);
}
