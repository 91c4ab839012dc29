//! Expressions of a native graph: a full one if it says `$ctx.` or `$env.`, otherwise a dotted path.

use pyoco_core::expr::Expression;
use pyoco_core::plan::Count;

use super::refuse;
use crate::diagnostic::{Diagnostic, Position};

/// Where a single name that is no root of the context is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    Params,
    Context,
}

const ROOTS: [&str; 6] = ["params", "results", "scratch", "artifacts", "loop", "loops"];

pub(super) fn expression(raw: &str, bare: Bare, at: Position) -> Result<Expression, Diagnostic> {
    let text = full_text(raw, bare).map_err(|message| refuse(message, at))?;
    Expression::parse(&text).map_err(|error| refuse(error.to_string(), at))
}

fn full_text(raw: &str, bare: Bare) -> Result<String, String> {
    let trimmed = raw.trim();
    let inner = trimmed.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).unwrap_or(trimmed).trim();
    if inner.is_empty() {
        return Err("Expression cannot be empty.".to_owned());
    }
    if inner.contains("$ctx.") || inner.contains("$env.") {
        return Ok(inner.to_owned());
    }
    if !is_path(inner) {
        return Err(format!(
            "Unsupported expression '{raw}'. Use simple path or explicit $ctx/$env expression."
        ));
    }
    if inner.starts_with("env.") || inner.starts_with("ctx.") {
        return Ok(format!("${inner}"));
    }
    let (first, dotted) = inner.split_once('.').map_or((inner, false), |(first, _)| (first, true));
    if dotted || ROOTS.contains(&first) || bare == Bare::Context {
        return Ok(format!("$ctx.{inner}"));
    }
    Ok(format!("$ctx.params.{inner}"))
}

fn is_path(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// Digits are the count itself, anything else computes it.
pub(super) fn count(raw: &str, at: Position) -> Result<Count, Diagnostic> {
    if !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit()) {
        let fixed = raw.parse().map_err(|_| refuse(format!("a loop cannot run {raw} times"), at))?;
        return Ok(Count::Fixed(fixed));
    }
    expression(raw, Bare::Params, at).map(Count::Computed)
}

/// Digits, one or more.
pub(super) fn max_rounds(raw: &str, at: Position) -> Result<i64, Diagnostic> {
    if raw.is_empty() || !raw.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse("until max_iter must be an integer.", at));
    }
    match raw.parse::<i64>() {
        Ok(rounds) if rounds >= 1 => Ok(rounds),
        Ok(_) => Err(refuse("until max_iter must be >= 1.", at)),
        // More rounds than anybody can wait for are as good as no limit.
        Err(_) => Ok(i64::MAX),
    }
}
