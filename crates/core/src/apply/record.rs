//! What a record says beside its events: the plan, the submitted text, claims, releases, annotations and keys.

use std::sync::Arc;

use crate::digest::Digest;
use crate::kept::Kept;
use crate::plan::Plan;
use crate::record::{Annotation, Record};
use crate::state::{Claim, Remembered, State};
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

impl State {
    /// The first plan is the plan.
    pub(crate) fn fix_plan(&mut self, plan: Arc<Plan>) {
        if self.plan.is_none() {
            self.context.default_params(&plan.defaults);
            self.plan = Some(plan);
            self.open_root();
        }
    }

    pub(crate) fn keep_workflow(&mut self, text: Arc<str>) {
        self.workflow = Some(text);
    }

    pub(crate) fn keep(&mut self, kept: Arc<Kept>) {
        self.kept = Some(kept);
    }

    pub(crate) fn use_wheels(&mut self, wheels: Arc<[UsedWheel]>) {
        self.wheels = Some(wheels);
    }

    pub(crate) fn take(&mut self, claim: Claim) {
        if self.claim.as_ref().is_some_and(|held| !held.is_foreign()) {
            self.lost_claims += 1;
        }
        let at = claim.at;
        self.epoch = claim.epoch;
        self.last_worker = Some(claim.worker.clone());
        self.active_since.get_or_insert(at);
        self.claim = Some(claim);
        self.attempts_lost(at);
    }

    pub(crate) fn let_go(&mut self, at: Timestamp) {
        self.claim = None;
        self.attempts_lost(at);
    }

    pub(crate) fn annotate(&mut self, annotation: &Annotation) {
        match annotation {
            Annotation::AddLabel(label) if self.labels.contains(label) => {}
            Annotation::AddLabel(label) => self.labels.push(label.clone()),
            Annotation::RemoveLabel(label) => self.labels.retain(|kept| kept != label),
            Annotation::Hidden(hidden) => self.hidden = *hidden,
            Annotation::RetriedBy(id) => self.retried_by = Some(id.clone()),
        }
    }

    /// The bookkeeping that every record brings, live or folded.
    pub(crate) fn recorded(&mut self, record: &Record, hash: Digest) {
        self.version = record.seq;
        self.updated_at = Some(record.at);
        self.last_hash = hash;
        if record.seq.0.is_multiple_of(Self::LANDMARK_EVERY) {
            self.landmarks.push((self.events, record.seq));
        }
        if record.commands.iter().any(|command| command.worker) {
            self.worker_commands.clear();
        }
        for command in &record.commands {
            let remembered = Remembered { digest: command.digest, record: record.seq };
            if command.worker {
                self.worker_commands.push((command.id.clone(), remembered));
            } else {
                self.commands.insert(command.id.clone(), remembered);
            }
        }
    }
}
