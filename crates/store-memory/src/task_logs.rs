//! The logs that people read, in memory.

use async_trait::async_trait;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{LinePlace, LogEnd, LogLine, LogTerms, StoreError, TaskLogs, Written};

use crate::MemoryStore;

/// One log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    end: LogEnd,
    lines: Vec<LogLine>,
}

#[async_trait]
impl TaskLogs for MemoryStore {
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        let mut inner = self.inner();
        let log = inner.lines.entry(execution.clone()).or_default();
        let written = log.end.take(lines, terms);
        log.end = written.end;
        log.lines.extend(written.lines.iter().map(|(_, line)| line.clone()));
        Ok(written)
    }

    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError> {
        Ok(self.inner().lines.get(execution).map(|log| log.end).unwrap_or_default())
    }

    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let inner = self.inner();
        let lines = inner.lines.get(execution).map_or(&[][..], |log| log.lines.as_slice());
        Ok((1..).zip(lines).skip(after).take(limit).map(|(number, line)| (number, line.clone())).collect())
    }

    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError> {
        let inner = self.inner();
        let lines = inner.lines.get(execution).map_or(&[][..], |log| log.lines.as_slice());
        let mut first_byte = 0;
        for (number, line) in (1..).zip(lines) {
            let behind = first_byte + line.text_bytes();
            if byte < behind {
                return Ok(Some(LinePlace { number, first_byte }));
            }
            first_byte = behind;
        }
        Ok(None)
    }
}
