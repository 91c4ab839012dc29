//! The auditor: is what is stored what was written, and does what is derived agree with it.

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::state::State;
use pyoco_ports::ErrorKind;

use crate::{Engine, EngineError, projection};

/// What an audit of one execution found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// What is wrong; empty when all is well.
    pub findings: Vec<Finding>,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The log cannot be read or folded: a record was changed, is missing, or stands twice.
    BrokenLog(String),
    /// The index shows a newer version than the log has: the tail of the log was lost.
    TailLost {
        /// The version that was seen once.
        seen: Version,
        /// The version that the log has.
        has: Version,
    },
    /// The index shows something else than the log says; it was put right.
    RowRepaired,
}

impl Engine {
    /// Checks one execution, and puts right what is derived.
    pub async fn audit(&self, execution: &ExecutionId) -> Result<Audit, EngineError> {
        let mut audit = Audit::default();
        let records = match self.store.read(execution, Version(0)).await {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                audit.findings.push(Finding::BrokenLog(error.to_string()));
                return Ok(audit);
            }
            records => records?,
        };
        let folded = State::from_log(execution.clone(), records.iter().map(|record| record.bytes.as_slice()));
        let state = match folded {
            Ok(state) => state,
            Err(error) => {
                audit.findings.push(Finding::BrokenLog(error.to_string()));
                return Ok(audit);
            }
        };
        let row = self.store.get(execution).await?;
        let seen = row.as_ref().map_or(Version(0), |row| row.version);
        if seen > state.version {
            audit.findings.push(Finding::TailLost { seen, has: state.version });
        } else if let Some(wanted) = projection::row(&state, self.settings.force_after())
            && row.as_ref() != Some(&wanted)
        {
            self.store.put(wanted).await?;
            audit.findings.push(Finding::RowRepaired);
        }
        Ok(audit)
    }
}
