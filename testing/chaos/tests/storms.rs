//! A short trial of each store: everything that can go wrong does, and everything that was promised is kept. `SEED=n` chooses another
//! one; `make soak` makes long ones, and three nats-servers.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first surprise")]

use std::path::PathBuf;
use std::time::Duration;

use pyoco_chaos::fleet::Kind;
use pyoco_chaos::site::Programs;
use pyoco_chaos::storm::{Trial, run};

/// One at a time: each wants the whole machine.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn storm(kind: Kind) {
    let _alone = ALONE.lock().await;
    let seed = std::env::var_os("SEED").and_then(|seed| seed.to_str()?.parse().ok()).unwrap_or(2026);
    let programs = Programs::Own(PathBuf::from(env!("CARGO_BIN_EXE_pyoco-chaos")));
    let (summary, violations) = run(&Trial::new(kind, Duration::from_secs(40), seed, programs)).await;
    eprintln!("{summary}");
    assert_eq!(violations, [], "again with: SEED={seed} cargo test -p pyoco-chaos --test storms");
    // There was a storm, and there was work.
    assert!(summary.blows >= 5 && summary.completed >= 20, "{summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes with real processes that want the machine to themselves: make soak"]
async fn one_process_keeps_its_promises_whatever_happens_to_it() {
    storm(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes with real processes that want the machine to themselves: make soak"]
async fn gateways_and_workers_on_nats_keep_their_promises_whatever_happens_to_them() {
    storm(Kind::Nats).await;
}
