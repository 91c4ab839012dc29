//! The measurements on a nats-server that is somebody's own process: the same for the original and for ours, and for ours what only it
//! promises.

use super::{cancel, commands as node_commands, lists, logs as job_logs, messages, metrics, runs, submit};
use crate::broker::Sync;
use crate::distributed::Distributed;
use crate::figures::{Figures, Metric, Part, Parts};
use crate::flows::{self, SERVED};
use crate::subject::{Sizes, Stack, Subject};
use crate::{Failure, http, progress};

/// For how many stored runs lists are measured.
pub(crate) const STORED: usize = 20_000;
/// Runs that sleep 20 ms, for each number of workers.
const NAPS: usize = 300;

/// What both can do. Lists that were measured already, on such a server, need not be measured again.
pub(crate) async fn measure<S: Subject>(subject: &S, sync: Sync, parts: &Parts, lists: &Figures) -> Figures {
    let mut figures = Figures::default();
    let with_workers = [Part::NatsRuns, Part::NatsCancel, Part::NatsSubmit];
    let is_wanted =
        |part: &Part| parts.include(*part) && (*part != Part::NatsCancel || subject.sizes().cancels > 0);
    let with_workers: Vec<Part> = with_workers.into_iter().filter(is_wanted).collect();
    if !with_workers.is_empty()
        && let Err(error) = measure_with_workers(subject, sync, &with_workers, &mut figures).await
    {
        figures.problems.push(error.to_string());
    }
    // A list writes nothing: how the disk is synced does not matter.
    if parts.include(Part::NatsLists) && sync == Sync::Default {
        let both = [Metric::List { stored: STORED }, Metric::FilteredList { stored: STORED }];
        let known = both.map(|metric| lists.of.get(&metric).map(|figure| (metric, figure.clone())));
        if known.iter().all(Option::is_some) {
            figures.of.extend(known.into_iter().flatten());
        } else if let Err(error) = lists::measure_stored(subject, &[STORED], &mut figures).await {
            figures.problems.push(error.to_string());
        }
    }
    figures
}

async fn measure_with_workers<S: Subject>(
    subject: &S,
    sync: Sync,
    parts: &[Part],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let stack = subject.start(false).await?;
    runs::warm_up(stack.address).await?;
    for part in parts {
        progress(S::NAME, &format!("{}, {sync}", part.name()));
        measure_load(*part, &stack, &subject.sizes(), figures).await;
    }
    stack.stop().await;
    Ok(())
}

async fn measure_load(part: Part, stack: &Stack, sizes: &Sizes, figures: &mut Figures) {
    let address = stack.address;
    if part == Part::NatsRuns {
        let (noop, count) = (flows::noop(), sizes.throughput_runs);
        figures.keep(Metric::SingleRun, runs::single(address, sizes.single_runs).await);
        let as_yaml = || http::submit_yaml(noop.name, SERVED, &noop.yaml);
        figures.keep(Metric::EndToEnd, runs::throughput(address, count, as_yaml).await);
        let by_name = || http::submit(noop.name, SERVED);
        figures.keep(Metric::EndToEndByName, runs::throughput(address, count, by_name).await);
        figures.keep(Metric::MessagesOfRun, messages::per_run(stack).await);
    } else if part == Part::NatsCancel {
        figures.keep(Metric::Cancel, cancel::delays(address, sizes.cancels, stack.data()).await);
    } else if part == Part::NatsSubmit {
        figures.keep(Metric::MessagesOfSubmission, messages::per_submission(stack).await);
        figures.keep(Metric::Submit, submit(stack).await);
    }
}

/// What one and what two worker processes of ours get done.
pub(crate) async fn workers(ours: &Distributed<'_>, sync: Sync) -> Figures {
    let mut figures = Figures::default();
    for workers in [1, 2] {
        progress(Distributed::NAME, &format!("{}: {workers}, {sync}", Part::NatsWorkers.name()));
        let ours = Distributed { workers, ..ours.clone() };
        if let Err(error) = measure_workers(&ours, &mut figures).await {
            figures.problems.push(error.to_string());
        }
    }
    figures
}

