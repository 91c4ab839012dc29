//! The same command for many executions: those that a filter finds, a page at a time.
//!
//! What the index says is a hint. Each execution is looked at before anything is asked of it, and what does not apply to it is
//! passed over. Whatever is asked twice is done once: a cancel, because it has been requested then; a retry, because the name of
//! the new execution follows from the old one's, whoever asks and under whichever key.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use pyoco_core::command::{CancelExecution, Issuer};
use pyoco_core::cursor::Cursor;
use pyoco_core::ids::{CommandId, ExecutionId, TenantId};
use pyoco_core::state::{Phase, State};
use pyoco_core::view::RunStatus;
use pyoco_ports::{ErrorKind, Filter, IndexRow, StoreError};
use tokio::time::Instant;

use crate::{Ask, Engine, EngineError, Retry, uuid};

/// So many are asked at the same time.
const AT_ONCE: usize = 16;
/// So long new ones are begun; whoever asked is answered then, and goes on behind the last.
const LONGEST: Duration = Duration::from_secs(10);

/// What is asked of many, by whom.
#[derive(Debug, Clone)]
pub struct Bulk {
    /// What.
    pub action: BulkAction,
    /// Of which. Without a status: of those to which it may apply.
    pub filter: Filter,
    /// At most so many are looked at.
    pub limit: usize,
    /// Only say what would be done.
    pub is_dry: bool,
    /// Who asks.
    pub issuer: Issuer,
    /// The key of whoever asks.
    pub api_key_id: Option<String>,
    /// The caller's key; one is made up where there is none.
    pub key: Option<CommandId>,
    /// The caller's thread through several commands; one is made up where there is none.
    pub correlation_id: Option<String>,
    /// The trace that the caller is in.
    pub traceparent: Option<String>,
}

/// What can be asked of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkAction {
    /// To end.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
    /// To be repeated, as they were.
    Retry,
}

/// What became of a page.
#[derive(Debug)]
pub struct Bulked {
    /// Of each that was looked at, in the order of the list.
    pub results: Vec<(ExecutionId, BulkResult)>,
    /// Where to go on, if there may be more.
    pub next: Option<Cursor>,
    /// The thread that all of it belongs to.
    pub correlation_id: String,
}

/// What became of one execution.
#[derive(Debug)]
pub enum BulkResult {
    /// It was done, or would be. A retry names the new execution, if there is one.
    Done(Option<ExecutionId>),
    /// It does not apply to it; nothing was done.
    Skipped(Skip),
    /// It could not be done.
    Failed(EngineError),
}

/// Why an execution was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// A cancel of what has ended.
    AlreadyEnded,
    /// A cancel of what is being canceled.
    AlreadyCanceling,
    /// A retry of what has been repeated before.
    AlreadyRetried,
    /// A retry of what has not ended.
    StillActive,
    /// A retry of what has ended well.
    Completed,
    /// A retry of what somebody has put away.
    Archived,
    /// A retry of what somebody has deleted from their list of jobs.
    Deleted,
    /// The index knows it, its log does not (any more).
    NotFound,
}

impl Skip {
    /// The stable word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyEnded => "ALREADY_ENDED",
            Self::AlreadyCanceling => "ALREADY_CANCELING",
            Self::AlreadyRetried => "ALREADY_RETRIED",
            Self::StillActive => "STILL_ACTIVE",
            Self::Completed => "COMPLETED",
            Self::Archived => "ARCHIVED",
            Self::Deleted => "DELETED",
            Self::NotFound => "NOT_FOUND",
        }
    }
}

/// What has to be known of an execution before it is asked.
struct Standing {
    phase: Phase,
    tenant: Option<TenantId>,
    is_archived: bool,
    is_hidden: bool,
    retried_by: Option<ExecutionId>,
}

impl Standing {
    fn of(state: &State) -> Self {
        Self {
            phase: state.phase,
            tenant: state.origin.as_ref().and_then(|origin| origin.tenant.clone()),
            is_archived: state.archived_at.is_some(),
            is_hidden: state.hidden,
            retried_by: state.retried_by.clone(),
        }
    }

    const fn against_cancel(&self) -> Option<Skip> {
        match self.phase {
            Phase::Created | Phase::Started | Phase::Failing => None,
            Phase::Canceling => Some(Skip::AlreadyCanceling),
            Phase::Completed | Phase::Failed | Phase::Canceled => Some(Skip::AlreadyEnded),
            Phase::Absent => Some(Skip::NotFound),
        }
    }

    const fn against_retry(&self) -> Option<Skip> {
        match self.phase {
            Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => Some(Skip::StillActive),
            Phase::Completed => Some(Skip::Completed),
            Phase::Absent => Some(Skip::NotFound),
            Phase::Failed | Phase::Canceled if self.is_archived => Some(Skip::Archived),
            Phase::Failed | Phase::Canceled if self.is_hidden => Some(Skip::Deleted),
            Phase::Failed | Phase::Canceled => None,
        }
    }
}

