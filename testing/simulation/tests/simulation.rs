//! Ten thousand storms, each from its seed. A seed that breaks a promise is repeated, with everything that happens in it, by
//! `cargo run -p pyoco-simulation --example seeds -- SEED`, and stands below by name once what it found is mended.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pyoco_simulation::{Lie, Seen, run, run_with};

const SEEDS: u64 = 10_000;

/// Runs seeds on all cores and says which broke a promise, and what was seen in all of them.
fn weather(seeds: u64) -> (Vec<String>, Seen) {
    let (next, all) = (AtomicU64::new(0), Mutex::new((Vec::new(), Seen::default())));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    let verdict = run(seed);
                    let mut all = all.lock().unwrap();
                    all.0.extend(verdict.broken.iter().map(|promise| format!("seed {seed}: {promise}")));
                    all.1 = all.1.and(verdict.seen);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

#[test]
fn no_storm_breaks_a_promise_and_every_kind_of_trouble_occurs() {
    let (broken, seen) = weather(SEEDS);
    assert!(
        broken.is_empty(),
        "{} promises broken; repeat one with `cargo run -p pyoco-simulation --example seeds -- SEED`:\n{}",
        broken.len(),
        broken.iter().take(20).cloned().collect::<Vec<_>>().join("\n"),
    );
    for (name, count) in seen.all() {
        assert!(count > 0, "{name} never occurs: the rest proves nothing about it");
    }
}

#[test]
fn a_seed_is_the_same_history_each_time() {
    for seed in 0..200 {
        let (one, other) = (run_with(seed, None, true), run_with(seed, None, true));
        if one.fingerprint != other.fingerprint {
            let pairs = one.lines.iter().zip(&other.lines).zip(1..);
            let first = pairs.into_iter().find(|((one, other), _)| one != other);
            panic!("seed {seed} went differently the second time, first at {first:?}");
        }
    }
}

#[test]
fn a_store_that_breaks_its_contract_is_found_out() {
    for lie in Lie::ALL {
        let found = (0..200).any(|seed| !run_with(seed, Some(lie), false).broken.is_empty());
        assert!(found, "nobody noticed a store that lies: {lie:?}");
    }
}

/// Storms that broke a promise once, by what they found.
fn is_kept(seed: u64) {
    let broken = run(seed).broken;
    assert!(broken.is_empty(), "seed {seed}: {broken:?}");
}

#[test]
fn a_worker_that_is_to_stop_does_not_wait_for_a_retry_that_it_will_not_start() {
    is_kept(9_303);
}

#[test]
fn a_job_that_was_on_its_way_for_longer_than_its_lease_is_left_to_others() {
    is_kept(1_541);
}

#[test]
fn a_run_whose_gateway_died_behind_its_first_record_is_found_and_ends() {
    is_kept(997);
}

#[test]
fn an_end_that_somebody_else_wrote_is_shown_before_the_job_is_acknowledged() {
    is_kept(1_111);
    is_kept(4_145);
}
