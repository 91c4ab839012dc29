//! The counting: one method for each thing that happens.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::process;
use crate::table::{self, Figure, Kind};
use crate::text::{Sheet, with_whole_heads};

/// So many flows are told apart; those that come later are counted as `other`.
const MOST_FLOWS: usize = 100;
/// A flow with a longer name is `other` too.
const LONGEST_FLOW: usize = 128;
const OTHER: &str = "other";

/// For what takes microseconds to seconds.
const SHORT: &[f64] =
    &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// For what takes milliseconds to a day.
const LONG: &[f64] =
    &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0];
/// For how many share something.
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// What one process has done. Clones count together.
#[derive(Clone)]
pub struct Figures(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// What runs here: the version and the store.
    build: Option<(String, String)>,
    flows: RwLock<HashSet<String>>,
    http: Histograms<3>,
    sse: Gauge,
    sockets: Gauge,
    authentications: Counters<1>,
    submits: Histograms<1>,
    commands: Histograms<2>,
    appends: Histograms<1>,
    commits: Histograms<1>,
    commit_sizes: Histograms<1>,
    runs_ended: Counters<2>,
    run_durations: Histograms<1>,
    tasks_ended: Counters<2>,
    task_durations: Histograms<1>,
    retries: Counters<1>,
    claims_lost: Counter,
    letters: Counters<1>,
    lines: Counter,
    lines_dropped: Counter,
    sweeps: Histogram,
    pruned: Counter,
    audit_dropped: Counter,
    traces_dropped: Counter,
}

/// A connection that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Server-sent events.
    Sse,
    /// A WebSocket.
    Socket,
}

/// It is open until this is dropped.
#[derive(Debug)]
pub struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl std::fmt::Debug for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Figures")
    }
}

impl Default for Figures {
    /// Figures of somebody who does not say what runs.
    fn default() -> Self {
        Self::with(None)
    }
}

impl Figures {
    /// Nothing has happened yet in a program of this version on this store.
    pub fn new(version: &str, store: &str) -> Self {
        Self::with(Some((version.to_owned(), store.to_owned())))
    }

    fn with(build: Option<(String, String)>) -> Self {
        let mut registry = Registry::default();
        let r = &mut registry;
        let inner = Inner {
            build,
            flows: RwLock::default(),
            http: added(r, &table::HTTP, histograms(short)),
            sse: added(r, &table::SSE, Gauge::default()),
            sockets: added(r, &table::SOCKETS, Gauge::default()),
            authentications: added(r, &table::AUTHENTICATIONS, Family::default()),
            submits: added(r, &table::SUBMITS, histograms(short)),
            commands: added(r, &table::COMMANDS, histograms(short)),
            appends: added(r, &table::APPENDS, histograms(short)),
            commits: added(r, &table::COMMITS, histograms(short)),
            commit_sizes: added(r, &table::COMMIT_SIZES, histograms(sizes)),
            runs_ended: added(r, &table::RUNS_ENDED, Family::default()),
            run_durations: added(r, &table::RUN_DURATIONS, histograms(long)),
            tasks_ended: added(r, &table::TASKS_ENDED, Family::default()),
            task_durations: added(r, &table::TASK_DURATIONS, histograms(long)),
            retries: added(r, &table::RETRIES, Family::default()),
            claims_lost: added(r, &table::CLAIMS_LOST, Counter::default()),
            letters: added(r, &table::LETTERS, Family::default()),
            lines: added(r, &table::LINES, Counter::default()),
            lines_dropped: added(r, &table::LINES_DROPPED, Counter::default()),
            sweeps: added(r, &table::SWEEPS, short()),
            pruned: added(r, &table::PRUNED, Counter::default()),
            audit_dropped: added(r, &table::AUDIT_DROPPED, Counter::default()),
            traces_dropped: added(r, &table::TRACES_DROPPED, Counter::default()),
            registry,
        };
        Self(Arc::new(inner))
    }

    /// A request was answered. `route` is the template of the path, never the path itself; `status` the class of the status code.
    pub fn http(&self, route: &str, method: &'static str, status: &'static str, seconds: f64) {
        let labels = labelled(&table::HTTP, [route.to_owned().into(), method.into(), status.into()]);
        self.0.http.get_or_create(&labels).observe(seconds);
    }

    /// Somebody follows something from now on.
    pub fn open(&self, stream: Stream) -> Open {
        let clients = match stream {
            Stream::Sse => &self.0.sse,
            Stream::Socket => &self.0.sockets,
        };
        clients.inc();
        Open(clients.clone())
    }

    /// A key was looked at.
    pub fn authenticated(&self, result: &'static str) {
        let labels = labelled(&table::AUTHENTICATIONS, [result.into()]);
        self.0.authentications.get_or_create(&labels).inc();
    }

    /// A submission was answered.
    pub fn submitted(&self, outcome: &'static str, seconds: f64) {
        self.0.submits.get_or_create(&labelled(&table::SUBMITS, [outcome.into()])).observe(seconds);
    }

    /// A command that somebody asked for was answered.
    pub fn commanded(&self, command: &'static str, outcome: &'static str, seconds: f64) {
        let labels = labelled(&table::COMMANDS, [command.into(), outcome.into()]);
        self.0.commands.get_or_create(&labels).observe(seconds);
    }

