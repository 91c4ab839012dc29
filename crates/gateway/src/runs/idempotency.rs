//! The key under which a submission may be repeated.

use axum::http::{HeaderMap, StatusCode};
use pyoco_core::ids::CommandId;
use pyoco_core::notice::Notice;

use crate::error::Refusal;

/// The names of the header; both mean the same.
const NAMES: [&str; 2] = ["x-idempotency-key", "idempotency-key"];

/// The key of a request, if it has one. Several that differ, or one that is no key, are refused: to guess would be to repeat.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<CommandId>, Refusal> {
    let mut values = NAMES.iter().flat_map(|name| headers.get_all(*name));
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|other| other != first) {
        return Err(refused("it is given twice with different values"));
    }
    let text = first.to_str().map_err(|_| refused("only printable ASCII is allowed"))?;
    CommandId::new(text).map(Some).map_err(|error| refused(error.reason))
}

fn refused(reason: &str) -> Refusal {
    let detail = format!("invalid X-Idempotency-Key: {reason}");
    Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest)
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
}
