//! The sweeper: finds what nobody is looking after, and sees to it. It decides like everybody else.

use pyoco_core::command::{Issuer, Request};
use pyoco_core::state::{Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_testkit::force_end;

use crate::system::{Deployment, Fault, System};

/// What the sweeper is at: it has looked at a version and is about to end an overdue cancel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sweeper {
    overdue: Option<u8>,
}

impl System {
    pub(crate) fn sweeper_can_act(&self, model: &Deployment) -> bool {
        self.sweeper.overdue.is_some()
            || self.cancel_is_overdue(self.log.head())
            || self.job_is_missing(model)
            || self.snapshot_lags()
    }

    /// The grace period of a cancel has passed; the worker may be alive or not.
    fn cancel_is_overdue(&self, view: &State) -> bool {
        view.phase == Phase::Canceling
    }

    /// It may run, nobody has it, and there is no message that would bring it to a worker.
    fn job_is_missing(&self, model: &Deployment) -> bool {
        let head = self.log.head();
        let nobody_has_it = head.claim.is_none() || self.owner_is_dead(head);
        let is_runnable = head.phase == Phase::Started;
        // A bound on the model, not on the product: each loss is followed by one sweep.
        let enough = self.queue.published() > 3 + model.bounds.lost_jobs;
        is_runnable && nobody_has_it && self.queue.is_empty() && !self.start_is_under_way() && !enough
    }

    /// A gateway between its append and its publish is not an orphan yet.
    fn start_is_under_way(&self) -> bool {
        self.gateways.iter().any(crate::gateway::Gateway::is_under_way)
    }

    /// The end is in the log and nobody is going to write its snapshot.
    fn snapshot_lags(&self) -> bool {
        self.phase().is_terminal()
            && self.snapshot < self.log.len()
            && self.workers.iter().all(|worker| !worker.is_under_way())
    }

    pub(crate) fn step_sweeper(&mut self, model: &Deployment) {
        if let Some(version) = self.sweeper.overdue.take() {
            self.end_overdue(model, version);
        } else if self.cancel_is_overdue(self.log.head()) {
            self.sweeper.overdue = Some(self.log.len());
        } else if self.job_is_missing(model) {
            self.queue.publish();
            self.seen.job_swept = true;
        } else if self.snapshot_lags() {
            self.snapshot = self.log.len();
        }
    }

    /// Looked at before, ended now: in between the worker may have ended it.
    fn end_overdue(&mut self, model: &Deployment, version: u8) {
        let request = Request::new(Issuer::Scheduler, Timestamp::from_micros(0), force_end());
        let proposal = self.log.propose(version, &[request]);
        if proposal.record.is_none() {
            return;
        }
        if model.has(Fault::SweeperWithoutExpectedVersion) && self.log.len() != version {
            self.log.append_blindly(&proposal);
        } else {
            // A conflict means that somebody was faster; the next sweep looks again.
            self.log.append(version, &proposal);
        }
    }
}
