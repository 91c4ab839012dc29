//! One trial, from its beginning to its verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::check::{Evidence, Violation, check};
use crate::fleet::{Fleet, Kind};
use crate::history::{Recorder, Said, read};
use crate::load::{self, Board};
use crate::nemesis::{Blow, Nemesis, repertoire};
use crate::site::{Programs, Site};
use crate::summary::Summary;
use crate::{PATIENCE, flows, look};

/// Clients rest about so long between two requests, unless they are told otherwise.
const PAUSE: Duration = Duration::from_millis(150);

/// What is tried.
#[derive(Debug, Clone)]
pub struct Trial {
    /// On which store.
    pub kind: Kind,
    /// How long it lasts, before everything is mended.
    pub lasts: Duration,
    /// What decides what is asked and what goes wrong.
    pub seed: u64,
    /// With which programs.
    pub programs: Programs,
    /// What goes wrong; everything that can when it is empty.
    pub blows: Vec<Blow>,
    /// Clients rest about so long between two requests.
    pub pause: Duration,
    /// A mistake that the product makes.
    pub plant: Option<&'static str>,
    /// Without progress for so long, something is stuck.
    pub patience: Duration,
    /// Whether the clock of the product can be turned, which only programs with places to fail at let anybody do.
    pub jumps: bool,
}

impl Trial {
    /// With everything that can go wrong.
    pub fn new(kind: Kind, lasts: Duration, seed: u64, programs: Programs) -> Self {
        let jumps = matches!(programs, Programs::Own(_));
        let (blows, pause) = (Vec::new(), PAUSE);
        Self { kind, lasts, seed, programs, blows, pause, plant: None, patience: PATIENCE, jumps }
    }

    /// The command that does it again.
    pub fn again(&self) -> String {
        let (store, seed) = (self.kind.name(), self.seed);
        let minutes = self.lasts.as_secs_f64() / 60.0;
        let mut again =
            format!("cargo run -p pyoco-chaos -- --store {store} --minutes {minutes:.2} --seed {seed}");
        if self.pause != PAUSE {
            again.push_str(&format!(" --pause {}", self.pause.as_millis()));
        }
        if let Programs::Shipped(folder) = &self.programs {
            again.push_str(&format!(" --programs {}", folder.display()));
        }
        again
    }

    /// How large the disk is, in MiB: enough for what is written, and soon full.
    fn disk(&self) -> u64 {
        96 + self.lasts.as_secs() * 3 / 2
    }
}

/// Makes a trial.
pub async fn run(trial: &Trial) -> (Summary, Vec<Violation>) {
    eprintln!("chaos: {}", trial.again());
    let began = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(trial.seed);
    let site = Site::new(trial.programs.clone());
    let history = site.path("history");
    let mut fleet = Fleet::new(site, trial.kind, Some(trial.disk())).await;
    fleet.more.extend(trial.plant.map(|plant| ("PYOCO_PLANT".to_owned(), plant.to_owned())));
    let mut summary = Summary::new(trial);
    summary.note(match (trial.kind, fleet.disk()) {
        (Kind::Sqlite, None) => "the disk was not filled up: nobody here may mount a file system",
        (Kind::Sqlite, Some(_)) => "",
        (Kind::Nats | Kind::Nats3, _) => "the disks of nats-servers are not filled up",
    });
    fleet.mend().await;
    register(&fleet.urls()).await;
    let board = Arc::new(Board::new(fleet.urls(), Recorder::begin(&history), trial.pause));
    let clients = load::start(&board, trial.seed);
    let all = repertoire(&fleet, trial.jumps);
    let blows = if trial.blows.is_empty() { all } else { trial.blows.clone() };
    let mut nemesis = Nemesis::new(ChaCha8Rng::seed_from_u64(trial.seed ^ 0xb10), blows);
    while began.elapsed() < trial.lasts {
        nemesis.pass(500..3_000).await;
        summary.weigh(&fleet, usize::from(began.elapsed() > trial.lasts / 2));
        nemesis.strike(&mut fleet).await;
    }
    // Everything is mended, and nothing goes wrong any more.
    fleet.mend().await;
    board.rest(clients).await;
    let jumped = nemesis.struck.contains_key(&Blow::JumpClock);
    let (judged, violations) = judge(&mut fleet, &board, &mut random, &history, trial.patience, jumped).await;
    let Judged { evidence, quiet } = judged;
    summary.fill(&evidence, &nemesis.struck, quiet, began.elapsed());
    if !violations.is_empty() && trial.plant.is_none() {
        eprintln!("chaos: kept for you to look at: {}", fleet.site.keep().display());
    }
    (summary, violations)
}

/// What a verdict rests on.
#[derive(Debug)]
pub struct Judged {
    /// Everything that was looked at.
    pub evidence: Evidence,
    /// How long it took until nothing was open any more, unless something stayed so.
    pub quiet: Option<Duration>,
}

