//! `scripts/up.sh`, which is all of `make up` but the build: what a newcomer sees first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use support::{PATIENCE, Site, processes_with};

/// The last line of what the script says before it only waits.
const READY: &str = "Stop it with Ctrl-C.";

/// The script, in a process group of its own as under a terminal.
struct Script {
    site: Site,
    child: Child,
}

impl Script {
    fn start(site: Site, port: u16) -> Self {
        let server = Path::new(env!("CARGO_BIN_EXE_pyoco-server"));
        let client = Path::new(env!("CARGO_BIN_EXE_pyoco-client"));
        assert_eq!(server.parent(), client.parent(), "the script knows one folder of programs");
        let said = File::create(site.path("said")).unwrap();
        let child = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/up.sh"))
            .env("BIN", server.parent().unwrap())
            .env("HOST", "127.0.0.1")
            .env("PORT", port.to_string())
            .env("PYOCO_DATA_DIR", site.path("data"))
            .envs(&site.env)
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .process_group(0)
            .spawn()
            .unwrap();
        Self { site, child }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.site.path("said")).unwrap()
    }

    fn until_ready(&mut self) -> String {
        let since = Instant::now();
        loop {
            let said = self.said();
            if said.contains(READY) {
                return said;
            }
            assert_eq!(self.child.try_wait().unwrap(), None, "it ended: {said}");
            assert!(since.elapsed() < PATIENCE, "it is not up yet: {said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What Ctrl-C does for SIGINT: everybody in the group gets it.
    fn signal(&self, signal: Signal) {
        killpg(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The processes of the server; the folder is in its command line.
    fn servers(&self) -> Vec<i32> {
        processes_with(self.site.path("data").to_str().unwrap())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

#[test]
fn make_up_shows_a_run_stays_up_and_leaves_nobody_behind() {
    let site = Site::new();
    std::fs::create_dir(site.path("data")).unwrap();
    std::fs::write(site.path("data").join("server.log"), "an older line\n").unwrap();
    let mut script = Script::start(site, 0);
    let said = script.until_ready();
    let result = said.lines().find(|line| line.contains("Hello, you! 4 words: ")).expect(&said);
    assert!(result.contains("WORKFLOWS WITHOUT A PLATFORM"), "{said}");
    assert!(
        said.contains("translate  asking a flaky service (attempt 2)"),
        "what tasks print is shown: {said}"
    );
    // A build without the page says so, and shows the API instead.
    let place = said.lines().find_map(|line| line.split_once("is up: ")).expect(&said).1;
    let has_page = said.contains(&format!("  dashboard {place}/\n"));
    assert!(has_page || said.contains("  dashboard not in this build"), "{said}");
    let shown = if has_page { format!("open {place}/\n") } else { format!("open {place}/docs\n") };
    assert!(said.contains(&shown), "{said}");
    assert_eq!(script.servers().len(), 1);
    script.signal(Signal::SIGINT);
    assert_eq!(script.wait().code(), Some(130), "{}", script.said());
    assert_eq!(script.servers(), Vec::<i32>::new());
    let log = std::fs::read_to_string(script.site.path("data").join("server.log")).unwrap();
    assert!(log.starts_with("an older line\n{"), "the log is continued: {log}");
}

#[test]
fn a_run_that_fails_is_explained_and_the_server_stays_up() {
    let mut script = Script::start(Site::new().env("PYOCO_PYTHON", "false"), 0);
    let said = script.until_ready();
    assert!(said.contains("it is FAILED") && said.contains("error: Python"), "{said}");
    assert_eq!(script.servers().len(), 1);
    script.signal(Signal::SIGTERM);
    assert_eq!(script.wait().code(), Some(143), "{}", script.said());
    assert_eq!(script.servers(), Vec::<i32>::new());
}

#[test]
fn a_stranger_on_the_port_is_named_and_not_spoken_to() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let port = stranger.local_addr().unwrap().port();
    let mut script = Script::start(Site::new(), port);
    let status = script.wait();
    let said = script.said();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{port} is already in use")), "{said}");
    assert!(!said.contains("examples/hello"), "{said}");
    assert_eq!(stranger.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody has called");
    assert_eq!(script.servers(), Vec::<i32>::new());
}

#[test]
fn a_folder_in_use_ends_with_the_servers_own_word() {
    let site = Site::new();
    let _running = site.start();
    let mut script = Script::start(site, 0);
    let status = script.wait();
    let said = script.said();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("in use by another process"), "{said}");
}
