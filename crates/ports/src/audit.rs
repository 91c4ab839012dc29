//! The audit trail: who changed what, from where, when. Executions have their own logs; this one is for whoever asks across all of
//! them, and for what is no execution: keys, workers, wheels.

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;

use crate::StoreError;

/// So many entries one page looks at, at most.
pub const LOOKED_AT: usize = 10_000;

/// So many entries a store may keep as one thing, at most.
pub const TOGETHER: usize = 64;

/// Entries, in the order in which they were written.
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Writes entries, in this order. MUST keep an entry with the same id once. When it returns they MUST survive a loss of power.
    /// `[audit/write]`
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError>;

    /// A page of entries, newest first.
    ///
    /// - MUST apply every filter exactly. `[audit/filter]`
    /// - MUST go on behind the place without repeating or leaving out an entry. `[audit/pages]`
    /// - MUST look at a bounded number of entries (`LOOKED_AT`). A page MAY therefore be short, or empty, and still say where to go on.
    async fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<AuditPage, StoreError>;

    /// Takes away entries from before an instant, at most so many; says how many. MUST keep all others. One that was written behind
    /// a newer one MAY stay for as long as that one does, and so MAY the last `TOGETHER` of them, where a store keeps entries together.
    /// Nothing was taken away only when there is nothing to take away, or less than that was asked for. `[audit/prune]`
    async fn prune_audit(&self, before: Timestamp, most: usize) -> Result<usize, StoreError>;
}

/// One thing that somebody did, or tried to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Makes a repeat recognisable.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// What, e.g. `runs.submit` or `api_key.revoke`.
    pub action: String,
    /// Whose business it is, if it is a tenant's.
    pub tenant: Option<TenantId>,
    /// Which execution, key, worker or wheel, if it is one.
    pub target: Option<String>,
    /// The whole entry as JSON, as `GET /audit` shows it.
    pub body: Vec<u8>,
}

/// Which entries a page shows. Nothing set shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this tenant, or of none.
    pub tenant: Option<TenantId>,
    /// Of this kind: the whole name, or its part before a dot.
    pub action: Option<String>,
    /// About this one.
    pub target: Option<String>,
    /// At this instant or later.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
    /// Behind this place.
    pub before: Option<u64>,
}

/// A page of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The entries, newest first.
    pub entries: Vec<AuditEntry>,
    /// Where to go on, if there may be more.
    pub next: Option<u64>,
}

impl AuditFilter {
    /// Whether a page shows this entry. Where the page begins is the store's business.
    pub fn shows(&self, entry: &AuditEntry) -> bool {
        let is_of_kind = |kind: &String| {
            let rest = entry.action.strip_prefix(kind.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.tenant.as_ref().is_none_or(|tenant| entry.tenant.as_ref().is_none_or(|whose| whose == tenant))
            && self.action.as_ref().is_none_or(is_of_kind)
            && self.target.as_ref().is_none_or(|target| entry.target.as_ref() == Some(target))
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }
}
