//! Golden cases as they stand in their files. The fields of `expect` stay JSON, because they are compared as JSON.

use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Broken, base64};

/// One golden case.
#[derive(Debug, Clone, Deserialize)]
pub struct Vector {
    /// Its name, which is also the name of its file.
    pub name: String,
    /// How binding it is.
    pub level: Level,
    /// Which way it comes in.
    pub loader: Loader,
    /// What the original should better have done.
    #[serde(default)]
    pub recommended: Option<String>,
    /// The flow as text.
    #[serde(default)]
    pub flow_yaml: Option<String>,
    /// The source of the module that `callable`s name.
    #[serde(default)]
    pub tasks_py: Option<String>,
    /// The source of a module that builds a Flow object.
    #[serde(default)]
    pub flow_py: Option<String>,
    /// The parameters of the run; none where it does not come that far.
    #[serde(default)]
    pub params: Option<Map<String, Value>>,
    /// Policies that are set on the tasks after loading.
    #[serde(default)]
    pub policies: IndexMap<String, PolicyPatch>,
    /// Extra environment.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// When the run is canceled.
    #[serde(default)]
    pub cancel: Option<Cancel>,
    /// Paths inside `expect` where deviating is acceptable.
    #[serde(default)]
    pub quirk_fields: Vec<String>,
    /// What the original did.
    #[serde(default)]
    pub expect: Option<Map<String, Value>>,
    /// What the original did, one time or another.
    #[serde(default)]
    pub alternatives: Vec<Map<String, Value>>,
    /// The flow as data.
    #[serde(default)]
    pub ir: Option<Value>,
}

/// How binding a vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Must match.
    Core,
    /// The original does this, but it is better refused.
    Quirk,
    /// A Python feature that a safe grammar may leave out.
    Optional,
    /// The original itself varies.
    Nondeterministic,
}

/// Which way a flow comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loader {
    /// flow.yaml with the server's graph.
    Server,
    /// flow.yaml with the graph of the pyoco command line.
    Native,
    /// A Flow object.
    FlowObject,
}

/// Policies of one task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyPatch {
    /// `isolate`, or anything else for stop.
    #[serde(default)]
    pub fail_policy: Option<String>,
    /// Attempts after the first.
    #[serde(default)]
    pub retries: Option<u32>,
    /// The deadline.
    #[serde(default)]
    pub timeout_sec: Option<f64>,
}

/// A cancel in the middle of a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The task whose start it counts from.
    pub on_start: String,
    /// Which start of it.
    #[serde(default = "first")]
    pub nth: usize,
    /// So many seconds after that.
    pub delay: f64,
}

const fn first() -> usize {
    1
}

/// A golden document: it passes the checks of a submission, or fails for a reason.
#[derive(Debug, Clone, Deserialize)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its text.
    #[serde(default)]
    yaml: Option<String>,
    /// Its bytes, where they are no text.
    #[serde(default)]
    yaml_base64: Option<String>,
    /// Whether a document without a flow was checked; a submission needs one.
    #[serde(default = "yes")]
    pub require_flow: bool,
    /// Whether it passes.
    pub valid: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The original crashed instead of refusing it.
    #[serde(default)]
    pub unhandled: bool,
    /// What was read, if it passes.
    #[serde(default)]
    pub parsed: Value,
    /// The digest of its bytes, if it passes.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Its size, if it passes.
    #[serde(default)]
    pub size_bytes: Option<u64>,
}

impl Document {
    /// What is sent.
    pub fn bytes(&self) -> Result<Vec<u8>, Broken> {
        match (&self.yaml, &self.yaml_base64) {
            (Some(text), _) => Ok(text.clone().into_bytes()),
            (None, Some(encoded)) => base64::decode(encoded).ok_or_else(|| "it is no base64".to_owned()),
            (None, None) => Err("it has no bytes".to_owned()),
        }
    }
}

const fn yes() -> bool {
    true
}

/// The documents that came with this repository.
pub fn documents() -> Result<Vec<Document>, Broken> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("open/yaml.json");
    let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// All vectors of a folder, by name.
pub fn read_folder(folder: &Path) -> Result<Vec<Vector>, Broken> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut vectors = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let vector = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        vectors.push(vector);
    }
    vectors.sort_by(|one: &Vector, other: &Vector| one.name.cmp(&other.name));
    Ok(vectors)
}

/// The vectors that came with this repository: `run` or `native`.
pub fn open(kind: &str) -> Result<Vec<Vector>, Broken> {
    read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("open").join(kind))
}
