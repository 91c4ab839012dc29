//! AnnotateExecution: labels, hiding, the link to a repeat. No event; allowed at any time.

use super::draft::Draft;
use super::{Ruling, guard};
use crate::command::AnnotateExecution;
use crate::outcome::{Outcome, Reason};
use crate::record::Annotation;

/// An execution that has so many labels is given no more: stores find it by each of them.
const MAX_LABELS: usize = 64;

pub(super) fn decide(draft: &mut Draft<'_>, command: &AnnotateExecution) -> Ruling {
    guard::exists(draft.state)?;
    let labels = &draft.state.labels;
    let stays = |label: &&String| !command.remove_labels.contains(*label);
    let is_new = |label: &&String| !labels.contains(*label) || command.remove_labels.contains(*label);
    let added = command.add_labels.iter().filter(is_new).count();
    if added > 0 && labels.iter().filter(stays).count() + added > MAX_LABELS {
        return Err(Reason::TooManyLabels(MAX_LABELS));
    }
    let mut changed = false;
    let mut say = |draft: &mut Draft<'_>, annotation| {
        draft.annotate(annotation);
        changed = true;
    };
    for label in &command.remove_labels {
        if draft.state.labels.contains(label) {
            say(draft, Annotation::RemoveLabel(label.clone()));
        }
    }
    for label in &command.add_labels {
        if !draft.state.labels.contains(label) {
            say(draft, Annotation::AddLabel(label.clone()));
        }
    }
    if let Some(hidden) = command.hidden.filter(|hidden| *hidden != draft.state.hidden) {
        say(draft, Annotation::Hidden(hidden));
    }
    if let Some(id) = command.retried_by.as_ref().filter(|id| draft.state.retried_by.as_ref() != Some(*id)) {
        say(draft, Annotation::RetriedBy(id.clone()));
    }
    Ok(if changed { Outcome::Accepted } else { Outcome::Unchanged })
}
