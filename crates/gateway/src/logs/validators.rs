//! Entity tags of logs.

use axum::http::HeaderValue;
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

#[cfg(test)]
mod tests {
    use super::*;

    const END: LogEnd = LogEnd { lines: 3, bytes: 100, is_cut: false, is_closed: false };

    fn of(end: LogEnd, form: Form) -> HeaderValue {
        mark(&ExecutionId::new("e-1").unwrap(), end, form)
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
}
