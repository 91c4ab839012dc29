//! Jobs: submit, read, list, delete.

use pyoco_api::{Job, JobPage, SubmitJob};
use reqwest::Method;

use crate::answer::Answer;
use crate::command::under_key;
use crate::error::Error;
use crate::executions::filled;
use crate::transport::Client;

/// Which jobs a list shows. An empty flow, time or token counts as not given; times are RFC 3339.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only jobs with each of these labels.
    pub tags: Vec<String>,
    /// Only jobs with at least one of these, if there are any.
    pub any_tags: Vec<String>,
    /// `pending`, `running`, `completed`, `failed` or `canceled`: one of these, if there are any.
    pub statuses: Vec<String>,
    /// Only jobs of this flow.
    pub flow: Option<String>,
    /// Created after this moment.
    pub created_after: Option<String>,
    /// Created before this moment.
    pub created_before: Option<String>,
    /// At most so many; the gateway's default when there is none. A page may have fewer and go on all the same.
    pub limit: Option<i64>,
    /// The `nextToken` of the page before.
    pub next_token: Option<String>,
}

impl Client {
    /// Submits a job. Under a key there is one job, however often it is sent; under a key of another request it is refused.
    pub async fn submit_job(&self, request: &SubmitJob, key: Option<&str>) -> Result<Answer<Job>, Error> {
        let outgoing = under_key(self.request(&Method::POST, &["jobs"])?, key)?;
        self.json(outgoing.with(|call| call.json(request))).await
    }

    /// Reads a job.
    pub async fn get_job(&self, job_id: &str) -> Result<Answer<Job>, Error> {
        self.json(self.request(&Method::GET, &["jobs", job_id])?).await
    }

    /// Lists jobs, newest first.
    pub async fn list_jobs(&self, filter: &JobFilter) -> Result<Answer<JobPage>, Error> {
        let several = [("tag", &filter.tags), ("tagAny", &filter.any_tags), ("status", &filter.statuses)];
        let several =
            several.into_iter().flat_map(|(name, texts)| texts.iter().map(move |text| (name, text.clone())));
        let mut query: Vec<(&str, String)> = several.collect();
        query.extend(filled([
            ("flow", &filter.flow),
            ("createdAfter", &filter.created_after),
            ("createdBefore", &filter.created_before),
            ("nextToken", &filter.next_token),
        ]));
        query.extend(filter.limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["jobs"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Cancels a job that goes on; hides one that has ended. That there is none is no error.
    pub async fn delete_job(&self, job_id: &str) -> Result<(), Error> {
        self.body(self.request(&Method::DELETE, &["jobs", job_id])?).await.map(drop)
    }
}
