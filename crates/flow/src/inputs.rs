//! Configured arguments of a task: a text that begins with `$` selects a value, anything else is one.

use indexmap::IndexMap;
use pyoco_core::json::Json;
use pyoco_core::plan::Input;
use serde_json::{Map, Value};

const SUPPORTED: &str = "$node.<node>.output[.<field>...], $ctx.params.<key>, $env.<key>";

/// All arguments of a task.
pub(crate) fn read(inputs: &Map<String, Value>) -> IndexMap<String, Input> {
    inputs.iter().map(|(name, value)| (name.clone(), read_one(value))).collect()
}

fn read_one(value: &Value) -> Input {
    match value.as_str() {
        Some(text) if text.starts_with('$') => selector(text).unwrap_or_else(|reason| invalid(text, reason)),
        Some(_) | None => Input::Lit(Json(value.clone())),
    }
}

/// A selector that cannot be resolved fails the attempt, not the flow: the reference finds out that late.
pub(crate) fn invalid(text: &str, reason: &str) -> Input {
    let message = format!("Invalid reference '{text}': {reason}. Supported selectors: {SUPPORTED}");
    Input::Invalid { text: text.to_owned(), message }
}

fn selector(text: &str) -> Result<Input, &'static str> {
    if let Some(rest) = text.strip_prefix("$node.") {
        let mut parts = rest.split('.');
        return match (parts.next(), parts.next()) {
            (Some(""), Some("output")) => Err("node name is required after '$node.'"),
            (Some(node), Some("output")) => {
                Ok(Input::Node { node: node.to_owned(), path: parts.map(str::to_owned).collect() })
            }
            _ => Err("expected '$node.<node>.output[.<field>...]'"),
        };
    }
    if let Some(key) = text.strip_prefix("$ctx.params.") {
        return named(key, Input::Param, "parameter key is required after '$ctx.params.'");
    }
    if let Some(key) = text.strip_prefix("$env.") {
        return named(key, Input::Env, "environment key is required after '$env.'");
    }
    if text.starts_with("$ctx.") {
        return Err("only '$ctx.params.<key>' is supported");
    }
    Err("unknown selector")
}

fn named(key: &str, make: fn(String) -> Input, missing: &'static str) -> Result<Input, &'static str> {
    if key.is_empty() { Err(missing) } else { Ok(make(key.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(node: &str, path: &[&str]) -> Input {
        Input::Node { node: node.to_owned(), path: path.iter().map(|part| (*part).to_owned()).collect() }
    }

    #[test]
    fn a_dollar_selects_and_everything_else_is_itself() {
        for (text, input) in [
            ("$node.a.output", node("a", &[])),
            ("$node.a.output.k.l", node("a", &["k", "l"])),
            ("$node.output.output", node("output", &[])),
            ("$ctx.params.a.b", Input::Param("a.b".to_owned())),
            ("$env.HOME", Input::Env("HOME".to_owned())),
            (" $node.a", Input::Lit(Json(json!(" $node.a")))),
        ] {
            assert_eq!(read_one(&json!(text)), input, "{text}");
        }
        let nested = json!({"a": ["$node.a.output"]});
        assert_eq!(read_one(&nested), Input::Lit(Json(nested)));
    }

    #[test]
    fn a_broken_selector_keeps_the_text_it_will_fail_with() {
        for (text, reason) in [
            ("$node.a", "expected '$node.<node>.output[.<field>...]'"),
            ("$node.a.b.output", "expected '$node.<node>.output[.<field>...]'"),
            ("$node.a.output[0]", "expected '$node.<node>.output[.<field>...]'"),
            ("$node..output", "node name is required after '$node.'"),
            ("$ctx.results.a", "only '$ctx.params.<key>' is supported"),
            ("$ctx.params.", "parameter key is required after '$ctx.params.'"),
            ("$env.", "environment key is required after '$env.'"),
            ("$ctx", "unknown selector"),
            ("$foo.bar", "unknown selector"),
        ] {
            assert_eq!(read_one(&json!(text)), invalid(text, reason));
        }
    }
}
