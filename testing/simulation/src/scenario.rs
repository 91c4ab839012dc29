//! What a seed stands for: which flows are run, what is asked of them, what goes wrong and when.
//!
//! Each seed has some kinds of trouble and not others: what one kind hides is seen in the seeds that do not have it.

use std::time::Duration;

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::weather::Weather;

/// A storm is over after this time at the latest.
pub(crate) const STORM: Duration = Duration::from_secs(12);

/// Everything that is known before it begins.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) weather: Weather,
    /// The store leaves consequences to the engine and shows snapshots to others, as a shared one does.
    pub(crate) is_shared: bool,
    pub(crate) runs: Vec<Run>,
    pub(crate) mishaps: Vec<Mishap>,
    pub(crate) concurrency: usize,
    pub(crate) task_slots: usize,
    pub(crate) cancel_grace: Duration,
}

/// One run, and what its caller does.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The name of its flow.
    pub(crate) flow: String,
    /// The text of its flow.
    pub(crate) text: String,
    pub(crate) submitted_after: Duration,
    /// The caller's key, if it has one: then it asks until it is told.
    pub(crate) key: Option<String>,
    /// Two callers submit the same at the same time.
    pub(crate) is_submitted_twice: bool,
    /// When it is canceled, if it is; counted from its submission.
    pub(crate) canceled_after: Option<Duration>,
    /// So long the caller waits for an answer before it asks again.
    pub(crate) patience: Duration,
}

/// Something that happens to a process or to the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mishap {
    pub(crate) after: Duration,
    pub(crate) kind: MishapKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum MishapKind {
    /// A worker dies and is started again after a while.
    WorkerDies { worker: usize, back_after: Duration },
    /// A worker is told to stop and is started again when it has.
    WorkerStops { worker: usize },
    /// A gateway dies and is started again after a while.
    GatewayDies { gateway: usize, back_after: Duration },
    /// The queue loses all jobs that nobody has in hand.
    WaitingJobsLost,
    /// The queue loses a job that somebody has in hand.
    JobInHandLost,
    /// The clock of a process jumps by so many milliseconds.
    ClockJumps { process: usize, millis: i64 },
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let concurrency = rng.random_range(1..=2);
        let runs = rng.random_range(1..=3);
        Self {
            weather: weather(rng),
            is_shared: rng.random_bool(0.5),
            runs: (0..runs).map(|number| run(rng, number)).collect(),
            mishaps: mishaps(rng, concurrency),
            concurrency,
            task_slots: rng.random_range(1..=3),
            cancel_grace: Duration::from_millis(*[100, 400, 1_500].choose(rng).unwrap()),
        }
    }
}

fn weather(rng: &mut ChaCha8Rng) -> Weather {
    let mut share = |most: u32| if rng.random_bool(0.5) { 0 } else { rng.random_range(1..=most) };
    Weather {
        refused: share(120),
        lost: share(60),
        unanswered: share(120),
        late: share(60),
        in_flight: share(100),
        slow: share(200),
        very_slow: share(40),
        doubled: share(150),
        unleased: share(150),
        unheard: share(500),
    }
}

fn mishaps(rng: &mut ChaCha8Rng, concurrency: usize) -> Vec<Mishap> {
    let count = if rng.random_bool(0.3) { 0 } else { rng.random_range(1..=6) };
    let mut mishaps: Vec<Mishap> = (0..count)
        .map(|_| Mishap {
            after: Duration::from_millis(rng.random_range(0..10_000)),
            kind: mishap(rng, concurrency),
        })
        .collect();
    mishaps.sort_by_key(|mishap| mishap.after);
    mishaps
}

fn mishap(rng: &mut ChaCha8Rng, concurrency: usize) -> MishapKind {
    let back_after = Duration::from_millis(rng.random_range(1..6_000));
    match rng.random_range(0..10) {
        0..=3 => MishapKind::WorkerDies { worker: rng.random_range(0..2), back_after },
        // Two runs in one worker hear of its stop in an order that no seed fixes.
        4 if concurrency == 1 => MishapKind::WorkerStops { worker: rng.random_range(0..2) },
        4 | 5 => MishapKind::GatewayDies { gateway: rng.random_range(0..2), back_after },
        6 => MishapKind::WaitingJobsLost,
        7 => MishapKind::JobInHandLost,
        _ => {
            let most = *[2_000, 20_000, 120_000].choose(rng).unwrap();
            MishapKind::ClockJumps { process: rng.random_range(0..4), millis: rng.random_range(-most..=most) }
        }
    }
}

fn run(rng: &mut ChaCha8Rng, number: usize) -> Run {
    let flow = format!("flow-{number}");
    let is_canceled = rng.random_bool(0.35);
    Run {
        text: flow_text(rng),
        flow,
        submitted_after: Duration::from_millis(rng.random_range(0..3_000)),
        key: rng.random_bool(0.8).then(|| format!("run {number}")),
        is_submitted_twice: rng.random_bool(0.25),
        canceled_after: is_canceled.then(|| Duration::from_millis(rng.random_range(0..6_000))),
        patience: Duration::from_millis(*[150, 1_000, 6_000].choose(rng).unwrap()),
    }
}

/// A small flow: some stages one after the other, each a task, a fork, a race, a wait, or a loop.
fn flow_text(rng: &mut ChaCha8Rng) -> String {
    let mut tasks = Map::new();
    let has_loop = rng.random_bool(0.2);
    let mut stages: Vec<String> = Vec::new();
    for _ in 0..rng.random_range(1..=3) {
        let mut name = |settings: Value| {
            let name = format!("t{}", tasks.len());
            tasks.insert(name.clone(), settings);
            name
        };
        let stage = match rng.random_range(0..10) {
            0..=3 => name(task(rng)),
            4 => name(json!({"wait": {"key": "door"}})),
            _ if has_loop => format!("{}[{}]", name(task(rng)), rng.random_range(1..=3)),
            5..=7 => {
                let branches: Vec<String> = (0..rng.random_range(2..=3)).map(|_| name(task(rng))).collect();
                format!("({})", branches.join(" & "))
            }
            _ => format!("({} | {})", name(task(rng)), name(task(rng))),
        };
        stages.push(stage);
    }
    let graph = stages.join(" >> ");
    let graph = if has_loop { format!("flow >> {graph}") } else { graph };
    json!({"version": 2, "flow": {"graph": graph}, "tasks": tasks}).to_string()
}

fn task(rng: &mut ChaCha8Rng) -> Value {
    let mut settings = json!({"callable": "simulated:task"});
    if rng.random_bool(0.4) {
        settings["retries"] = json!(rng.random_range(1..=2));
        settings["retry_delay_sec"] = json!(*[0.05, 0.5, 3.0].choose(rng).unwrap());
    }
    if rng.random_bool(0.1) {
        settings["timeout_sec"] = json!(0.3);
    }
    if rng.random_bool(0.1) {
        settings["fail_policy"] = json!("isolate");
    }
    settings
}
