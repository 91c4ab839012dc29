//! A gateway: takes a start or a cancel from a client and sees it through.

use pyoco_core::command::{Issuer, Request};
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::outcome::Outcome;
use pyoco_core::time::Timestamp;
use pyoco_testkit::{cancel, create, key};

use crate::log::Proposal;
use crate::system::{Deployment, Fault, Reply, System, Weather};

/// What clients want of it, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gateway {
    wants: Vec<Want>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Want {
    Start,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Load,
    Append {
        version: u8,
    },
    /// The last append timed out: it may have been applied, and only the log knows.
    LoadUnsure,
    Snapshot {
        version: u8,
    },
    Publish,
}

impl Gateway {
    /// Starts the execution.
    pub(crate) fn first() -> Self {
        Self { wants: vec![Want::Start], step: Step::Load }
    }

    /// Gets the same start again, under the same key, and then a cancel.
    pub(crate) fn second() -> Self {
        Self { wants: vec![Want::Cancel, Want::Start], step: Step::Load }
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.wants.is_empty()
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.is_busy() && self.step != Step::Load
    }

    pub(crate) fn is_appending(&self) -> bool {
        self.is_busy() && matches!(self.step, Step::Append { .. })
    }

    /// Its client hears nothing; the process comes back and serves the next one.
    pub(crate) fn die(&mut self) {
        self.wants.pop();
        self.step = Step::Load;
    }
}

fn request(model: &Deployment, want: Want) -> Request {
    let issuer = Issuer::Caller(Actor::named(ActorKind::User, "u"));
    let at = Timestamp::from_micros(0);
    match want {
        Want::Start => {
            let mut command = create();
            command.start = true;
            let request = Request::new(issuer, at, command);
            // The planted mistake leaves the repeat to the queue's window, so the log does not know the key.
            if model.has(Fault::WindowOnlyDedup) { request } else { request.with_id(key("start")) }
        }
        Want::Cancel => Request::new(issuer, at, cancel()).with_id(key("cancel")),
    }
}

impl System {
    pub(crate) fn step_gateway(&mut self, model: &Deployment, g: u8, weather: Weather) {
        let gateway = &self.gateways[usize::from(g)];
        let (want, step) = (*gateway.wants.last().unwrap(), gateway.step);
        let next = match step {
            Step::Load => Step::Append { version: self.log.len() },
            Step::LoadUnsure => {
                let version = self.log.len();
                let proposal = self.log.propose(version, &[request(model, want)]);
                if matches!(&proposal.answers[0], Ok(answer) if matches!(answer.outcome, Outcome::Repeated(_)))
                {
                    self.seen.ambiguous_resolved = true;
                }
                Step::Append { version }
            }
            Step::Append { version } => self.gateway_appends(model, g, version, weather),
            Step::Snapshot { version } => {
                self.snapshot = self.snapshot.max(version);
                match want {
                    Want::Start => Step::Publish,
                    Want::Cancel => self.reply(g, Reply::Done),
                }
            }
            Step::Publish => {
                if self.queue.is_empty() && !self.phase().is_terminal() {
                    self.queue.publish();
                }
                self.reply(g, Reply::Done)
            }
        };
        self.gateways[usize::from(g)].step = next;
    }

    fn reply(&mut self, g: u8, reply: Reply) -> Step {
        match self.gateways[usize::from(g)].wants.pop().unwrap() {
            Want::Start => self.start_replies.push(reply),
            Want::Cancel => self.cancel_reply = Some(reply),
        }
        Step::Load
    }

    fn gateway_appends(&mut self, model: &Deployment, g: u8, version: u8, weather: Weather) -> Step {
        let want = *self.gateways[usize::from(g)].wants.last().unwrap();
        if want == Want::Start
            && model.has(Fault::WindowOnlyDedup)
            && self.log.len() > 0
            && !self.window_passed
        {
            return Step::Snapshot { version: self.log.len() };
        }
        let proposal = self.log.propose(version, &[request(model, want)]);
        if proposal.record.is_none() {
            return self.gateway_answers(g, version, &proposal);
        }
        match weather {
            Weather::InFlight if model.has(Fault::TransientConflictIsFinal) => {
                self.reply(g, Reply::Unavailable)
            }
            Weather::InFlight => Step::Load,
            Weather::Fair | Weather::TimesOut if !self.log.append(version, &proposal) => {
                if model.has(Fault::ResendOnConflict) && want == Want::Cancel {
                    self.log.append_blindly(&proposal);
                    return Step::Snapshot { version: self.log.len() };
                }
                Step::Load
            }
            Weather::TimesOut if model.has(Fault::TimeoutIsFailure) => self.reply(g, Reply::Unavailable),
            Weather::TimesOut => Step::LoadUnsure,
            Weather::Fair => Step::Snapshot { version: self.log.len() },
        }
    }

    /// Nothing to append: it was done before, or it is refused.
    fn gateway_answers(&mut self, g: u8, version: u8, proposal: &Proposal) -> Step {
        match &proposal.answers[0] {
            Ok(_) => Step::Snapshot { version },
            Err(_) => self.reply(g, Reply::Refused),
        }
    }
}
