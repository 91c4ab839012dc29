//! Messages as streams keep them, and their headers.

use std::str::FromStr as _;

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use pyoco_core::digest::Digest;
use pyoco_core::time::Timestamp;
use serde::Deserialize;

/// What is encoded in a long value: what could end a header, and the first letter of every name that a server looks for. It looks through
/// all headers for each of its names, from one such letter to the next, and so it is through with a long value at once.
const NOT_AS_IT_IS: &AsciiSet = &CONTROLS.add(b'%').add(b'N');

/// So many bytes of a long value are looked at together.
const PIECE: usize = 32;

/// Whether a byte stands in a long value as it is.
const fn is_as_it_is(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') & (byte != b'%') & (byte != b'N')
}

/// The header with which a stream stores a message only behind another one.
const AFTER: &str = "Nats-Expected-Last-Subject-Sequence";

/// The headers of a message. Only numbers, digests and names of ours can be put in as they are; a text goes in encoded, so
/// that no line break ever ends a header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headers(HeaderMap);

impl Headers {
    /// None.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// With a number.
    #[must_use]
    pub(crate) fn number(mut self, name: &'static str, number: u64) -> Self {
        self.0.insert(HeaderName::from_static(name), HeaderValue::from(number));
        self
    }

    /// With a fingerprint, in hexadecimal.
    #[must_use]
    pub(crate) fn digest(self, name: &'static str, digest: &Digest) -> Self {
        self.checked(name, &digest.to_string())
    }

    /// With a fixed word.
    #[must_use]
    pub(crate) fn word(self, name: &'static str, word: &'static str) -> Self {
        self.checked(name, word)
    }

    /// With any text, encoded.
    #[must_use]
    pub(crate) fn text(self, name: &'static str, text: &str) -> Self {
        self.checked(name, &URL_SAFE_NO_PAD.encode(text))
    }

    /// With many bytes, most of which can be read as they are.
    #[must_use]
    pub(crate) fn long(self, name: &'static str, bytes: &[u8]) -> Self {
        let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 8);
        for piece in bytes.chunks(PIECE) {
            // Most pieces are as they should be, which many bytes are asked at a time.
            if piece.iter().fold(true, |all, byte| all & is_as_it_is(*byte)) {
                text.extend_from_slice(piece);
            } else {
                percent_encode(piece, NOT_AS_IT_IS).for_each(|part| text.extend_from_slice(part.as_bytes()));
            }
        }
        // What is not ASCII was encoded, so it is a text.
        self.checked(name, &String::from_utf8(text).unwrap_or_default())
    }

    /// The stream that must take it, whose name was checked when the store was opened.
    #[must_use]
    pub(crate) fn into_stream(self, stream: &str) -> Self {
        self.checked("Nats-Expected-Stream", stream)
    }

    /// The message of the subject that must be the last one; 0 for none.
    #[must_use]
    pub(crate) fn after(self, sequence: u64) -> Self {
        self.number(AFTER, sequence)
    }

    /// The message that must be the last one of all subjects that match a pattern of ours; 0 for none.
    #[must_use]
    pub(crate) fn after_all(self, pattern: &str, sequence: u64) -> Self {
        self.after(sequence).checked("Nats-Expected-Last-Subject-Sequence-Subject", pattern)
    }

    /// The message of the subject that it was to follow, if that was said.
    pub(crate) fn follows(&self) -> Option<u64> {
        self.get_number(AFTER)
    }

    /// A value that cannot hold a line break; one that does is left out rather than sent.
    fn checked(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// A value as it stands.
    pub(crate) fn get(&self, name: &'static str) -> Option<&str> {
        self.0.get(HeaderName::from_static(name)).map(HeaderValue::as_str)
    }

    /// A number.
    pub(crate) fn get_number(&self, name: &'static str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// A text that was put in encoded.
    pub(crate) fn get_text(&self, name: &'static str) -> Option<String> {
        String::from_utf8(URL_SAFE_NO_PAD.decode(self.get(name)?).ok()?).ok()
    }

    /// The bytes of a long value.
    pub(crate) fn get_long(&self, name: &'static str) -> Option<Vec<u8>> {
        Some(percent_decode_str(self.get(name)?).collect())
    }

    /// As the library wants them.
    pub(crate) fn into_map(self) -> Option<HeaderMap> {
        (!self.0.is_empty()).then_some(self.0)
    }

    /// From the block that a server stores: a line `NATS/1.0`, then one line for each.
    fn read(block: &[u8]) -> Self {
        let text = String::from_utf8_lossy(block);
        let mut map = HeaderMap::new();
        for line in text.split("\r\n").skip(1) {
            let Some((name, value)) = line.split_once(':') else { continue };
            // What we could not have written is not ours to read.
            if let (Ok(name), Ok(value)) = (HeaderName::from_str(name), HeaderValue::from_str(value.trim())) {
                map.append(name, value);
            }
        }
        Self(map)
    }
}

impl From<Option<HeaderMap>> for Headers {
    fn from(map: Option<HeaderMap>) -> Self {
        Self(map.unwrap_or_default())
    }
}

/// A message as a stream keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// Its number in the stream. It names the message as long as the stream is not made anew.
    pub(crate) sequence: u64,
    /// Where it stands.
    pub(crate) subject: String,
    /// Its headers.
    pub(crate) headers: Headers,
    /// What it says.
    pub(crate) payload: Bytes,
    /// When the server took it.
    pub(crate) time: Timestamp,
}

