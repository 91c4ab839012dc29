//! The audit trail: who did what.

use pyoco_api::AuditPage;
use reqwest::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::executions::filled;
use crate::transport::Client;

/// Which entries a list shows. Empty texts count as not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditFilter {
    /// Only of this kind: a whole name, e.g. `runs.submit`, or its part before a dot.
    pub action: Option<String>,
    /// Only about this execution, graph, worker or key.
    pub target: Option<String>,
    /// Only at this instant or later, in RFC 3339.
    pub since: Option<String>,
    /// Only before this instant, in RFC 3339.
    pub until: Option<String>,
    /// At most so many; the gateway's default when there is none.
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// Lists what was done, newest first. A page may be short, or empty, and still have a next one.
    pub async fn list_audit(&self, filter: &AuditFilter) -> Result<Answer<AuditPage>, Error> {
        let AuditFilter { action, target, since, until, limit, cursor } = filter;
        let mut query = filled([
            ("action", action),
            ("target", target),
            ("since", since),
            ("until", until),
            ("cursor", cursor),
        ]);
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &["audit"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }
}
