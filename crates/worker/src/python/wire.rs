//! Frames between a worker and a task process: two little-endian lengths, a JSON document, raw bytes.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use serde::Serialize;

/// Both lengths.
const HEADER: usize = 8;
/// Longest document; large values travel as raw bytes.
const MAX_TEXT: usize = 64 << 20;
/// Most raw bytes of one frame.
const MAX_RAW: usize = 1 << 30;

/// One message.
#[derive(Debug)]
pub(super) struct Frame {
    /// The document.
    pub(super) text: Bytes,
    /// What the document refers to.
    pub(super) raw: Bytes,
}

/// The bytes of a message.
pub(super) fn encode(message: &impl Serialize, raw: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, message)?;
    let text = frame.len() - HEADER;
    let size: usize = raw.iter().map(Vec::len).sum();
    let too_large = || io::Error::other(format!("a message of {text} and {size} bytes is too large"));
    let lengths = (u32::try_from(text), u32::try_from(size));
    let (Ok(text_length), Ok(raw_length)) = lengths else { return Err(too_large()) };
    if text > MAX_TEXT || size > MAX_RAW {
        return Err(too_large());
    }
    frame[..4].copy_from_slice(&text_length.to_le_bytes());
    frame[4..HEADER].copy_from_slice(&raw_length.to_le_bytes());
    frame.reserve_exact(size);
    for part in raw {
        frame.extend_from_slice(part);
    }
    Ok(frame)
}

/// Takes a whole message off the front of what was read.
pub(super) fn decode(read: &mut BytesMut) -> io::Result<Option<Frame>> {
    let Some(mut head) = read.get(..HEADER) else { return Ok(None) };
    let (text, raw) = (head.get_u32_le() as usize, head.get_u32_le() as usize);
    if text > MAX_TEXT || raw > MAX_RAW {
        return Err(io::Error::other("the task process sent something that is no message"));
    }
    let wanted = HEADER + text + raw;
    if read.len() < wanted {
        // As much as was announced, but no more than comes: a length alone takes no memory.
        read.reserve((wanted - read.len()).min(1 << 20));
        return Ok(None);
    }
    read.advance(HEADER);
    let text = read.split_to(text).freeze();
    let raw = read.split_to(raw).freeze();
    Ok(Some(Frame { text, raw }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_however_it_arrives() {
        let sent = encode(&serde_json::json!({"a": 1}), &[b"xyz".to_vec(), b"w".to_vec()]).unwrap();
        let mut read = BytesMut::new();
        for byte in &sent[..sent.len() - 1] {
            read.extend_from_slice(&[*byte]);
            assert!(decode(&mut read).unwrap().is_none());
        }
        read.extend_from_slice(&sent[sent.len() - 1..]);
        let frame = decode(&mut read).unwrap().unwrap();
        assert_eq!((&frame.text[..], &frame.raw[..]), (&b"{\"a\":1}"[..], &b"xyzw"[..]));
        assert!(read.is_empty());
    }

    #[test]
    fn a_length_that_cannot_be_is_an_error() {
        let mut read = BytesMut::from(&[0xff; 8][..]);
        assert!(decode(&mut read).is_err());
    }
}
