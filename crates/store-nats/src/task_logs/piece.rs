//! One message of a log: lines that stand beside each other, and in the headers which ones they are.

use std::borrow::Cow;

use bytes::Bytes;
use pyoco_core::ids::{Attempt, NodeId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{LogEnd, LogLine, LogStream, StoreError};
use serde::{Deserialize, Serialize};

use super::{READ, WRITE};
use crate::error;
use crate::message::{Headers, Stored};

/// A message is ended here, unless one line alone is longer: whoever asks for the end of a log is sent its last message.
pub(super) const USUAL_BYTES: usize = 64 * 1024;

/// The number of the first line of a message; the one that would follow if it has none.
const FIRST_LINE: &str = "Pyoco-First-Line";
/// The number of the last line so far.
const LAST_LINE: &str = "Pyoco-Last-Line";
/// Where the text of the first line begins.
const FIRST_BYTE: &str = "Pyoco-First-Byte";
/// How long the text is so far.
const END_BYTE: &str = "Pyoco-End-Byte";
/// The last line says that the log has reached its limit.
const CUT: &str = "Pyoco-Cut";
/// Nothing follows.
const CLOSED: &str = "Pyoco-Closed";
/// The next message belongs to the same call: nobody else should come in between.
const MORE: &str = "Pyoco-More";

/// Which part of a log a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first_line: u64,
    pub(super) first_byte: u64,
    /// The end of the log after it.
    pub(super) end: LogEnd,
    pub(super) has_more: bool,
}

/// A line as it stands in a message.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    attempt: Attempt,
    stream: Cow<'a, str>,
    at: Timestamp,
    text: Cow<'a, str>,
}

impl Piece {
    /// What the headers of a message say.
    pub(super) fn of(message: &Stored) -> Result<Self, StoreError> {
        let number = |name| message.headers.get_number(name);
        let is_set = |name| number(name) == Some(1);
        let (Some(first_line), Some(lines), Some(first_byte), Some(bytes)) =
            (number(FIRST_LINE), number(LAST_LINE), number(FIRST_BYTE), number(END_BYTE))
        else {
            return Err(nonsense(message));
        };
        // A message without lines only says that the log is closed.
        if first_line == 0 || first_line - 1 > lines || first_byte > bytes {
            return Err(nonsense(message));
        }
        let end = LogEnd { lines, bytes, is_cut: is_set(CUT), is_closed: is_set(CLOSED) };
        Ok(Self { first_line, first_byte, end, has_more: is_set(MORE) })
    }

    /// The headers that say so.
    pub(super) fn headers(&self) -> Headers {
        let headers = Headers::new()
            .number(FIRST_LINE, self.first_line)
            .number(LAST_LINE, self.end.lines)
            .number(FIRST_BYTE, self.first_byte)
            .number(END_BYTE, self.end.bytes);
        let flags = [(CUT, self.end.is_cut), (CLOSED, self.end.is_closed), (MORE, self.has_more)];
        let set = flags.into_iter().filter(|(_, is_set)| *is_set);
        set.fold(headers, |headers, (name, _)| headers.number(name, 1))
    }

    /// How many lines it has.
    pub(super) const fn count(&self) -> u64 {
        (self.end.lines + 1).saturating_sub(self.first_line)
    }

    /// Its lines, with their numbers.
    pub(super) fn lines(
        &self,
        message: &Stored,
    ) -> Result<impl Iterator<Item = Result<(u64, LogLine), StoreError>> + use<>, StoreError> {
        let found: Vec<Line<'static>> =
            serde_json::from_slice(&message.payload).map_err(|why| error::corrupt(READ, why))?;
        if found.len() as u64 != self.count() {
            return Err(nonsense(message));
        }
        Ok((self.first_line..).zip(found).map(|(number, line)| Ok((number, decode(line)?))))
    }
}

/// The messages for lines that follow an end, which then is at `until`. Without lines it is one that only says so.
pub(super) fn split(
    from: LogEnd,
    lines: &[(u64, LogLine)],
    until: LogEnd,
    most_bytes: usize,
) -> Result<Vec<(Piece, Bytes)>, StoreError> {
    let mut pieces = Vec::new();
    let mut begun = from;
    let mut reached = from;
    let mut payload = vec![b'['];
    for (number, line) in lines {
        let encoded = encode(line)?;
        if payload.len() > 1 && payload.len() + encoded.len() + 2 > most_bytes {
            pieces.push((piece(begun, reached, true), close(&mut payload)));
            begun = reached;
        }
        if payload.len() > 1 {
            payload.push(b',');
        }
        payload.extend_from_slice(&encoded);
        reached.lines = *number;
        reached.bytes = reached.bytes.saturating_add(line.text_bytes());
    }
    pieces.push((piece(begun, until, false), close(&mut payload)));
    Ok(pieces)
}

const fn piece(from: LogEnd, end: LogEnd, has_more: bool) -> Piece {
    Piece { first_line: from.lines + 1, first_byte: from.bytes, end, has_more }
}

/// The finished text, and a new one begun.
fn close(payload: &mut Vec<u8>) -> Bytes {
    payload.push(b']');
    std::mem::replace(payload, vec![b'[']).into()
}

