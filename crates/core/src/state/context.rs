//! What tasks and expressions share: parameters, results, scratch and artifacts.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::Output;
use crate::event::{BlobRef, Changes};
use crate::json::Object;

/// The four shared mappings.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    params: Value,
    results: Value,
    scratch: Value,
    artifacts: Value,
    /// Values that stand outside the log, as `root.key`. What the mapping shows for them is a stand-in.
    pub refs: IndexMap<String, BlobRef>,
}

impl Default for Context {
    fn default() -> Self {
        let empty = || Value::Object(Map::new());
        Self { params: empty(), results: empty(), scratch: empty(), artifacts: empty(), refs: IndexMap::new() }
    }
}

/// The names of the shared mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// What the execution was given.
    Params,
    /// What tasks returned.
    Results,
    /// What tasks leave for each other.
    Scratch,
    /// Files that tasks saved.
    Artifacts,
}

impl Root {
    /// The mapping of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "params" => Some(Self::Params),
            "results" => Some(Self::Results),
            "scratch" => Some(Self::Scratch),
            "artifacts" => Some(Self::Artifacts),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Results => "results",
            Self::Scratch => "scratch",
            Self::Artifacts => "artifacts",
        }
    }
}

impl Context {
    /// A whole mapping.
    pub const fn root(&self, root: Root) -> &Value {
        match root {
            Root::Params => &self.params,
            Root::Results => &self.results,
            Root::Scratch => &self.scratch,
            Root::Artifacts => &self.artifacts,
        }
    }

    fn members(&mut self, root: Root) -> Option<&mut Map<String, Value>> {
        match root {
            Root::Params => self.params.as_object_mut(),
            Root::Results => self.results.as_object_mut(),
            Root::Scratch => self.scratch.as_object_mut(),
            Root::Artifacts => self.artifacts.as_object_mut(),
        }
    }

    pub(crate) fn give_params(&mut self, params: &Object) {
        self.params = Value::Object(params.0.clone());
    }

    fn put(&mut self, root: Root, key: &str, value: &Value, reference: Option<&BlobRef>) {
        if let Some(members) = self.members(root) {
            members.insert(key.to_owned(), value.clone());
        }
        let name = format!("{}.{key}", root.name());
        match reference {
            Some(reference) => drop(self.refs.insert(name, reference.clone())),
            None if self.refs.is_empty() => {}
            None => drop(self.refs.shift_remove(&name)),
        }
    }

    /// Takes over what an attempt changed. The last writer wins.
    pub(crate) fn merge(&mut self, changes: &Changes) {
        let parts = [
            (Root::Params, &changes.params),
            (Root::Results, &changes.results),
            (Root::Scratch, &changes.scratch),
            (Root::Artifacts, &changes.artifacts),
        ];
        for (root, members) in parts {
            for (key, value) in &members.0 {
                self.put(root, key, value, changes.refs.get(&format!("{}.{key}", root.name())));
            }
        }
        for (root, key) in &changes.removed {
            if let Some(members) = Root::named(root).and_then(|root| self.members(root)) {
                members.shift_remove(key);
            }
        }
    }

    /// Stores a task's result under its name and wherever its `outputs` say.
    pub(crate) fn store(&mut self, task: &str, outputs: &[String], output: &Output) {
        let null = Value::Null;
        let value = output.value.as_ref().map_or(&null, |value| &value.0);
        self.put(Root::Results, task, value, output.reference.as_ref());
        for path in outputs {
            self.store_at(path, value, output.reference.as_ref());
        }
    }

    /// Writes along a dotted path. Mappings on the way are made; anything else on the way drops the write.
    fn store_at(&mut self, path: &str, value: &Value, reference: Option<&BlobRef>) {
        let mut segments: Vec<&str> = path.split('.').collect();
        let root = match Root::named(segments.remove(0)) {
            Some(root @ (Root::Params | Root::Results | Root::Scratch)) => root,
            Some(Root::Artifacts) | None => return,
        };
        let last = segments.pop().unwrap_or_else(|| root.name());
        if segments.is_empty() {
            return self.put(root, last, value, reference);
        }
        let Some(mut members) = self.members(root) else { return };
        for segment in segments {
            let inner = members.entry(segment).or_insert_with(|| Value::Object(Map::new()));
            match inner.as_object_mut() {
                Some(object) => members = object,
                None => return,
            }
        }
        members.insert(last.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::json::Json;

    fn stored(paths: &[&str]) -> Context {
        let mut context = Context::default();
        let output = Output { value: Some(Arc::new(Json(json!(7)))), reference: None };
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        context.store("t", &paths, &output);
        context
    }

    #[test]
    fn a_result_is_stored_under_its_task_and_along_its_paths() {
        let context = stored(&["scratch.a.b", "params.p", "results.alias"]);
        assert_eq!(context.root(Root::Results), &json!({"t": 7, "alias": 7}));
        assert_eq!(context.root(Root::Scratch), &json!({"a": {"b": 7}}));
        assert_eq!(context.root(Root::Params), &json!({"p": 7}));
    }

    #[test]
    fn odd_paths_do_what_the_original_does() {
        let context = stored(&["scratch", "scratch.", "artifacts.x", "", "elsewhere.y"]);
        assert_eq!(context.root(Root::Scratch), &json!({"scratch": 7, "": 7}));
        assert_eq!(context.root(Root::Artifacts), &json!({}));
    }

    #[test]
    fn a_path_through_something_that_is_no_mapping_is_dropped() {
        let context = stored(&["scratch.n", "scratch.n.deeper"]);
        assert_eq!(context.root(Root::Scratch), &json!({"n": 7}));
    }
}
