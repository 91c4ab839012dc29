//! Wheels on a worker: which of the shelf are for it, where they are installed, and which ones a run uses.
//!
//! `sync` looks at the shelf and chooses; `sets` keeps one folder for each set of wheels, named by what is in it, so that a run
//! keeps the code it began with while the next one has newer; `files` are the wheels themselves as they were fetched; `install`
//! is uv or pip; `interpreter` asks Python what it can run; `manifest` and `report` say what is installed to others. How a task
//! sees such a folder stands in `python` and `process`.

mod error;
mod files;
mod folders;
mod install;
mod interpreter;
mod manifest;
mod report;
mod sets;
mod sync;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyoco_core::state::State;
use pyoco_core::wheels::UsedWheel;
use pyoco_engine::Clock;
use pyoco_ports::Store;
use pyoco_wheels::WheelSet;
use tokio::sync::OnceCell;

use crate::python::PythonOptions;
use folders::Folders;
use interpreter::Interpreter;
use manifest::Manifest;
use report::Report;
use sync::Schedule;

pub(crate) use error::WheelError;
pub(crate) use report::disabled;
pub use sets::WheelFolder;

/// What an operator chooses for a worker that installs wheels.
#[derive(Debug, Clone)]
pub struct WheelOptions {
    /// Where it keeps them (`PYOCO_WHEEL_SYNC_DIR`). Several workers may share it.
    pub dir: PathBuf,
    /// How often it looks for changes that it has not heard of (`PYOCO_WHEEL_SYNC_INTERVAL_SEC`).
    pub every: Duration,
    /// How long an installation may take (`PYOCO_WHEEL_INSTALL_TIMEOUT_SEC`).
    pub install_timeout: Duration,
    /// The Python that they are for: the one that runs the tasks.
    pub python: PythonOptions,
}

impl WheelOptions {
    /// The defaults of the contract.
    pub fn new(dir: PathBuf, python: PythonOptions) -> Self {
        Self { dir, every: Duration::from_secs(10), install_timeout: Duration::from_secs(180), python }
    }
}

/// The wheels of a worker.
pub(crate) struct Wheelhouse {
    options: WheelOptions,
    tags: Vec<String>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    folders: OnceCell<Folders>,
    interpreter: OnceCell<Interpreter>,
    current: Mutex<Current>,
    report: Mutex<Report>,
    schedule: tokio::sync::Mutex<Schedule>,
    /// One set is made at a time: two runs that need the same one share it.
    making: tokio::sync::Mutex<()>,
}

/// What the next run begins with.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    /// As the log of the run says it.
    pub(crate) used: Arc<[UsedWheel]>,
    /// Where they are; nothing when there are none.
    pub(crate) folder: Option<Arc<WheelFolder>>,
    manifest: Manifest,
    /// Whether the shelf was ever read and what is on it installed, now or by a worker of this folder before. Until then nobody knows
    /// what a run is to begin with.
    pub(crate) is_known: bool,
}

/// What the log of a run says of its wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Those it began with.
    pub(crate) used: Option<Arc<[UsedWheel]>>,
    /// Whether whoever claims it now says which.
    pub(crate) may_fix: bool,
}

impl Standing {
    pub(crate) fn of(state: &State) -> Self {
        Self { used: state.wheels.clone(), may_fix: state.may_fix_wheels() }
    }
}

/// What a run uses here.
#[derive(Debug)]
pub(crate) struct Outfit {
    /// What the claim brings, if it is for the claim to say.
    pub(crate) used: Option<Arc<[UsedWheel]>>,
    /// Where its tasks find them.
    pub(crate) folder: Option<Arc<WheelFolder>>,
    /// What the log said when this was chosen.
    pub(crate) standing: Standing,
}

impl Outfit {
    /// No wheels.
    pub(crate) const fn none(standing: Standing) -> Self {
        Self { used: None, folder: None, standing }
    }
}

