//! What is measured, in the order of the table, and what came of it.

use std::collections::BTreeMap;

use crate::Failure;
use crate::measure::{history, keys, logs, metrics, prune, streams};
use crate::stats::Figure;
use crate::tagged;

/// Measurements that are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Starts,
    Memory,
    SingleRuns,
    Graphs,
    Watch,
    Throughput,
    Submit,
    Lists,
    Commands,
    EventStreams,
    HistoryAt,
    LogLines,
    LogLatency,
    LogNotModified,
    Tags,
    Keys,
    Prune,
    Metrics,
    NatsRuns,
    NatsCancel,
    NatsSubmit,
    NatsLists,
    NatsWorkers,
    NatsCommands,
    NatsLogLines,
    NatsLogLatency,
    NatsLogNotModified,
    NatsMetrics,
    Peers,
    Raw,
}

impl Part {
    /// Those of the original as well, on this server with its embedded store.
    pub(crate) const EMBEDDED: [Self; 8] = [
        Self::Starts,
        Self::Memory,
        Self::SingleRuns,
        Self::Graphs,
        Self::Watch,
        Self::Throughput,
        Self::Submit,
        Self::Lists,
    ];
    /// What only this server has, with its embedded store.
    pub(crate) const EXECUTIONS: [Self; 10] = [
        Self::Commands,
        Self::EventStreams,
        Self::HistoryAt,
        Self::LogLines,
        Self::LogLatency,
        Self::LogNotModified,
        Self::Tags,
        Self::Keys,
        Self::Prune,
        Self::Metrics,
    ];
    /// On this server as gateway and workers around a nats-server.
    pub(crate) const NATS: [Self; 10] = [
        Self::NatsRuns,
        Self::NatsCancel,
        Self::NatsSubmit,
        Self::NatsLists,
        Self::NatsWorkers,
        Self::NatsCommands,
        Self::NatsLogLines,
        Self::NatsLogLatency,
        Self::NatsLogNotModified,
        Self::NatsMetrics,
    ];
    /// What stands beside this server: what people use today, and what the machine gives to everybody.
    pub(crate) const BESIDE: [Self; 2] = [Self::Peers, Self::Raw];
    /// What of this server and of the original is told next to the peers.
    const NEXT_TO_PEERS: [Self; 6] =
        [Self::Memory, Self::SingleRuns, Self::Graphs, Self::Throughput, Self::Submit, Self::Lists];
    /// Of these, the logs of jobs.
    pub(crate) const NATS_LOGS: [Self; 3] =
        [Self::NatsLogLines, Self::NatsLogLatency, Self::NatsLogNotModified];

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut all =
            Self::EMBEDDED.into_iter().chain(Self::EXECUTIONS).chain(Self::NATS).chain(Self::BESIDE);
        all.find(|part| part.name() == name)
    }

    /// What has to be measured with it, or it could not be compared.
    pub(crate) fn needs(self) -> &'static [Self] {
        if self == Self::Peers { &Self::NEXT_TO_PEERS } else { &[] }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Starts => "starts",
            Self::Memory => "memory",
            Self::SingleRuns => "single-runs",
            Self::Graphs => "graphs",
            Self::Watch => "watch",
            Self::Throughput => "throughput",
            Self::Submit => "submit",
            Self::Lists => "lists",
            Self::Commands => "commands",
            Self::EventStreams => "event-streams",
            Self::HistoryAt => "history-at",
            Self::LogLines => "log-lines",
            Self::LogLatency => "log-latency",
            Self::LogNotModified => "log-not-modified",
            Self::Tags => "tags",
            Self::Keys => "keys",
            Self::Prune => "prune",
            Self::Metrics => "metrics",
            Self::NatsRuns => "nats-runs",
            Self::NatsCancel => "nats-cancel",
            Self::NatsSubmit => "nats-submit",
            Self::NatsLists => "nats-lists",
            Self::NatsWorkers => "nats-workers",
            Self::NatsCommands => "nats-commands",
            Self::NatsLogLines => "nats-log-lines",
            Self::NatsLogLatency => "nats-log-latency",
            Self::NatsLogNotModified => "nats-log-not-modified",
            Self::NatsMetrics => "nats-metrics",
            Self::Peers => "peers",
            Self::Raw => "raw",
        }
    }
}

/// The parts that were asked for; all, when none was named.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parts {
    pub(crate) named: Vec<Part>,
}

impl Parts {
    pub(crate) fn include(&self, part: Part) -> bool {
        self.named.is_empty() || self.named.contains(&part)
    }