impl Engine {
    /// Asks the same of a page of executions. It stops early when the store fails, or after a while; `next` says where to go on.
    /// It fails as a whole if the store does before anything is done.
    pub async fn bulk(&self, mut bulk: Bulk) -> Result<Bulked, EngineError> {
        let (key, correlation_id) =
            self.named(bulk.key.take(), bulk.correlation_id.take(), "POST /executions/bulk");
        if bulk.filter.statuses.is_empty() {
            bulk.filter.statuses = match bulk.action {
                BulkAction::Cancel { .. } => vec![RunStatus::Pending, RunStatus::Running],
                BulkAction::Retry => vec![RunStatus::Failed, RunStatus::Cancelled],
            };
        }
        let page = self.store.list(&bulk.filter, bulk.limit).await?;
        let over = Instant::now() + LONGEST;
        let (mut rows, mut under_way) = (page.rows.into_iter(), FuturesOrdered::new());
        let (mut results, mut last, mut is_broken) = (Vec::new(), None, false);
        loop {
            while under_way.len() < AT_ONCE && !is_broken && Instant::now() < over {
                let Some(row) = rows.next() else { break };
                under_way.push_back(self.of_many(&bulk, row, &key, &correlation_id));
            }
            // What was begun is finished, whatever became of the others.
            let Some((place, result)) = under_way.next().await else { break };
            is_broken |= is_store_failing(&result);
            last = Some(place.clone());
            results.push((place.id, result));
        }
        drop(under_way);
        if is_broken && !results.iter().any(|(_, result)| matches!(result, BulkResult::Done(_))) {
            let failure = results.into_iter().map(|(_, result)| result).find(is_store_failing);
            return match failure {
                Some(BulkResult::Failed(error)) => Err(error),
                Some(BulkResult::Done(_) | BulkResult::Skipped(_)) | None => {
                    Err(StoreError::plain(ErrorKind::Unavailable, "bulk").into())
                }
            };
        }
        let next = if rows.len() == 0 { page.next } else { last.or_else(|| bulk.filter.cursor.clone()) };
        Ok(Bulked { results, next, correlation_id })
    }

    async fn of_many(
        &self,
        bulk: &Bulk,
        row: IndexRow,
        key: &CommandId,
        correlation_id: &str,
    ) -> (Cursor, BulkResult) {
        let place = Cursor { updated_at: row.updated_at, id: row.execution };
        let result = self.one_of_many(bulk, &place.id, key, correlation_id).await;
        (place, result.unwrap_or_else(BulkResult::Failed))
    }

    async fn one_of_many(
        &self,
        bulk: &Bulk,
        execution: &ExecutionId,
        key: &CommandId,
        correlation_id: &str,
    ) -> Result<BulkResult, EngineError> {
        let standing = self.look(execution, Standing::of).await?;
        // Whose it is stands in the log.
        let is_seen =
            |standing: &Standing| bulk.filter.tenant.is_none() || bulk.filter.tenant == standing.tenant;
        let Some(standing) = standing.filter(is_seen) else { return Ok(BulkResult::Skipped(Skip::NotFound)) };
        match &bulk.action {
            BulkAction::Cancel { reason } => {
                if let Some(skip) = standing.against_cancel() {
                    return Ok(BulkResult::Skipped(skip));
                }
                if !bulk.is_dry {
                    let ask = Ask {
                        command: CancelExecution { reason: reason.clone() }.into(),
                        issuer: bulk.issuer.clone(),
                        key: Some(key.clone()),
                        correlation_id: Some(correlation_id.to_owned()),
                    };
                    self.ask(execution, ask).await?;
                }
                Ok(BulkResult::Done(None))
            }
            BulkAction::Retry => {
                if let Some(skip) = standing.against_retry() {
                    return Ok(BulkResult::Skipped(skip));
                }
                self.retry_of_many(bulk, execution, standing.retried_by, correlation_id).await
            }
        }
    }

    /// Repeats what may be repeated, unless it was before. Whoever repeats the same request is told again what was made.
    async fn retry_of_many(
        &self,
        bulk: &Bulk,
        execution: &ExecutionId,
        retried_by: Option<ExecutionId>,
        correlation_id: &str,
    ) -> Result<BulkResult, EngineError> {
        let (new, thread) = match retried_by {
            Some(new) => {
                let thread = self.thread_of(&new).await?;
                (new, thread)
            }
            None if bulk.is_dry => return Ok(BulkResult::Done(None)),
            None => {
                // The same whoever asks: of two who ask at once, one makes the new execution and the other finds it.
                let key = uuid(&("bulk", "retry", execution.as_str()));
                let retry = Retry {
                    input: None,
                    from: None,
                    issuer: bulk.issuer.clone(),
                    api_key_id: bulk.api_key_id.clone(),
                    key: CommandId::new(&key).ok(),
                    correlation_id: Some(correlation_id.to_owned()),
                    traceparent: bulk.traceparent.clone(),
                };
                let asked = self.retry(execution, retry).await?;
                (asked.execution, Some(asked.correlation_id))
            }
        };
        Ok(match thread.as_deref() == Some(correlation_id) {
            true => BulkResult::Done(Some(new)),
            false => BulkResult::Skipped(Skip::AlreadyRetried),
        })
    }
}

/// Whether to go on would be to fail again and again.
const fn is_store_failing(result: &BulkResult) -> bool {
    match result {
        BulkResult::Failed(EngineError::Store(error) | EngineError::Unfollowed(error)) => {
            error.kind.is_retryable()
        }
        BulkResult::Failed(EngineError::Rejected(_) | EngineError::Busy(_) | EngineError::Log { .. }) => {
            false
        }
        BulkResult::Failed(EngineError::UnknownGraph(_) | EngineError::UnusableGraph { .. }) => false,
        BulkResult::Done(_) | BulkResult::Skipped(_) => false,
    }
}
