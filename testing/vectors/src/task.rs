//! What is asked of the host about one attempt, and what its answer means as a command.

use std::collections::HashMap;
use std::sync::Arc;

use pyoco_core::command::{Command, FailNode, SucceedNode};
use pyoco_core::digest::Digest;
use pyoco_core::event::{BlobRef, Changes, Encoding, ErrorInfo};
use pyoco_core::ids::{Attempt, NodeId};
use pyoco_core::json::{Json, Object};
use pyoco_core::state::{NodeNumber, Root, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Broken;

/// Pickles, as the host wrote them. Only the host opens them.
#[derive(Debug, Default)]
pub(crate) struct Blobs(HashMap<Digest, String>);

impl Blobs {
    fn keep(&mut self, pickle: String) -> BlobRef {
        let digest = Digest::of_bytes(pickle.as_bytes());
        let size = pickle.len() as u64;
        self.0.insert(digest, pickle);
        BlobRef { digest, size, encoding: Encoding::Pickle }
    }
}

/// The request for one attempt of a task: a copy of everything it may see.
pub(crate) fn request(
    state: &State,
    number: NodeNumber,
    blobs: &Blobs,
) -> Result<Map<String, Value>, Broken> {
    let (_, node) = state.node(number).ok_or("a node that was not reached")?;
    let task = state.task_of(node).ok_or("a node that is no task")?;
    let frames = state.loops_around(number);
    let variables: Map<String, Value> = frames.iter().flat_map(|frame| frame.variables.clone()).collect();
    let loops: Vec<Value> = frames.into_iter().map(|frame| Value::Object(frame.members)).collect();
    let context = &state.context;
    let mut refs = Map::new();
    for (path, reference) in &context.refs {
        let pickle = blobs.0.get(&reference.digest).ok_or_else(|| format!("the bytes of {path} are lost"))?;
        refs.insert(path.clone(), json!(pickle));
    }
    let body = json!({
        "runner": task.runner,
        "inputs": task.inputs,
        "context": {
            "params": context.root(Root::Params),
            "results": context.root(Root::Results),
            "scratch": context.root(Root::Scratch),
            "artifacts": context.root(Root::Artifacts),
        },
        "refs": refs,
        "loops": loops,
        "variables": variables,
        "expose_env": state.plan.as_ref().and_then(|plan| plan.expose_env.clone()),
    });
    body.as_object().cloned().ok_or_else(|| "a request is an object".to_owned())
}

/// What the host says about an attempt that ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    ok: bool,
    inputs: Option<Map<String, Value>>,
    output: Option<Travels>,
    error: Option<String>,
    kind: Option<String>,
    traceback: Option<String>,
    pub(crate) logs: Vec<(String, String)>,
    changes: Delta,
}

#[derive(Debug, Deserialize)]
struct Travels {
    value: Value,
    pickle: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delta {
    changed: HashMap<String, Map<String, Value>>,
    removed: Vec<(String, String)>,
}

impl Answer {
    /// The command that records it.
    pub(crate) fn command(
        self,
        node_id: NodeId,
        attempt: Attempt,
        blobs: &mut Blobs,
    ) -> Result<Command, Broken> {
        let attempt = Some(attempt);
        let inputs = self.inputs.map(|inputs| Arc::new(Object(inputs)));
        let changes = self.changes.read(blobs)?.map(Box::new);
        if self.ok {
            let output = self.output.ok_or("a success without an output")?;
            let output_ref = output.pickle.map(|pickle| blobs.keep(pickle));
            let output = Some(Arc::new(Json(output.value)));
            return Ok(SucceedNode { node_id, attempt, output, output_ref, inputs, changes }.into());
        }
        let mut error = ErrorInfo::new(&self.kind.unwrap_or_default(), self.error.unwrap_or_default());
        let traceback = self.traceback.map(|text| ("traceback".to_owned(), json!(text)));
        error.detail = Some(Object(traceback.into_iter().collect()));
        Ok(FailNode { node_id, attempt, error: Some(error), inputs, changes }.into())
    }
}

impl Delta {
    /// The changes as the log holds them; `None` when there are none.
    fn read(self, blobs: &mut Blobs) -> Result<Option<Changes>, Broken> {
        let mut changes = Changes { removed: self.removed, ..Changes::default() };
        for (root, members) in self.changed {
            let place = match root.as_str() {
                "params" => &mut changes.params,
                "results" => &mut changes.results,
                "scratch" => &mut changes.scratch,
                "artifacts" => &mut changes.artifacts,
                other => return Err(format!("the context has no '{other}'")),
            };
            for (key, member) in members {
                let Travels { value, pickle } =
                    Travels::deserialize(member).map_err(|error| error.to_string())?;
                if let Some(pickle) = pickle {
                    changes.refs.insert(format!("{root}.{key}"), blobs.keep(pickle));
                }
                place.0.insert(key, value);
            }
        }
        Ok((changes != Changes::default()).then_some(changes))
    }
}
