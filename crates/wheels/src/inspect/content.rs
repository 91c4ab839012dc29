//! What an entry holds. It is inflated in pieces, never beyond the size that the directory says, and the compressed data has to end
//! exactly where the directory says.

use std::io::{Read, Seek, SeekFrom};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::directory::{Entry, Method};
use super::unsound::{InspectError, Unsound};

const PIECE: usize = 64 * 1024;

/// Hands on what an entry holds, piece by piece. What has been handed on is only right once this returns.
pub(super) fn read<F: Read + Seek>(
    file: &mut F,
    entry: &Entry,
    mut take: impl FnMut(&[u8]),
) -> Result<(), InspectError> {
    file.seek(SeekFrom::Start(entry.data))?;
    let mut data = file.by_ref().take(entry.compressed);
    let mut crc = Crc::new();
    let mut hand_on = |piece: &[u8]| {
        crc.update(piece);
        take(piece);
    };
    match entry.method {
        Method::Stored => copy(&mut data, &mut hand_on)?,
        Method::Deflated => inflate(&mut data, entry, &mut hand_on)?,
    }
    if crc.sum() == entry.crc {
        Ok(())
    } else {
        Err(Unsound::entry(&entry.name, "has another checksum than the directory says").into())
    }
}

type HandOn<'a> = dyn FnMut(&[u8]) + 'a;

/// A stored entry is as long as its data; the directory was held to that.
fn copy(data: &mut impl Read, hand_on: &mut HandOn<'_>) -> Result<(), InspectError> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = data.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        hand_on(piece.get(..count).unwrap_or_default());
    }
}

fn inflate(data: &mut impl Read, entry: &Entry, hand_on: &mut HandOn<'_>) -> Result<(), InspectError> {
    let wrong = |what| InspectError::from(Unsound::entry(&entry.name, what));
    let mut inflater = Decompress::new(false);
    let mut input = vec![0; PIECE];
    let mut output = vec![0; PIECE];
    let mut pending: &[u8] = &[];
    loop {
        if pending.is_empty() {
            let count = data.read(&mut input)?;
            pending = input.get(..count).unwrap_or_default();
        }
        let (read, made) = (inflater.total_in(), inflater.total_out());
        let status = inflater
            .decompress(pending, &mut output, FlushDecompress::None)
            .map_err(|_broken| wrong("has data that cannot be inflated"))?;
        let consumed = usize::try_from(inflater.total_in() - read).unwrap_or(usize::MAX);
        let count = usize::try_from(inflater.total_out() - made).unwrap_or(usize::MAX);
        pending = pending.get(consumed..).unwrap_or_default();
        if inflater.total_out() > entry.size {
            return Err(wrong("inflates to more than the directory says"));
        }
        hand_on(output.get(..count).unwrap_or_default());
        match status {
            Status::StreamEnd => break,
            Status::Ok | Status::BufError if consumed == 0 && count == 0 => {
                return Err(wrong("has data that cannot be inflated"));
            }
            Status::Ok | Status::BufError => {}
        }
    }
    if inflater.total_out() != entry.size {
        return Err(wrong("inflates to less than the directory says"));
    }
    if inflater.total_in() != entry.compressed {
        return Err(wrong("has data behind the end of its data"));
    }
    Ok(())
}

/// All that an entry holds, when it is at most so much.
pub(super) fn read_whole<F: Read + Seek>(
    file: &mut F,
    entry: &Entry,
    most: u64,
) -> Result<Vec<u8>, InspectError> {
    if entry.size > most {
        return Err(Unsound::entry(&entry.name, format!("is larger than {most} bytes")).into());
    }
    let mut whole = Vec::new();
    read(file, entry, |piece| {
        whole.extend_from_slice(piece);
    })?;
    Ok(whole)
}
