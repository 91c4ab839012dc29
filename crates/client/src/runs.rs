//! Runs: submit, read, list and cancel them.

use std::time::Duration;

use pyoco_api::{RunPage, RunSnapshot, RunSummary, RunTasks, SubmitRequest, Submitted};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::answer::Answer;
use crate::command::under_key;
use crate::error::Error;
use crate::transport::{Client, bad_answer};
use crate::wait::is_terminal;

/// Which runs a list shows. Empty texts count as not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    /// Only runs of this status.
    pub status: Option<String>,
    /// Only runs of this flow.
    pub flow: Option<String>,
    /// Only runs with this routing tag.
    pub tag: Option<String>,
    /// Whole snapshots instead of summaries.
    pub full: bool,
    /// At most so many; the gateway's default when there is none.
    pub limit: Option<i64>,
}

/// Where a list goes on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunDelta {
    /// Only runs that changed after this moment, in unix seconds.
    pub updated_after: Option<f64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Only runs of the flow.yaml with this SHA-256.
    pub workflow_yaml_sha256: Option<String>,
}

type Query = Vec<(&'static str, String)>;

impl RunFilter {
    fn query(&self) -> Query {
        let mut query = Query::new();
        let texts = [("status", &self.status), ("flow", &self.flow), ("tag", &self.tag)];
        for (name, text) in texts {
            query.extend(text.clone().filter(|text| !text.is_empty()).map(|text| (name, text)));
        }
        if self.full {
            query.push(("include", "full".to_owned()));
        }
        query.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        query
    }
}

impl Client {
    /// Submits a run of a flow that the workers know.
    pub async fn submit_run(&self, request: &SubmitRequest) -> Result<Answer<Submitted>, Error> {
        self.submit(request, None).await
    }

    /// The same under a key: however often it is sent, there is one run. Under a key of another request it is refused.
    pub async fn submit_run_with_key(
        &self,
        request: &SubmitRequest,
        key: &str,
    ) -> Result<Answer<Submitted>, Error> {
        self.submit(request, Some(key)).await
    }

    async fn submit(&self, request: &SubmitRequest, key: Option<&str>) -> Result<Answer<Submitted>, Error> {
        let outgoing = under_key(self.request(&Method::POST, &["runs"])?, key)?;
        self.json(outgoing.with(|call| call.json(request))).await
    }

    /// Submits a run of the flow that `workflow_yaml` describes.
    pub async fn submit_run_yaml(
        &self,
        workflow_yaml: impl Into<Vec<u8>>,
        flow_name: &str,
        tag: &str,
    ) -> Result<Answer<Submitted>, Error> {
        self.submit_yaml(workflow_yaml.into(), flow_name, tag, None).await
    }

    /// The same under a key: however often it is sent, there is one run. Under a key of another request it is refused.
    pub async fn submit_run_yaml_with_key(
        &self,
        workflow_yaml: impl Into<Vec<u8>>,
        flow_name: &str,
        tag: &str,
        key: &str,
    ) -> Result<Answer<Submitted>, Error> {
        self.submit_yaml(workflow_yaml.into(), flow_name, tag, Some(key)).await
    }

    async fn submit_yaml(
        &self,
        workflow_yaml: Vec<u8>,
        flow_name: &str,
        tag: &str,
        key: Option<&str>,
    ) -> Result<Answer<Submitted>, Error> {
        let outgoing = under_key(self.request(&Method::POST, &["runs", "yaml"])?, key)?;
        let part = Part::bytes(workflow_yaml).file_name("flow.yaml");
        let part = part
            .mime_str("application/x-yaml")
            .map_err(|error| bad_answer(&outgoing.call, error.to_string()))?;
        let form = Form::new()
            .part("workflow", part)
            .text("flow_name", flow_name.to_owned())
            .text("tag", tag.to_owned());
        self.json(outgoing.with(|call| call.multipart(form))).await
    }

    /// Reads a run.
    pub async fn get_run(&self, run_id: &str) -> Result<Answer<RunSnapshot>, Error> {
        self.json(self.request(&Method::GET, &["runs", run_id])?).await
    }

    /// Reads a run with the records of its tasks.
    pub async fn get_run_with_records(&self, run_id: &str) -> Result<Answer<RunSnapshot>, Error> {
        let outgoing = self.request(&Method::GET, &["runs", run_id])?;
        self.json(outgoing.with(|call| call.query(&[("include", "records")]))).await
    }

    /// Reads the tasks of a run and their records.
    pub async fn get_tasks(&self, run_id: &str) -> Result<Answer<RunTasks>, Error> {
        self.json(self.request(&Method::GET, &["runs", run_id, "tasks"])?).await
    }

    /// Lists runs, newest change first.
    pub async fn list_runs(&self, filter: &RunFilter) -> Result<Answer<Vec<RunSummary>>, Error> {
        let outgoing = self.request(&Method::GET, &["runs"])?;
        let (mut json, call) = self.value(outgoing.with(|call| call.query(&filter.query()))).await?;
        if let Some(items) = json.get_mut("items") {
            json = items.take();
        }
        Answer::read(json)
            .map_err(|error| bad_answer(&call, format!("the answer is no list of runs: {error}")))
    }

    /// Lists runs page by page, or only what changed.
    pub async fn list_runs_vnext(
        &self,
        filter: &RunFilter,
        delta: &RunDelta,
    ) -> Result<Answer<RunPage>, Error> {
        let mut query = filter.query();
        query.extend(delta.updated_after.map(|moment| ("updated_after", moment.to_string())));
        // An empty cursor asks for the form with a `next_cursor`; without any, the first page would have none.
        query.push(("cursor", delta.cursor.clone().unwrap_or_default()));
        let sha256 = delta.workflow_yaml_sha256.clone().filter(|text| !text.is_empty());
        query.extend(sha256.map(|text| ("workflow_yaml_sha256", text)));
        let outgoing = self.request(&Method::GET, &["runs"])?;
        let (mut json, call) = self.value(outgoing.with(|call| call.query(&query))).await?;
        if json.is_array() {
            json = json!({"items": json, "next_cursor": null});
        }
        Answer::read(json)
            .map_err(|error| bad_answer(&call, format!("the answer is no page of runs: {error}")))
    }

    /// Asks for the end of a run, and with `wait` stays until it has ended, at most that long. Asking again is harmless.
    pub async fn cancel_run(
        &self,
        run_id: &str,
        wait: Option<Duration>,
    ) -> Result<Answer<RunSnapshot>, Error> {
        let outgoing = self.request(&Method::POST, &["runs", run_id, "cancel"])?;
        let run: Answer<RunSnapshot> = self.json(outgoing).await?;
        match wait {
            Some(limit) if !is_terminal(run.status) => self.wait_for_end(run_id, limit, |_| {}).await,
            Some(_) | None => Ok(run),
        }
    }
}