impl Wheelhouse {
    pub(crate) fn new(
        options: WheelOptions,
        tags: Vec<String>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            options,
            tags,
            store,
            clock,
            folders: OnceCell::new(),
            interpreter: OnceCell::new(),
            current: Mutex::new(Current {
                used: Arc::default(),
                folder: None,
                manifest: Manifest::default(),
                is_known: false,
            }),
            report: Mutex::default(),
            schedule: tokio::sync::Mutex::default(),
            making: tokio::sync::Mutex::new(()),
        }
    }

    /// What a run that begins now uses.
    pub(crate) fn current(&self) -> Current {
        self.current_mut().clone()
    }

    fn current_mut(&self) -> MutexGuard<'_, Current> {
        // Each change is one step; a panic leaves nothing half done.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wheels that a run began with, here or elsewhere: where they are installed.
    pub(crate) async fn bring(
        &self,
        used: &Arc<[UsedWheel]>,
    ) -> Result<Option<Arc<WheelFolder>>, WheelError> {
        let current = self.current();
        if current.used == *used {
            return Ok(current.folder);
        }
        self.folder_of(&set_of(used)?).await
    }

    /// Where a set is installed. It is made if it is not there, of files that are here or on the shelf.
    async fn folder_of(&self, set: &WheelSet) -> Result<Option<Arc<WheelFolder>>, WheelError> {
        if set.is_empty() {
            return Ok(None);
        }
        let (folders, interpreter) = (self.folders().await?, self.interpreter().await?);
        let key = sets::key(set, interpreter);
        if let Some(found) = folders.hold(&key, self.clock.now()).await? {
            return Ok(Some(Arc::new(found)));
        }
        let _alone = self.making.lock().await;
        if let Some(found) = folders.hold(&key, self.clock.now()).await? {
            return Ok(Some(Arc::new(found)));
        }
        let making = folders.begin().await?;
        let files = making.subfolder("wheels")?;
        for wheel in set.wheels() {
            let file = self.file_of(folders, &making, wheel).await?;
            // Under the name that an installer can read.
            folders::link(&file, &files.join(wheel.name.as_str())).await?;
        }
        let target = making.subfolder("set")?;
        install::install(&self.options, interpreter, &making, &files, set, &target).await?;
        let made = folders.keep(making, &key, used_of(set), self.clock.now()).await?;
        Ok(Some(Arc::new(made)))
    }

    async fn folders(&self) -> Result<&Folders, WheelError> {
        let open = || Folders::open(self.options.python.folder.join(&self.options.dir));
        self.folders.get_or_try_init(open).await
    }

    async fn interpreter(&self) -> Result<&Interpreter, WheelError> {
        let ask = || async {
            let asked = interpreter::ask(&self.options.python);
            tokio::time::timeout(self.options.install_timeout, asked).await.unwrap_or_else(|_| {
                let python = self.options.python.python.display();
                Err(WheelError::Python(format!(
                    "Python ('{python}') was asked which wheels it runs and does not answer"
                )))
            })
        };
        self.interpreter.get_or_try_init(ask).await
    }
}

fn used_of(set: &WheelSet) -> Arc<[UsedWheel]> {
    let used = set.wheels().iter().map(|wheel| UsedWheel {
        name: wheel.name.to_string(),
        version: wheel.version.clone(),
        sha256: wheel.sha256.to_string(),
    });
    used.collect()
}

/// The set that the log of a run names.
fn set_of(used: &[UsedWheel]) -> Result<WheelSet, WheelError> {
    let read = |wheel: &UsedWheel| -> Result<pyoco_wheels::PinnedWheel, String> {
        Ok(pyoco_wheels::PinnedWheel {
            name: wheel.name.parse().map_err(|error| format!("{}: {error}", wheel.name))?,
            version: wheel.version.clone(),
            sha256: pyoco_wheels::Sha256Digest::parse(&wheel.sha256).map_err(|error| error.to_string())?,
        })
    };
    let wheels: Result<Vec<_>, String> = used.iter().map(read).collect();
    let set = wheels.and_then(|wheels| WheelSet::new(wheels).map_err(|error| error.to_string()));
    set.map_err(WheelError::NotASet)
}
