//! Inputs that are wrong, told as the original's framework tells them: a list of `{type, loc, msg, input, ctx}`.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header;
use axum::http::request::Parts;
use pyoco_api::{InputProblem, Location};
use pyoco_core::json::{self, Json, JsonError, Limits};
use pyoco_core::notice::Notice;
use serde_json::{Map, Value, json};

use crate::body;
use crate::error::Refusal;

/// One level less than a command may have: a command wraps what it is given.
const BODY: Limits = Limits { bytes: Limits::BODY.bytes, depth: Limits::BODY.depth - 1 };

/// The longest input that is repeated to the caller.
const SHOWN_BYTES: usize = 1_024;

/// Problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Vec<InputProblem>);

impl Inputs {
    /// An input that breaks a rule.
    pub(crate) fn wrong(
        &mut self,
        kind: &str,
        loc: impl Into<Vec<Location>>,
        msg: impl Into<String>,
        input: Value,
        ctx: Option<Value>,
    ) {
        let problem = InputProblem {
            kind: kind.to_owned(),
            loc: loc.into(),
            msg: msg.into(),
            input: shown(input),
            ctx,
        };
        self.0.push(problem);
    }

    /// An input that is not there. `around` is where it should have been.
    pub(crate) fn missing(&mut self, loc: impl Into<Vec<Location>>, around: Value) {
        self.wrong("missing", loc, "Field required", around, None);
    }

    /// A yes or no, as lax as the original: booleans, 0 and 1, and the words for them.
    pub(crate) fn flag(&mut self, loc: impl Into<Vec<Location>>, value: &Value) -> Option<bool> {
        let flag = match value {
            Value::Bool(flag) => Some(*flag),
            Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
            Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
            Value::String(word) => match word.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
                "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
                _ => None,
            },
            Value::Number(number) if number.as_f64().is_none_or(|number| number.fract() == 0.0) => None,
            Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
                self.wrong("bool_type", loc, "Input should be a valid boolean", value.clone(), None);
                return None;
            }
        };
        if flag.is_none() {
            let rule = "Input should be a valid boolean, unable to interpret input";
            self.wrong("bool_parsing", loc, rule, value.clone(), None);
        }
        flag
    }

    /// Refuses the request if anything was wrong.
    pub(crate) fn finish(self, notice: Notice) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::inputs(self.0, notice)) }
    }

    /// The refusal of what was wrong.
    pub(crate) fn refusal(self, notice: Notice) -> Refusal {
        Refusal::inputs(self.0, notice)
    }

    /// What was found so far.
    pub(crate) fn problems(&self) -> &[InputProblem] {
        &self.0
    }
}

/// What is repeated of an input: all of it when it is short.
fn shown(input: Value) -> Value {
    let text = match &input {
        Value::Null | Value::Bool(_) | Value::Number(_) => return input,
        Value::String(text) if text.len() <= SHOWN_BYTES => return input,
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => {
            let text = input.to_string();
            if text.len() <= SHOWN_BYTES {
                return input;
            }
            text
        }
    };
    Value::String(text.chars().take(200).chain("…".chars()).collect())
}

/// Reads a request whose body is a JSON object.
pub(crate) async fn object(
    request: Request,
    patience: Duration,
    notice: Notice,
) -> Result<Map<String, Value>, Refusal> {
    let (parts, bytes) = read(request, patience).await?;
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mut inputs = Inputs::default();
    if bytes.is_empty() {
        inputs.missing(["body".into()], Value::Null);
    }
    inputs.finish(notice)?;
    let given = if content_type.is_some_and(is_json) {
        decode(&bytes).map_err(|problem| Refusal::inputs(vec![*problem], notice))?
    } else {
        // Never taken for JSON by a guess.
        Value::String(String::from_utf8_lossy(&bytes).into_owned())
    };
    object_of(given, notice)
}

/// Reads a request whose body is a JSON object, whatever type it says it has. Nothing, or null, is the empty object.
pub(crate) async fn members(
    request: Request,
    patience: Duration,
    notice: Notice,
) -> Result<Map<String, Value>, Refusal> {
    let (_, bytes) = read(request, patience).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    let given = decode(&bytes).map_err(|problem| Refusal::inputs(vec![*problem], notice))?;
    if given.is_null() { Ok(Map::new()) } else { object_of(given, notice) }
}

