//! What a request says about itself in its headers: the key under which it may be repeated, and the thread it belongs to.
//!
//! Each surface refuses a wrong one in its own way; here is only what is wrong.

use axum::http::HeaderMap;
use pyoco_core::ids::CommandId;

/// The names of the key's header; both mean the same.
const NAMES: [&str; 2] = ["x-idempotency-key", "idempotency-key"];

/// The header of the thread.
pub(crate) const CORRELATION: &str = "x-correlation-id";

/// The longest name of a thread.
const CORRELATION_CHARACTERS: usize = 128;

const DIFFERENT: &str = "it is given twice with different values";
const NOT_ASCII: &str = "only printable ASCII is allowed";

/// The key of a request, if it has one. Several that differ, or one that is no key, are wrong: to guess would be to repeat.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<CommandId>, &'static str> {
    let Some(text) = only(headers, &NAMES)? else { return Ok(None) };
    CommandId::new(text).map(Some).map_err(|error| error.reason)
}

/// The thread of a request, if it names one.
pub(crate) fn correlation(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    match only(headers, &[CORRELATION])? {
        None | Some("") => Ok(None),
        Some(text) if text.len() > CORRELATION_CHARACTERS => Err("it is longer than 128 characters"),
        Some(text) if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) => Err(NOT_ASCII),
        Some(text) => Ok(Some(text.to_owned())),
    }
}

/// The one value of a header that goes by several names.
fn only<'a>(headers: &'a HeaderMap, names: &[&str]) -> Result<Option<&'a str>, &'static str> {
    let mut values = names.iter().flat_map(|name| headers.get_all(*name));
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|other| other != first) {
        return Err(DIFFERENT);
    }
    first.to_str().map(Some).map_err(|_| NOT_ASCII)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_bytes(value).unwrap())).collect()
    }

    #[test]
    fn a_key_may_be_missing_but_not_wrong() {
        assert!(key(&HeaderMap::new()).unwrap().is_none());
        for name in NAMES {
            assert_eq!(key(&headers(&[(name, b"k 1")])).unwrap().unwrap().as_str(), "k 1");
            for wrong in [&b""[..], "é".as_bytes(), b"\xff", "x".repeat(256).as_bytes()] {
                assert!(key(&headers(&[(name, wrong)])).is_err(), "{wrong:?}");
            }
        }
        let mut twice = headers(&[(NAMES[0], b"a")]);
        twice.append(NAMES[0], HeaderValue::from_static("a"));
        assert!(key(&twice).is_ok());
        twice.append(NAMES[1], HeaderValue::from_static("b"));
        assert!(key(&twice).is_err());
    }

    #[test]
    fn a_thread_is_short_and_printable() {
        assert_eq!(correlation(&HeaderMap::new()), Ok(None));
        assert_eq!(correlation(&headers(&[(CORRELATION, b"")])), Ok(None));
        let longest = "x".repeat(CORRELATION_CHARACTERS);
        assert_eq!(correlation(&headers(&[(CORRELATION, longest.as_bytes())])), Ok(Some(longest.clone())));
        for wrong in [format!("{longest}x").as_bytes(), "é".as_bytes(), b"a\tb"] {
            assert!(correlation(&headers(&[(CORRELATION, wrong)])).is_err(), "{wrong:?}");
        }
    }
}
