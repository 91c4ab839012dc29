//! Workers and figures of the whole system.

use pyoco_api::{WorkerPatch, WorkerPatched, WorkerRecord};
use reqwest::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::transport::{Client, bad_answer};

/// Which workers a list shows. What is not given is left to the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerFilter {
    /// `active` or `all`.
    pub scope: Option<String>,
    /// Only workers in this state.
    pub state: Option<String>,
    /// Hidden ones too.
    pub include_hidden: Option<bool>,
    /// At most so many.
    pub limit: Option<i64>,
}

impl Client {
    /// Lists workers, the last seen first.
    pub async fn get_workers(&self, filter: &WorkerFilter) -> Result<Answer<Vec<WorkerRecord>>, Error> {
        let mut query: Vec<(&str, String)> = Vec::new();
        for (name, text) in [("scope", &filter.scope), ("state", &filter.state)] {
            query.extend(text.clone().filter(|text| !text.is_empty()).map(|text| (name, text)));
        }
        query.extend(filter.include_hidden.map(|hidden| ("include_hidden", hidden.to_string())));
        query.extend(filter.limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["workers"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Hides a worker from lists, or shows it again.
    pub async fn patch_worker_hidden(
        &self,
        worker_id: &str,
        hidden: bool,
    ) -> Result<Answer<WorkerPatched>, Error> {
        let outgoing = self.request(&Method::PATCH, &["workers", worker_id])?;
        self.json(outgoing.with(|call| call.json(&WorkerPatch { hidden }))).await
    }

    /// The figures of the system, as text for Prometheus.
    pub async fn get_metrics(&self) -> Result<String, Error> {
        let outgoing = self.request(&Method::GET, &["metrics"])?;
        let call = outgoing.call.clone();
        let body = self.body(outgoing).await?;
        String::from_utf8(body.into()).map_err(|_| bad_answer(&call, "the answer is not UTF-8"))
    }
}
