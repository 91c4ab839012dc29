//! A sheet: several entries of the audit trail in one message, and where an entry stands.
//!
//! Each entry is a line of JSON that says which it is, then its body, then the end of a line; so a sheet can be read with any tool. The tenant
//! is the same for all of a sheet and stands in a header.

use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{AuditEntry, TOGETHER};
use serde::{Deserialize, Serialize};

use crate::message::{Headers, Stored};

/// So many entries one sheet has at most,
pub(super) const ENTRIES: usize = TOGETHER;
/// and about so many bytes; one large entry has a sheet of its own.
const BYTES: usize = 128 * 1024;

/// Whose the entries are, if they are a tenant's.
const TENANT: &str = "Pyoco-Tenant";
/// How many there are: what has no such number is no sheet.
const COUNT: &str = "Pyoco-Entries";

/// Where an entry stands: its message, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) sequence: u64,
    pub(super) entry: u64,
}

impl Spot {
    /// As a number that others keep.
    pub(super) const fn number(self) -> u64 {
        self.sequence.saturating_mul(ENTRIES as u64).saturating_add(self.entry)
    }

    pub(super) const fn of(number: u64) -> Self {
        Self { sequence: number / ENTRIES as u64, entry: number % ENTRIES as u64 }
    }

    /// The one behind it.
    pub(super) const fn next(self) -> Self {
        Self { entry: self.entry + 1, ..self }
    }
}

/// What is said of an entry before its body.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    id: std::borrow::Cow<'a, str>,
    /// Microseconds since 1970.
    at: i64,
    action: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<std::borrow::Cow<'a, str>>,
    bytes: usize,
}

/// Entries in sheets, in their order. The same entries are always divided in the same way.
pub(super) fn sheets(entries: Vec<AuditEntry>) -> Vec<Vec<AuditEntry>> {
    let mut sheets: Vec<Vec<AuditEntry>> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let fits = |sheet: &&mut Vec<AuditEntry>| {
            let is_same = sheet.first().is_some_and(|first| first.tenant == entry.tenant);
            is_same && sheet.len() < ENTRIES && bytes + entry.body.len() <= BYTES
        };
        match sheets.last_mut().filter(fits) {
            Some(sheet) => {
                bytes += entry.body.len();
                sheet.push(entry);
            }
            None => {
                bytes = entry.body.len();
                sheets.push(vec![entry]);
            }
        }
    }
    sheets
}

/// A sheet as a message. The server takes one with the same entries once.
pub(super) fn write(sheet: &[AuditEntry]) -> serde_json::Result<(Headers, Bytes)> {
    let (mut text, mut ids) = (Vec::new(), Vec::new());
    for entry in sheet {
        let line = Line {
            id: entry.id.as_str().into(),
            at: entry.at.as_micros(),
            action: entry.action.as_str().into(),
            target: entry.target.as_deref().map(Into::into),
            bytes: entry.body.len(),
        };
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
        text.extend_from_slice(&entry.body);
        text.push(b'\n');
        // With its length, so that no two lists of ids are the same text.
        ids.extend_from_slice(format!("{}:{}", entry.id.len(), entry.id).as_bytes());
    }
    let headers =
        Headers::new().digest("Nats-Msg-Id", &Digest::of_bytes(&ids)).number(COUNT, sheet.len() as u64);
    let tenant = sheet.first().and_then(|first| first.tenant.as_ref());
    let headers = match tenant {
        Some(tenant) => headers.text(TENANT, tenant.as_str()),
        None => headers,
    };
    Ok((headers, text.into()))
}

/// The entries of a message. What cannot be read is somebody else's.
pub(super) fn read(message: &Stored) -> Vec<AuditEntry> {
    parts(message).unwrap_or_default()
}

