//! Server-sent events out of bytes, however the network cut them.
//!
//! Lines end with LF, CR LF or CR; an event ends with an empty line. An event that was not finished when the bytes ended never
//! happened. Not here: connections and what an event means.

use std::mem;

/// One event of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its name; empty when it has none.
    pub(crate) name: String,
    /// Its data lines, joined by line feeds.
    pub(crate) data: String,
    /// The id that a reconnect continues after. An event without one inherits the last.
    pub(crate) id: Option<String>,
}

/// An event, or a line of one, is longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Takes bytes, gives events.
#[derive(Debug)]
pub(crate) struct Decoder {
    most_bytes: usize,
    line: Vec<u8>,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_return: bool,
    at_start: bool,
    name: String,
    data: String,
    has_data: bool,
    id: Option<String>,
}

impl Decoder {
    /// A decoder that refuses events of more than `most_bytes`.
    pub(crate) const fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
        }
    }

    /// Reads `bytes` and appends the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], found: &mut impl Extend<Frame>) -> Result<(), TooLong> {
        let mut rest = bytes;
        if !rest.is_empty() && mem::take(&mut self.after_return) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, ending) = rest.split_at(at);
            self.keep(part)?;
            let after = ending.get(1..).unwrap_or_default();
            rest = match (ending.first(), after.first()) {
                (Some(b'\r'), Some(b'\n')) => after.get(1..).unwrap_or_default(),
                (Some(b'\r'), None) => {
                    self.after_return = true;
                    after
                }
                (Some(_) | None, Some(_) | None) => after,
            };
            let line = mem::take(&mut self.line);
            found.extend(self.end_line(&line)?);
        }
        self.keep(rest)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + part.len() > self.most_bytes {
            return Err(TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, line: &[u8]) -> Result<Option<Frame>, TooLong> {
        let text = String::from_utf8_lossy(line);
        let mut text: &str = &text;
        if mem::take(&mut self.at_start) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            return Ok(self.end_event());
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.data.len() + value.len() >= self.most_bytes {
                    return Err(TooLong);
                }
                if mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments have an empty field name; others are for later versions of the format.
            _ => {}
        }
        Ok(None)
    }

    fn end_event(&mut self) -> Option<Frame> {
        let name = mem::take(&mut self.name);
        let data = mem::take(&mut self.data);
        mem::take(&mut self.has_data).then(|| Frame { name, data, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, data: &str, id: Option<&str>) -> Frame {
        Frame { name: name.to_owned(), data: data.to_owned(), id: id.map(str::to_owned) }
    }

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
        let mut decoder = Decoder::new(1_000);
        let mut found = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut found).unwrap();
        }
        found
    }

    const STREAM: &str = "\u{feff}: hello\nid: 7\nevent: snapshot\ndata: {\"a\":\ndata:\"é日\"}\n\n\
                          event: heartbeat\r\ndata: {}\r\n\r\nretry: 5\rdata\r\rdata: lost";

    fn expected() -> Vec<Frame> {
        vec![
            frame("snapshot", "{\"a\":\n\"é日\"}", Some("7")),
            frame("heartbeat", "{}", Some("7")),
            frame("", "", Some("7")),
        ]
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let bytes = STREAM.as_bytes();
        assert_eq!(decode([bytes]), expected());
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(decode(pieces), expected(), "cut at {first} and {second}");
            }
        }
        assert_eq!(decode(bytes.chunks(1)), expected());
    }

    #[test]
    fn an_event_without_data_never_happened() {
        assert_eq!(decode([b"event: snapshot\nid: 1\n\n\n\n".as_slice()]), []);
    }

    #[test]
    fn a_name_ends_with_its_event_and_an_id_stays() {
        let found = decode([b"event: a\nid: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n".as_slice()]);
        assert_eq!(found, [frame("a", "x", Some("1")), frame("", "y", Some("1")), frame("", "z", Some(""))]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut decoder = Decoder::new(10);
        let mut found = Vec::new();
        assert_eq!(decoder.push(b"data: 12", &mut found), Ok(()));
        assert_eq!(decoder.push(b"345", &mut found), Err(TooLong));
    }

    #[test]
    fn an_event_without_end_is_refused_before_it_fills_the_memory() {
        let mut decoder = Decoder::new(10);
        let mut found: Vec<Frame> = Vec::new();
        assert_eq!(decoder.push(b"data:1234\n", &mut found), Ok(()));
        assert_eq!(decoder.push(b"data:1234\n", &mut found), Ok(()));
        assert_eq!(decoder.push(b"data:1\n", &mut found), Err(TooLong));
    }

    #[test]
    fn empty_data_lines_count_too() {
        let mut decoder = Decoder::new(10);
        let mut found: Vec<Frame> = Vec::new();
        let refused = (0..20).find(|_| decoder.push(b"data:\n", &mut found).is_err());
        assert_eq!(refused, Some(11));
    }
}
