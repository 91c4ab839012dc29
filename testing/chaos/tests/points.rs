//! Every place to fail at, with everything that may happen there, on every store that comes there: what was accepted ends once,
//! and nothing is left half-done. `POINT=finish.` tries only those whose name begins so.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first surprise")]

use std::path::PathBuf;

use pyoco_chaos::fleet::Kind;
use pyoco_chaos::site::Programs;
use pyoco_chaos::walk::Walk;
use pyoco_faults::{Outcome, POINTS, Point};

/// One at a time: each wants the whole machine.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn walk(kind: Kind, is_there: fn(&Point) -> bool) {
    let _alone = ALONE.lock().await;
    let programs = Programs::Own(PathBuf::from(env!("CARGO_BIN_EXE_pyoco-chaos")));
    let mut walk = Walk::begin(kind, programs).await;
    let wanted = std::env::var_os("POINT").unwrap_or_default().into_string().unwrap();
    let is_wanted = |point: &&Point| is_there(point) && point.name.starts_with(&wanted);
    let points: Vec<&Point> = POINTS.iter().filter(is_wanted).collect();
    let rounds = if std::env::var_os("SOAK").is_some_and(|value| value == "1") { 20 } else { 1 };
    let mut cases = 0;
    for point in points.iter().cycle().take(rounds * points.len()) {
        for outcome in point.outcomes {
            walk.step(point.name, *outcome).await;
            cases += 1;
        }
    }
    let violations = walk.end().await;
    assert_eq!(violations, []);
    assert!(cases >= points.len(), "{cases} cases");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes with real processes that want the machine to themselves: make soak"]
async fn the_embedded_store_survives_a_failure_at_every_place() {
    walk(Kind::Sqlite, |point| point.embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes with real processes that want the machine to themselves: make soak"]
async fn the_distributed_store_survives_a_failure_at_every_place() {
    walk(Kind::Nats, |point| point.distributed).await;
}

#[test]
fn a_crash_may_happen_everywhere() {
    assert!(POINTS.iter().all(|point| point.outcomes.contains(&Outcome::Crash)));
}
