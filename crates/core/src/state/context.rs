//! What tasks and expressions share: parameters, results, scratch and artifacts.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Output;
use super::mapping::Mapping;
use super::shared::SharedMap;
use crate::event::{BlobRef, Changes};
use crate::json::{Json, Object};

/// The four shared mappings. A copy takes no time: it shares them with the original, and what changes later in one of both
/// is all that they do not share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    params: Mapping,
    results: Mapping,
    scratch: Mapping,
    artifacts: Mapping,
    /// Values that stand outside the log, by dotted path. What the mapping shows for them is a stand-in.
    pub refs: SharedMap<BlobRef>,
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
    /// A whole mapping as one value, which is made when it is asked for: to look at one member, ask for that.
    pub fn root(&self, root: Root) -> &Value {
        self.mapping(root).whole()
    }

    /// One member of a mapping.
    pub fn member(&self, root: Root, key: &str) -> Option<&Value> {
        self.mapping(root).get(key)
    }

    /// All members of a mapping, in the order in which they were added.
    pub fn members(&self, root: Root) -> Vec<(&str, &Value)> {
        self.mapping(root).in_order()
    }

    const fn mapping(&self, root: Root) -> &Mapping {
        match root {
            Root::Params => &self.params,
            Root::Results => &self.results,
            Root::Scratch => &self.scratch,
            Root::Artifacts => &self.artifacts,
        }
    }

    const fn mapping_mut(&mut self, root: Root) -> &mut Mapping {
        match root {
            Root::Params => &mut self.params,
            Root::Results => &mut self.results,
            Root::Scratch => &mut self.scratch,
            Root::Artifacts => &mut self.artifacts,
        }
    }

    pub(crate) fn give_params(&mut self, params: &Object) {
        self.params = Mapping::of(&params.0);
    }

    /// Fills in parameters that were left out.
    pub(crate) fn default_params(&mut self, defaults: &Object) {
        for (key, value) in &defaults.0 {
            self.params.put_if_new(key, || value.clone());
        }
    }

    fn put(&mut self, root: Root, key: &str, value: Arc<Json>, reference: Option<&BlobRef>) {
        self.mapping_mut(root).put(key, value);
        self.refer(root.name(), key, reference);
    }

    /// Notes where the value of a path stands; whatever stood there or below is gone.
    fn refer(&mut self, way: &str, key: &str, reference: Option<&BlobRef>) {
        if self.refs.is_empty() && reference.is_none() {
            return;
        }
        let path = format!("{way}.{key}");
        let below = format!("{path}.");
        let gone: Vec<String> = self.refs.beginning_with(&below).map(|(known, _)| known.to_owned()).collect();
        for known in gone {
            self.refs.remove(&known);
        }
        match reference {
            Some(reference) => self.refs.insert(&path, reference.clone()),
            None => self.refs.remove(&path),
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
                let reference = changes.refs.get(&format!("{}.{key}", root.name()));
                self.put(root, key, Arc::new(Json(value.clone())), reference);
            }
        }
        for (root, key) in &changes.removed {
            if let Some(root) = Root::named(root) {
                self.mapping_mut(root).remove(key);
                self.refer(root.name(), key, None);
            }
        }
    }

    /// Stores a task's result under its name and wherever its `outputs` say.
    pub(crate) fn store(&mut self, task: &str, outputs: &[String], output: &Output) {
        let value = output.value.clone().unwrap_or_else(|| Arc::new(Json(Value::Null)));
        self.put(Root::Results, task, value.clone(), output.reference.as_ref());
        for path in outputs {
            self.store_at(path, &value, output.reference.as_ref());
        }
    }

    /// Writes along a dotted path. Mappings on the way are made; anything else on the way drops the write, and so
    /// does a value that stands outside the log: whoever can open it reports the change itself.
    fn store_at(&mut self, path: &str, value: &Arc<Json>, reference: Option<&BlobRef>) {
        let mut segments: Vec<&str> = path.split('.').collect();
        let root = match Root::named(segments.remove(0)) {
            Some(root @ (Root::Params | Root::Results | Root::Scratch)) => root,
            Some(Root::Artifacts) | None => return,
        };
        let last = segments.pop().unwrap_or_else(|| root.name());
        let Some((first, inner)) = segments.split_first() else {
            return self.put(root, last, value.clone(), reference);
        };
        let mut way = root.name().to_owned();
        for segment in &segments {
            way = format!("{way}.{segment}");
            if self.refs.contains_key(&way) {
                return;
            }
        }
        let mapping = self.mapping_mut(root);
        mapping.put_if_new(first, || Value::Object(Map::new()));
        let Some(mut members) = mapping.get_mut(first).and_then(Value::as_object_mut) else { return };
        for segment in inner {
            let inner = members.entry(*segment).or_insert_with(|| Value::Object(Map::new()));
            match inner.as_object_mut() {
                Some(object) => members = object,
                None => return,
            }
        }
        members.insert(last.to_owned(), value.0.clone());
        self.refer(&way, last, reference);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