async fn read(request: Request, patience: Duration) -> Result<(Parts, Bytes), Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, body::JSON_BYTES, patience).await?;
    Ok((parts, bytes))
}

fn object_of(given: Value, notice: Notice) -> Result<Map<String, Value>, Refusal> {
    match given {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let rule = "Input should be a valid dictionary or object to extract fields from";
            let mut inputs = Inputs::default();
            inputs.wrong("model_attributes_type", ["body".into()], rule, given, None);
            inputs.finish(notice).map(|()| Map::new())
        }
    }
}

/// `application/json`, or a type that ends in `+json`.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Reads JSON that is bounded and means one thing only.
fn decode(bytes: &[u8]) -> Result<Value, Box<InputProblem>> {
    let error = match json::decode::<Json>(bytes, BODY) {
        Ok(value) => return Ok(value.0),
        Err(error) => error,
    };
    let reason = match &error {
        JsonError::Malformed(reason) => reason,
        JsonError::TooLong { .. } | JsonError::TooDeep { .. } | JsonError::IntegerOutOfRange { .. } => {
            return Err(ambiguous(&error.to_string()));
        }
    };
    let (text, offset) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            (std::str::from_utf8(valid).unwrap_or_default(), Some(valid.len()))
        }
    };
    // The bounds hold, so it may be read once more to learn where it breaks.
    let place = match (offset, serde_json::from_str::<Json>(text)) {
        (None, Err(error)) if error.is_data() => return Err(ambiguous(reason)),
        (None, Err(error)) if error.is_eof() => text.len(),
        (None, Err(error)) => offset_of(text, error.line(), error.column()),
        (Some(offset), _) => offset,
        (None, Ok(_)) => 0,
    };
    let characters = text.get(..place).map_or(place, |before| before.chars().count());
    Err(Box::new(InputProblem {
        kind: "json_invalid".to_owned(),
        loc: vec!["body".into(), Location::Position(characters as u64)],
        msg: "JSON decode error".to_owned(),
        input: json!({}),
        ctx: Some(json!({"error": reason})),
    }))
}

/// It is JSON, but readers would disagree about it, or it has no end.
fn ambiguous(reason: &str) -> Box<InputProblem> {
    Box::new(InputProblem {
        kind: "value_error".to_owned(),
        loc: vec!["body".into()],
        msg: format!("Value error, {reason}"),
        input: Value::Null,
        ctx: Some(json!({"error": {}})),
    })
}

/// The byte where an error stands that counts lines and columns from one.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before.saturating_add(column.saturating_sub(1)).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_breaks_is_placed_by_character() {
        for (text, place) in
            [("{\"a\":", 5), ("{\"é\": x}", 6), ("\n\n  x", 4), ("{} x", 3), ("\u{feff}{}", 0)]
        {
            let problem = decode(text.as_bytes()).unwrap_err();
            assert_eq!(problem.kind, "json_invalid", "{text}");
            assert_eq!(problem.loc.last(), Some(&Location::Position(place)), "{text}");
        }
        assert_eq!(decode(b"{\"a\": \"\xff\"}").unwrap_err().loc.last(), Some(&Location::Position(7)));
    }

    #[test]
    fn json_that_readers_would_disagree_about_is_refused() {
        let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        for text in ["{\"a\":1,\"a\":2}", "{\"n\":100000000000000000000}", deep.as_str()] {
            assert_eq!(decode(text.as_bytes()).unwrap_err().kind, "value_error", "{text}");
        }
        for text in ["NaN", "[Infinity]", "\"\\ud800\"", "1e400", "{\"a\":1,}"] {
            assert_eq!(decode(text.as_bytes()).unwrap_err().kind, "json_invalid", "{text}");
        }
    }

    #[test]
    fn only_json_is_taken_for_json() {
        for yes in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"] {
            assert!(is_json(yes), "{yes}");
        }
        for no in
            ["", "text/plain", "application/jsonx", "text/json", "multipart/form-data; x=application/json"]
        {
            assert!(!is_json(no), "{no}");
        }
    }

    #[test]
    fn a_long_input_is_cut() {
        assert_eq!(shown(json!("short")), json!("short"));
        assert_eq!(shown(json!({"a": 1})), json!({"a": 1}));
        assert!(shown(json!("x".repeat(5_000))).as_str().is_some_and(|text| text.chars().count() == 201));
        assert!(shown(json!({"a": "x".repeat(5_000)})).is_string());
    }
}