fn parts(message: &Stored) -> Option<Vec<AuditEntry>> {
    message.headers.get_number(COUNT)?;
    let tenant = message.headers.get_text(TENANT).map(|tenant| TenantId::new(&tenant)).transpose().ok()?;
    let (mut rest, mut entries) = (&*message.payload, Vec::new());
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, behind) = rest.split_at_checked(end)?;
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        let (body, behind) = behind.get(1..)?.split_at_checked(line.bytes)?;
        entries.push(AuditEntry {
            id: line.id.into_owned(),
            at: Timestamp::from_micros(line.at),
            action: line.action.into_owned(),
            tenant: tenant.clone(),
            target: line.target.map(std::borrow::Cow::into_owned),
            body: body.to_vec(),
        });
        rest = behind.strip_prefix(b"\n")?;
    }
    (entries.len() <= ENTRIES).then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, tenant: Option<&str>, body: &[u8]) -> AuditEntry {
        AuditEntry {
            id: id.to_owned(),
            at: Timestamp::from_micros(-7),
            action: "runs.submit".to_owned(),
            tenant: tenant.map(|tenant| TenantId::new(tenant).unwrap()),
            target: (id.len() > 1).then(|| "日本 \r\n".to_owned()),
            body: body.to_vec(),
        }
    }

    fn stored(sheet: &[AuditEntry]) -> Stored {
        let (headers, payload) = write(sheet).unwrap();
        Stored { sequence: 1, subject: "s".to_owned(), headers, payload, time: Timestamp::from_micros(0) }
    }

    #[test]
    fn entries_come_back_from_their_sheet_whatever_they_hold() {
        let sheet = [
            entry("a", Some("team"), b""),
            entry("b\n\"", Some("team"), b"\n\n{}"),
            entry("c", Some("team"), b"\xff\0"),
        ];
        assert_eq!(read(&stored(&sheet)), sheet);
        assert_eq!(read(&stored(&[entry("a", None, b"{}")])), [entry("a", None, b"{}")]);
    }

    #[test]
    fn what_is_no_sheet_has_no_entries() {
        let good = stored(&[entry("a", None, b"{}")]);
        for payload in [&b"{}"[..], b"{}\n", b"\n", b"no", &good.payload[..good.payload.len() - 1]] {
            assert_eq!(read(&Stored { payload: Bytes::copy_from_slice(payload), ..good.clone() }), []);
        }
        assert_eq!(read(&Stored { headers: Headers::new(), ..good }), []);
    }

    #[test]
    fn a_sheet_has_one_tenant_and_a_bounded_size_and_the_same_entries_make_the_same_sheets() {
        let mut entries: Vec<AuditEntry> =
            (0..ENTRIES + 3).map(|n| entry(&n.to_string(), None, b"{}")).collect();
        entries.push(entry("x", Some("team"), b"{}"));
        entries.push(entry("y", None, &vec![b' '; BYTES]));
        entries.push(entry("z", None, b"{}"));
        let sizes = |entries: Vec<AuditEntry>| sheets(entries).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(entries.clone()), [ENTRIES, 3, 1, 1, 1]);
        assert_eq!(sheets(entries.clone()).concat(), entries);
        let id = |sheet: &[AuditEntry]| write(sheet).unwrap().0.get("Nats-Msg-Id").unwrap().to_owned();
        assert_eq!(id(&entries[..3]), id(&entries[..3]));
        assert_ne!(id(&entries[..3]), id(&entries[..2]));
        assert_ne!(
            id(&[entry("ab", None, b""), entry("c", None, b"")]),
            id(&[entry("a", None, b""), entry("bc", None, b"")])
        );
    }

    #[test]
    fn places_are_in_the_order_of_entries() {
        let spot = |sequence, entry| Spot { sequence, entry };
        let last = spot(7, ENTRIES as u64 - 1);
        assert!(spot(7, 0) < last && last.number() < spot(8, 0).number());
        assert_eq!(Spot::of(last.number()), last);
        assert_eq!(Spot::of(last.next().number()), spot(8, 0));
        assert_eq!(Spot::of(u64::MAX).next().number(), u64::MAX);
    }
}