/// A message as the leader tells it.
#[derive(Deserialize)]
pub(crate) struct Told {
    seq: u64,
    subject: String,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
    time: Timestamp,
}

impl TryFrom<Told> for Stored {
    type Error = base64::DecodeError;

    fn try_from(told: Told) -> Result<Self, Self::Error> {
        let headers =
            if told.hdrs.is_empty() { Headers::new() } else { Headers::read(&STANDARD.decode(&told.hdrs)?) };
        Ok(Self {
            sequence: told.seq,
            subject: told.subject,
            headers,
            payload: STANDARD.decode(&told.data)?.into(),
            time: told.time,
        })
    }
}

impl Stored {
    /// A message as one of the servers that hold it sends it; `None` if it is not one.
    pub(crate) fn direct(message: async_nats::Message) -> Option<Self> {
        let headers = Headers::from(message.headers);
        let time = serde_json::Value::from(headers.get("Nats-Time-Stamp")?);
        Some(Self {
            sequence: headers.get_number("Nats-Sequence")?,
            subject: headers.get("Nats-Subject")?.to_owned(),
            time: Timestamp::deserialize(time).ok()?,
            headers,
            payload: message.payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_a_header() {
        let hostile = "a\r\nNats-Rollup: all\r\n\r\nbody";
        let headers = Headers::new().text("Pyoco-Tag", hostile).into_stream("PYOCO\r\nX: y");
        assert_eq!(headers.get_text("Pyoco-Tag").as_deref(), Some(hostile));
        assert!(!headers.get("Pyoco-Tag").unwrap().contains(['\r', '\n', ':']));
        assert_eq!(headers.get("Nats-Expected-Stream"), None);
    }

    #[test]
    fn a_long_value_is_read_as_it_was_written_and_holds_no_name_of_the_servers() {
        for text in ["{\"a\":\"Nats-Rollup: all\\r\\n %4E\"}", "\r\nNats-TTL: 1\r\n", "{\"日本\":\"語\"}", ""]
        {
            let headers = Headers::new().long("Pyoco-Record", text.as_bytes());
            assert_eq!(headers.get_long("Pyoco-Record").unwrap(), text.as_bytes());
            assert!(!headers.get("Pyoco-Record").unwrap().contains(['N', '\r', '\n']), "{text}");
        }
        let every: Vec<u8> = (0..=255).collect();
        assert_eq!(Headers::new().long("X", &every).get_long("X").unwrap(), every);
    }

    #[test]
    fn a_stored_block_of_headers_is_read_and_nonsense_in_it_is_not() {
        let headers = Headers::read(b"NATS/1.0\r\nPyoco-Version: 7\r\nno colon\r\nA:b\r\n\xff: x\r\n\r\n");
        assert_eq!(headers.get_number("Pyoco-Version"), Some(7));
        assert_eq!(headers.get("A"), Some("b"));
        assert_eq!(headers.get("no colon"), None);
        assert_eq!(headers.get_number("A"), None);
    }
}
