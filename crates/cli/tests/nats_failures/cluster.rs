//! Three servers with three replicas of everything: the loss of any one stops nothing for long, and loses nothing.

use std::time::{Duration, Instant};

use pyoco_core::event::Event;
use pyoco_testing_nats::{Cluster, Options};

use crate::ground::{Ground, count, is_soak, until};
use crate::load::{Accepted, Load};
use crate::verdict::judge;
use crate::wire::{Log, Wire};

/// What a lost server may cost.
const GAP: Duration = Duration::from_secs(10);
/// Of which so much may be ours. The servers take four to nine seconds to elect a leader, and longer when they cannot agree.
const OURS: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_any_one_server_stops_nothing_for_longer_than_ten_seconds() {
    let mut cluster = Cluster::start(3, &Options::default());
    let ground = Ground::new(&cluster.urls()).env("PYOCO_NATS_REPLICAS", "3");
    let gateways = [ground.gateway(), ground.gateway()];
    let _workers = [ground.worker("w0", "default", 2), ground.worker("w1", "default", 2)];
    let urls = gateways.each_ref().map(|gateway| gateway.url.clone());
    // Many callers, so that what is seen is when the gateways answer, not when a caller asks again.
    let callers: Vec<String> = urls.iter().cycle().take(12).cloned().collect();
    let mut load = Load::start(&callers, &ground.ledger_path(), Duration::from_millis(500));
    let progress = async |more: u64| {
        let (accepted, before) = (load.accepted().len(), count(&gateways[0], "COMPLETED").await);
        until("progress", async || {
            let completed = count(&gateways[0], "COMPLETED").await >= before + more;
            (completed && load.accepted().len() >= accepted + 10).then_some(())
        })
        .await;
    };
    let mut elections = Duration::ZERO;
    for _ in 0..if is_soak() { 10 } else { 1 } {
        for number in 0..cluster.len() {
            progress(10).await;
            let since = Instant::now();
            cluster[number].kill();
            // Connected to one that is there, whichever that is.
            let wire = Wire::connect(&cluster[(number + 1) % 3].url()).await;
            let led = async {
                wire.led().await;
                since.elapsed()
            };
            let ((), led) = tokio::join!(progress(10), led);
            let all = since.elapsed();
            elections = elections.max(led);
            eprintln!(
                "cluster: without server {number}: leaders after {led:?}, ten more of each after {all:?}"
            );
            cluster.restart(number);
        }
    }
    let accepted = load.stop().await;
    let wire = Wire::connect(&cluster.urls()).await;
    let verdict = judge(&wire, &accepted, &ground).await;
    let (answers, ends) = (longest_wait(&accepted), longest_pause(&wire.log().await));
    eprintln!("cluster: at most {answers:?} without an answer, {ends:?} without an end; {verdict:?}");
    assert_eq!(verdict.accepted, accepted.len());
    let allowed = GAP.max(elections + OURS);
    assert!(answers.max(ends) <= allowed, "{answers:?} without an answer, {ends:?} without an end");
}

/// The longest time in which no submission was accepted.
fn longest_wait(accepted: &[Accepted]) -> Duration {
    let mut times: Vec<Instant> = accepted.iter().map(|accepted| accepted.at).collect();
    times.sort();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

/// The longest time in which no run ended.
fn longest_pause(log: &Log) -> Duration {
    let mut times: Vec<i64> = Vec::new();
    for record in log.values().flatten() {
        let ends =
            record.events.iter().any(|envelope| matches!(envelope.event, Event::ExecutionCompleted(_)));
        times.extend(ends.then(|| record.at.as_micros()));
    }
    times.sort_unstable();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    Duration::from_micros(u64::try_from(longest).unwrap())
}
