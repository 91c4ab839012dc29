//! What programs outside ask of this server alone: commands, streams of events and history. The original has none of it.

use super::{commands, history, streams};
use crate::figures::{Figures, Metric, Part, Parts};
use crate::subject::Subject;
use crate::{Failure, progress};

/// The parts that were asked for, each on a server of its own.
pub(crate) async fn measure<S: Subject>(subject: &S, parts: &Parts) -> Figures {
    let mut figures = Figures::default();
    for part in Part::EXECUTIONS.into_iter().filter(|part| parts.include(*part)) {
        progress(S::NAME, part.name());
        if let Err(error) = measure_one(subject, part, &mut figures).await {
            figures.problems.push(error.to_string());
        }
    }
    figures
}

async fn measure_one<S: Subject>(subject: &S, part: Part, figures: &mut Figures) -> Result<(), Failure> {
    let stack = subject.start(true).await?;
    if part == Part::Commands {
        commands::measure(stack.address, figures).await;
    } else if part == Part::EventStreams {
        figures.keep(Metric::EventStreams, streams::delivered(stack.address).await);
    } else if part == Part::HistoryAt {
        history::measure(stack.address, figures).await?;
    }
    stack.stop().await;
    Ok(())
}
