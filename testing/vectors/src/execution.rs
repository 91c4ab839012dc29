//! One execution with its log in memory and a real clock. Every record is folded again with all before it.

use std::time::{Duration, Instant};

use pyoco_core::command::{Command, Issuer, Request};
use pyoco_core::decide::Batch;
use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::outcome::Outcome;
use pyoco_core::state::State;
use pyoco_core::time::Timestamp;

use crate::Broken;

/// An execution and its log.
#[derive(Debug)]
pub(crate) struct Execution {
    state: State,
    log: Vec<Vec<u8>>,
    began: Instant,
    next_id: u64,
}

impl Execution {
    /// Nothing recorded yet; its clock starts now.
    #[expect(clippy::disallowed_methods, reason = "vectors measure real durations of real tasks")]
    pub(crate) fn new() -> Result<Self, Broken> {
        let id = ExecutionId::new("e-1").map_err(|error| error.to_string())?;
        Ok(Self { state: State::absent(id), log: Vec::new(), began: Instant::now(), next_id: 0 })
    }

    /// The folded state.
    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    /// How long it has existed.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// What time it is for this execution.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(1_700_000_000_000_000_i64.saturating_add(passed))
    }

    /// Sends commands that arrive together; they become one record. None of them may be refused.
    pub(crate) fn send(
        &mut self,
        issuer: &Issuer,
        commands: impl IntoIterator<Item = Command>,
    ) -> Result<Vec<Outcome>, Broken> {
        let now = self.now();
        let mut outcomes = Vec::new();
        let mut batch = Batch::new(&mut self.state);
        for command in commands {
            let request = Request::new(issuer.clone(), now, command);
            let answer = batch.decide(&request).map_err(|rejection| rejection.to_string())?;
            outcomes.push(answer.outcome);
        }
        let mut next_id = self.next_id;
        let sealed = batch.seal(&mut || {
            next_id += 1;
            // The letters and digits of a number are always a sound id.
            #[expect(clippy::unwrap_used, reason = "the text is made on this very line")]
            EventId::new(&format!("ev-{next_id}")).unwrap()
        });
        self.next_id = next_id;
        self.log.extend(sealed.map(|sealed| sealed.bytes));
        self.assert_folds()?;
        Ok(outcomes)
    }

    /// The whole log folds to the live state.
    fn assert_folds(&self) -> Result<(), Broken> {
        let folded = State::from_log(self.state.id.clone(), self.log.iter().map(Vec::as_slice));
        match folded {
            Ok(folded) if folded == self.state => Ok(()),
            Ok(folded) => {
                Err(format!("the log folds to another state:\n{}", lines_that_differ(&folded, &self.state)))
            }
            Err(error) => Err(format!("the log does not fold: {error}")),
        }
    }
}

/// Where two states differ, by the lines of their debug form that only one of them has.
fn lines_that_differ(folded: &State, live: &State) -> String {
    let (folded, live) = (format!("{folded:#?}"), format!("{live:#?}"));
    let only = |of: &str, other: &str| -> Vec<String> {
        let mut rest: Vec<&str> = other.lines().collect();
        let mut lines = Vec::new();
        for line in of.lines() {
            match rest.iter().position(|candidate| *candidate == line) {
                Some(at) => {
                    rest.swap_remove(at);
                }
                None => lines.push(line.trim().to_owned()),
            }
        }
        lines.truncate(8);
        lines
    };
    format!("folded {:?}\nlive   {:?}", only(&folded, &live), only(&live, &folded))
}
