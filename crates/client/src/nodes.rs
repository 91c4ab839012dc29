//! The nodes of an execution, driven from outside. A node in a loop is named by its path, e.g. `retry/2/fetch`.

use pyoco_api::{Accepted, FailNode, PutWaiting, ReportProgress, ResumeNode, StartNode, SucceedNode, Why};

use crate::answer::Answer;
use crate::command::CommandOptions;
use crate::error::Error;
use crate::transport::Client;

impl Client {
    /// Begins an attempt of a node.
    pub async fn start_node(
        &self,
        execution_id: &str,
        node_id: &str,
        request: &StartNode,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "start"], request, options).await
    }

    /// Says how far an attempt is.
    pub async fn report_progress(
        &self,
        execution_id: &str,
        node_id: &str,
        request: &ReportProgress,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "progress"], request, options).await
    }

    /// Lets a running node wait for somebody.
    pub async fn put_node_waiting(
        &self,
        execution_id: &str,
        node_id: &str,
        request: &PutWaiting,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "wait"], request, options).await
    }

    /// Answers a node that waits.
    pub async fn resume_node(
        &self,
        execution_id: &str,
        node_id: &str,
        request: &ResumeNode,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "resume"], request, options).await
    }

    /// Says that a node ended well.
    pub async fn succeed_node(
        &self,
        execution_id: &str,
        node_id: &str,
        request: &SucceedNode,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "success"], request, options).await
    }

    /// Says that an attempt failed.
    pub async fn fail_node(
        &self,
        execution_id: &str,
        node_id: &str,
        request: &FailNode,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "fail"], request, options).await
    }

    /// Cancels one node; the rest goes on without it.
    pub async fn cancel_node(
        &self,
        execution_id: &str,
        node_id: &str,
        why: &Why,
        options: &CommandOptions,
    ) -> Result<Answer<Accepted>, Error> {
        self.command(&["executions", execution_id, "nodes", node_id, "cancel"], why, options).await
    }
}
