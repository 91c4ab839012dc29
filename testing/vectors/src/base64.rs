//! Reading base64, which vectors and the host use for bytes. Nothing more of it is needed.

/// The bytes behind a text; `None` when it is no base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for digit in text.trim_end_matches('=').bytes() {
        bits = (bits << 6) | u32::from(value(digit)?);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_becomes_the_bytes_it_stands_for() {
        assert_eq!(decode("AP8="), Some(vec![0, 255]));
        assert_eq!(decode("aGVsbG8"), Some(b"hello".to_vec()));
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(decode("a b"), None);
    }
}
