//! The log on three servers with three replicas: who wins, what a lost server costs, what is read while one lags, and who hears of
//! lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ground::{OPEN, append, execution, line, texts};
use pyoco_core::ids::Version;
use pyoco_ports::{AppendError, EventLog as _, LogEnd, TaskLogs as _};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::{Cluster, Options};

async fn open(cluster: &Cluster) -> Arc<NatsStore> {
    let urls = cluster.urls();
    let servers: Vec<&str> = urls.split(',').collect();
    let settings = Settings { replicas: 3, ..Settings::new(&servers) };
    NatsStore::open(settings, None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_processes_one_appends_and_everybody_reads_it_at_once() {
    let cluster = Cluster::start(3, &Options::default());
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(open(&cluster).await);
    }
    for round in 0..30 {
        let attempts: Vec<_> = stores
            .iter()
            .map(Arc::clone)
            .map(|store| tokio::spawn(async move { append(&store, "e", round, "x").await }))
            .collect();
        let mut won = 0;
        for attempt in attempts {
            match attempt.await.unwrap() {
                Ok(_) => won += 1,
                Err(AppendError::Conflict { actual, .. }) => assert_eq!(actual, Version(round + 1)),
                Err(AppendError::Store(error)) => panic!("in round {round}: {error}"),
            }
        }
        assert_eq!(won, 1, "in round {round}");
        // Whoever asks after an answer sees it, whichever server is asked, and also behind a long log.
        for store in &stores {
            assert_eq!(texts(store, "e").await.len() as u64, round + 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_server_stops_nothing_for_long_and_loses_nothing() {
    let mut cluster = Cluster::start(3, &Options::default());
    let store = open(&cluster).await;
    for number in 0..3 {
        let before = texts(&store, "e").await.len() as u64;
        append(&store, "e", before, "before").await.unwrap();
        cluster[number].kill();
        let since = Instant::now();
        let mut version = before + 1;
        let mut longest = Duration::ZERO;
        let mut last = since;
        while version < before + 20 {
            assert!(since.elapsed() < Duration::from_secs(30), "server {number} is gone, and so is the log");
            match append(&store, "e", version, "during").await {
                Ok(_) => {
                    version += 1;
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    if let Ok(records) = store.read(&execution("e"), Version(version)).await {
                        assert!(records.len() <= 1);
                        version += records.len() as u64;
                    }
                }
            }
        }
        assert!(longest < Duration::from_secs(10), "server {number} is gone for {longest:?}");
        assert_eq!(texts(&store, "e").await.len() as u64, version);
        // Each stream has a leader of its own, and elects it by itself.
        let since = Instant::now();
        while let Err(error) = store.write_lines(&execution("e"), vec![line(number.to_string())], OPEN).await
        {
            assert!(error.kind.is_retryable() && since.elapsed() < Duration::from_secs(10), "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let lines = store.read_lines(&execution("e"), 0, 100).await.unwrap();
        assert!(lines.into_iter().eq((0..=number).map(|n| (n as u64 + 1, line(n.to_string())))));
        cluster.restart(number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_at_one_server_is_told_at_another_soon_and_after_a_loss() {
    let mut cluster = Cluster::start(3, &Options::default());
    let at = |number: usize| Settings { replicas: 3, ..Settings::new(&[&cluster[number].url()]) };
    let (writer, reader) =
        (NatsStore::open(at(0), None).await.unwrap(), NatsStore::open(at(1), None).await.unwrap());
    let mut hearing = reader.hear_lines(&execution("e")).await.unwrap().unwrap();
    for number in 0..100 {
        let written = store_line(&writer, number).await;
        let since = Instant::now();
        while hearing.next().await.unwrap() != written {}
        assert!(since.elapsed() < Duration::from_millis(100), "{number}: {:?}", since.elapsed());
    }
    // The server of the listener is gone, and with it what was to be heard.
    cluster[1].kill();
    let written = store_line(&writer, 100).await;
    cluster.restart(1);
    let heard = async { while hearing.next().await.unwrap() != written {} };
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("the last line is heard");
}

/// Writes a line, however long the cluster takes to elect a leader.
async fn store_line(store: &NatsStore, number: usize) -> LogEnd {
    let since = Instant::now();
    loop {
        match store.write_lines(&execution("e"), vec![line(number.to_string())], OPEN).await {
            Ok(written) => return written.end,
            Err(error) => {
                assert!(error.kind.is_retryable() && since.elapsed() < Duration::from_secs(10), "{error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
