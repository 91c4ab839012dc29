//! The labels of jobs: read, add, remove, and find those that are in use.

use pyoco_api::{AddTag, TagPage};
use reqwest::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::executions::filled;
use crate::transport::Client;

/// Which labels a list shows. Empty texts count as not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagFilter {
    /// Only labels that begin with this text.
    pub prefix: Option<String>,
    /// At most so many; the gateway's default when there is none.
    pub limit: Option<i64>,
    /// The `nextToken` of the page before.
    pub next_token: Option<String>,
}

impl Client {
    /// The labels of a job.
    pub async fn job_tags(&self, job_id: &str) -> Result<Answer<Vec<String>>, Error> {
        self.json(self.request(&Method::GET, &["jobs", job_id, "tags"])?).await
    }

    /// Gives a job a label, and gives the labels it then has. Adding one twice is no error.
    pub async fn add_tag(&self, job_id: &str, tag: &str) -> Result<Answer<Vec<String>>, Error> {
        let outgoing = self.request(&Method::POST, &["jobs", job_id, "tags"])?;
        let body = AddTag { tag: tag.to_owned() };
        self.json(outgoing.with(|call| call.json(&body))).await
    }

    /// Takes a label from a job. That it has none is no error.
    pub async fn remove_tag(&self, job_id: &str, tag: &str) -> Result<(), Error> {
        self.body(self.request(&Method::DELETE, &["jobs", job_id, "tags", tag])?).await.map(drop)
    }

    /// Lists labels with how many jobs have them, in the order of their bytes.
    pub async fn list_tags(&self, filter: &TagFilter) -> Result<Answer<TagPage>, Error> {
        let mut query = filled([("prefix", &filter.prefix), ("nextToken", &filter.next_token)]);
        query.extend(filter.limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["tags"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }
}
