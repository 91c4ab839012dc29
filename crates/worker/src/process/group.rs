//! A process with a group of its own: whoever holds it can end everything that it started, and letting go of it does.
//!
//! A process that leaves the group on purpose (`setsid`) is out of reach.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// A process and everything in its group.
#[derive(Debug)]
pub(crate) struct Group {
    child: Option<Child>,
    /// Whose number the group has: the process's own, or its guard's.
    leader: Pid,
    /// Ends the group when this worker is gone without a word.
    guard: Option<Child>,
}

impl Group {
    /// Starts a process in a group of its own.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = id.map(Pid::from_raw).ok_or_else(|| io::Error::other("it has no process id"))?;
        Ok(Self { child: Some(child), leader, guard: None })
    }

    /// Starts a process that knows nothing of this worker, in the group of a guard that holds on to a pipe: once the other
    /// end is gone, because the worker was killed, it kills the group and itself. The guard comes first, so that there is
    /// no moment without it.
    pub(crate) fn start_guarded(command: &mut Command) -> io::Result<Self> {
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", "trap '' TERM INT HUP; read _; kill -9 0"]).env_clear();
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut guard = Self::start(&mut guard)?;
        let leader = guard.leader;
        let child = command.process_group(leader.as_raw()).kill_on_drop(true).spawn()?;
        Ok(Self { child: Some(child), leader, guard: guard.child.take() })
    }

    /// Sends a signal to everybody in the group.
    pub(crate) fn tell(&self, signal: Signal) {
        // Only while the leader is ours to wait for: after that its number may be another's.
        if self.child.is_some() {
            // A group that is gone needs no signal.
            let _ = killpg(self.leader, signal);
        }
    }

    /// Returns when the process has ended; whatever is left of its group is ended then. May be dropped and asked again.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.wait().await.ok();
        self.tell(Signal::SIGKILL);
        self.child = None;
        self.guard = None;
        status
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.tell(Signal::SIGKILL);
        // Somebody has to read how it ended, or a dead entry stays in the process table.
        if let (Some(mut child), Ok(handle)) = (self.child.take(), Handle::try_current()) {
            handle.spawn(async move { drop(child.wait().await) });
        }
    }
}

/// An exit in words: `ended with exit code 3`, `was ended by signal 11 (SIGSEGV)`.
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("was ended by signal {number} ({})", signal.as_str()),
            Err(_) => format!("was ended by signal {number}"),
        },
        (None, None) => "ended in an unknown way".to_owned(),
    }
}
