//! What a worker runs by itself: Python functions and commands.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::plan::Runner;
use pyoco_engine::{Clock, Lines};
use pyoco_ports::Blobs;

use crate::flows::FlowSources;
use crate::process::CommandRuntime;
use crate::python::{PythonOptions, PythonRuntime};
use crate::runtime::{Call, End, Runtime, Stop};
use crate::wheels::WheelFolder;

/// Runs each task the way its plan says.
#[derive(Debug)]
pub struct LocalRuntime {
    python: Arc<PythonRuntime>,
    commands: CommandRuntime,
}

impl LocalRuntime {
    /// A runtime; nothing is started before it is needed.
    pub fn new(options: PythonOptions, logs: Lines, blobs: Arc<dyn Blobs>, clock: Arc<dyn Clock>) -> Self {
        let (folder, env) = (options.folder.clone(), options.env.clone());
        let commands = CommandRuntime::new(logs.clone(), blobs.clone(), clock.clone(), folder, env);
        Self { python: Arc::new(PythonRuntime::new(options, logs, blobs, clock)), commands }
    }

    /// Where the plans of its flows come from.
    pub fn flows(&self) -> FlowSources {
        FlowSources::new(self.python.clone())
    }

    /// Starts the processes that are kept warm, for runs with these wheels. An error says why no Python task can run.
    pub async fn warm_up(&self, wheels: Option<&WheelFolder>) -> Result<(), String> {
        self.python.warm_up(wheels).await
    }

    /// Whether flows may come from a resolver.
    pub fn has_resolver(&self) -> bool {
        self.python.has_resolver()
    }

    /// Imports the flow resolver, if there is one, which may be in a wheel. An error says why there is none.
    pub async fn check_resolver(&self, wheels: Option<&WheelFolder>) -> Result<(), String> {
        self.python.check_resolver(wheels).await
    }

    /// Ends the processes of Python tasks. Attempts that still run end with their futures.
    pub async fn close(&self) {
        self.python.close().await;
    }
}

#[async_trait]
impl Runtime for LocalRuntime {
    async fn run(&self, call: Call, stop: Stop) -> End {
        match &call.task.runner {
            Runner::Callable(_) | Runner::Registered(_) => self.python.run(&call, stop).await,
            Runner::Command(argv) => self.commands.run(&call, argv, stop).await,
            Runner::Wait { .. } | Runner::External => {
                End::error(&format!("task '{}' is not for a worker", call.task.name))
            }
        }
    }
}