/// Waits until all is quiet, looks at everything and says what does not hold. Nothing runs afterwards.
pub async fn judge(
    fleet: &mut Fleet,
    board: &Board,
    random: &mut ChaCha8Rng,
    history: &Path,
    patience: Duration,
    clock_jumped: bool,
) -> (Judged, Vec<Violation>) {
    board.settle(random, patience).await;
    let mut violations = unseen(fleet, patience).await;
    let quiet = look::quiet(fleet, board, random, patience).await;
    let mut evidence = gather(fleet, history, &mut violations).await;
    evidence.clock_jumped = clock_jumped;
    violations.extend(quiet.as_ref().err().map(|what| Violation { rule: "R4", what: what.clone() }));
    violations.extend(check(&evidence));
    violations.sort();
    (Judged { evidence, quiet: quiet.ok() }, violations)
}

/// Registers the graphs, as soon as somebody takes them.
pub(crate) async fn register(urls: &[String]) {
    let http = reqwest::Client::new();
    for (name, text) in [("approval", flows::APPROVAL), ("broken", flows::BROKEN)] {
        let since = Instant::now();
        loop {
            let url = format!("{}/graphs/{name}", urls[0]);
            let put = http.put(url).header("content-type", "application/yaml").body(text).send().await;
            match put {
                Ok(answer) if answer.status().is_success() => break,
                other => assert!(since.elapsed() < PATIENCE, "the graph {name} is not taken: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Looks at everything there is, first from outside, then, when all processes have stopped, inside.
async fn gather(fleet: &mut Fleet, history: &Path, violations: &mut Vec<Violation>) -> Evidence {
    let history = read(history);
    let accepted: BTreeSet<String> = history
        .iter()
        .filter_map(|line| match &line.said {
            Said::Accepted { run, .. } => Some(run.clone()),
            _ => None,
        })
        .collect();
    let mut evidence = Evidence { history, ..Evidence::default() };
    evidence.runs = look::over_http(&fleet.urls(), &accepted).await;
    evidence.wheels = look::wheels(&fleet.urls()[0]).await;
    violations.extend(consumers(fleet).await);
    let unwell = fleet.stop();
    violations.extend(unwell.into_iter().map(|what| Violation { rule: "R23", what }));
    violations.extend(left_behind(fleet).await);
    match look::engine(fleet).await {
        Ok(engine) => look::in_store(&engine, &mut evidence.runs).await,
        Err(what) => violations.push(Violation { rule: "R5", what }),
    }
    evidence.ledger = flows::read_ledger(&fleet.site.path("ledger"));
    evidence
}

/// R23: nobody who was started is left, also of those whose parents were killed.
async fn left_behind(fleet: &Fleet) -> Vec<Violation> {
    let since = Instant::now();
    loop {
        let left = fleet.site.processes();
        if left.is_empty() {
            return Vec::new();
        }
        if since.elapsed() > Duration::from_secs(20) {
            let what = left.into_iter().map(|(pid, line)| format!("process {pid} is left behind: {line}"));
            return what.map(|what| Violation { rule: "R23", what }).collect();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// R4: what has begun is seen, also if nobody was told of it. It may take as long as it takes the sweeper to find it.
async fn unseen(fleet: &Fleet, patience: Duration) -> Vec<Violation> {
    let since = Instant::now();
    loop {
        let left = look::unseen(fleet).await;
        if left.is_empty() || since.elapsed() > patience {
            let what = left.into_iter().map(|run| format!("{run} has begun, and nobody sees it"));
            return what.map(|what| Violation { rule: "R4", what }).collect();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// R24: however often everybody came back, there is one consumer of each gateway on each bucket, and one on the queue.
async fn consumers(fleet: &Fleet) -> Vec<Violation> {
    let gateways = fleet.urls().len();
    let wanted = [
        ("KV_pyoco_runs", gateways),
        ("KV_pyoco_workers", gateways),
        ("PYOCO_WORK", 1),
        ("PYOCO_EVENTS", 0),
        ("PYOCO_DLQ", 0),
    ];
    if fleet.nats().is_empty() {
        return Vec::new();
    }
    let since = Instant::now();
    loop {
        let of = consumers_by_stream(fleet);
        let of = |name: &str| of.get(name).map_or(0, BTreeSet::len);
        let wrong = wanted.iter().filter(|(name, count)| of(name) != *count);
        let wrong: Vec<Violation> = wrong
            .map(|(name, count)| format!("{name} has {} consumers, not {count}", of(name)))
            .map(|what| Violation { rule: "R24", what })
            .collect();
        if wrong.is_empty() || since.elapsed() > PATIENCE {
            return wrong;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The names of all consumers. Each server knows those that it keeps.
fn consumers_by_stream(fleet: &Fleet) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for said in fleet.nats().iter().map(|server| server.ask("/jsz?consumers=true")) {
        for stream in said["account_details"][0]["stream_detail"].as_array().into_iter().flatten() {
            let names = found.entry(stream["name"].as_str().unwrap_or_default().to_owned()).or_default();
            let consumers = stream["consumer_detail"].as_array().into_iter().flatten();
            names.extend(consumers.filter_map(|consumer| consumer["name"].as_str()).map(str::to_owned));
        }
    }
    found
}
