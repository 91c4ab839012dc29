//! The members of a command's body, each of its kind and within its bounds. Everything that is wrong is told at once.
//!
//! A null says the same as nothing; members that nobody asks for are ignored, unless a surface says otherwise (`only`).

use std::ops::RangeInclusive;

use pyoco_api::Location;
use pyoco_core::ids::{Attempt, InvalidId};
use pyoco_core::json::{Json, Object};
use pyoco_core::notice::Notice;
use pyoco_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::tags;
use crate::validation::Inputs;

/// The longest text that says why.
pub(crate) const REASON: usize = 2_000;
/// The longest text of a message for people.
pub(crate) const MESSAGE: usize = 4_000;
/// The longest key of a wait, code of an error, name of a graph.
pub(crate) const WORD: usize = 256;

/// The longest list of labels.
const TEXTS: usize = 64;
/// So many members that nobody asks for are named.
const UNKNOWN: usize = 8;

/// Members that are still to be read.
#[derive(Debug)]
pub(crate) struct Fields {
    members: Map<String, Value>,
    way: Vec<Location>,
    inputs: Inputs,
}

impl Fields {
    pub(crate) fn of_body(members: Map<String, Value>) -> Self {
        Self { members, way: vec!["body".into()], inputs: Inputs::default() }
    }

