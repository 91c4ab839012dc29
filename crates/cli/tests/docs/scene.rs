//! A reader who types what a page says, in a folder of their own.
//!
//! Every port that the pages name stands for a free one, so that pages are played side by side and beside whatever runs here.
//! `RUN_ID` and the like are filled in as the reader does it: with what was last shown.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::page::{self, Deed, Step};
use crate::support::{PATIENCE, free_port, processes_with};

/// The ports that pages name.
const PORTS: [u16; 14] = [8000, 8001, 9000, 4222, 4223, 4224, 8222, 8223, 8224, 6222, 6223, 6224, 8300, 9101];

/// What a page calls something, and how a program shows it.
const NAMES: [(&str, &[&str]); 6] = [
    ("RUN_ID", &["\"run_id\": \""]),
    ("EXECUTION_ID", &["\"executionId\": \"", "\"executionId\":\""]),
    ("JOB_ID", &["job: ", "\"id\": \"", "\"id\":\""]),
    ("KEY_ID", &["\"key_id\": \""]),
    ("API_KEY", &["\"api_key\": \""]),
    ("LETTER", &["\"key\": \""]),
];

/// What is there before the reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The programs and the examples.
    Programs,
    /// Also a server, as `make up` starts it.
    Server,
}

pub(crate) struct Scene {
    page: &'static str,
    steps: Vec<Step>,
    folder: tempfile::TempDir,
    ports: HashMap<u16, u16>,
    shown: HashMap<&'static str, String>,
    started: Vec<Child>,
}

impl Scene {
    pub(crate) fn new(page: &'static str, ground: Ground) -> Self {
        let folder = tempfile::Builder::new().prefix("pyoco-docs-").tempdir().unwrap();
        copy(&page::root().join("examples"), &folder.path().join("examples"));
        let ports = PORTS.iter().map(|port| (*port, free_port())).collect();
        let steps = page::steps(&page::read(page));
        let mut scene = Self { page, steps, folder, ports, shown: HashMap::new(), started: Vec::new() };
        std::fs::create_dir(scene.note("")).unwrap();
        std::fs::write(scene.note("where"), scene.folder.path().to_str().unwrap()).unwrap();
        std::fs::write(scene.note("variables"), "").unwrap();
        if ground == Ground::Server {
            scene.start("pyoco-server up --flows examples", 0);
        }
        scene
    }

    /// Does all of it, in order.
    pub(crate) fn play(mut self) {
        for Step { line, deed } in std::mem::take(&mut self.steps) {
            match deed {
                Deed::File { path, text } => {
                    let path = self.folder.path().join(path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, self.with_ports(&text)).unwrap();
                }
                Deed::Start(command) => self.start(&command, line),
                Deed::Type { commands, output, again } => self.see(&commands, &output, again, line),
                Deed::Stop => self.started.drain(..).rev().for_each(|mut child| end(&mut child)),
                Deed::LeaveOut { .. } => {}
            }
        }
    }

