//! Which process is ours: a file with its number in the first line, as the original has it, and below what proves that the process of
//! that number is still the same one. A number alone proves nothing: systems use numbers again.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use procfs::ProcResult;
use procfs::process::Process;

use crate::folder;

/// What it is called where nobody says otherwise.
pub const NAME: &str = "nats-server.pid";

/// A process, so that it cannot be taken for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it was started, in ticks since the system was.
    pub started: u64,
    /// Which start of the system that is.
    pub boot: String,
    /// The program.
    pub binary: PathBuf,
}

/// Whom a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// There is no file.
    Nobody,
    /// A process that `up` has started, and that runs.
    Ours(Identity),
    /// A process that has ended.
    Ended(i32),
    /// A process that is another one now.
    Another(i32, String),
    /// A process that runs, and nobody can tell whether it is meant.
    Unproven(i32, String),
    /// That is no such file.
    Unreadable(String),
}

impl Identity {
    /// A process that runs now.
    pub fn of(pid: i32) -> Option<Self> {
        let process = Process::new(pid).ok()?;
        let stat = process.stat().ok()?;
        // What has ended and waits to be counted does not run.
        if stat.state == 'Z' {
            return None;
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        // Of another user's process it cannot be seen.
        let binary = process.exe().map(|path| still_named(&path)).unwrap_or_default();
        Some(Self { pid, started: stat.starttime, boot: boot.trim().to_owned(), binary })
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.is_same(self))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.pid == other.pid && self.started == other.started && self.boot == other.boot
    }

    fn text(&self) -> String {
        let Self { pid, started, boot, binary } = self;
        format!("{pid}\nstarted: {started}\nboot: {boot}\nbinary: {}\n", binary.display())
    }

    fn read(text: &str) -> Result<Result<Self, i32>, String> {
        let mut lines = text.lines();
        let number = lines.next().unwrap_or_default().trim();
        let pid = number.parse::<i32>().ok().filter(|pid| *pid > 1);
        let pid = pid.ok_or_else(|| "its first line is no number of a process".to_owned())?;
        let said = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Ok(match (said("started:").and_then(|ticks| ticks.parse().ok()), said("boot:"), said("binary:")) {
            (Some(started), Some(boot), Some(binary)) => {
                Ok(Self { pid, started, boot: boot.to_owned(), binary: PathBuf::from(binary) })
            }
            (_, _, _) => Err(pid),
        })
    }
}

/// A program that was replaced while it runs has a note behind its name.
fn still_named(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text))
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", name_of(self.pid), self.pid)
    }
}

/// What a process is called.
pub fn name_of(pid: i32) -> String {
    let stat: ProcResult<_> = Process::new(pid).and_then(|process| process.stat());
    stat.map_or_else(|_| "a process".to_owned(), |stat| stat.comm)
}

/// Writes down a process. Where there is a file already, somebody else has one.
pub fn claim(path: &Path, process: &Identity) -> io::Result<()> {
    folder::write_new(path, &process.text())
}

/// Whom a file names.
pub fn read(path: &Path) -> Named {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Named::Nobody,
        Err(error) => return Named::Unreadable(error.to_string()),
    };
    match Identity::read(&text) {
        Err(why) => Named::Unreadable(why),
        Ok(Ok(said)) => match Identity::of(said.pid) {
            None => Named::Ended(said.pid),
            Some(now) if now.is_same(&said) && now.binary == said.binary => Named::Ours(now),
            Some(_) => Named::Another(said.pid, name_of(said.pid)),
        },
        // A server that was told to writes its number itself.
        Ok(Err(pid)) => match Identity::of(pid) {
            None => Named::Ended(pid),
            Some(now) if wrote_itself(pid, path) => Named::Ours(now),
            Some(_) => Named::Unproven(pid, name_of(pid)),
        },
    }
}

/// Whether a process was told to write its number into this very file.
fn wrote_itself(pid: i32, path: &Path) -> bool {
    let Ok(process) = Process::new(pid) else { return false };
    let (Ok(arguments), Ok(folder)) = (process.cmdline(), process.cwd()) else { return false };
    let Ok(wanted) = path.canonicalize() else { return false };
    let named = |file: &str| folder.join(file).canonicalize().is_ok_and(|file| file == wanted);
    pid_argument(&arguments).is_some_and(|file| named(&file))
}

/// The file that arguments of a nats-server tell it to write its number into.
pub fn pid_argument(arguments: &[String]) -> Option<String> {
    const NAMES: [&str; 4] = ["-P", "--pid", "-pid", "--P"];
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if NAMES.contains(&argument.as_str()) {
            return arguments.next().cloned();
        }
        if let Some((name, file)) = argument.split_once('=')
            && NAMES.contains(&name)
        {
            return Some(file.to_owned());
        }
    }
    None
}

/// Removes a file that names a process which is gone, and no other.
pub fn release(path: &Path, process: &Identity) -> io::Result<()> {
    let names_it = match std::fs::read_to_string(path) {
        Ok(text) => match Identity::read(&text) {
            Ok(Ok(said)) => said.is_same(process),
            Ok(Err(pid)) => pid == process.pid,
            Err(_) => false,
        },
        Err(_) => false,
    };
    if names_it { std::fs::remove_file(path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Identity {
        Identity::of(i32::try_from(std::process::id()).unwrap()).unwrap()
    }

    #[test]
    fn a_process_is_recognised_by_more_than_its_number() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(NAME);
        assert_eq!(read(&path), Named::Nobody);
        let own = own();
        claim(&path, &own).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(&format!("{}\n", own.pid)));
        assert_eq!(read(&path), Named::Ours(own.clone()));
        assert!(claim(&path, &own).is_err());
        release(&path, &Identity { started: own.started + 1, ..own.clone() }).unwrap();
        assert!(path.exists(), "it names another");
        release(&path, &own).unwrap();
        for another in [
            Identity { started: own.started + 1, ..own.clone() },
            Identity { boot: "another".to_owned(), ..own.clone() },
            Identity { binary: PathBuf::from("/bin/false"), ..own.clone() },
        ] {
            folder::write(&path, &another.text()).unwrap();
            assert!(matches!(read(&path), Named::Another(pid, _) if pid == own.pid), "{another:?}");
        }
    }

    #[test]
    fn a_number_alone_proves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(NAME);
        std::fs::write(&path, format!("{}\n", own().pid)).unwrap();
        assert!(matches!(read(&path), Named::Unproven(..)));
        let gone = i32::MAX - 1;
        std::fs::write(&path, format!("{gone}")).unwrap();
        assert_eq!(read(&path), Named::Ended(gone));
        for nonsense in ["", "x", "-1", "0", "1\n"] {
            std::fs::write(&path, nonsense).unwrap();
            assert!(matches!(read(&path), Named::Unreadable(_)), "{nonsense:?}");
        }
    }

    #[test]
    fn a_server_that_writes_its_number_itself_is_understood() {
        let said = |text: &str| pid_argument(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(said("nats-server -js -P ./x.pid").as_deref(), Some("./x.pid"));
        assert_eq!(said("nats-server --pid=/x -p 1").as_deref(), Some("/x"));
        assert_eq!(said("nats-server -p 4222"), None);
    }
}
