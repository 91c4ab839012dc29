//! Which form of a log a client likes best: JSON or text.

use axum::http::{HeaderMap, StatusCode, header};
use pyoco_core::notice::Notice;

use crate::error::Refusal;

/// A form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
}

/// So much of an `Accept` is read; what follows counts for nothing.
const RANGES: usize = 64;

impl Form {
    /// The form that `Accept` likes best; JSON when both are liked the same, or nothing is said.
    pub(super) fn liked(headers: &HeaderMap) -> Result<Self, Refusal> {
        let said = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<Range> =
            said.flat_map(|text| text.split(',')).take(RANGES).filter_map(Range::read).collect();
        if ranges.is_empty() && !headers.contains_key(header::ACCEPT) {
            return Ok(Self::Json);
        }
        let (json, text) = (quality(&ranges, "application", "json"), quality(&ranges, "text", "plain"));
        match (json, text) {
            (0, 0) => {
                let detail = "a log has the forms application/json and text/plain";
                Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, detail).noticed(Notice::InvalidRequest))
            }
            (json, text) if text > json => Ok(Self::Text),
            (_, _) => Ok(Self::Json),
        }
    }
}

/// One entry of an `Accept`: a type, or all of a kind, and how much it is liked, in thousandths.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: u16,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
        });
        let quality = match weight {
            None => 1_000,
            Some(weight) => thousandths(weight)?,
        };
        Some(Self { kind, subtype, quality })
    }

    /// How closely it names a type; nothing if it does not.
    fn closeness(&self, kind: &str, subtype: &str) -> Option<u8> {
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (of, "*") if of.eq_ignore_ascii_case(kind) => Some(1),
            (of, it) if of.eq_ignore_ascii_case(kind) && it.eq_ignore_ascii_case(subtype) => Some(2),
            (_, _) => None,
        }
    }
}

/// What is said of a type by the entry that names it most closely.
fn quality(ranges: &[Range<'_>], kind: &str, subtype: &str) -> u16 {
    let named = ranges.iter().filter_map(|range| Some((range.closeness(kind, subtype)?, range.quality)));
    named.max().map_or(0, |(_, quality)| quality)
}

/// `0`, `0.5`, `1.000`.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", fraction) => Some(fraction),
        ("1", 0) => Some(1_000),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn liked(accept: &str) -> Option<Form> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]);
        Form::liked(&headers).ok()
    }

    #[test]
    fn the_form_that_is_liked_best_is_chosen() {
        assert_eq!(Form::liked(&HeaderMap::new()).ok(), Some(Form::Json));
        for (accept, form) in [
            ("*/*", Form::Json),
            ("application/json", Form::Json),
            ("application/*", Form::Json),
            ("text/plain", Form::Text),
            ("Text/Plain; charset=utf-8", Form::Text),
            ("text/*", Form::Text),
            ("text/html, text/plain;q=0.1", Form::Text),
            ("text/plain, application/json", Form::Json),
            ("text/plain, */*;q=0.5", Form::Text),
            ("text/plain;q=0.4, */*;q=0.5", Form::Json),
            ("application/json;q=0, */*", Form::Text),
            ("application/json;q=0.001, text/plain;q=0.002", Form::Text),
            // What cannot be read says nothing.
            ("text/plain;q=2, application/json;q=0.1", Form::Json),
        ] {
            assert_eq!(liked(accept), Some(form), "{accept}");
        }
    }

    #[test]
    fn a_client_that_likes_neither_gets_none() {
        for accept in ["text/html", "image/*", "text/plain;q=0", "*/*;q=0", "", "garbage"] {
            assert_eq!(liked(accept), None, "{accept}");
        }
    }
}
