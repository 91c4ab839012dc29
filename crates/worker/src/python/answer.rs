//! What a task process says about an attempt, and what of it goes into the log.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use indexmap::IndexMap;
use pyoco_core::event::{BlobRef, Changes, Encoding, ErrorInfo};
use pyoco_core::ids::ExecutionId;
use pyoco_core::json::{self, Json, Limits, Object};
use pyoco_ports::Blobs;
use serde::Deserialize;
use serde_json::json;

use super::wire::Frame;
use crate::runtime::End;

/// A document of a process: it is ours, but a task may have written it.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 72 };
/// How often a failing store is asked again, and after how long.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(250);

/// One message of a process.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Said {
    /// It needs values to go on.
    Need(Need),
    /// A file that it has imported has changed: it must not run this.
    Stale {
        /// Which.
        path: String,
    },
    /// The attempt ended.
    Done(Box<Done>),
    /// The callables were imported.
    Loaded(Box<super::load::LoadedAnswer>),
    /// A flow was described.
    Flow(Box<super::load::FlowAnswer>),
}

/// What it needs: the values of arguments, a mapping, or one value of it.
#[derive(Debug, Deserialize)]
pub(super) struct Need {
    #[serde(default)]
    pub(super) names: Vec<String>,
    #[serde(default)]
    pub(super) root: Option<String>,
    #[serde(default)]
    pub(super) key: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Deserialize)]
pub(super) struct Done {
    ok: bool,
    #[serde(default)]
    output: Option<Travels>,
    #[serde(default)]
    inputs: Option<Object>,
    #[serde(default)]
    changed: IndexMap<String, IndexMap<String, Travels>>,
    #[serde(default)]
    removed: Vec<(String, String)>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    traceback: Option<String>,
    /// The parameters of the callable, when they were asked for.
    #[serde(default)]
    pub(super) names: Option<Vec<String>>,
    /// The process must not be used again.
    #[serde(default)]
    pub(super) retire: bool,
    /// It ended because the process was told to end.
    #[serde(default)]
    pub(super) stopped: bool,
    #[serde(default)]
    sizes: Vec<usize>,
}

/// A value: what is shown of it, and which of the raw bytes it is when that is not all.
#[derive(Debug, Deserialize)]
struct Travels {
    v: Json,
    #[serde(default)]
    b: Option<(Encoding, usize)>,
}

/// Reads a message.
pub(super) fn read(frame: &Frame) -> Result<Said, String> {
    json::decode(&frame.text, LIMITS).map_err(|error| error.to_string())
}

impl Done {
    /// Keeps what is too large for the log, and says how the attempt ended.
    pub(super) async fn end(self, raw: &Bytes, execution: &ExecutionId, blobs: &dyn Blobs) -> End {
        let inputs = self.inputs.clone().map(Arc::new);
        let mut keeper = Keeper { execution, blobs, sizes: &self.sizes, raw };
        let kept = keep(&mut keeper, &self.output, &self.changed).await;
        let (output_ref, mut changes) = match kept {
            Ok(kept) => kept,
            Err(message) => {
                let error = ErrorInfo::new("VALUE_NOT_STORED", message);
                return End::Failed { error, inputs, changes: None };
            }
        };
        changes.removed = self.removed;
        let changes = (changes != Changes::default()).then(|| Box::new(changes));
        if self.ok {
            let output = self.output.filter(|output| !output.v.is_null()).map(|output| Arc::new(output.v));
            return End::Succeeded { output, output_ref, inputs, changes };
        }
        let mut error =
            ErrorInfo::new(self.kind.as_deref().unwrap_or("Exception"), self.error.unwrap_or_default());
        let traceback = self.traceback.map(|text| ("traceback".to_owned(), json!(text)));
        error.detail = traceback.map(|detail| Object([detail].into_iter().collect()));
        End::Failed { error, inputs, changes }
    }
}

/// Stores the raw bytes of an answer.
struct Keeper<'a> {
    execution: &'a ExecutionId,
    blobs: &'a dyn Blobs,
    sizes: &'a [usize],
    raw: &'a Bytes,
}

impl Keeper<'_> {
    async fn keep(&mut self, value: &Travels) -> Result<Option<BlobRef>, String> {
        let Some((encoding, number)) = value.b else { return Ok(None) };
        let sizes = self.sizes.get(..=number).ok_or("the task process sent bytes that it did not list")?;
        let (before, size) = sizes.split_last().map_or((0, 0), |(size, before)| (before.iter().sum(), *size));
        let bytes = self.raw.get(before..before.saturating_add(size));
        let bytes = bytes.ok_or("the task process sent fewer bytes than it listed")?;
        let mut tried = 1;
        loop {
            match self.blobs.put_blob(self.execution, bytes).await {
                Ok(digest) => return Ok(Some(BlobRef { digest, size: size as u64, encoding })),
                Err(error) if tried < TRIES && error.kind.is_retryable() => tried += 1,
                Err(error) => return Err(format!("a value of the task cannot be stored: {error}")),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn keep(
    keeper: &mut Keeper<'_>,
    output: &Option<Travels>,
    changed: &IndexMap<String, IndexMap<String, Travels>>,
) -> Result<(Option<BlobRef>, Changes), String> {
    let output_ref = match output {
        Some(output) => keeper.keep(output).await?,
        None => None,
    };
    let mut changes = Changes::default();
    for (root, members) in changed {
        for (key, value) in members {
            if let Some(reference) = keeper.keep(value).await? {
                changes.refs.insert(format!("{root}.{key}"), reference);
            }
            let place = match root.as_str() {
                "params" => &mut changes.params,
                "results" => &mut changes.results,
                "scratch" => &mut changes.scratch,
                "artifacts" => &mut changes.artifacts,
                other => return Err(format!("the context has no '{other}'")),
            };
            place.0.insert(key.clone(), value.v.0.clone());
        }
    }
    Ok((output_ref, changes))
}
