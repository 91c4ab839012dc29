//! A reader who loses its connection again and again while a log is written: it is told every line once, in order, on every store, also
//! when the gateway is started anew in between.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{end, submitted, write};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tokio::sync::watch;

const LINES: u64 = 100_000;
const CONNECTIONS: u64 = 200;

on_every_store!(a_reader_that_reconnects_again_and_again_is_told_every_line_once_and_in_order);

async fn a_reader_that_reconnects_again_and_again_is_told_every_line_once_and_in_order(site: Site) {
    let job = submitted(&site).await;
    let (moved, address) = watch::channel(site.address);
    let (wrote, written) = watch::channel(0);
    let reading = tokio::spawn(read(job.clone(), address, written));
    // Where the store is shared another process writes.
    let writer = site.beside().await;
    write_lines(&writer, &job, 0, LINES / 2, &wrote).await;
    drop(writer);
    let site = site.restarted().await;
    moved.send_replace(site.address);
    write_lines(&site.beside().await, &job, LINES / 2, LINES, &wrote).await;
    end(&site, &job).await;
    let (seen, connections) = reading.await.unwrap();
    assert!(connections >= CONNECTIONS, "{connections} connections saw {seen} lines");
}

/// Writes lines that hold their own number, in batches of any size.
async fn write_lines(site: &Site, job: &str, from: u64, until: u64, wrote: &watch::Sender<u64>) {
    let mut dice = ChaCha8Rng::seed_from_u64(from);
    let mut next = from;
    while next < until {
        let size = dice.random_range(1..=400).min(until - next);
        let texts: Vec<String> = (next..next + size).map(|number| format!("line {number}")).collect();
        write(site, job, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
        next += size;
        wrote.send_replace(next);
    }
}

/// Reads to the end of the log, a few lines with each connection; how many lines and connections it took.
async fn read(
    job: String,
    address: watch::Receiver<SocketAddr>,
    mut written: watch::Receiver<u64>,
) -> (u64, u64) {
    let client = reqwest::Client::new();
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let (mut seen, mut connections) = (0_u64, 0_u64);
    loop {
        // So that it is neither far behind nor ever done before the writer is.
        let share = LINES / CONNECTIONS * connections;
        if share < LINES
            && written.wait_for(|written| *written >= share.min(LINES)).await.is_err()
            && seen == 0
        {
            panic!("nobody writes");
        }
        let address = *address.borrow();
        let request = client.get(format!("http://{address}/jobs/{job}/logs/stream"));
        let request = request.header("last-event-id", seen.to_string());
        // The gateway may just be away.
        let Ok(response) = request.send().await else { continue };
        if response.status() == 503 {
            // It is on its way out: its store is closed.
            continue;
        }
        assert_eq!(response.status(), 200, "after line {seen}");
        connections += 1;
        let most =
            if connections < CONNECTIONS { dice.random_range(1..=2 * LINES / CONNECTIONS) } else { u64::MAX };
        if hear(response, &mut seen, most).await {
            return (seen, connections);
        }
    }
}

/// Hears some lines and hangs up, wherever that falls; whether the log has ended.
async fn hear(response: reqwest::Response, seen: &mut u64, most: u64) -> bool {
    let mut bytes = response.bytes_stream();
    let mut text = String::new();
    let mut heard = 0;
    while let Some(Ok(chunk)) = bytes.next().await {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        let whole = text.rfind("\n\n").map_or(0, |end| end + 2);
        let rest = text.split_off(whole);
        for block in std::mem::replace(&mut text, rest).split("\n\n") {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            match field("event: ") {
                Some("logEntry") => {
                    let number: u64 = field("id: ").unwrap().parse().unwrap();
                    assert_eq!(number, *seen + 1, "after line {seen}");
                    let entry: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
                    if *seen < LINES {
                        assert_eq!(entry["message"], format!("line {seen}"));
                    }
                    *seen = number;
                    heard += 1;
                    if heard >= most {
                        return false;
                    }
                }
                Some("status") => {
                    assert!(*seen > LINES, "it ended after line {seen}");
                    return true;
                }
                Some(other) => panic!("{other}: {block}"),
                None => {}
            }
        }
    }
    false
}