/// Runs when one process of ours is gateway and worker.
pub(crate) async fn together(ours: &Distributed<'_>, sync: Sync) -> Figures {
    progress(Distributed::NAME, &format!("{}, one process, {sync}", Part::NatsRuns.name()));
    let mut figures = Figures::default();
    if let Err(error) =
        measure_together(&Distributed { is_together: true, ..ours.clone() }, &mut figures).await
    {
        figures.problems.push(error.to_string());
    }
    figures
}

async fn measure_together(ours: &Distributed<'_>, figures: &mut Figures) -> Result<(), Failure> {
    let stack = ours.start(false).await?;
    runs::warm_up(stack.address).await?;
    let noop = flows::noop();
    let as_yaml = || http::submit_yaml(noop.name, SERVED, &noop.yaml);
    let count = ours.sizes().throughput_runs;
    figures.keep(Metric::EndToEndTogether, runs::throughput(stack.address, count, as_yaml).await);
    stack.stop().await;
    Ok(())
}

/// Commands to nodes from outside, through our gateway.
pub(crate) async fn commands(ours: &Distributed<'_>, sync: Sync) -> Figures {
    progress(Distributed::NAME, &format!("{}, {sync}", Part::NatsCommands.name()));
    let mut figures = Figures::default();
    match ours.start(true).await {
        Ok(stack) => {
            node_commands::measure(stack.address, &mut figures).await;
            stack.stop().await;
        }
        Err(error) => figures.problems.push(error.to_string()),
    }
    figures
}

/// What it takes to read the figures of our gateway.
pub(crate) async fn figures_of_gateway(ours: &Distributed<'_>) -> Figures {
    progress(Distributed::NAME, Part::NatsMetrics.name());
    let mut figures = Figures::default();
    if let Err(error) = metrics::measure(ours, &mut figures).await {
        figures.problems.push(error.to_string());
    }
    figures
}

/// Logs of jobs, each part on servers of its own.
pub(crate) async fn logs(ours: &Distributed<'_>, sync: Sync, parts: &Parts) -> Figures {
    let mut figures = Figures::default();
    // To be told that nothing has changed writes nothing: how the disk is synced does not matter.
    let is_wanted =
        |part: &Part| parts.include(*part) && (*part != Part::NatsLogNotModified || sync == Sync::Default);
    for part in Part::NATS_LOGS.into_iter().filter(is_wanted) {
        progress(Distributed::NAME, &format!("{}, {sync}", part.name()));
        if let Err(error) = measure_logs(ours, part, &mut figures).await {
            figures.problems.push(error.to_string());
        }
    }
    figures
}

async fn measure_logs(ours: &Distributed<'_>, part: Part, figures: &mut Figures) -> Result<(), Failure> {
    let stack = ours.start(false).await?;
    if part == Part::NatsLogLines {
        job_logs::lines(&stack, figures).await?;
    } else if part == Part::NatsLogLatency {
        job_logs::ages(&stack, figures).await?;
    } else if part == Part::NatsLogNotModified {
        figures.keep(Metric::LogNotModified, job_logs::not_modified(&stack).await);
    }
    stack.stop().await;
    Ok(())
}

async fn measure_workers(ours: &Distributed<'_>, figures: &mut Figures) -> Result<(), Failure> {
    let workers = ours.workers;
    let stack = ours.start(false).await?;
    runs::warm_up(stack.address).await?;
    let (nap, noop) = (flows::nap(), flows::noop());
    let naps = || http::submit_yaml(nap.name, SERVED, &nap.yaml);
    figures.keep(Metric::Naps { workers }, runs::throughput(stack.address, NAPS, naps).await);
    let count = ours.sizes().throughput_runs;
    let noops = || http::submit_yaml(noop.name, SERVED, &noop.yaml);
    figures.keep(Metric::Noops { workers }, runs::throughput(stack.address, count, noops).await);
    stack.stop().await;
    Ok(())
}
