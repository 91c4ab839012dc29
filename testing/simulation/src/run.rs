//! One seed from beginning to end: a storm, healing, quiet, and what must be true then.

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_engine::Finding;
use pyoco_ports::{RunIndex as _, WorkQueue as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{Book, Client, ask_again};
use crate::process::Site;
use crate::scenario::{MishapKind, STORM, Scenario};
use crate::weather::Lie;
use crate::witness::Seen;
use crate::world::World;

/// After the storm everything is over within this time. Clocks were wrong by two minutes, and what they wrote down is waited for.
const PATIENCE: Duration = Duration::from_secs(900);
/// So often somebody looks whether everything is over.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// No request is on its way for longer.
const STRAGGLERS: Duration = Duration::from_secs(15);

/// How one seed went.
#[derive(Debug)]
pub struct Verdict {
    /// Which.
    pub seed: u64,
    /// Promises that were broken; none if all is well.
    pub broken: Vec<String>,
    /// The same for the same history.
    pub fingerprint: u64,
    /// What occurred.
    pub seen: Seen,
    /// What happened, in order, if it was asked for.
    pub lines: Vec<String>,
}

/// Runs one seed.
pub fn run(seed: u64) -> Verdict {
    run_with(seed, None, false)
}

/// Runs one seed on a store that keeps its contract or breaks it, and keeps the lines of what happened if asked to.
pub fn run_with(seed: u64, lie: Option<Lie>, keeps_lines: bool) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let scenario = Scenario::new(seed);
        let world = Arc::new(World::new(seed, &scenario, lie, keeps_lines));
        let site = Site::new(&world, scenario);
        live(&site).await;
        let witness = world.witness();
        let trace = world.trace();
        Verdict {
            seed,
            broken: witness.broken.clone(),
            fingerprint: trace.fingerprint(),
            seen: witness.seen,
            lines: trace.lines(),
        }
    })
}

async fn live(site: &Arc<Site>) {
    let world = &site.world;
    let (begun, book) = (Instant::now(), Arc::<Book>::default());
    site.start_all();
    let mut clients = JoinSet::new();
    let mut numbers = 0_u64..;
    for run in &site.scenario().runs {
        let callers = 1 + usize::from(run.is_submitted_twice && run.key.is_some());
        for (is_first, number) in
            numbers.by_ref().take(callers).enumerate().map(|(n, number)| (n == 0, number))
        {
            let (mut one, mut other) =
                (Client::new(site, &book, run, 2 * number), Client::new(site, &book, run, 2 * number + 1));
            clients.spawn(async move {
                if let Some(execution) = one.submit().await.filter(|_| is_first) {
                    tokio::join!(one.cancel(&execution), other.answer_waits(&execution));
                }
            });
        }
    }
    for mishap in &site.scenario().mishaps {
        tokio::time::sleep_until(begun + mishap.after).await;
        befall(site, mishap.kind).await;
    }
    tokio::time::sleep_until(begun + STORM).await;
    world.note(format_args!("the storm is over"));
    world.calm_down();
    site.set_clocks();
    let over = begun + STORM + PATIENCE;
    let served = async { while clients.join_next().await.is_some() {} };
    let settled = async {
        tokio::join!(served, quiet(site, &book));
    };
    if tokio::time::timeout_at(over, settled).await.is_err() {
        let restless = restless(site, &book).await;
        world.broken(format!(
            "after {} s not everything is over: {}",
            PATIENCE.as_secs(),
            restless.join(", ")
        ));
        return;
    }
    world.note(format_args!("it is quiet"));
    // What was on its way when the storm ended has arrived.
    tokio::time::sleep(STRAGGLERS).await;
    audit(site, &book).await;
    ask_again(site, &book).await;
}

async fn befall(site: &Arc<Site>, kind: MishapKind) {
    let later = |after: Duration, start: fn(&Site, usize), number: usize| {
        let site = site.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            start(&site, number);
        });
    };
    match kind {
        MishapKind::WorkerDies { worker, back_after } => {
            site.kill_worker(worker);
            later(back_after, Site::start_worker, worker);
        }
        MishapKind::WorkerStops { worker } => {
            let site = site.clone();
            tokio::spawn(async move {
                site.stop_worker(worker).await;
                site.start_worker(worker);
            });
        }
        MishapKind::GatewayDies { gateway, back_after } => {
            site.kill_gateway(gateway);
            later(back_after, Site::start_gateway, gateway);
        }
        MishapKind::WaitingJobsLost => site.world.lose_waiting().await,
        MishapKind::JobInHandLost => site.world.lose_one_in_hand().await,
        MishapKind::ClockJumps { process, millis } => site.jump(process, millis),
    }
}

/// Returns when nothing is left to do and everything is shown as it is.
async fn quiet(site: &Arc<Site>, book: &Book) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if restless(site, book).await.is_empty() {
            return;
        }
    }
}

/// What is not as it should be when everything is over.
async fn restless(site: &Arc<Site>, book: &Book) -> Vec<String> {
    let world = &site.world;
    let accepted = book.accepted();
    let mut found = world.witness().open(&accepted);
    let jobs = world.store.depth(&Tag::default()).await.unwrap();
    if jobs > 0 {
        found.push(format!("{jobs} jobs are in the queue"));
    }
    for execution in accepted {
        let version = world.witness().logs.get(&execution).map(|log| log.state.version);
        let row = world.store.get(&execution).await.unwrap().map(|row| row.version);
        if row != version {
            found.push(format!("{execution} is at {version:?}, its row at {row:?}"));
        }
        let snapshot = world.published(&execution).map(|(version, _)| version);
        if world.is_shared && snapshot != version {
            found.push(format!("{execution} is at {version:?}, its snapshot at {snapshot:?}"));
        }
    }
    found
}

/// The product's own auditor finds nothing, and everything has ended once.
async fn audit(site: &Arc<Site>, book: &Book) {
    let world = &site.world;
    let accepted = book.accepted();
    let logs: Vec<(ExecutionId, usize)> =
        world.witness().logs.iter().map(|(id, log)| (id.clone(), log.ends.len())).collect();
    for missing in accepted.iter().filter(|id| !logs.iter().any(|(known, _)| known == *id)) {
        world.broken(format!("{missing} was accepted and is lost"));
    }
    let letters = world.letters().await;
    // The witness is let go of before it is told something.
    let failed = world.witness().failed();
    for failed in failed.into_iter().filter(|id| !letters.contains(id)) {
        world.broken(format!("{failed} failed, and no dead letter tells of it"));
    }
    let Some((engine, _)) = site.gateway(0) else { return };
    for (execution, ends) in logs {
        let is_shown = accepted.contains(&execution);
        if ends > 1 || (ends == 0 && is_shown) {
            world.broken(format!("{execution} has {ends} ends"));
        }
        let audit = engine.audit(&execution).await.unwrap();
        // What was not accepted is shown to nobody.
        for finding in audit.findings.iter().filter(|finding| is_shown || **finding != Finding::RowRepaired) {
            world.broken(format!("{execution}: the auditor finds {finding:?}"));
        }
    }
}