    /// Refuses the request if anything was wrong.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        self.inputs.finish(Notice::InvalidRequest)
    }

    /// How much was wrong so far.
    pub(crate) fn flaws(&self) -> usize {
        self.inputs.problems().len()
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.members.get_mut(name).map(Value::take).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, steps: &[Location], kind: &str, rule: impl Into<String>, given: Value) {
        let way: Vec<Location> = self.way.iter().chain(steps).cloned().collect();
        self.inputs.wrong(kind, way, rule, given, None);
    }

    /// Says of a member that it has to be there.
    pub(crate) fn missing(&mut self, name: &'static str) {
        self.wrong(&[name.into()], "missing", "it is required", Value::Null);
    }

    /// Says of a member that it does not go with the others.
    pub(crate) fn unfit(&mut self, name: &'static str, rule: &str) {
        self.wrong(&[name.into()], "value_error", rule, Value::Null);
    }

    /// Says of a member that it must say something.
    pub(crate) fn empty(&mut self, name: &'static str) {
        self.wrong(&[name.into()], "string_too_short", "it is empty", Value::Null);
    }

    /// Whether a member is there, and not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(|value| !value.is_null())
    }

    /// Any value.
    pub(crate) fn any(&mut self, name: &'static str) -> Option<Json> {
        self.take(name).map(Json)
    }

    /// A text of so many characters at most.
    pub(crate) fn text(&mut self, name: &'static str, longest: usize) -> Option<String> {
        let given = self.take(name)?;
        self.short(&[name.into()], given, longest)
    }

    fn short(&mut self, steps: &[Location], given: Value, longest: usize) -> Option<String> {
        match given {
            Value::String(text) if text.chars().nth(longest).is_none() => return Some(text),
            Value::String(_) => {
                self.wrong(
                    steps,
                    "string_too_long",
                    format!("it is longer than {longest} characters"),
                    given,
                );
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong(steps, "string_type", "it must be a text", given);
            }
        }
        None
    }

    /// A text with a rule of its own.
    pub(crate) fn id<T>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&str) -> Result<T, InvalidId>,
    ) -> Option<T> {
        // The rule has a bound of its own.
        let text = self.text(name, usize::MAX)?;
        match rule(&text) {
            Ok(id) => Some(id),
            Err(error) => {
                self.wrong(&[name.into()], "value_error", error.reason, Value::String(text));
                None
            }
        }
    }

    /// Says of members that nobody asks for that they are wrong; of the first few.
    pub(crate) fn only(&mut self, names: &[&str]) {
        let unknown = self.members.keys().filter(|name| !names.contains(&name.as_str()));
        let unknown: Vec<String> = unknown.take(UNKNOWN).cloned().collect();
        for name in unknown {
            let shown: String = name.chars().take(WORD).collect();
            let rule = "there is no such member here";
            self.wrong(&[Location::Name(shown)], "extra_forbidden", rule, Value::Null);
        }
    }

    /// A tag of a job.
    pub(crate) fn job_tag(&mut self, name: &'static str) -> Option<String> {
        let given = self.take(name)?;
        self.normal(&[name.into()], given)
    }

    /// A list of tags of a job, each once.
    pub(crate) fn job_tags(&mut self, name: &'static str) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        for tag in self.listed(name, Self::normal) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        tags
    }

    fn normal(&mut self, steps: &[Location], given: Value) -> Option<String> {
        // The rule has a bound of its own.
        let text = self.short(steps, given, usize::MAX)?;
        match tags::normal(&text) {
            Ok(tag) => Some(tag),
            Err(rule) => {
                self.wrong(steps, "value_error", rule, Value::String(text));
                None
            }
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, name: &'static str, longest: usize) -> Vec<String> {
        self.listed(name, |fields, steps, item| fields.short(steps, item, longest))
    }

    /// A list of texts that are read as something else; of those that cannot be, what the rule says.
    pub(crate) fn each<T>(
        &mut self,
        name: &'static str,
        rule: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        self.listed(name, |fields, steps, item| fields.as_read(steps, item, rule, &read))
    }

    /// A text that is read as something else; of one that cannot be, what the rule says.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let given = self.take(name)?;
        self.as_read(&[name.into()], given, rule, read)
    }

    fn as_read<T>(
        &mut self,
        steps: &[Location],
        given: Value,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        // Whatever is read has a bound of its own.
        let text = self.short(steps, given, usize::MAX)?;
        let found = read(&text);
        if found.is_none() {
            self.wrong(steps, "value_error", rule, Value::String(text));
        }
        found
    }

    /// An instant.
    pub(crate) fn instant(&mut self, name: &'static str) -> Option<Timestamp> {
        let rule = "it must be an instant in RFC 3339, e.g. 2026-01-31T12:00:00Z";
        self.read(name, rule, |text| serde_json::from_value(text.into()).ok())
    }

    /// A yes or no; no when it is not there.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        match self.take(name) {
            None => false,
            Some(Value::Bool(flag)) => flag,
            Some(other) => {
                self.wrong(&[name.into()], "bool_type", "it must be true or false", other);
                false
            }
        }
    }

    fn listed<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&mut Self, &[Location], Value) -> Option<T>,
    ) -> Vec<T> {
        let items = match self.take(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) if items.len() > TEXTS => {
                let rule = format!("it must have at most {TEXTS} entries");
                self.wrong(&[name.into()], "too_long", rule, items.len().into());
                return Vec::new();
            }
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong(&[name.into()], "list_type", "it must be a list of texts", other);
                return Vec::new();
            }
        };
        let mut texts = Vec::with_capacity(items.len());
        for (position, item) in (0_u64..).zip(items) {
            texts.extend(read(self, &[name.into(), Location::Position(position)], item));
        }
        texts
    }

    /// An object, as it is.
    pub(crate) fn object(&mut self, name: &'static str) -> Option<Object> {
        match self.take(name)? {
            Value::Object(members) => return Some(Object(members)),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                self.wrong(&[name.into()], "dict_type", "it must be an object", other);
            }
        }
        None
    }

    /// An object whose members are read, too.
    pub(crate) fn inside<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let Object(members) = self.object(name)?;
        let outside = std::mem::replace(&mut self.members, members);
        self.way.push(name.into());
        let inside = read(self);
        self.way.pop();
        self.members = outside;
        Some(inside)
    }

    /// A number between two others.
    pub(crate) fn number(&mut self, name: &'static str, bounds: RangeInclusive<f64>) -> Option<f64> {
        let given = self.take(name)?;
        let Value::Number(number) = &given else {
            self.wrong(&[name.into()], "float_type", "it must be a number", given);
            return None;
        };
        let number = number.as_f64().filter(|number| bounds.contains(number));
        if number.is_none() {
            let rule = format!("it must be a number from {} to {}", bounds.start(), bounds.end());
            self.wrong(&[name.into()], "value_error", rule, given);
        }
        number
    }

    /// A whole number from 1 on.
    pub(crate) fn count(&mut self, name: &'static str, most: u64) -> Option<u64> {
        let given = self.take(name)?;
        let whole =
            given.as_u64().or_else(|| as_whole(given.as_f64()?)).filter(|number| (1..=most).contains(number));
        if whole.is_none() {
            self.wrong(
                &[name.into()],
                "int_type",
                format!("it must be a whole number from 1 to {most}"),
                given,
            );
        }
        whole
    }

    /// Which attempt of a node.
    pub(crate) fn attempt(&mut self) -> Option<Attempt> {
        let number = self.count("attempt", u32::MAX.into())?;
        u32::try_from(number).ok().map(Attempt)
    }
}

