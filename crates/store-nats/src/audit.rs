//! The audit trail: a stream with one message for each entry, read from its end.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use pyoco_core::digest::Digest;
use pyoco_core::ids::TenantId;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{AuditEntry, AuditFilter, AuditPage, AuditTrail, LOOKED_AT, StoreError};
use serde_json::json;

use crate::error::PublishError;
use crate::message::{Headers, Stored};
use crate::stream::Most;
use crate::{NatsStore, names, resources};

/// The id of an entry.
const ID: &str = "Pyoco-Id";
/// When, in microseconds since 1970.
const AT: &str = "Pyoco-At";
/// What was done.
const ACTION: &str = "Pyoco-Action";
/// Whose it is, if it is a tenant's.
const TENANT: &str = "Pyoco-Tenant";
/// What it is about, if it is about something.
const TARGET: &str = "Pyoco-Target";

const WRITE: &str = "write the audit trail";
const READ: &str = "read the audit trail";
const PRUNE: &str = "prune the audit trail";

/// So many entries are under way to the server at once.
const AT_ONCE: usize = 64;
/// So many messages are read with one request.
const PIECE: u64 = 500;
/// The clocks of a gateway and of a server of NATS differ by less.
const SKEW: Millis = Millis(24 * 3_600_000);

#[async_trait]
impl AuditTrail for NatsStore {
    /// The server knows the ids of the last two minutes, also after it was restarted. Whoever repeats after a longer outage may leave an
    /// entry twice: its id says so.
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        // They are sent in this order over one connection, so the server takes them in this order. Whoever is told to let others go
        // first, as a task may be, would send behind those that follow.
        tokio::task::unconstrained(async {
            let writes = entries.into_iter().map(|entry| self.write_entry(entry));
            let mut writes = futures_util::stream::iter(writes).buffered(AT_ONCE);
            let mut result = Ok(());
            while let Some(written) = writes.next().await {
                // The others are on their way: they are waited for, whatever became of one.
                result = result.and(written);
            }
            result
        })
        .await
    }

    async fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<AuditPage, StoreError> {
        let mut page = AuditPage { entries: Vec::new(), next: None };
        let Some(info) = self.connection.info(READ, names::AUDIT, None).await? else { return Ok(page) };
        let first = info.state.first_seq.max(1);
        let end = info.state.last_seq.saturating_add(1).min(filter.before.unwrap_or(u64::MAX));
        let lowest = first.max(end.saturating_sub(LOOKED_AT as u64));
        let mut end = end;
        while end > lowest {
            let start = end.saturating_sub(PIECE).max(lowest);
            let mut piece: VecDeque<Stored> = self.entries_between(start, end).await?.into();
            while let Some(message) = piece.pop_back() {
                if page.entries.len() >= limit {
                    page.next = Some(message.sequence.saturating_add(1));
                    return Ok(page);
                }
                // An entry is stored after it happened, and those before it were stored before it.
                if filter.since.is_some_and(|since| message.time.after(SKEW) < since) {
                    return Ok(page);
                }
                // What cannot be read is somebody else's.
                page.entries.extend(entry(message).filter(|entry| filter.shows(entry)));
            }
            end = start;
        }
        page.next = (end > first).then_some(end);
        Ok(page)
    }

    async fn prune_audit(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let Some(info) = self.connection.info(PRUNE, names::AUDIT, None).await? else { return Ok(0) };
        let last = info.state.last_seq;
        let (mut from, mut old) = (info.state.first_seq.max(1), 0_usize);
        'reading: while from <= last && old < most {
            let piece = self.piece(PRUNE, from, PIECE).await?;
            if piece.is_empty() {
                break;
            }
            for message in piece {
                let sequence = message.sequence;
                let at = entry(message).map(|entry| entry.at);
                // What cannot be read goes with what is around it.
                if old >= most || at.is_some_and(|at| at >= before) {
                    break 'reading;
                }
                old += 1;
                from = sequence.saturating_add(1);
            }
        }
        if old == 0 {
            return Ok(0);
        }
        // Several may prune at once: each takes away what is before a place, and what is gone is gone.
        #[derive(serde::Deserialize)]
        struct Purged {
            purged: usize,
        }
        let upto = json!({"seq": from});
        let subject = format!("STREAM.PURGE.{}", names::AUDIT);
        let purged = self.connection.api::<Purged>(PRUNE, &subject, &upto).await;
        purged.map(|purged| purged.purged).map_err(|error| error.into_store(PRUNE))
    }
}

impl NatsStore {
    async fn write_entry(&self, entry: AuditEntry) -> Result<(), StoreError> {
        let AuditEntry { id, at, action, tenant, target, body } = entry;
        let headers = Headers::new()
            .digest("Nats-Msg-Id", &Digest::of_bytes(id.as_bytes()))
            .text(ID, &id)
            .text(AT, &at.as_micros().to_string())
            .text(ACTION, &action);
        let texts = [(TENANT, tenant.as_ref().map(TenantId::as_str)), (TARGET, target.as_deref())];
        let headers = texts.into_iter().fold(headers, |headers, (name, text)| match text {
            Some(text) => headers.text(name, text),
            None => headers,
        });
        let (subject, body) = (names::audit(tenant.as_ref()), Bytes::from(body));
        let publish =
            || self.connection.publish(WRITE, names::AUDIT, &subject, headers.clone(), body.clone());
        let written = match publish().await {
            // Somebody may have deleted it.
            Err(PublishError::NoStream) => {
                resources::ensure_audit(&self.connection, &self.settings).await?;
                publish().await
            }
            written => written,
        };
        written.map(|_| ()).map_err(|error| error.into_store(WRITE))
    }

    /// The messages from a sequence on up to before another one, oldest first.
    async fn entries_between(&self, start: u64, end: u64) -> Result<Vec<Stored>, StoreError> {
        let mut messages = Vec::new();
        let mut from = start;
        while from < end {
            // Whoever answers may lag behind the leader, so it may take several.
            let piece = self.piece(READ, from, end - from).await?;
            let Some(last) = piece.last().map(|message| message.sequence) else { break };
            messages.extend(piece.into_iter().filter(|message| message.sequence < end));
            from = last.saturating_add(1);
        }
        Ok(messages)
    }

    async fn piece(&self, operation: &'static str, from: u64, most: u64) -> Result<Vec<Stored>, StoreError> {
        let most = Most::messages(usize::try_from(most).unwrap_or(usize::MAX));
        let is_direct = self.resources.is_audit_direct;
        self.connection.page(operation, names::AUDIT, names::ALL_AUDIT, from, most, is_direct).await
    }
}

/// The entry that a message is, if it is one.
fn entry(message: Stored) -> Option<AuditEntry> {
    let text = |name| message.headers.get_text(name);
    let tenant = text(TENANT).map(|tenant| TenantId::new(&tenant)).transpose().ok()?;
    Some(AuditEntry {
        id: text(ID)?,
        at: Timestamp::from_micros(text(AT)?.parse().ok()?),
        action: text(ACTION)?,
        tenant,
        target: text(TARGET),
        body: message.payload.into(),
    })
}
