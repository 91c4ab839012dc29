//! The log on three servers with three replicas: who wins, what a lost server costs, and what is read while one lags.

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

use ground::{append, execution, texts};
use pyoco_core::ids::{Attempt, NodeId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{AppendError, EventLog as _, LogLine, LogStream, TaskLogs as _};
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

fn line(number: usize) -> LogLine {
    LogLine {
        node: NodeId::new("n").unwrap(),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(1),
        text: number.to_string(),
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
        while let Err(error) = store.write_lines(&execution("e"), vec![line(number)]).await {
            assert!(error.kind.is_retryable() && since.elapsed() < Duration::from_secs(10), "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let lines = store.read_lines(&execution("e"), 0, 100).await.unwrap();
        assert!(lines.into_iter().eq((0..=number).map(|n| (n as u64 + 1, line(n)))));
        cluster.restart(number);
    }
}
