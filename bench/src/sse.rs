//! Server-sent events, as far as the two servers use them.

use serde_json::Value;

use crate::Failure;

/// Collects bytes and gives whole events.
#[derive(Default)]
pub(crate) struct Events {
    rest: Vec<u8>,
}

/// The name of an event and its data.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// The next event that has arrived as a whole. Blocks without data (comments) are passed over.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Failure> {
        while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            let block = String::from_utf8(block)?;
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_start)
            };
            if let Some(data) = field("data") {
                let name = field("event").unwrap_or("message").to_owned();
                return Ok(Some(Event { name, data: serde_json::from_str(data)? }));
            }
        }
        Ok(None)
    }
}

/// Collects bytes and gives whole lines, for streams of which the bench reads millions of events on cores that the measured server
/// needs.
#[derive(Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// All lines that have arrived as a whole.
    pub(crate) fn whole(&mut self) -> Result<String, Failure> {
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        Ok(String::from_utf8(self.rest.drain(..end).collect())?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_in_pieces_is_given_once_it_is_whole() {
        let mut events = Events::default();
        events.push(b"id: 3\nevent: snapshot\nda");
        assert_eq!(events.next().expect("no error"), None);
        events.push(b"ta: {\"ts\":1}\n\n: nothing\n\nevent:heartbeat\ndata:{}\n\n");
        let snapshot = Event { name: "snapshot".to_owned(), data: json!({"ts": 1}) };
        assert_eq!(events.next().expect("no error"), Some(snapshot));
        let heartbeat = Event { name: "heartbeat".to_owned(), data: json!({}) };
        assert_eq!(events.next().expect("no error"), Some(heartbeat));
        assert_eq!(events.next().expect("no error"), None);
    }

    #[test]
    fn a_line_in_pieces_is_given_once_it_is_whole() {
        let mut lines = Lines::default();
        lines.push(b"id: 3\nevent: NODE");
        assert_eq!(lines.whole().expect("text"), "id: 3\n");
        assert_eq!(lines.whole().expect("text"), "");
        lines.push(b"_READY\n\n");
        assert_eq!(lines.whole().expect("text"), "event: NODE_READY\n\n");
    }
}
