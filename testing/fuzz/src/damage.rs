//! Damaged bytes: new inputs made of samples.

use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

/// Words that mean something to one decoder or another.
const WORDS: &[&str] = &[
    "",
    "0",
    "-0",
    "-1",
    "1",
    "1e999",
    "-1e999",
    "0.1",
    "1e-400",
    "NaN",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "999999999999999999999999999999",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\u{feff}",
    "\u{0}",
    "\r\n",
    "\n",
    "\r\n\r\n",
    ":",
    ";",
    ",",
    ", ",
    "=",
    "&",
    "*",
    "|",
    ">",
    ">>",
    "<<",
    "!!python/object:os.system",
    "&a [*a]",
    "*a",
    "<<: *a",
    "%",
    "%00",
    "%2e%2e%2f",
    "../",
    "..",
    "/",
    "\\",
    "//",
    "?",
    "#",
    "$ctx.params",
    "$env.HOME",
    "**",
    "((((",
    "))))",
    "[[[[",
    "{{{{",
    "'",
    "\"",
    "`",
    "--",
    "---",
    "\n---\n",
    "\t",
    " ",
    "bytes=0-",
    "bytes=-1",
    "bytes=18446744073709551615-",
    "W/\"x\"",
    "*",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "-9999-01-01T00:00:00Z",
    "ünï",
    "\u{202e}",
    "e\u{301}",
    "\u{10ffff}",
    "00-00000000000000000000000000000000-0000000000000000-00",
    "PK\u{3}\u{4}",
    "PK\u{5}\u{6}",
    "-py3-none-any.whl",
    "==",
    "eyJ1IjoxLCJyIjoiYSJ9",
    "chunked",
    "gzip",
    "multipart/form-data; boundary=x",
    "--x--",
];

/// The longest input that is tried.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// A sample with some damage, or several joined.
pub(crate) fn damaged(samples: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = samples.choose(rng).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(0..6) {
        hurt(&mut bytes, samples, rng);
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

fn hurt(bytes: &mut Vec<u8>, samples: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    let (from, to) = piece(bytes.len(), rng);
    match rng.random_range(0..12) {
        0 if !bytes.is_empty() => {
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        1 if !bytes.is_empty() => {
            let at = rng.random_range(0..bytes.len());
            bytes[at] = rng.random();
        }
        2 => {
            bytes.drain(from..to);
        }
        3 => bytes.truncate(from),
        4 => {
            let again = bytes[from..to].to_vec();
            let times = *[1, 2, 3, 50, 2_000].choose(rng).unwrap();
            let most = MOST_BYTES / again.len().max(1);
            let repeated = again.repeat(times.min(most));
            bytes.splice(to..to, repeated);
        }
        5 | 6 => {
            let word = WORDS.choose(rng).unwrap();
            bytes.splice(from..from, word.bytes());
        }
        7 => {
            let word = WORDS.choose(rng).unwrap();
            bytes.splice(from..to, word.bytes());
        }
        8 => {
            // A number in the text becomes another one.
            if let Some(at) = bytes.iter().position(u8::is_ascii_digit) {
                let end = bytes[at..].iter().position(|byte| !byte.is_ascii_digit());
                let end = end.map_or(bytes.len(), |length| at + length);
                let word =
                    *["0", "-1", "18446744073709551615", "4294967296", "1e309", "00"].choose(rng).unwrap();
                bytes.splice(at..end, word.bytes());
            }
        }
        9 => {
            let other = samples.choose(rng).cloned().unwrap_or_default();
            let (start, stop) = piece(other.len(), rng);
            bytes.splice(from..to, other[start..stop].iter().copied());
        }
        10 => bytes[from..to].reverse(),
        _ => {
            let length = rng.random_range(0..8);
            let noise: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            bytes.splice(from..from, noise);
        }
    }
}

/// A short piece, mostly.
fn piece(length: usize, rng: &mut ChaCha8Rng) -> (usize, usize) {
    let from = rng.random_range(0..=length);
    let most = if rng.random_bool(0.8) { 16 } else { length };
    (from, length.min(from + rng.random_range(0..=most.max(1))))
}
