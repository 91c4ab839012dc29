//! What a gate costs: `cargo run --release -p pyoco-access --example admit`. Three numbers: admitting a known key, one
//! hashing, and admitting a known key while a thousand bad keys a second come in.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement for a person"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyoco_access::{Created, Gate, Keys, NewKey, Refused, Settings};
use pyoco_core::access::Role;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;
use pyoco_store_memory::MemoryStore;
use tokio::time::{Instant, MissedTickBehavior, interval};

const BAD_A_SECOND: usize = 1_000;
const SPELL: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    let store = Arc::new(MemoryStore::default());
    let keys = Keys::new(store.clone(), None);
    let tenant = TenantId::new("team-a").unwrap();
    let new = || NewKey { tenant: tenant.clone(), role: Role::Submit, expires_at: None, name: None };
    let good = keys.create(new(), now()).await.unwrap();
    let guessed = keys.create(new(), now()).await.unwrap();
    let gate = Gate::new(store, None, Arc::new(now), &Settings::default()).unwrap();

    let start = Instant::now();
    gate.admit(Some(&good.key.reveal())).await.unwrap();
    println!("one hashing: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

    // As fast as it goes, and then as one client would ask, alone and in bad company.
    let mut quick: Vec<Duration> = Vec::new();
    let start = Instant::now();
    while start.elapsed() < SPELL {
        quick.push(admit(&gate, &good).await);
    }
    say("known key, back to back", quick);
    say("known key, 1,000 a second", paced(&gate, &good).await);

    for (what, is_guess) in [("unknown ids", false), ("guesses on one id", true)] {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let crowd = tokio::spawn(bad_company(
            gate.clone(),
            is_guess.then(|| guessed.key.id().to_string()),
            stop.clone(),
            count.clone(),
        ));
        let start = Instant::now();
        let spent = paced(&gate, &good).await;
        let rate = count.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        crowd.await.unwrap();
        say(&format!("the same, beside {rate:.0} bad keys a second ({what})"), spent);
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

async fn admit(gate: &Gate, good: &Created) -> Duration {
    let text = good.key.reveal();
    let start = Instant::now();
    gate.admit(Some(&text)).await.unwrap();
    start.elapsed()
}

/// One request a millisecond.
async fn paced(gate: &Gate, good: &Created) -> Vec<Duration> {
    let mut pulse = interval(Duration::from_millis(1));
    pulse.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut spent = Vec::new();
    let start = Instant::now();
    while start.elapsed() < SPELL {
        pulse.tick().await;
        spent.push(admit(gate, good).await);
    }
    spent
}

/// Another bad key each time, each from a task of its own as requests are.
async fn bad_company(gate: Gate, id: Option<String>, stop: Arc<AtomicBool>, count: Arc<AtomicUsize>) {
    let mut pulse = interval(Duration::from_secs(1) / u32::try_from(BAD_A_SECOND).unwrap());
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        pulse.tick().await;
        number += 1;
        let id = id.clone().unwrap_or_else(|| format!("stranger-{number:012}"));
        let (gate, count, text) = (gate.clone(), count.clone(), format!("pyoco_{id}.no-secret-{number:020}"));
        tokio::spawn(async move {
            let admitted = gate.admit(Some(&text)).await;
            assert!(matches!(admitted, Err(Refused::Wrong | Refused::Throttled)), "{admitted:?}");
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
}

fn say(what: &str, mut spent: Vec<Duration>) {
    spent.sort_unstable();
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = (spent.len() as f64 * share) as usize;
        spent[place.min(spent.len() - 1)].as_secs_f64() * 1e6
    };
    println!(
        "{what}: p50 {:.1} µs, p99 {:.1} µs, most {:.0} µs of {}",
        at(0.5),
        at(0.99),
        at(1.0),
        spent.len()
    );
}