    pub(crate) fn include_any(&self, parts: &[Part]) -> bool {
        parts.iter().any(|part| self.include(*part))
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    Submit,
    EndToEnd,
    EndToEndByName,
    EndToEndTogether,
    SingleRun,
    ChainStep,
    ChainWhole,
    FanOut,
    FanOutWhole,
    WatchAge,
    Cancel,
    List { stored: usize },
    FilteredList { stored: usize },
    Commands,
    CommandTime,
    EventStreams,
    HistoryAt { at: usize },
    LogLines { writer: logs::Writer },
    LogLinesFollowed,
    LogAge { reader: logs::Reader },
    LogNotModified,
    Tagged { asked: tagged::Asked },
    Request { is_keyed: bool },
    Beside { company: keys::Company },
    SubmitBesidePrune { is_pruning: bool },
    Pruned,
    Metrics,
    Naps { workers: usize },
    Noops { workers: usize },
    MessagesOfSubmission,
    MessagesOfRun,
    Start,
    IdleMemory,
    MemoryAfterLoad,
    MemoryOfAll,
}

impl Metric {
    pub(crate) fn title(self) -> String {
        let text = match self {
            Self::Submit => "submit, 16 connections, 5 s",
            Self::EndToEnd => "end to end, one no-op task, as flow.yaml",
            Self::EndToEndByName => "end to end, one no-op task, by name (resolver)",
            Self::EndToEndTogether => "end to end, as flow.yaml, gateway and worker in one process",
            Self::SingleRun => "one run, idle system: submitted → seen COMPLETED",
            Self::ChainStep => "chain of 40: a step",
            Self::ChainWhole => "chain of 40, whole: submitted → seen COMPLETED",
            Self::FanOut => "fan-out of 400: before → after",
            Self::FanOutWhole => "fan-out of 400, whole: submitted → seen COMPLETED",
            Self::WatchAge => "age of a watch event on arrival",
            Self::Cancel => "cancel sent → noticed by the running task",
            Self::List { stored } => return format!("list newest 50 of {}", thousands(stored)),
            Self::FilteredList { stored } => return format!("list filtered 50 of {}", thousands(stored)),
            Self::Commands => "commands (StartNode, SucceedNode in turn), 16 connections, 5 s",
            Self::CommandTime => "a command under that load: sent → answered",
            Self::EventStreams => {
                return format!(
                    "events delivered to {} streams of one execution, all together",
                    streams::READERS
                );
            }
            Self::HistoryAt { at } => {
                return format!("GET ?at={at} of {} events", thousands(history::EVENTS));
            }
            Self::LogLines { writer } => {
                return format!("lines of 80 bytes, {writer} → log, {} lines", thousands(writer.rows()));
            }
            Self::LogLinesFollowed => {
                return format!(
                    "lines delivered to {} SSE followers of one log of {}, all together",
                    logs::FOLLOWERS,
                    thousands(logs::FOLLOWED_ROWS)
                );
            }
            Self::LogAge { reader } => {
                return format!("age of a log line on arrival, a line every 10 ms, {reader}");
            }
            Self::LogNotModified => {
                return format!("GET logs with If-None-Match → 304, {} lines", thousands(logs::LONG_ROWS));
            }
            Self::Tagged { asked } => {
                return format!(
                    "jobs by {asked}, a page of at most 50 of {} with {} tags",
                    thousands(tagged::JOBS),
                    thousands(tagged::TAGS)
                );
            }
            Self::Request { is_keyed: false } => "GET /runs/ID, no keys asked for",
            Self::Request { is_keyed: true } => "GET /runs/ID with an API key",
            Self::Beside { company } => return format!("GET /runs/ID with an API key, {company}"),
            Self::SubmitBesidePrune { is_pruning: false } => "POST /runs, one client",
            Self::SubmitBesidePrune { is_pruning: true } => {
                return format!(
                    "POST /runs, one client, while {} runs are removed",
                    thousands(prune::FINISHED)
                );
            }
            Self::Pruned => "runs removed, beside one client that submits",
            Self::Metrics => {
                return format!("GET /metrics, {} runs stored", thousands(metrics::STORED));
            }
            Self::Naps { workers } => return format!("end to end, a task of 20 ms, {}", processes(workers)),
            Self::Noops { workers } => return format!("end to end, one no-op task, {}", processes(workers)),
            Self::MessagesOfSubmission => "messages to the nats-server for one submission",
            Self::MessagesOfRun => "messages to the nats-server for one run, its submission included",
            Self::Start => "start → first health answer",
            Self::IdleMemory => "memory of the gateway process, idle",
            Self::MemoryAfterLoad => "memory of the gateway process, after the load",
            Self::MemoryOfAll => "memory of all processes, idle",
        };
        text.to_owned()
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Submit
            | Self::EndToEnd
            | Self::EndToEndByName
            | Self::EndToEndTogether
            | Self::Commands
            | Self::EventStreams
            | Self::LogLines { .. }
            | Self::LogLinesFollowed
            | Self::Pruned
            | Self::Naps { .. }
            | Self::Noops { .. } => "/s",
            Self::MessagesOfSubmission | Self::MessagesOfRun => "messages",
            Self::SingleRun
            | Self::ChainStep
            | Self::ChainWhole
            | Self::FanOut
            | Self::FanOutWhole
            | Self::WatchAge
            | Self::Cancel
            | Self::List { .. }
            | Self::FilteredList { .. }
            | Self::CommandTime
            | Self::HistoryAt { .. }
            | Self::LogAge { .. }
            | Self::LogNotModified
            | Self::Tagged { .. }
            | Self::Request { .. }
            | Self::Beside { .. }
            | Self::SubmitBesidePrune { .. }
            | Self::Metrics
            | Self::Start => "ms",
            Self::IdleMemory | Self::MemoryAfterLoad | Self::MemoryOfAll => "MiB",
        }
    }

