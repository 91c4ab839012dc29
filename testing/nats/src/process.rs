//! One process that does not outlive its test, however that ends.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running nats-server, and the guard in whose group it is: it holds on to a pipe, and once the other end is gone,
/// because the test was killed, it kills the group and itself.
#[derive(Debug)]
pub(crate) struct Process {
    server: Child,
    guard: Child,
}

impl Process {
    /// Starts it; what it says goes to the end of a file.
    pub(crate) fn start(program: &Path, conf: &Path, log: &Path) -> Self {
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", "trap '' TERM INT HUP; read _; kill -9 0"]).env_clear().process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().expect("a shell");
        let log = File::options().create(true).append(true).open(log).expect("a log file");
        let mut server = Command::new(program);
        server.arg("-c").arg(conf).process_group(pid(&guard).as_raw());
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = server.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { server, guard }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(pid(&self.server), signal).expect("a process to send a signal to");
    }

    pub(crate) fn id(&self) -> i32 {
        pid(&self.server).as_raw()
    }

    /// Whether none of its threads goes on: a signal to stop reaches them one after the other.
    pub(crate) fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("a list of threads");
        tasks.flatten().all(|task| {
            let line = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            line.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        })
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.server.try_wait().expect("a child").is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that is stopped is killed just as well.
        for child in [&mut self.server, &mut self.guard] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id"))
}
