//! The form of a copy of a stream: chunks of a compressed archive, each with its length in front. Walking over them finds a copy that is
//! torn; what is inside is the server's to read.

use std::io::{self, BufReader, Read};

/// What a copy begins with.
const BEGINNINGS: [&[u8]; 2] = [b"S2sTwO", b"sNaPpY"];

/// Why that is no copy of a stream.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it does not begin as a copy of a stream does")]
    Beginning,
    /// It ends in the middle.
    #[error("it is torn: it ends in the middle of a piece, after {0} bytes")]
    Torn(u64),
    /// It has a piece that no copy has.
    #[error("it is damaged at byte {0}")]
    Damaged(u64),
}

/// Walks over all chunks; says how many bytes there are.
pub fn walk(source: impl Read) -> Result<u64, Flaw> {
    const BEGINNING: u8 = 0xff;
    /// A checksum is in front of what a piece holds.
    const CHECKSUM: u64 = 4;
    let mut source = BufReader::with_capacity(1 << 16, source);
    let (mut place, mut pieces) = (0_u64, 0_u64);
    loop {
        let mut head = [0_u8; 4];
        let read = fill(&mut source, &mut head)?;
        if read == 0 && pieces > 0 {
            return Ok(place);
        }
        if read < head.len() {
            return Err(if place == 0 { Flaw::Beginning } else { Flaw::Torn(place) });
        }
        let [kind, low, middle, high] = head;
        let length = u64::from(u32::from_le_bytes([low, middle, high, 0]));
        if place == 0 && kind != BEGINNING {
            return Err(Flaw::Beginning);
        }
        match kind {
            BEGINNING => {
                let mut name = [0_u8; 6];
                if length != 6
                    || fill(&mut source, &mut name)? < name.len()
                    || !BEGINNINGS.contains(&&name[..])
                {
                    return Err(if place == 0 { Flaw::Beginning } else { Flaw::Damaged(place) });
                }
            }
            // Compressed, or as it is.
            0x00 | 0x01 if length > CHECKSUM => {
                skip(&mut source, length, place)?;
                pieces += 1;
            }
            // These may be passed over.
            0x80..=0xfe => skip(&mut source, length, place)?,
            0x00..=0x7f => return Err(Flaw::Damaged(place)),
        }
        place = place.saturating_add(4).saturating_add(length);
    }
}

/// Reads as much as there is.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
    let mut read = Vec::with_capacity(buffer.len());
    source.take(wanted).read_to_end(&mut read)?;
    for (place, byte) in buffer.iter_mut().zip(&read) {
        *place = *byte;
    }
    Ok(read.len())
}

fn skip(source: &mut impl Read, length: u64, place: u64) -> Result<(), Flaw> {
    let skipped = io::copy(&mut source.take(length), &mut io::sink())?;
    if skipped < length { Err(Flaw::Torn(place)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy() -> Vec<u8> {
        let mut bytes = b"\xff\x06\x00\x00S2sTwO".to_vec();
        bytes.extend(b"\x01\x07\x00\x00crc!abc");
        bytes.extend(b"\x99\x02\x00\x00xx");
        bytes.extend(b"\x00\x05\x00\x00crc!a");
        bytes
    }

    #[test]
    fn a_whole_copy_is_walked_to_its_end() {
        assert_eq!(walk(&copy()[..]).unwrap(), u64::try_from(copy().len()).unwrap());
    }

    #[test]
    fn what_is_torn_changed_or_something_else_is_found() {
        for end in 1..copy().len() {
            // Between two pieces nothing shows: the size and the checksum tell.
            if [21, 27].contains(&end) {
                continue;
            }
            assert!(walk(&copy()[..end]).is_err(), "{end}");
        }
        assert!(matches!(walk(&b""[..]), Err(Flaw::Beginning)));
        assert!(matches!(walk(&b"a tar file or whatever"[..]), Err(Flaw::Beginning)));
        let mut changed = copy();
        changed[10] = 0x30;
        assert!(matches!(walk(&changed[..]), Err(Flaw::Damaged(10))));
    }
}