    fn see(&mut self, commands: &[String], output: &[String], again: bool, line: usize) {
        let since = Instant::now();
        loop {
            let said: String = commands.iter().map(|command| self.do_type(command, line)).collect();
            let Err(missing) = page::shows(&said, output) else { return };
            let over = !again || since.elapsed() > PATIENCE;
            assert!(!over, "{}:{line}: `{missing}` is not shown, but\n{said}\n{}", self.page, self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Types one command, and gives all that is said to it.
    fn do_type(&mut self, command: &str, line: usize) -> String {
        let place = format!("{}:{line}: {command}", self.page);
        let wanted = exit_code(command);
        let typed = self.filled(&self.here(command), &place);
        let script = format!(
            "set -a; . {variables}; cd \"$(cat {place})\"\n{typed}\ncode=$?\nexport -p > {variables}; pwd > {place}; exit $code",
            variables = self.note("variables").display(),
            place = self.note("where").display(),
        );
        let mut child = self.spawn(&script, "typed");
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > PATIENCE * 2 {
                end(&mut child);
                panic!("{place}\nit does not end: {}\n{}", self.said("typed"), self.logs());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let said = self.said("typed");
        assert_eq!(status.code(), Some(wanted), "{place}\ntyped: {typed}\n{said}\n{}", self.logs());
        self.look_at(&said);
        said
    }

    /// Lets a program go on beside what follows; one that says when it is ready is waited for.
    fn start(&mut self, command: &str, line: usize) {
        let place = format!("{}:{line}: {command}", self.page);
        let name = format!("started-{}", self.started.len());
        let typed = self.filled(&self.here(command), &place);
        let script = format!(
            "set -a; . {}; cd \"$(cat {})\"\n{typed}",
            self.note("variables").display(),
            self.note("where").display()
        );
        let ready = match command {
            command if command.contains("pyoco-server up") => "is up: ",
            command if command.contains("nats-server ") => "Server is ready",
            _ => "",
        };
        let mut child = self.spawn(&script, &name);
        let since = Instant::now();
        while !self.said(&name).contains(ready) {
            let ended = child.try_wait().unwrap();
            assert_eq!(ended, None, "{place}\nit ended: {}", self.said(&name));
            assert!(since.elapsed() < PATIENCE, "{place}\nit is not up: {}", self.said(&name));
            std::thread::sleep(Duration::from_millis(5));
        }
        self.started.push(child);
    }

    fn spawn(&self, script: &str, name: &str) -> Child {
        let said = File::create(self.note(name)).unwrap();
        let programs = Path::new(env!("CARGO_BIN_EXE_pyoco-client")).parent().unwrap();
        let mut path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        if script.contains("nats-") {
            let broker = pyoco_testing_nats::nats_server();
            path.push_str(&format!(":{}", broker.parent().unwrap().display()));
            command.env("NATS_SERVER_PATH", broker);
        }
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PYOCO_")) {
            command.env_remove(name);
        }
        command.args(["-c", script]).current_dir(self.folder.path());
        command.env("PATH", path).env("HOME", self.folder.path());
        command.env("PYOCO_SERVER_URL", format!("http://127.0.0.1:{}", self.ports[&8000]));
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        command.process_group(0).spawn().unwrap()
    }

    /// The command with the ports of this scene, also those that a program would take by itself.
    fn here(&self, command: &str) -> String {
        let port = |port: u16| self.ports[&port];
        let mut command = command.to_owned();
        if command.contains("pyoco-server up") && !command.contains("--port ") {
            command = command.replace("pyoco-server up", "pyoco-server up --port 8000");
        }
        if command.contains("--with-nats-bootstrap") {
            let ports = "--with-nats-bootstrap --nats-client-port 4222 --nats-http-port 8222";
            command = command.replace("--with-nats-bootstrap", ports);
        }
        if command.contains("nats-bootstrap up") && !command.contains("--client-port") {
            command =
                command.replace("nats-bootstrap up", "nats-bootstrap up --client-port 4222 --http-port 8222");
            command = command.replace("--cluster demo", "--cluster demo --cluster-port 6222");
        }
        for name in ["status", "doctor", "raise", "backup", "restore"] {
            let asked = format!("nats-bootstrap {name}");
            if command.contains(&asked) && !command.contains("--nats-url") {
                command = command.replace(&asked, &format!("{asked} --nats-url nats://127.0.0.1:4222"));
            }
        }
        if command.contains("nats-bootstrap status") || command.contains("nats-bootstrap doctor") {
            command = command
                .replace("--nats-url", &format!("--http-url http://127.0.0.1:{} --nats-url", port(8222)));
        }
        self.with_ports(&command)
    }

    fn with_ports(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut digits = String::new();
        for c in text.chars().chain(['\n']) {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            let other = digits.parse().ok().and_then(|port: u16| self.ports.get(&port));
            filled.push_str(&other.map_or_else(|| std::mem::take(&mut digits), ToString::to_string));
            digits.clear();
            filled.push(c);
        }
        filled.pop();
        filled
    }

    /// The command with the ids that were shown last.
    fn filled(&self, command: &str, place: &str) -> String {
        let mut filled = String::new();
        let mut word = String::new();
        for c in command.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() || c == '_' {
                word.push(c);
                continue;
            }
            match NAMES.iter().find(|(name, _)| *name == word) {
                Some((name, _)) => {
                    let shown = self.shown.get(name);
                    filled.push_str(shown.unwrap_or_else(|| panic!("{place}\nnobody has shown {name}")));
                }
                None => filled.push_str(&word),
            }
            word.clear();
            filled.push(c);
        }
        filled.pop();
        filled
    }

    fn look_at(&mut self, said: &str) {
        for (name, beginnings) in NAMES {
            for beginning in beginnings {
                let Some((_, rest)) = said.rsplit_once(beginning) else { continue };
                let id: String =
                    rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_./".contains(*c)).collect();
                if !id.is_empty() {
                    self.shown.insert(name, id);
                    break;
                }
            }
        }
    }

    fn note(&self, name: &str) -> PathBuf {
        self.folder.path().join(".reader").join(name)
    }

    fn said(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.note(name)).unwrap_or_default()).into_owned()
    }

    /// The ends of what the started programs said.
    fn logs(&self) -> String {
        let ends = (0..self.started.len()).map(|number| {
            let said = self.said(&format!("started-{number}"));
            let lines: Vec<&str> = said.lines().collect();
            lines.get(lines.len().saturating_sub(12)..).unwrap_or_default().join("\n")
        });
        ends.collect::<Vec<_>>().join("\n--\n")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in self.started.iter_mut().rev() {
            end(child);
        }
        // What was put into the background has the folder in its command line, or stands in it.
        for pid in processes_with(self.folder.path().to_str().unwrap()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        for pid in processes_in(self.folder.path()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Asks a group to end, and ends it.
fn end(child: &mut Child) {
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let _ = killpg(group, Signal::SIGTERM);
    let since = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) && since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

/// The processes whose folder is this one, or is below it.
fn processes_in(folder: &Path) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()));
    numbers
        .filter(|pid: &i32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place.starts_with(folder))
        })
        .collect()
}

/// `# …; exit code 1` behind a command says how it ends.
fn exit_code(command: &str) -> i32 {
    let said = command.rsplit_once('#').and_then(|(_, comment)| comment.split_once("exit code "));
    said.and_then(|(_, code)| code.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).unwrap_or(0)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
