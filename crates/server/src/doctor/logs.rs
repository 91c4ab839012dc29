//! Folding the log of an execution, and comparing it with what lists show. Unlike the auditor it puts nothing right.

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::state::State;

use super::{Finding, some};

const ABOUT: &str = "runs";

/// What was found in the logs of many executions.
#[derive(Debug, Default)]
pub(super) struct Logs {
    looked_at: usize,
    broken: Vec<String>,
    lost: Vec<ExecutionId>,
    late: Vec<ExecutionId>,
}

/// What a log says about itself and about what lists show.
#[derive(Debug)]
pub(super) enum Verdict {
    /// All is well.
    Whole,
    /// It cannot be read, for this reason.
    Broken(String),
    /// Lists have seen more than it has.
    Lost,
    /// Lists have not seen all of it, up to this.
    Late(Version),
}

impl Verdict {
    /// Of the records, and of the version that lists show. A row that another implementation has written has no records, and says
    /// nothing about them.
    pub(super) fn of<'a>(
        execution: &ExecutionId,
        shown: Version,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        match State::from_log(execution.clone(), records) {
            Err(error) => Self::Broken(error.to_string()),
            Ok(state) if shown > state.version => Self::Lost,
            Ok(state) if shown < state.version => Self::Late(state.version),
            Ok(_) => Self::Whole,
        }
    }
}

impl Logs {
    /// Keeps what was found in one.
    pub(super) fn add(&mut self, execution: &ExecutionId, verdict: Verdict) {
        self.looked_at += 1;
        match verdict {
            Verdict::Whole => {}
            Verdict::Broken(why) => self.broken.push(format!("{execution} ({why})")),
            Verdict::Lost => self.lost.push(execution.clone()),
            Verdict::Late(_) => self.late.push(execution.clone()),
        }
    }

    /// What there is to say. `is_sample` tells whether there were more.
    pub(super) fn findings(self, is_sample: bool) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.broken.is_empty() {
            findings.push(
                Finding::error(ABOUT, format!("the log cannot be read of {}", some(&self.broken))).advice(
                    "a record was changed or is missing: keep a copy of the store, then restore a backup",
                ),
            );
        }
        if !self.lost.is_empty() {
            findings.push(
                Finding::error(ABOUT, format!("the end of the log was lost of {}", some(&self.lost)))
                    .advice("lists have seen records that are gone: check the disk, and whether an older copy of the store was put in place"),
            );
        }
        if !self.late.is_empty() {
            findings.push(
                Finding::warn(ABOUT, format!("lists show an earlier state of {}", some(&self.late)))
                    .advice("they are put right by the next change; if that never comes, restart the server"),
            );
        }
        if findings.is_empty() {
            let which = if is_sample { "of those that changed last" } else { "of all" };
            findings
                .push(Finding::ok(ABOUT, format!("the logs of {} runs, {which}, are whole", self.looked_at)));
        }
        findings
    }
}
