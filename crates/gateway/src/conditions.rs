//! Conditions of requests: whether what a client has is still what there is. What an entity tag says is the affair of whoever gives it.

use axum::http::{HeaderMap, HeaderValue, header};

/// Whether the client says that it has this already.
pub(crate) fn is_known(headers: &HeaderMap, mark: &HeaderValue) -> bool {
    let Ok(mark) = mark.to_str() else { return false };
    let said = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // No mark of ours has a comma in it, so a list may be cut at commas.
    let mut tags = said.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == mark)
}

/// Whether a part may be sent to a client that has another: nothing was said against it, or it has a part of just this. A date never
/// says so: no answer has one.
pub(crate) fn may_be_continued(headers: &HeaderMap, mark: &HeaderValue) -> bool {
    let mut said = headers.get_all(header::IF_RANGE).iter();
    match (said.next(), said.next()) {
        (None, _) => true,
        (Some(tag), None) => tag == mark,
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "\"e-1.3\"";

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_client_that_has_it_is_recognised() {
        let mark = HeaderValue::from_static(MARK);
        let text = MARK;
        for known in [text.to_owned(), format!("W/{text}"), format!("\"a\", {text}"), "*".to_owned()] {
            assert!(is_known(&headers(header::IF_NONE_MATCH, &known), &mark), "{known}");
        }
        for other in ["\"a\"", "", "e-1.3", "\"*\""] {
            assert!(!is_known(&headers(header::IF_NONE_MATCH, other), &mark), "{other}");
        }
        assert!(!is_known(&HeaderMap::new(), &mark));
    }

    #[test]
    fn only_the_same_bytes_are_continued() {
        let mark = HeaderValue::from_static(MARK);
        let text = MARK;
        assert!(may_be_continued(&HeaderMap::new(), &mark));
        assert!(may_be_continued(&headers(header::IF_RANGE, text), &mark));
        for other in [format!("W/{text}"), "\"a\"".to_owned(), "Wed, 18 Feb 2026 12:00:00 GMT".to_owned()] {
            assert!(!may_be_continued(&headers(header::IF_RANGE, &other), &mark), "{other}");
        }
    }
}
