//! One place to fail at after the other, on one site: the process comes to it, fails as it was told, and is started again. At the end
//! everything that was promised on the way is looked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyoco_faults::Outcome;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::check::Violation;
use crate::fleet::{Fleet, Kind};
use crate::history::Recorder;
use crate::load::{Board, Flow, Heard, Order};
use crate::site::{Programs, Site};
use crate::{PATIENCE, storm};

/// A walk over places.
#[derive(Debug)]
pub struct Walk {
    fleet: Fleet,
    board: Arc<Board>,
    random: ChaCha8Rng,
    number: u64,
    /// How runs fail where they are to.
    failing: Flow,
}

impl Walk {
    /// Lays out a site on which everything is well.
    pub async fn begin(kind: Kind, programs: Programs) -> Self {
        let site = Site::new(programs);
        let recorder = Recorder::begin(&site.path("history"));
        let mut fleet = Fleet::new(site, kind, None).await;
        fleet.mend().await;
        storm::register(&fleet.urls()).await;
        // The first gateway only: which process comes to a place must be clear.
        let urls = fleet.urls()[..1].to_vec();
        let board = Arc::new(Board::new(urls, recorder, Duration::from_millis(10)));
        Self { fleet, board, random: ChaCha8Rng::seed_from_u64(1), number: 0, failing: Flow::Broken }
    }

    /// Comes to a place and fails there, then goes on without.
    pub async fn step(&mut self, point: &'static str, outcome: Outcome) {
        let began = Instant::now();
        if point.starts_with("sweep") {
            // A job that was lost on its way is what brings a sweeper there.
            self.come_to("start.after_snapshot", "start.after_snapshot:crash", began).await;
        }
        // Not the first one: that comes before there is anything to lose.
        let turn = if point.ends_with("_commit") { ":5" } else { "" };
        let ways =
            if point.starts_with("dlq") { &[Flow::Broken, Flow::Missing][..] } else { &[Flow::Broken] };
        for failing in ways {
            self.failing = *failing;
            self.come_to(point, &format!("{point}:{}{turn}", outcome.name()), began).await;
        }
        self.start_with("").await;
        self.board.settle(&mut self.random, PATIENCE).await;
        eprintln!("walk: {point}:{} in {:?}", outcome.name(), began.elapsed());
    }

    /// Starts everything again with a rule, and gives it work until the rule has come true.
    async fn come_to(&mut self, point: &str, rule: &str, began: Instant) {
        let seen = self.fleet.site.path("seen");
        let _ = std::fs::remove_file(&seen);
        self.start_with(rule).await;
        while !std::fs::read_to_string(&seen).is_ok_and(|seen| seen.contains(point)) {
            self.ask_for(point).await;
            assert!(began.elapsed() < PATIENCE, "nobody comes to {point}");
        }
    }

    /// Starts everything again with a rule; what crashes at once comes again without.
    async fn start_with(&mut self, rule: &str) {
        (0..self.fleet.parts()).for_each(|part| self.fleet.kill(part));
        self.fleet.more = vec![("PYOCO_FAULTS".to_owned(), rule.to_owned())];
        (0..self.fleet.parts()).for_each(|part| self.fleet.mend_part(part));
        self.fleet.more.clear();
        self.fleet.answering().await;
    }

    /// What leads to a place.
    async fn ask_for(&mut self, point: &str) {
        if point.starts_with("sweep") {
            return tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.number += 1;
        // What fails does so after its claim, or before.
        let flow = match point.starts_with("dlq") {
            true => self.failing,
            false => Flow::Named,
        };
        let (label, seconds) =
            (format!("walk-{}", self.number), if point.starts_with("cancel") { 5.0 } else { 0.0 });
        // Nobody asks again for what has no key.
        let key = self.number.is_multiple_of(2).then(|| format!("key-{label}"));
        let order = Order { key, label, flow, seconds };
        if point.starts_with("upload") {
            self.board.upload(&mut self.random).await;
        } else if let Heard::Yes(answer) = self.board.submit(&order, &mut self.random).await {
            if point.starts_with("cancel") {
                let run = answer["run_id"].as_str().unwrap_or_default().to_owned();
                tokio::time::sleep(Duration::from_millis(300)).await;
                self.board.cancel(&run, &mut self.random).await;
            }
        } else if order.key.is_some() {
            self.board.owe(order);
        }
        // The write-ahead log is looked after when nobody has written for a while.
        let pause = if point == "sqlite.before_checkpoint" { 3_000 } else { 50 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        // Whatever has crashed meanwhile is started again.
        (0..self.fleet.parts()).for_each(|part| self.fleet.mend_part(part));
    }

    /// What of all that was promised is not there.
    pub async fn end(mut self) -> Vec<Violation> {
        self.fleet.mend().await;
        let history = self.fleet.site.path("history");
        let judged =
            storm::judge(&mut self.fleet, &self.board, &mut self.random, &history, PATIENCE, false).await;
        if !judged.1.is_empty() {
            eprintln!("walk: kept for you to look at: {}", self.fleet.site.keep().display());
        }
        judged.1
    }
}
