//! The trace that a caller is in, as its `traceparent` header says.

use axum::http::HeaderMap;
use pyoco_core::trace::TraceContext;

/// The header, by the W3C's name.
const TRACEPARENT: &str = "traceparent";

/// The header, as it is described.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the header for OpenAPI; it is read by its name")]
pub(crate) struct TraceHeader {
    /// The trace that the caller is in, as the W3C writes it; a wrong one is ignored.
    #[param(example = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
    traceparent: Option<String>,
}

/// What a request says about its trace, in the form that is kept. A wrong header, or several, count as none: a request is never
/// refused for it.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let (first, second) = (given.next()?, given.next());
    if second.is_some() {
        return None;
    }
    Some(TraceContext::parse(first.to_str().ok()?)?.to_string())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn one_right_header_counts_and_everything_else_is_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(traceparent(&headers), None);
        for wrong in [&b""[..], b"x", b"\xff", b"00-0-0-0"] {
            headers.insert(TRACEPARENT, HeaderValue::from_bytes(wrong).unwrap());
            assert_eq!(traceparent(&headers), None, "{wrong:?}");
        }
        headers.insert(TRACEPARENT, HeaderValue::from_static(GIVEN));
        assert_eq!(traceparent(&headers).as_deref(), Some(GIVEN));
        headers.append(TRACEPARENT, HeaderValue::from_static(GIVEN));
        assert_eq!(traceparent(&headers), None);
    }
}
