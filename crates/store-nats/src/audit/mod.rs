//! The audit trail: a stream of sheets with entries on them, read from its end. What a sheet looks like is in `sheet`.

mod sheet;

use std::collections::HashSet;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{AuditEntry, AuditFilter, AuditPage, AuditTrail, LOOKED_AT, StoreError};
use serde_json::json;

use self::sheet::{Spot, sheets};
use crate::error::{self, PublishError};
use crate::message::Stored;
use crate::recent::Recent;
use crate::stream::Most;
use crate::{NatsStore, names, resources};

const WRITE: &str = "write the audit trail";
const READ: &str = "read the audit trail";
const PRUNE: &str = "prune the audit trail";

/// So many sheets are under way to the server at once.
const AT_ONCE: usize = 16;
/// So many messages are read with one request.
const PIECE: u64 = 100;
/// So many entries are remembered to have been written.
const REMEMBERED: usize = 20_000;
/// The clocks of a gateway and of a server of NATS differ by less.
const SKEW: Millis = Millis(24 * 3_600_000);

/// The ids of entries that were written lately: whoever writes one again has not heard that it was.
pub(crate) type Written = Recent<String, ()>;

pub(crate) fn written() -> Written {
    Recent::new(REMEMBERED)
}

#[async_trait]
impl AuditTrail for NatsStore {
    /// An entry that this process has written is not written again. Where it does not know, because an answer got lost, the server recognises a
    /// sheet of the last two minutes, also after it was restarted. Whoever repeats after a longer outage may leave entries twice: their ids say so.
    async fn write_audit(&self, mut entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let mut ids = HashSet::with_capacity(entries.len());
        let are_new: Vec<bool> = entries.iter().map(|entry| ids.insert(entry.id.as_str())).collect();
        let mut are_new = are_new.into_iter();
        entries.retain(|_| are_new.next() == Some(true));
        // They are sent in this order over one connection, so the server takes them in this order. Whoever is told to let others go
        // first, as a task may be, would send behind those that follow.
        tokio::task::unconstrained(async {
            let writes = sheets(entries).into_iter().map(|sheet| self.write_sheet(sheet));
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
        let newest = Spot { sequence: info.state.last_seq.saturating_add(1), entry: 0 };
        let behind = filter.before.map_or(newest, |before| Spot::of(before).min(newest));
        // The message in which it stands has entries before it.
        let mut end = behind.sequence.saturating_add(u64::from(behind.entry > 0));
        let mut looked = 0;
        while end > first {
            let start = end.saturating_sub(PIECE).max(first);
            for message in self.messages_between(start, end).await?.into_iter().rev() {
                let spots = (0..).map(|entry| Spot { sequence: message.sequence, entry });
                let entries: Vec<(Spot, AuditEntry)> = spots.zip(sheet::read(&message)).collect();
                for (spot, entry) in entries.into_iter().rev().filter(|(spot, _)| *spot < behind) {
                    if page.entries.len() >= limit || looked >= LOOKED_AT {
                        page.next = Some(spot.next().number());
                        return Ok(page);
                    }
                    // An entry is stored after it happened, and those before it were stored before it.
                    if filter.since.is_some_and(|since| message.time.after(SKEW) < since) {
                        return Ok(page);
                    }
                    looked += 1;
                    page.entries.extend(Some(entry).filter(|entry| filter.shows(entry)));
                }
            }
            end = start;
        }
        Ok(page)
    }

    /// A sheet goes when all that is on it may go, and when there is room for all of it in what was asked for.
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
                let entries = sheet::read(&message);
                // What cannot be read goes with what is around it.
                if old + entries.len() > most || entries.iter().any(|entry| entry.at >= before) {
                    break 'reading;
                }
                old += entries.len();
                from = message.sequence.saturating_add(1);
            }
        }
        if old == 0 {
            return Ok(0);
        }
        // Several may prune at once: each takes away what is before a place, and what is gone is gone.
        let upto = json!({"seq": from});
        let subject = format!("STREAM.PURGE.{}", names::AUDIT);
        let purged = self.connection.api::<serde::de::IgnoredAny>(PRUNE, &subject, &upto).await;
        purged.map(|_| old).map_err(|error| error.into_store(PRUNE))
    }
}

impl NatsStore {
    async fn write_sheet(&self, mut sheet: Vec<AuditEntry>) -> Result<(), StoreError> {
        sheet.retain(|entry| self.audited.get(&entry.id).is_none());
        let Some(first) = sheet.first() else { return Ok(()) };
        let subject = names::audit(first.tenant.as_ref());
        let (headers, body) = sheet::write(&sheet).map_err(|why| error::internal(WRITE, why))?;
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
        written.map_err(|error| error.into_store(WRITE))?;
        sheet.into_iter().for_each(|entry| self.audited.put(entry.id, ()));
        Ok(())
    }

    /// The messages from a sequence on up to before another one, oldest first.
    async fn messages_between(&self, start: u64, end: u64) -> Result<Vec<Stored>, StoreError> {
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
