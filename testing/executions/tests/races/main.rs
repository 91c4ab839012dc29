//! Cancel against a success, a failure, a resume and the success that ends the execution: both are sent at the same moment, over
//! connections of their own and through two gateways, thousands of times on every store. Whoever is first, what follows has to
//! agree with it. `SOAK=1` makes 10,000 races a store (`make soak`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and tells who won"
)]

mod account;
mod rival;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyoco_testing_executions::{Answer, Site, on_every_store};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use account::{Account, First};
use rival::Rival;

on_every_store!(
    cancel_races_with_a_success,
    cancel_races_with_a_failure,
    cancel_races_with_a_resume,
    cancel_races_with_the_success_that_ends_it,
);

async fn cancel_races_with_a_success(site: Site) {
    race(site, Rival::Success).await;
}

async fn cancel_races_with_a_failure(site: Site) {
    race(site, Rival::Fail).await;
}

async fn cancel_races_with_a_resume(site: Site) {
    race(site, Rival::Resume).await;
}

async fn cancel_races_with_the_success_that_ends_it(site: Site) {
    race(site, Rival::Complete).await;
}

/// Races at the same time, each with an execution of its own.
const TRACKS: usize = 8;
/// Races of a kind on a store in `make test`.
const RACES: usize = 300;
/// In `make soak`: 10,000 of the four kinds together.
const SOAK_RACES: usize = 2_500;
/// Each side has to be first in at least one of so many races.
const OFTEN: usize = 10;
/// Nobody waits for longer than this many turns of the runtime before sending.
const MOST_TURNS: u128 = 4;

/// Who was first, how often.
#[derive(Debug, Default)]
struct Tally {
    cancel: usize,
    rival: usize,
    /// Races in which both requests were under way at the same time.
    overlapping: usize,
}

async fn race(site: Site, rival: Rival) {
    let is_soak = std::env::var_os("SOAK").is_some_and(|value| value == "1");
    let races = if is_soak { SOAK_RACES } else { RACES };
    let kind = site.kind;
    site.graph("race", rival.graph()).await;
    let gateways = Arc::new([site.beside().await, site]);
    let mut tracks = JoinSet::new();
    for track in 0..TRACKS {
        let gateways = gateways.clone();
        tracks.spawn(async move {
            let mut tally = Tally::default();
            for _ in (track..races).step_by(TRACKS) {
                run(&gateways, rival, &mut tally).await;
            }
            tally
        });
    }
    let mut total = Tally::default();
    while let Some(tally) = tracks.join_next().await {
        let tally = tally.unwrap();
        total.cancel += tally.cancel;
        total.rival += tally.rival;
        total.overlapping += tally.overlapping;
    }
    eprintln!("{kind:?}, {rival:?}: {total:?}");
    assert_eq!(total.cancel + total.rival, races);
    assert!(total.cancel * OFTEN >= races && total.rival * OFTEN >= races, "one side: {rival:?}, {total:?}");
    assert!(total.overlapping * 2 > races, "these were no races: {rival:?}, {total:?}");
}

/// One race, and what has to be true after it.
async fn run(gateways: &[Site; 2], rival: Rival, tally: &mut Tally) {
    let chance = uuid::Uuid::new_v4().as_u128();
    let [one, other] = gateways;
    let gateway = |bit: u32| if chance >> bit & 1 == 0 { one } else { other };
    // Whoever has seen an execution before has it at hand: nobody is favoured by that.
    let (home, cancels, rivals) = (gateway(1), gateway(2), gateway(3));
    let execution = home.started("race").await;
    rival.prepare(home, &execution).await;

    let lap = Arc::new(Lap::default());
    let base = format!("/executions/{execution}");
    let cancel = cancels.client.post(cancels.url(&format!("{base}/cancel"))).json(&json!({}));
    let cancel =
        Shot { request: keyed(cancel), turns: (chance >> 8) % MOST_TURNS, lap: lap.clone(), number: 0 };
    let step = rivals.client.post(rivals.url(&format!("{base}{}", rival.path()))).json(&rival.body());
    let step = Shot { request: keyed(step), turns: (chance >> 40) % MOST_TURNS, lap, number: 1 };
    // Whoever is started first has a head start of next to nothing; chance decides who it is.
    let ((cancel, cancel_overlaps), (step, step_overlaps)) = if chance & 1 == 0 {
        let (cancel, step) = (tokio::spawn(cancel.fire()), tokio::spawn(step.fire()));
        (cancel.await.unwrap(), step.await.unwrap())
    } else {
        let (step, cancel) = (tokio::spawn(step.fire()), tokio::spawn(cancel.fire()));
        (cancel.await.unwrap(), step.await.unwrap())
    };

    let account = Account::of(gateways, &execution).await;
    match account.judge(rival, &cancel, &step) {
        First::Cancel => tally.cancel += 1,
        First::Rival => tally.rival += 1,
    }
    tally.overlapping += usize::from(cancel_overlaps && step_overlaps);
}

fn keyed(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    request.header("x-idempotency-key", uuid::Uuid::new_v4().to_string())
}

/// What the two requests of a race share.
#[derive(Debug)]
struct Lap {
    start: Barrier,
    is_over: [AtomicBool; 2],
}

impl Default for Lap {
    fn default() -> Self {
        Self { start: Barrier::new(2), is_over: Default::default() }
    }
}

/// One of the two requests.
struct Shot {
    request: reqwest::RequestBuilder,
    turns: u128,
    lap: Arc<Lap>,
    number: usize,
}

impl Shot {
    /// Sends it a few turns after both are ready. Says whether the other one had no answer yet.
    async fn fire(self) -> (Answer, bool) {
        self.lap.start.wait().await;
        for _ in 0..self.turns {
            tokio::task::yield_now().await;
        }
        let overlaps = !self.lap.is_over[1 - self.number].load(Ordering::SeqCst);
        let answer = Answer::of(self.request.send().await.unwrap()).await;
        self.lap.is_over[self.number].store(true, Ordering::SeqCst);
        (answer, overlaps)
    }
}