/// `2.0` is as whole as `2`.
fn as_whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and bounded below")]
    (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        let Value::Object(members) = value else { panic!("no object: {value}") };
        Fields::of_body(members)
    }

    fn ways(fields: &Fields) -> Vec<String> {
        let steps = |problem: &pyoco_api::InputProblem| {
            problem.loc.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
        };
        fields.inputs.problems().iter().map(steps).collect()
    }

    #[test]
    fn everything_that_is_wrong_is_found_with_its_way() {
        let mut read = fields(json!({
            "reason": 5, "tags": ["a", 1, "xyz"], "attempt": 0, "progress": "x", "input": [],
            "error": {"code": {}, "message": "m"}, "unknown": 1, "nothing": null
        }));
        assert_eq!(read.text("reason", 9), None);
        assert_eq!(read.texts("tags", 2), ["a"]);
        assert_eq!(read.attempt(), None);
        assert_eq!(read.number("progress", 0.0..=100.0), None);
        assert!(read.object("input").is_none());
        let inner = read.inside("error", |inner| (inner.text("code", 9), inner.text("message", 9)));
        assert_eq!(inner, Some((None, Some("m".to_owned()))));
        assert_eq!(read.any("nothing"), None);
        assert_eq!(
            ways(&read),
            [
                "body.reason",
                "body.tags.1",
                "body.tags.2",
                "body.attempt",
                "body.progress",
                "body.input",
                "body.error.code"
            ]
        );
        assert!(read.finish().is_err());
    }

    #[test]
    fn what_is_read_as_something_else_is_refused_by_its_own_rule() {
        let number = |text: &str| text.parse::<u8>().ok();
        let mut read = fields(json!({
            "list": ["1", "x", "300", 4], "one": "7", "none": "x", "yes": true, "odd": 1, "nothing": null,
            "at": "2026-01-31T12:00:00Z", "when": "soon"
        }));
        assert_eq!(read.each("list", "a number", number), [1]);
        assert_eq!(
            (read.read("one", "a number", number), read.read("none", "a number", number)),
            (Some(7), None)
        );
        assert_eq!(
            (read.flag("yes"), read.flag("odd"), read.flag("nothing"), read.flag("away")),
            (true, false, false, false)
        );
        assert!(read.instant("at").is_some() && read.instant("when").is_none());
        assert_eq!(
            ways(&read),
            ["body.list.1", "body.list.2", "body.list.3", "body.none", "body.odd", "body.when"]
        );
    }

    #[test]
    fn bounds_belong_to_what_they_bound() {
        let mut read = fields(json!({"a": "éé", "b": 100, "c": 0, "attempt": 2.0, "d": 4_294_967_296_u64}));
        assert_eq!(read.text("a", 2).as_deref(), Some("éé"));
        assert_eq!(read.number("b", 0.0..=100.0), Some(100.0));
        assert_eq!(read.number("c", 0.0..=100.0), Some(0.0));
        assert_eq!(read.attempt(), Some(Attempt(2)));
        assert!(ways(&read).is_empty());
        for wrong in [json!(101), json!(-1), json!(100.5), json!(true)] {
            let mut read = fields(json!({"progress": wrong}));
            assert_eq!(read.number("progress", 0.0..=100.0), None);
            assert_eq!(ways(&read), ["body.progress"]);
        }
        for wrong in [json!(0), json!(-1), json!(1.5), json!("1"), json!(4_294_967_296_u64)] {
            let mut read = fields(json!({"attempt": wrong}));
            assert_eq!(read.attempt(), None, "{wrong}");
            assert_eq!(ways(&read), ["body.attempt"], "{wrong}");
        }
    }
}