fn encode(line: &LogLine) -> Result<Vec<u8>, StoreError> {
    let LogLine { node, attempt, stream, at, text } = line;
    let (stream, text) = (stream.name().into(), text.into());
    let line = Line { node: node.clone(), attempt: *attempt, stream, at: *at, text };
    serde_json::to_vec(&line).map_err(|error| error::internal(WRITE, error))
}

fn decode(line: Line<'_>) -> Result<LogLine, StoreError> {
    let Line { node, attempt, stream, at, text } = line;
    let stream = LogStream::named(&stream)
        .ok_or_else(|| error::corrupt(READ, format!("there is no stream {stream:?}")))?;
    Ok(LogLine { node, attempt, stream, at, text: text.into_owned() })
}

/// A message that nobody of us can have written.
pub(super) fn nonsense(message: &Stored) -> StoreError {
    let why =
        format!("message {} at {} does not say where its lines stand", message.sequence, message.subject);
    error::corrupt(READ, why)
}

#[cfg(test)]
mod tests {
    use pyoco_ports::LogTerms;

    use super::*;

    const OPEN: LogTerms = LogTerms { max_bytes: u64::MAX, closes: false };

    fn line(number: u64, length: usize) -> LogLine {
        LogLine {
            node: (!number.is_multiple_of(3)).then(|| NodeId::new("ünï").unwrap()),
            attempt: Attempt(u32::try_from(number).unwrap() % 3),
            stream: LogStream::ALL[usize::try_from(number % 3).unwrap()],
            at: Timestamp::from_micros(number.cast_signed()),
            text: format!("{number} {}", "\u{1}☃".repeat(length)),
        }
    }

    fn stored(piece: &Piece, payload: Bytes) -> Stored {
        Stored {
            sequence: 1,
            subject: "pyoco.logs.e".to_owned(),
            headers: piece.headers(),
            payload,
            time: Timestamp::from_micros(0),
        }
    }

    #[test]
    fn lines_that_were_split_come_back_and_every_piece_says_where_it_stands() {
        let before = LogEnd { lines: 7, bytes: 700, is_cut: false, is_closed: false };
        let lines: Vec<LogLine> =
            (0..200).map(|number| line(number, usize::try_from(number).unwrap())).collect();
        let written = before.take(lines, LogTerms { closes: true, ..OPEN });
        let pieces = split(before, &written.lines, written.end, 8 * 1024).unwrap();
        assert!(pieces.len() > 10 && pieces.iter().all(|(_, payload)| payload.len() <= 8 * 1024));
        let mut at = before;
        let mut found = Vec::new();
        for (number, (piece, payload)) in pieces.iter().enumerate() {
            let message = stored(piece, payload.clone());
            assert_eq!(Piece::of(&message).unwrap(), *piece);
            assert_eq!((piece.first_line, piece.first_byte), (at.lines + 1, at.bytes));
            assert_eq!(piece.has_more, number + 1 < pieces.len());
            assert_eq!(piece.end.is_closed, !piece.has_more);
            let mine: Vec<(u64, LogLine)> = piece.lines(&message).unwrap().map(Result::unwrap).collect();
            let bytes: u64 = mine.iter().map(|(_, line)| line.text_bytes()).sum();
            assert_eq!(piece.end.bytes, at.bytes + bytes);
            found.extend(mine);
            at = piece.end;
        }
        assert_eq!((found, at), (written.lines, written.end));
    }

    #[test]
    fn a_line_longer_than_a_message_usually_is_stands_alone() {
        let written = LogEnd::default().take([1, 30, 1].map(|length| line(1, length)).into(), OPEN);
        let pieces = split(LogEnd::default(), &written.lines, written.end, 100).unwrap();
        assert_eq!(pieces.iter().map(|(piece, _)| piece.count()).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn a_log_is_closed_by_a_message_without_lines() {
        let open = LogEnd { lines: 3, bytes: 30, is_cut: true, is_closed: false };
        let closed = LogEnd { is_closed: true, ..open };
        let [(piece, payload)] = &split(open, &[], closed, 100).unwrap()[..] else { panic!() };
        let message = stored(piece, payload.clone());
        assert_eq!((Piece::of(&message).unwrap().end, piece.count()), (closed, 0));
        assert_eq!(piece.lines(&message).unwrap().count(), 0);
    }

    #[test]
    fn nonsense_is_not_a_piece() {
        let good = piece(LogEnd::default(), LogEnd { lines: 1, bytes: 9, ..LogEnd::default() }, false);
        let payload = Bytes::from_static(b"[]");
        assert!(good.lines(&stored(&good, payload.clone())).is_err());
        for bad in [
            Piece { first_line: 0, ..good },
            Piece { first_line: 3, ..good },
            Piece { first_byte: 10, ..good },
        ] {
            assert!(Piece::of(&stored(&bad, payload.clone())).is_err(), "{bad:?}");
        }
        assert!(Piece::of(&Stored { headers: Headers::new(), ..stored(&good, payload) }).is_err());
    }
}
