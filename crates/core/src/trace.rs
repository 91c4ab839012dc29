//! Traces: which trace an execution belongs to, and what its spans are called.
//!
//! A context is read and written as the W3C's `traceparent`. Ids of our own are derived from what they name, so that whoever
//! makes a span twice, on whatever machine, makes the same one. Sending spans anywhere is not done here.

use std::fmt;

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::ids::{Attempt, ExecutionId, NodeId};
use crate::state::State;

/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const LENGTH: usize = 55;
/// Somebody keeps the trace.
const SAMPLED: u8 = 0b01;
/// What the flags of the version that is written mean: sampled, and that the trace's id is random.
const KNOWN_FLAGS: u8 = 0b11;

/// A span in its trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace; never all zeros.
    pub trace: [u8; 16],
    /// The span; never all zeros.
    pub span: [u8; 8],
    flags: u8,
}

impl TraceContext {
    /// Reads a `traceparent`. What is none counts as not given, as the W3C wants it.
    pub fn parse(text: &str) -> Option<Self> {
        let version = bytes::<1>(text.get(..2)?)?;
        let (whole, rest) = text.split_at_checked(LENGTH)?;
        let is_whole = match version {
            [0] => rest.is_empty(),
            [0xff] => false,
            // A version of the future may say more, after what this one says.
            [_] => rest.is_empty() || rest.starts_with('-'),
        };
        let mut parts = whole.split('-').skip(1);
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        if !is_whole || parts.next().is_some() {
            return None;
        }
        let (trace, span, [flags]) = (bytes::<16>(trace)?, bytes::<8>(span)?, bytes::<1>(flags)?);
        let is_one = trace != [0; 16] && span != [0; 8];
        is_one.then_some(Self { trace, span, flags: flags & KNOWN_FLAGS })
    }

    /// The span of an execution: in the trace of its caller, or in one of its own that follows from its id.
    pub fn of_execution(execution: &ExecutionId, caller: Option<Self>) -> Self {
        let span = derived(&json!(["execution", execution]));
        match caller {
            Some(Self { trace, flags, .. }) => Self { trace, span, flags },
            None => Self { trace: derived(&json!(["trace", execution])), span, flags: SAMPLED },
        }
    }

    /// The span of one attempt, below that of its execution.
    #[must_use]
    pub fn of_attempt(self, execution: &ExecutionId, node: &NodeId, attempt: Attempt) -> Self {
        Self { span: derived(&json!(["attempt", execution, node, attempt])), ..self }
    }

    /// Whether somebody keeps the trace.
    pub const fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags, as they are sent.
    pub const fn flags(self) -> u8 {
        self.flags
    }
}

impl State {
    /// The span of whoever asked for the execution, if they said which.
    pub fn traced_by(&self) -> Option<TraceContext> {
        TraceContext::parse(self.origin.as_ref()?.traceparent.as_deref()?)
    }
}

/// As a `traceparent` of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// So many bytes in small hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.as_bytes().iter().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// The first bytes of a fingerprint. That they are all zeros does not happen; were it so, the span would be refused by whoever
/// gets it, and nothing else.
fn derived<const N: usize>(of: &Value) -> [u8; N] {
    let digest = Digest::of_json(of);
    let mut bytes = [0; N];
    for (byte, from) in bytes.iter_mut().zip(digest.as_bytes()) {
        *byte = *from;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn named(id: &str) -> ExecutionId {
        ExecutionId::new(id).unwrap()
    }

    #[test]
    fn a_traceparent_is_read_and_written_as_it_was() {
        let context = TraceContext::parse(GIVEN).unwrap();
        assert_eq!(context.to_string(), GIVEN);
        assert!(context.is_sampled());
        assert!(!TraceContext::parse(&GIVEN.replace("-01", "-00")).unwrap().is_sampled());
    }

    #[test]
    fn what_is_no_traceparent_counts_as_none() {
        let zeros = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        let no_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
        let long = format!("{GIVEN}-00");
        let shifted = "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01";
        for wrong in ["", "00", "é", zeros, no_span, &long, shifted, &GIVEN.to_uppercase(), &GIVEN[..54]] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(TraceContext::parse(&GIVEN.replacen("00", "ff", 1)), None);
        assert_eq!(TraceContext::parse(&format!("{}é-b7ad6b7169203331-01", &GIVEN[..33])), None);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for later in
            ["cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-09", &format!("cc{}-x", &GIVEN[2..])]
        {
            assert_eq!(TraceContext::parse(later).unwrap().to_string(), GIVEN);
        }
        assert_eq!(TraceContext::parse(&format!("cc{}.x", &GIVEN[2..])), None);
    }

    #[test]
    fn an_execution_is_in_its_callers_trace_or_in_one_of_its_own() {
        let caller = TraceContext::parse(GIVEN).unwrap();
        let inside = TraceContext::of_execution(&named("e-1"), Some(caller));
        assert_eq!(inside.trace, caller.trace);
        assert_ne!(inside.span, caller.span);
        let alone = TraceContext::of_execution(&named("e-1"), None);
        assert_eq!(alone, TraceContext::of_execution(&named("e-1"), None));
        assert_eq!((alone.span, alone.is_sampled()), (inside.span, true));
        assert_ne!(alone.trace, TraceContext::of_execution(&named("e-2"), None).trace);
        // What others derive has to stay what it is.
        assert_eq!(alone.to_string(), "00-81fc236c7801b4cce458a519609ed9ab-7f6dbc97973a0c2b-01");
    }

    #[test]
    fn each_attempt_has_a_span_of_its_own() {
        let (id, node) = (named("e-1"), |name: &str| NodeId::new(name).unwrap());
        let run = TraceContext::of_execution(&id, None);
        let spans = [
            run.span,
            run.of_attempt(&id, &node("a"), Attempt(1)).span,
            run.of_attempt(&id, &node("a"), Attempt(2)).span,
            run.of_attempt(&id, &node("b"), Attempt(1)).span,
            run.of_attempt(&named("e-2"), &node("a"), Attempt(1)).span,
        ];
        let different: std::collections::BTreeSet<_> = spans.iter().collect();
        assert_eq!(different.len(), spans.len());
        assert_eq!(run.of_attempt(&id, &node("a"), Attempt(1)).trace, run.trace);
    }
}
