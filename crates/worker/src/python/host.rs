//! One task process, as the worker holds it: started, spoken to, told to stop, ended.

use std::io;
use std::io::IoSlice;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::BytesMut;
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Command;

use super::PythonOptions;
use super::wire::{self, Frame};
use crate::process::{Group, Pipe, pipe, visible, with_wheels};

/// What runs in the process. The first lines of it come as an argument and read the rest from the socket.
const START: &str = include_str!("start.py");
const VALUES: &str = include_str!("values.py");
const CONTEXT: &str = include_str!("context.py");
const HOST: &str = include_str!("host.py");
const DESCRIBE: &str = include_str!("describe.py");

/// How long a process that is no longer needed may take to leave.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a process is started for; one that was started for something else has other modules or another environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The folder of the flow, where its modules are found first.
    pub(super) folder: Option<PathBuf>,
    /// The wheels that it runs with, which come next.
    pub(super) wheels: Option<PathBuf>,
    /// The variables that it may see; `None`: all.
    pub(super) exposed: Option<Vec<String>>,
}

/// A task process. Dropping it ends it and everything it started.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) group: Group,
    pub(super) line: Line,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
}

/// The sockets to a task process.
#[derive(Debug)]
pub(super) struct Line {
    socket: UnixStream,
    control: StdStream,
    read: BytesMut,
}

impl Host {
    /// Starts a process. It is not waited for: what is sent to it is read when it is ready.
    pub(super) fn start(python: &Path, options: &PythonOptions, place: &Place) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        let (control, their_control) = StdStream::pair()?;
        control.set_nonblocking(true)?;
        let ((out, stdout), (err, stderr)) = (pipe()?, pipe()?);
        let mut command = Command::new(python);
        command
            // Without bytecode files: their time stamps are too coarse for a file that was edited a moment ago.
            .args(["-B", "-c", START])
            .current_dir(&options.folder)
            .env_clear()
            .envs(with_wheels(visible(&options.env, place.exposed.as_deref()), place.wheels.as_deref()))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err));
        let group = Group::start(&mut command)?;
        drop(command);
        introduce(&ours, &their_control, options, place)?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        Ok(Self { group, line: Line { socket, control, read: BytesMut::new() }, stdout, stderr })
    }

    /// Lets a process that runs nothing leave by itself, for a moment.
    pub(super) async fn finish(mut self) {
        if self.line.socket.shutdown().await.is_ok() {
            let _ = tokio::time::timeout(FAREWELL, self.group.ended()).await;
        }
    }

    /// Ends it the polite way: the task may clean up.
    pub(super) fn terminate(group: &Group, line: &Line) {
        line.say(b"t");
        group.tell(Signal::SIGTERM);
    }
}

/// What a new process reads first: its own program, the second socket, and what it is for. All of it fits into the
/// buffer of the socket, so nobody waits here.
fn introduce(
    ours: &StdStream,
    their_control: &StdStream,
    options: &PythonOptions,
    place: &Place,
) -> io::Result<()> {
    use io::Write as _;

    let program = json!({
        "pyoco_task_values": VALUES,
        "pyoco_task_context": CONTEXT,
        "pyoco_task_host": HOST,
    });
    let program = serde_json::to_vec(&program)?;
    let length = u32::try_from(program.len()).map_err(io::Error::other)?;
    let mut ours_for_writing = ours;
    ours_for_writing.write_all(&length.to_le_bytes())?;
    ours_for_writing.write_all(&program)?;
    let passed = [their_control.as_raw_fd()];
    let (byte, rights) = ([IoSlice::new(b"+")], [ControlMessage::ScmRights(&passed)]);
    sendmsg::<()>(ours.as_raw_fd(), &byte, &rights, MsgFlags::empty(), None)?;
    // A wheel wins over whatever is installed beside it, and a flow's own modules win over a wheel.
    let paths = [place.folder.as_deref(), place.wheels.as_deref(), Some(options.folder.as_path())];
    let paths: Vec<&Path> = paths.into_iter().flatten().collect();
    let setup = json!({
        "exposed": place.exposed,
        "artifacts": options.artifacts_dir,
        "resolver": options.flow_resolver,
        "describe": DESCRIBE,
        "paths": paths,
        "wheels": place.wheels,
    });
    ours_for_writing.write_all(&wire::encode(&setup, &[])?)
}

impl Line {
    /// Sends a message.
    pub(super) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.write_all(frame).await
    }

    /// The next message, or `None` when the process has closed its end. May be dropped and asked again.
    pub(super) async fn receive(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = wire::decode(&mut self.read)? {
                return Ok(Some(frame));
            }
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// `ctx.is_cancelled` is true from now on.
    pub(super) fn cancel(&self) {
        self.say(b"c");
    }

    fn say(&self, word: &[u8]) {
        use io::Write as _;
        // A process that does not listen any more is gone, which is noticed elsewhere.
        let _ = (&self.control).write(word);
    }
}
