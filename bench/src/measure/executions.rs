//! What programs outside ask of this server alone: commands, streams of events, history, and jobs with logs and tags. The original has
//! none of it.

use super::{commands, history, keys, logs, metrics, prune, streams, tags};
use crate::figures::{Figures, Metric, Part, Parts};
use crate::ours::Ours;
use crate::subject::Subject as _;
use crate::{Failure, progress};

/// The parts that were asked for, each on a server of its own.
pub(crate) async fn measure(ours: &Ours<'_>, parts: &Parts) -> Figures {
    let mut figures = Figures::default();
    for part in Part::EXECUTIONS.into_iter().filter(|part| parts.include(*part)) {
        progress(Ours::NAME, part.name());
        if let Err(error) = measure_one(ours, part, &mut figures).await {
            figures.problems.push(error.to_string());
        }
    }
    figures
}

async fn measure_one(ours: &Ours<'_>, part: Part, figures: &mut Figures) -> Result<(), Failure> {
    if part == Part::Tags {
        return tags::measure(ours, figures).await;
    }
    if part == Part::Keys {
        return keys::measure(ours, figures).await;
    }
    if part == Part::Metrics {
        return metrics::measure(ours, figures).await;
    }
    if part == Part::Prune {
        return prune::measure(ours, figures).await;
    }
    let is_log = [Part::LogLines, Part::LogLatency, Part::LogNotModified].contains(&part);
    let stack = ours.start(!is_log).await?;
    if part == Part::Commands {
        commands::measure(stack.address, figures).await;
    } else if part == Part::EventStreams {
        figures.keep(Metric::EventStreams, streams::delivered(stack.address).await);
    } else if part == Part::HistoryAt {
        history::measure(stack.address, figures).await?;
    } else if part == Part::LogLines {
        logs::lines(&stack, figures).await?;
    } else if part == Part::LogLatency {
        logs::ages(&stack, figures).await?;
    } else if part == Part::LogNotModified {
        figures.keep(Metric::LogNotModified, logs::not_modified(&stack).await);
    }
    stack.stop().await;
    Ok(())
}
