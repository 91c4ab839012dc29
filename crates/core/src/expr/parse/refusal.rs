//! Refusals, and which of several is named.

use crate::expr::error::{SyntaxError, SyntaxKind};

/// Python, but not for flows.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: SyntaxError,
    /// How many levels of Python's tree it lies below the node at hand.
    depth: usize,
}

impl Refusal {
    pub(super) fn new(kind: SyntaxKind, offset: usize) -> Box<Self> {
        Box::new(Self { error: SyntaxError::new(kind, offset), depth: 0 })
    }

    pub(super) fn unsupported(node: &'static str, offset: usize) -> Box<Self> {
        Self::new(SyntaxKind::Unsupported(node), offset)
    }
}

/// Of two refusals the original finds the one nearer to the root first, and of two at one level the left one: it walks
/// the tree level by level.
pub(super) fn both<L, R>(
    left: Result<L, Box<Refusal>>,
    right: Result<R, Box<Refusal>>,
) -> Result<(L, R), Box<Refusal>> {
    match (left, right) {
        (Ok(left), Ok(right)) => Ok((left, right)),
        (Err(left), Err(right)) => Err(if right.depth < left.depth { right } else { left }),
        (Err(refusal), Ok(_)) | (Ok(_), Err(refusal)) => Err(refusal),
    }
}

pub(super) fn all<T>(
    parts: impl IntoIterator<Item = Result<T, Box<Refusal>>>,
) -> Result<Vec<T>, Box<Refusal>> {
    let mut all = Ok(Vec::new());
    for part in parts {
        all = both(all, part).map(|(mut all, part)| {
            all.push(part);
            all
        });
    }
    all
}

/// The parts of a node, seen from the node.
pub(super) fn below<T>(parts: Result<T, Box<Refusal>>) -> Result<T, Box<Refusal>> {
    parts.map_err(|mut refusal| {
        refusal.depth += 1;
        refusal
    })
}
