//! The measurements, the same for every subject: all they know of it is its HTTP API and its processes.

mod cancel;
mod commands;
pub(crate) mod executions;
pub(crate) mod growth;
pub(crate) mod history;
pub(crate) mod keys;
mod lists;
pub(crate) mod logs;
mod messages;
pub(crate) mod metrics;
pub(crate) mod nats;
pub(crate) mod prune;
mod runs;
pub(crate) mod streams;
mod tags;
mod watch;

pub(crate) use runs::{REPEATS, run_id, warm_up};

use std::time::Duration;

use tokio::time::sleep;

use crate::figures::{Figures, Metric, Part, Parts};
use crate::flows::{self, UNSERVED};
use crate::stats::Figure;
use crate::subject::{Sizes, Stack, Subject};
use crate::{Failure, http, load, progress};

pub(crate) const CONNECTIONS: usize = 16;
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);
pub(crate) const MEASURED: Duration = Duration::from_secs(5);
/// Until what a start leaves behind has settled.
pub(crate) const SETTLE: Duration = Duration::from_secs(3);

/// Everything there is to say about a subject, in the parts that were asked for.
pub(crate) async fn measure<S: Subject>(subject: &S, parts: &Parts) -> Figures {
    let mut figures = Figures::default();
    if parts.include(Part::Starts) {
        progress(S::NAME, Part::Starts.name());
        figures.keep(Metric::Start, start_times(subject).await);
    }
    let with_workers = Part::EMBEDDED.into_iter().filter(|part| !matches!(part, Part::Starts | Part::Lists));
    let with_workers: Vec<Part> = with_workers.filter(|part| parts.include(*part)).collect();
    if !with_workers.is_empty()
        && let Err(error) = measure_with_workers(subject, &with_workers, &mut figures).await
    {
        figures.problems.push(error.to_string());
    }
    if parts.include(Part::Lists)
        && let Err(error) = lists::measure(subject, &mut figures).await
    {
        figures.problems.push(error.to_string());
    }
    figures
}

async fn start_times(subject: &impl Subject) -> Result<Option<Figure>, Failure> {
    let mut samples = Vec::new();
    for _ in 0..subject.sizes().starts {
        let stack = subject.start(true).await?;
        samples.push(stack.start_ms);
        stack.stop().await;
    }
    Ok(Figure::of(samples, 0))
}

async fn measure_with_workers<S: Subject>(
    subject: &S,
    parts: &[Part],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let stack = subject.start(false).await?;
    for part in parts {
        progress(S::NAME, part.name());
        if *part == Part::Memory {
            sleep(SETTLE).await;
            figures.keep(Metric::IdleMemory, Ok(stack.gateway.memory().map(single)));
            figures.keep(Metric::MemoryOfAll, Ok(stack.memory_of_all().map(single)));
        } else {
            runs::warm_up(stack.address).await?;
            measure_load(*part, &stack, &subject.sizes(), figures).await;
        }
    }
    stack.stop().await;
    Ok(())
}

async fn measure_load(part: Part, stack: &Stack, sizes: &Sizes, figures: &mut Figures) {
    let address = stack.address;
    match part {
        Part::Starts | Part::Memory | Part::Lists => {}
        // Measured with processes of their own.
        Part::Commands
        | Part::EventStreams
        | Part::HistoryAt
        | Part::LogLines
        | Part::LogLatency
        | Part::LogNotModified
        | Part::Tags
        | Part::Prune
        | Part::Metrics
        | Part::Keys => {}
        Part::NatsSubmit
        | Part::NatsRuns
        | Part::NatsLists
        | Part::NatsCancel
        | Part::NatsWorkers
        | Part::NatsCommands
        | Part::NatsLogLines
        | Part::NatsLogLatency
        | Part::NatsLogNotModified
        | Part::NatsMetrics => {}
        Part::Peers | Part::Raw => {}
        Part::SingleRuns => {
            figures.keep(Metric::SingleRun, runs::single(address, sizes.single_runs).await);
        }
        Part::Graphs => {
            let (step, whole) = apart(runs::chain(address).await);
            figures.keep(Metric::ChainStep, step);
            figures.keep(Metric::ChainWhole, whole);
            let (between, whole) = apart(runs::fan_out(address).await);
            figures.keep(Metric::FanOut, between);
            figures.keep(Metric::FanOutWhole, whole);
        }
        Part::Watch => figures.keep(Metric::WatchAge, watch::ages(address).await),
        Part::Throughput => {
            let (noop, count) = (flows::noop(), sizes.throughput_runs);
            let as_yaml = || http::submit_yaml(noop.name, flows::SERVED, &noop.yaml);
            figures.keep(Metric::EndToEnd, runs::throughput(address, count, as_yaml).await);
            let by_name = || http::submit(noop.name, flows::SERVED);
            figures.keep(Metric::EndToEndByName, runs::throughput(address, count, by_name).await);
        }
        Part::Submit => {
            figures.keep(Metric::Submit, submit(stack).await);
            figures.keep(Metric::MemoryAfterLoad, Ok(stack.gateway.memory().map(single)));
        }
    }
}

/// The figures of one measurement that gives two; both are missing when it failed.
fn apart(
    times: Result<runs::Times, Failure>,
) -> (Result<Option<Figure>, Failure>, Result<Option<Figure>, Failure>) {
    match times {
        Ok(times) => (Ok(Figure::of(times.between, 0)), Ok(Figure::of(times.whole, 0))),
        Err(error) => (Err(error.to_string().into()), Err(error)),
    }
}

fn single(value: f64) -> Figure {
    Figure::single(value, 1, 0)
}

/// Answers a second, for runs that nobody takes: what is measured is the way into the store.
async fn submit(stack: &Stack) -> Result<Option<Figure>, Failure> {
    let request = || http::submit("noop", UNSERVED);
    let outcome = load::send_for(stack.address, CONNECTIONS, WARM_UP, MEASURED, request).await?;
    if outcome.answered == 0 {
        return Err(outcome.example.unwrap_or_else(|| "no answer".to_owned()).into());
    }
    let rate = outcome.answered as f64 / MEASURED.as_secs_f64();
    Ok(Some(Figure::single(rate, outcome.answered, outcome.failed)))
}
