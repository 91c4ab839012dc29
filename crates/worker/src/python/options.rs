//! What an operator chooses for Python tasks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of [`super::PythonRuntime`].
#[derive(Debug, Clone)]
pub struct PythonOptions {
    /// The interpreter (`--python`, `PYOCO_PYTHON`): a path, or a name on the `PATH`.
    pub python: PathBuf,
    /// Most processes at once. A task without a free one waits, so it should be the tasks that may run at once.
    pub hosts: usize,
    /// So many processes stay although nothing has run for `idle`.
    pub keep_warm: usize,
    /// A process beyond `keep_warm` that ran nothing for so long is ended.
    pub idle: Duration,
    /// Where tasks run; modules are found there too.
    pub folder: PathBuf,
    /// Artifacts go to a folder of their run in here.
    pub artifacts_dir: PathBuf,
    /// The environment of the worker, which tasks see unless their flow exposes less.
    pub env: HashMap<String, String>,
    /// The Python function that builds flows by name (`--flow-resolver`): `module:function` or `path/file.py:function`.
    pub flow_resolver: Option<String>,
    /// A folder of flows (`--flows`): `NAME.yaml` or `NAME/flow.yaml`.
    pub flows_dir: Option<PathBuf>,
}

impl PythonOptions {
    /// `python3` of the path, eight processes, one of them kept warm.
    pub fn new(folder: PathBuf, env: HashMap<String, String>) -> Self {
        Self {
            python: PathBuf::from("python3"),
            hosts: 8,
            keep_warm: 1,
            idle: Duration::from_secs(60),
            artifacts_dir: folder.join("artifacts"),
            folder,
            env,
            flow_resolver: None,
            flows_dir: None,
        }
    }
}
