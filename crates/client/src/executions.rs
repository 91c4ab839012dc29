//! Executions as a whole: create, start, cancel, archive, retry; read, list, page through what happened.

use pyoco_api::{Accepted, CreateExecution, EventPage, Execution, ExecutionPage, Extra, RetryExecution, Why};
use reqwest::Method;

use crate::answer::Answer;
use crate::command::CommandOptions;
use crate::error::Error;
use crate::transport::Client;

/// Which executions a list shows. Empty texts count as not given; times are RFC 3339.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// `ACTIVE`, `COMPLETED`, `FAILED` or `CANCELED`.
    pub status: Option<String>,
    /// Only executions of this graph.
    pub graph_id: Option<String>,
    /// Only executions with this label.
    pub tag: Option<String>,
    /// Created after this moment.
    pub created_after: Option<String>,
    /// Created before this moment.
    pub created_before: Option<String>,
    /// Changed after this moment.
    pub updated_after: Option<String>,
    /// Changed before this moment.
    pub updated_before: Option<String>,
    /// At most so many; the gateway's default when there is none.
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// Makes an execution exist. It does not run before it is started.
    pub async fn create_execution(
        &self,
        request: &CreateExecution,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions"], request, options).await
    }

    /// Lets an execution run.
    pub async fn start_execution(
        &self,
        execution_id: &str,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "start"], &Extra::new(), options).await
    }

    /// Asks for the end of an execution.
    pub async fn cancel_execution(
        &self,
        execution_id: &str,
        why: &Why,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "cancel"], why, options).await
    }

    /// Puts an execution away that has ended.
    pub async fn archive_execution(
        &self,
        execution_id: &str,
        why: &Why,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "archive"], why, options).await
    }

    /// Repeats an execution that has ended. The answer names the new one, which keeps what succeeded and runs the rest.
    pub async fn retry_execution(
        &self,
        execution_id: &str,
        request: &RetryExecution,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "retry"], request, options).await
    }

    /// Reads an execution: as it is, or as it was when the event `at` had happened.
    pub async fn get_execution(
        &self,
        execution_id: &str,
        at: Option<u64>,
    ) -> Result<Answer<Execution>, Error> {
        let query: Vec<(&str, String)> = at.map(|seq| ("at", seq.to_string())).into_iter().collect();
        let outgoing = self.request(&Method::GET, &["executions", execution_id])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Lists executions, newest change first.
    pub async fn list_executions(&self, filter: &ExecutionFilter) -> Result<Answer<ExecutionPage>, Error> {
        let texts = [
            ("status", &filter.status),
            ("graphId", &filter.graph_id),
            ("tag", &filter.tag),
            ("createdAfter", &filter.created_after),
            ("createdBefore", &filter.created_before),
            ("updatedAfter", &filter.updated_after),
            ("updatedBefore", &filter.updated_before),
            ("cursor", &filter.cursor),
        ];
        let mut query = filled(texts);
        query.extend(filter.limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["executions"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Reads what happened to an execution behind the event `after` (0: from the beginning), oldest first.
    pub async fn get_events(
        &self,
        execution_id: &str,
        after: u64,
        limit: Option<i64>,
    ) -> Result<Answer<EventPage>, Error> {
        let mut query = vec![("after", after.to_string())];
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["executions", execution_id, "events"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }
}

/// The parameters that were given.
pub(crate) fn filled<const N: usize>(
    texts: [(&'static str, &Option<String>); N],
) -> Vec<(&'static str, String)> {
    let given = texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?)));
    given.filter(|(_, text)| !text.is_empty()).collect()
}