    /// A record was appended to a log, or was not.
    pub fn appended(&self, outcome: &'static str, seconds: f64) {
        self.0.appends.get_or_create(&labelled(&table::APPENDS, [outcome.into()])).observe(seconds);
    }

    /// A transaction of a file was committed, with so many writes in it.
    pub fn committed(&self, file: &'static str, seconds: f64, writes: usize) {
        self.0.commits.get_or_create(&labelled(&table::COMMITS, [file.into()])).observe(seconds);
        let sizes = self.0.commit_sizes.get_or_create(&labelled(&table::COMMIT_SIZES, [file.into()]));
        sizes.observe(writes as f64);
    }

    /// The end of a run was recorded; how long it ran, if it ever did.
    pub fn run_ended(&self, flow: &str, status: &'static str, seconds: Option<f64>) {
        let flow = self.flow(flow);
        if let Some(seconds) = seconds {
            let labels = labelled(&table::RUN_DURATIONS, [flow.clone()]);
            self.0.run_durations.get_or_create(&labels).observe(seconds);
        }
        self.0.runs_ended.get_or_create(&labelled(&table::RUNS_ENDED, [flow, status.into()])).inc();
    }

    /// An attempt of a task ran in this process, to whichever end.
    pub fn task_ran(&self, flow: &str, seconds: f64) {
        let labels = labelled(&table::TASK_DURATIONS, [self.flow(flow)]);
        self.0.task_durations.get_or_create(&labels).observe(seconds);
    }

    /// The end of an attempt of a task was recorded.
    pub fn task_ended(&self, flow: &str, outcome: &'static str) {
        let labels = labelled(&table::TASKS_ENDED, [self.flow(flow), outcome.into()]);
        self.0.tasks_ended.get_or_create(&labels).inc();
    }

    /// A task was begun again.
    pub fn retried(&self, flow: &str) {
        let labels = labelled(&table::RETRIES, [self.flow(flow)]);
        self.0.retries.get_or_create(&labels).inc();
    }

    /// A run that a worker had in hand is another's now.
    pub fn claim_lost(&self) {
        self.0.claims_lost.inc();
    }

    /// A dead letter was written.
    pub fn letter(&self, reason: &'static str) {
        self.0.letters.get_or_create(&labelled(&table::LETTERS, [reason.into()])).inc();
    }

    /// Lines of a log were stored.
    pub fn lines_written(&self, lines: usize) {
        self.0.lines.inc_by(count(lines));
    }

    /// Lines of a log were not stored.
    pub fn lines_dropped(&self, lines: usize) {
        self.0.lines_dropped.inc_by(count(lines));
    }

    /// A sweep is over.
    pub fn swept(&self, seconds: f64) {
        self.0.sweeps.observe(seconds);
    }

    /// Runs that ended long ago were removed.
    pub fn pruned(&self, runs: usize) {
        self.0.pruned.inc_by(count(runs));
    }

    /// Entries of the audit trail were lost.
    pub fn audit_dropped(&self, entries: usize) {
        self.0.audit_dropped.inc_by(count(entries));
    }

    /// The spans of runs were not sent.
    pub fn traces_dropped(&self, runs: usize) {
        self.0.traces_dropped.inc_by(count(runs));
    }

    /// Everything that was counted, and what the system knows about the process.
    pub fn text(&self) -> String {
        let mut sheet = Sheet::default();
        if let Some((version, store)) = &self.0.build {
            sheet.head(&table::BUILD);
            sheet.value(&table::BUILD, &[version, store], 1);
        }
        let mut counted = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut counted, &self.0.registry);
        sheet.push(&with_whole_heads(&counted));
        process::write(&mut sheet);
        sheet.into_text()
    }

    /// The label of a flow. People name flows, so there may be any number of them.
    fn flow(&self, flow: &str) -> Cow<'static, str> {
        if flow.len() > LONGEST_FLOW {
            return OTHER.into();
        }
        let known = self.0.flows.read().unwrap_or_else(PoisonError::into_inner).contains(flow);
        if !known {
            let mut flows = self.0.flows.write().unwrap_or_else(PoisonError::into_inner);
            if flows.len() >= MOST_FLOWS && !flows.contains(flow) {
                return OTHER.into();
            }
            flows.insert(flow.to_owned());
        }
        flow.to_owned().into()
    }
}

fn count(some: usize) -> u64 {
    u64::try_from(some).unwrap_or(u64::MAX)
}

/// Registers a metric under its name of the table.
fn added<M: Metric + Clone>(registry: &mut Registry, figure: &Figure, metric: M) -> M {
    // The library writes this ending itself.
    let name = match figure.kind {
        Kind::Counter => figure.name.trim_end_matches("_total"),
        Kind::Gauge | Kind::Histogram => figure.name,
    };
    registry.register(name, figure.help, metric.clone());
    metric
}

/// The labels of a figure with their values.
fn labelled<const N: usize>(figure: &Figure, values: [Cow<'static, str>; N]) -> Labels<N> {
    let mut names = figure.labels.iter().copied();
    values.map(|value| (names.next().unwrap_or_default(), value))
}

fn histograms<const N: usize>(make: fn() -> Histogram) -> Histograms<N> {
    Family::new_with_constructor(make)
}

fn short() -> Histogram {
    Histogram::new(SHORT.iter().copied())
}

fn long() -> Histogram {
    Histogram::new(LONG.iter().copied())
}

fn sizes() -> Histogram {
    Histogram::new(SIZES.iter().copied())
}
