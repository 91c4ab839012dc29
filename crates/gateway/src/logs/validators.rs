//! Entity tags of logs: whether what a client has is still what there is.

use axum::http::{HeaderMap, HeaderValue, header};
use pyoco_core::ids::ExecutionId;
use pyoco_ports::LogEnd;

use super::form::Form;

/// The entity tag of a log in a form. A log only ever grows, so its end says everything about it.
pub(super) fn mark(execution: &ExecutionId, end: LogEnd, form: Form) -> HeaderValue {
    let form = match form {
        Form::Json => 'j',
        Form::Text => 't',
    };
    let LogEnd { lines, bytes, is_cut, is_closed } = end;
    let state = u8::from(is_cut) * 2 + u8::from(is_closed);
    // Ids are letters, digits, `_` and `-`.
    let text = format!("\"{execution}.{lines:x}.{bytes:x}.{state}{form}\"");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Whether the client says that it has this already.
pub(super) fn is_known(headers: &HeaderMap, mark: &HeaderValue) -> bool {
    let Ok(mark) = mark.to_str() else { return false };
    let said = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // No mark of ours has a comma in it, so a list may be cut at commas.
    let mut tags = said.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == mark)
}

/// Whether a part may be sent to a client that has another: nothing was said against it, or it has a part of just this. A date never
/// says so, as a log changes more often than once a second.
pub(super) fn may_be_continued(headers: &HeaderMap, mark: &HeaderValue) -> bool {
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

    const END: LogEnd = LogEnd { lines: 3, bytes: 100, is_cut: false, is_closed: false };

    fn of(end: LogEnd, form: Form) -> HeaderValue {
        mark(&ExecutionId::new("e-1").unwrap(), end, form)
    }

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn whatever_changes_a_log_changes_its_mark() {
        let marks = [
            of(END, Form::Json),
            of(END, Form::Text),
            of(LogEnd { lines: 4, bytes: 120, ..END }, Form::Json),
            of(LogEnd { is_cut: true, ..END }, Form::Json),
            of(LogEnd { is_closed: true, ..END }, Form::Json),
            mark(&ExecutionId::new("e-2").unwrap(), END, Form::Json),
        ];
        for (position, one) in marks.iter().enumerate() {
            assert!(marks.iter().skip(position + 1).all(|other| other != one), "{one:?}");
        }
    }

    #[test]
    fn a_client_that_has_it_is_recognised() {
        let mark = of(END, Form::Json);
        let text = mark.to_str().unwrap();
        for known in [text.to_owned(), format!("W/{text}"), format!("\"a\", {text}"), "*".to_owned()] {
            assert!(is_known(&headers(header::IF_NONE_MATCH, &known), &mark), "{known}");
        }
        for other in ["\"a\"", "", "e-1.3.64.0j", "\"*\""] {
            assert!(!is_known(&headers(header::IF_NONE_MATCH, other), &mark), "{other}");
        }
        assert!(!is_known(&HeaderMap::new(), &mark));
    }

    #[test]
    fn only_the_same_bytes_are_continued() {
        let mark = of(END, Form::Text);
        let text = mark.to_str().unwrap();
        assert!(may_be_continued(&HeaderMap::new(), &mark));
        assert!(may_be_continued(&headers(header::IF_RANGE, text), &mark));
        for other in [format!("W/{text}"), "\"a\"".to_owned(), "Wed, 18 Feb 2026 12:00:00 GMT".to_owned()] {
            assert!(!may_be_continued(&headers(header::IF_RANGE, &other), &mark), "{other}");
        }
    }
}
