//! The values of the context that a task process is sent: those it needs, with their bytes where they stand outside
//! the log.

use indexmap::IndexMap;
use pyoco_core::event::{BlobRef, Encoding};
use pyoco_core::plan::Input;
use pyoco_core::state::{Context, Root};
use pyoco_ports::Blobs;
use serde::Serialize;
use serde_json::Value;

use crate::runtime::Call;

const NULL: &Value = &Value::Null;

/// Values on their way to a process.
#[derive(Debug, Default, Serialize)]
pub(super) struct Parcel<'a> {
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    params: IndexMap<&'a str, &'a Value>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    results: IndexMap<&'a str, &'a Value>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    scratch: IndexMap<&'a str, &'a Value>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    artifacts: IndexMap<&'a str, &'a Value>,
    /// Where the raw bytes belong: root, keys from there, what they are, how many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blobs: Vec<(&'static str, Vec<&'a str>, Encoding, u64)>,
    #[serde(skip)]
    references: Vec<&'a BlobRef>,
    /// Keys that exist and were not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    large: Option<Vec<&'a str>>,
}

/// The name of a mapping, as it stands in paths.
pub(super) const fn name_of(root: Root) -> &'static str {
    match root {
        Root::Params => "params",
        Root::Results => "results",
        Root::Scratch => "scratch",
        Root::Artifacts => "artifacts",
    }
}

impl<'a> Parcel<'a> {
    fn place(&mut self, root: Root) -> &mut IndexMap<&'a str, &'a Value> {
        match root {
            Root::Params => &mut self.params,
            Root::Results => &mut self.results,
            Root::Scratch => &mut self.scratch,
            Root::Artifacts => &mut self.artifacts,
        }
    }

    /// Adds one value, if there is one. Answers whether there is.
    fn add(&mut self, context: &'a Context, root: Root, key: &'a str) -> bool {
        let Some(value) = context.member(root, key) else { return false };
        if self.place(root).contains_key(key) {
            return true;
        }
        let mut shown = value;
        if !context.refs.is_empty() {
            for (path, reference) in references(context, root, key) {
                if path.len() == 1 {
                    shown = NULL;
                }
                self.blobs.push((name_of(root), path, reference.encoding, reference.size));
                self.references.push(reference);
            }
        }
        self.place(root).insert(key, shown);
        true
    }

    /// The values that the configured inputs of a task select.
    pub(super) fn add_inputs(&mut self, call: &'a Call) {
        for input in call.task.inputs.values() {
            match input {
                Input::Node { node, .. } => self.add(&call.context, Root::Results, node),
                Input::Param(key) => self.add(&call.context, Root::Params, key),
                Input::Lit(_) | Input::Env(_) | Input::Invalid { .. } => false,
            };
        }
    }

    /// The values that arguments of these names get: parameters win over results.
    pub(super) fn add_names(&mut self, context: &'a Context, names: &'a [String]) {
        for name in names {
            let _ = self.add(context, Root::Params, name) || self.add(context, Root::Results, name);
        }
    }

    /// One value of a mapping.
    pub(super) fn add_key(&mut self, context: &'a Context, root: Root, key: &'a str) {
        self.add(context, root, key);
    }

    /// A whole mapping, but for the values that stand outside the log: their keys are listed.
    pub(super) fn add_root(&mut self, context: &'a Context, root: Root) {
        let mut large = Vec::new();
        for (key, value) in context.members(root) {
            if !context.refs.is_empty() && !references(context, root, key).is_empty() {
                large.push(key);
            } else {
                self.place(root).insert(key, value);
            }
        }
        self.large = Some(large);
    }

    /// The raw bytes, in the order of the list.
    pub(super) async fn load(&self, blobs: &dyn Blobs) -> Result<Vec<Vec<u8>>, String> {
        let mut raw = Vec::with_capacity(self.references.len());
        for (reference, (root, path, _, _)) in self.references.iter().zip(&self.blobs) {
            let name = format!("{root}.{}", path.join("."));
            let bytes = match blobs.get_blob(&reference.digest).await {
                Ok(Some(bytes)) if bytes.len() as u64 == reference.size => bytes,
                Ok(Some(_) | None) => {
                    return Err(format!("the value of {name} is not in the store any more"));
                }
                Err(error) => return Err(format!("the value of {name} cannot be read: {error}")),
            };
            raw.push(bytes);
        }
        Ok(raw)
    }
}

/// What stands outside the log at a key or below it, with the keys that lead there.
fn references<'a>(context: &'a Context, root: Root, key: &'a str) -> Vec<(Vec<&'a str>, &'a BlobRef)> {
    let path = format!("{}.{key}", name_of(root));
    let whole = context.refs.get(&path).map(|reference| (vec![key], reference));
    let below = format!("{path}.");
    let inside = context.refs.beginning_with(&below).filter_map(|(known, reference)| {
        // A dot may also be part of another key, so the way must exist.
        let mut way = vec![key];
        let mut place = context.member(root, key)?;
        for step in known.strip_prefix(below.as_str())?.split('.') {
            place = place.get(step)?;
            way.push(step);
        }
        Some((way, reference))
    });
    whole.into_iter().chain(inside).collect()
}

/// The output paths of a task that lead through a value which only a task process can open: it writes those itself.
pub(super) fn outputs_inside(call: &Call) -> Vec<&str> {
    if call.context.refs.is_empty() {
        return Vec::new();
    }
    let leads_inside = |path: &&str| {
        let dots = path.match_indices('.').map(|(at, _)| at);
        dots.skip(1).any(|at| path.get(..at).is_some_and(|way| call.context.refs.contains_key(way)))
    };
    call.task.outputs.iter().map(String::as_str).filter(leads_inside).collect()
}
