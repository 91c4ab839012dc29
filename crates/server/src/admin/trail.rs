//! What an operator did, for the audit trail. It stands there before the order is answered.

use pyoco_api::{AuditEntry, AuditOutcome, Extra};
use pyoco_core::ids::TenantId;
use pyoco_engine::Clock as _;
use serde_json::Value;

use super::desk::Desk;
use super::order::AdminError;
use crate::SystemClock;

/// From where orders come: a tool on the machine, as a user who may have the store.
const SOURCE: &str = "pyoco-server-admin";

/// Something that was done.
pub(super) struct Done<'a> {
    /// What, e.g. `api_key.revoke`.
    pub(super) action: &'static str,
    /// Whose business it is, if it is a tenant's.
    pub(super) tenant: Option<&'a TenantId>,
    /// What it is about, if it is about one thing.
    pub(super) target: Option<&'a str>,
    /// What else is worth knowing.
    pub(super) details: &'a [(&'static str, Value)],
    /// What ended it before all of it was done.
    pub(super) failed: Option<&'a AdminError>,
}

/// Writes down what was done, and adds to the answer if that could not be: it cannot be undone, and its answer may hold a secret
/// that nobody else has.
pub(super) async fn write(desk: &Desk, answer: &mut Value, done: Done<'_>) {
    let (at, trail) = (SystemClock.now(), desk.engine.trail());
    let details = done.details.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let failed = done.failed.map(|why| ("error".to_owned(), why.to_string().into()));
    let entry = AuditEntry {
        id: trail.entry_id(at),
        at,
        action: done.action.to_owned(),
        actor: None,
        tenant: done.tenant.map(|tenant| tenant.as_str().to_owned()),
        source: Some(SOURCE.to_owned()),
        correlation_id: None,
        target: done.target.map(str::to_owned),
        status: None,
        outcome: if failed.is_some() { AuditOutcome::Failed } else { AuditOutcome::Ok },
        details: details.chain(failed).collect(),
        extra: Extra::new(),
    };
    let Err(error) = trail.write(pyoco_gateway::stored_audit_entry(entry)).await else { return };
    tracing::warn!(action = done.action, "a change is not in the audit trail: {error}");
    if let Value::Object(members) = answer {
        let warning = format!("it was done, but the audit trail does not say so: {error}");
        members.insert("warning".to_owned(), warning.into());
    }
}