    /// Whether a larger value is the better one.
    pub(crate) fn is_rate(self) -> bool {
        self.unit() == "/s"
    }
}

fn processes(workers: usize) -> String {
    if workers == 1 { "1 worker process".to_owned() } else { format!("{workers} worker processes") }
}

pub(crate) fn thousands(number: usize) -> String {
    let (above, below) = (number / 1_000, number % 1_000);
    if above == 0 { below.to_string() } else { format!("{},{below:03}", thousands(above)) }
}

/// What came of measuring one subject.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) of: BTreeMap<Metric, Figure>,
    pub(crate) problems: Vec<String>,
}

impl Figures {
    /// Keeps what was measured beside it.
    pub(crate) fn add(&mut self, more: Self) {
        self.of.extend(more.of);
        self.problems.extend(more.problems);
    }

    /// Of several rounds the one in the middle, figure by figure: a machine that others use is not equally fast in all of them.
    pub(crate) fn middle(rounds: Vec<Self>) -> Self {
        let mut all: BTreeMap<Metric, Vec<Figure>> = BTreeMap::new();
        let mut problems = Vec::new();
        for round in rounds {
            problems.extend(round.problems);
            round.of.into_iter().for_each(|(metric, figure)| all.entry(metric).or_default().push(figure));
        }
        let middle = |(metric, mut figures): (Metric, Vec<Figure>)| {
            figures.sort_by(|one, other| one.middle.total_cmp(&other.middle));
            let middle = figures.len() / 2;
            figures.into_iter().nth(middle).map(|figure| (metric, figure))
        };
        Self { of: all.into_iter().filter_map(middle).collect(), problems }
    }

    /// Keeps a figure. A measurement that failed is told at the end and does not stop the others.
    pub(crate) fn keep(&mut self, metric: Metric, result: Result<Option<Figure>, Failure>) {
        match result {
            Ok(Some(figure)) => {
                self.of.insert(metric, figure);
            }
            Ok(None) => self.problems.push(format!("{}: no sample", metric.title())),
            Err(error) => self.problems.push(format!("{}: {error}", metric.title())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found_by_its_name() {
        for part in Part::EMBEDDED.into_iter().chain(Part::EXECUTIONS).chain(Part::NATS).chain(Part::BESIDE) {
            assert_eq!(Part::of_name(part.name()), Some(part));
        }
    }

    #[test]
    fn of_several_rounds_the_middle_one_is_told() {
        let round = |rate| Figures {
            of: [(Metric::Submit, Figure::single(rate, 1, 0))].into(),
            problems: Vec::new(),
        };
        let middle = |rates: &[f64]| Figures::middle(rates.iter().map(|rate| round(*rate)).collect());
        assert_eq!(middle(&[9.0, 1.0, 5.0]).of[&Metric::Submit].middle, 5.0);
        assert_eq!(middle(&[3.0]).of[&Metric::Submit].middle, 3.0);
        assert!(middle(&[]).of.is_empty());
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0, 999, 1_000, 20_050, 1_000_000].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "20,050", "1,000,000"]);
    }
}
