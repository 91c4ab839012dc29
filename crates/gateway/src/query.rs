//! The query of a request, and the values it may hold, with the errors of the contract.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use pyoco_api::Location;
use pyoco_core::ids::EventSeq;
use pyoco_core::time::Timestamp;
use serde_json::json;

use crate::App;
use crate::validation::Inputs;

/// Names and values, percent-decoded, in order.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl FromRequestParts<App> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        // Pairs of texts can always be read: what is not UTF-8 is replaced.
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        Ok(Self(pairs.map(|pairs| pairs.0).unwrap_or_default()))
    }
}

impl Query {
    /// The last value of that name, as the original takes it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The last value of that name; an empty one counts as none.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Every value of that name that is not empty.
    pub(crate) fn every(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// A text of so many characters at most; an empty one counts as none.
    pub(crate) fn text(&self, inputs: &mut Inputs, name: &'static str, longest: usize) -> Option<String> {
        let text = self.filled(name)?;
        if text.chars().nth(longest).is_none() {
            return Some(text.to_owned());
        }
        let rule = format!("it is longer than {longest} characters");
        inputs.wrong("string_too_long", place(name), rule, json!(text), None);
        None
    }

    /// Whether `include` names one of these.
    pub(crate) fn includes(&self, wanted: &[&str]) -> bool {
        self.0.iter().any(|(key, value)| key == "include" && wanted.contains(&value.as_str()))
    }

    /// A whole number between two bounds.
    pub(crate) fn integer(
        &self,
        inputs: &mut Inputs,
        name: &'static str,
        bounds: std::ops::RangeInclusive<u32>,
        default: u32,
    ) -> u32 {
        let Some(text) = self.get(name) else { return default };
        let (low, high) = (*bounds.start(), *bounds.end());
        let loc = ["query".into(), name.into()];
        match whole(text) {
            None => {
                let rule = "Input should be a valid integer, unable to parse string as an integer";
                inputs.wrong("int_parsing", loc, rule, json!(text), None);
            }
            Some(number) if number < f64::from(low) => {
                let rule = format!("Input should be greater than or equal to {low}");
                inputs.wrong("greater_than_equal", loc, rule, json!(text), Some(json!({"ge": low})));
            }
            Some(number) if number > f64::from(high) => {
                let rule = format!("Input should be less than or equal to {high}");
                inputs.wrong("less_than_equal", loc, rule, json!(text), Some(json!({"le": high})));
            }
            Some(_) => {
                return text.trim().split('.').next().and_then(|text| text.parse().ok()).unwrap_or(default);
            }
        }
        default
    }

    /// A number.
    pub(crate) fn number(&self, inputs: &mut Inputs, name: &'static str) -> Option<f64> {
        let text = self.get(name)?;
        let loc = ["query".into(), name.into()];
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => return Some(number),
            Ok(_) => inputs.wrong("finite_number", loc, "Input should be a finite number", json!(text), None),
            Err(_) => {
                let rule = "Input should be a valid number, unable to parse string as a number";
                inputs.wrong("float_parsing", loc, rule, json!(text), None);
            }
        }
        None
    }

    /// The number of an event.
    pub(crate) fn seq(&self, inputs: &mut Inputs, name: &'static str) -> Option<EventSeq> {
        let text = self.get(name)?;
        let seq = whole_number(text);
        if seq.is_none() {
            inputs.wrong("int_parsing", place(name), "it must be the number of an event", json!(text), None);
        }
        seq.map(EventSeq)
    }

    /// The number of a version.
    pub(crate) fn version(&self, inputs: &mut Inputs, name: &'static str) -> Option<u64> {
        let text = self.get(name)?;
        let version = whole_number(text).filter(|version| *version > 0);
        if version.is_none() {
            let rule = "it must be the number of a version, from 1";
            inputs.wrong("int_parsing", place(name), rule, json!(text), None);
        }
        version
    }

    /// An instant in RFC 3339.
    pub(crate) fn instant(&self, inputs: &mut Inputs, name: &'static str) -> Option<Timestamp> {
        let text = self.filled(name)?;
        // In a query a plus that was not encoded is a space.
        let instant = serde_json::from_value(json!(text.trim_end().replace(' ', "+"))).ok();
        if instant.is_none() {
            let rule = "it must be an instant in RFC 3339, e.g. 2026-01-31T12:00:00Z";
            inputs.wrong("datetime_parsing", place(name), rule, json!(text), None);
        }
        instant
    }

    /// Where a list goes on; an empty one asks for the first page.
    pub(crate) fn cursor<T>(&self, inputs: &mut Inputs, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let text = self.filled("cursor")?;
        let cursor = read(text);
        if cursor.is_none() {
            let rule = "this is not a cursor; use the one that the list gave, or none";
            inputs.wrong("value_error", place("cursor"), rule, json!(text), None);
        }
        cursor
    }

    /// A yes or no; no when it is not there.
    pub(crate) fn flag(&self, inputs: &mut Inputs, name: &'static str) -> bool {
        let Some(text) = self.get(name) else { return false };
        inputs.flag(["query".into(), name.into()], &json!(text)).unwrap_or_default()
    }
}

pub(crate) fn place(name: &'static str) -> [Location; 2] {
    ["query".into(), name.into()]
}

/// Digits and nothing else.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A whole number as Python's `int` of pydantic reads it, as a float: only its size matters beyond 32 bits.
fn whole(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(unsigned) || fraction.is_empty() || !fraction.bytes().all(|b| b == b'0') {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query {
        Query(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    fn kinds(inputs: &Inputs) -> Vec<String> {
        inputs.problems().iter().map(|problem| problem.kind.clone()).collect()
    }

    #[test]
    fn whole_numbers_are_read_as_the_original_reads_them() {
        for (text, wanted) in [("7", 7), (" 7 ", 7), ("7.0", 7), ("+7", 7), ("200", 200), ("007", 7)] {
            let mut inputs = Inputs::default();
            assert_eq!(
                query(&[("limit", text)]).integer(&mut inputs, "limit", 1..=200, 50),
                wanted,
                "{text}"
            );
            assert!(kinds(&inputs).is_empty(), "{text}");
        }
        for (text, kind) in [
            ("", "int_parsing"),
            ("abc", "int_parsing"),
            ("7.5", "int_parsing"),
            ("1e3", "int_parsing"),
            ("0", "greater_than_equal"),
            ("-1", "greater_than_equal"),
            ("201", "less_than_equal"),
            ("99999999999999999999999", "less_than_equal"),
        ] {
            let mut inputs = Inputs::default();
            query(&[("limit", text)]).integer(&mut inputs, "limit", 1..=200, 50);
            assert_eq!(kinds(&inputs), [kind], "{text}");
        }
    }

    #[test]
    fn the_last_of_several_values_counts() {
        let query = query(&[("tag", "a"), ("tag", "b"), ("include", "x"), ("include", "full")]);
        assert_eq!(query.get("tag"), Some("b"));
        assert!(query.includes(&["full", "all"]) && !query.includes(&["records"]));
    }

    #[test]
    fn a_number_that_is_none_is_named() {
        for (text, kind) in [
            ("nan", "finite_number"),
            ("inf", "finite_number"),
            ("", "float_parsing"),
            ("x", "float_parsing"),
        ] {
            let mut inputs = Inputs::default();
            assert_eq!(query(&[("since", text)]).number(&mut inputs, "since"), None);
            assert_eq!(kinds(&inputs), [kind], "{text}");
        }
    }
}
