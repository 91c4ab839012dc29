//! What waits for a person.

use pyoco_api::WaitPage;
use reqwest::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::executions::filled;
use crate::transport::Client;

/// Which waits a list shows. Empty texts count as not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitFilter {
    /// Only of executions with this label.
    pub tag: Option<String>,
    /// Only what has waited for so many seconds.
    pub older_than_sec: Option<f64>,
    /// At most so many; the gateway's default when there is none.
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// Lists the nodes that wait for somebody, newest first.
    pub async fn list_waits(&self, filter: &WaitFilter) -> Result<Answer<WaitPage>, Error> {
        let mut query = filled([("tag", &filter.tag), ("cursor", &filter.cursor)]);
        query.extend(filter.older_than_sec.map(|seconds| ("olderThanSec", seconds.to_string())));
        query.extend(filter.limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["waits"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }
}
