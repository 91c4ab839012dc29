//! What tasks and expressions share: parameters, results, scratch and artifacts.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::Output;
use crate::event::{BlobRef, Changes};
use crate::json::Object;

/// The four shared mappings. A copy shares them with the original until one of both changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    params: Arc<Value>,
    results: Arc<Value>,
    scratch: Arc<Value>,
    artifacts: Arc<Value>,
    /// Values that stand outside the log, by dotted path. What the mapping shows for them is a stand-in.
    pub refs: IndexMap<String, BlobRef>,
}

impl Default for Context {
    fn default() -> Self {
        let empty = || Arc::new(Value::Object(Map::new()));
        Self {
            params: empty(),
            results: empty(),
            scratch: empty(),
            artifacts: empty(),
            refs: IndexMap::new(),
        }
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
    pub fn root(&self, root: Root) -> &Value {
        match root {
            Root::Params => &self.params,
            Root::Results => &self.results,
            Root::Scratch => &self.scratch,
            Root::Artifacts => &self.artifacts,
        }
    }

    fn members(&mut self, root: Root) -> Option<&mut Map<String, Value>> {
        match root {
            Root::Params => Arc::make_mut(&mut self.params),
            Root::Results => Arc::make_mut(&mut self.results),
            Root::Scratch => Arc::make_mut(&mut self.scratch),
            Root::Artifacts => Arc::make_mut(&mut self.artifacts),
        }
        .as_object_mut()
    }

    pub(crate) fn give_params(&mut self, params: &Object) {
        self.params = Arc::new(Value::Object(params.0.clone()));
    }

    /// Fills in parameters that were left out.
    pub(crate) fn default_params(&mut self, defaults: &Object) {
        if let Some(params) = self.members(Root::Params).filter(|_| !defaults.is_empty()) {
            for (key, value) in &defaults.0 {
                params.entry(key.as_str()).or_insert_with(|| value.clone());
            }
        }
    }

    fn put(&mut self, root: Root, key: &str, value: &Value, reference: Option<&BlobRef>) {
        if let Some(members) = self.members(root) {
            members.insert(key.to_owned(), value.clone());
        }
        self.refer(format!("{}.{key}", root.name()), reference);
    }

    /// Notes where the value of a path stands; whatever stood there or below is gone.
    fn refer(&mut self, path: String, reference: Option<&BlobRef>) {
        if !self.refs.is_empty() {
            let below = format!("{path}.");
            self.refs.retain(|known, _| *known != path && !known.starts_with(&below));
        }
        if let Some(reference) = reference {
            self.refs.insert(path, reference.clone());
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
                self.refer(format!("{root}.{key}"), None);
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

    /// Writes along a dotted path. Mappings on the way are made; anything else on the way drops the write, and so
    /// does a value that stands outside the log: whoever can open it reports the change itself.
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
        let mut way = root.name().to_owned();
        for segment in &segments {
            way = format!("{way}.{segment}");
            if self.refs.contains_key(&way) {
                return;
            }
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
        self.refer(format!("{way}.{last}"), reference);
    }
}

#[cfg(test)]
mod tests {
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
    fn a_value_outside_the_log_is_referred_to_by_its_path_until_it_is_replaced() {
        let digest = crate::digest::Digest::of_bytes(b"x");
        let reference = BlobRef { digest, size: 1, encoding: crate::event::Encoding::Pickle };
        let mut context = Context::default();
        let output = Output { value: Some(Arc::new(Json(json!("{1}")))), reference: Some(reference) };
        context.store("t", &["scratch.d.k".to_owned()], &output);
        assert_eq!(context.refs.keys().collect::<Vec<_>>(), ["results.t", "scratch.d.k"]);
        context
            .merge(&Changes { removed: vec![("scratch".to_owned(), "d".to_owned())], ..Changes::default() });
        assert_eq!(context.refs.keys().collect::<Vec<_>>(), ["results.t"]);
        context.store("t", &["results.t.deeper".to_owned()], &output);
        assert_eq!(
            context.root(Root::Results),
            &json!({"t": "{1}"}),
            "nobody writes into what only a task can open"
        );
    }

    #[test]
    fn a_path_through_something_that_is_no_mapping_is_dropped() {
        let context = stored(&["scratch.n", "scratch.n.deeper"]);
        assert_eq!(context.root(Root::Scratch), &json!({"n": 7}));
    }
}
