//! A disk of bounded size, which can be filled up and freed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Mounts a small disk in a name space of its own, and stays.
const KEEP: &str =
    r#"mount -t tmpfs -o size="$1",mode=700 pyoco "$0" && echo mounted && exec sleep infinity"#;

/// Goes to a folder, which is another one in here, and runs a program.
const ENTER: &str = r#"cd "$0" && exec "$@""#;

/// A small disk. A process keeps it, so that those who use it may come and go.
#[derive(Debug)]
pub struct Disk {
    keeper: Child,
    /// Where it is, for those who are not on it. SQLite finds nothing there: it follows links by itself.
    path: PathBuf,
}

impl Disk {
    /// Makes one of so many MiB in a folder; `None` where nobody may mount anything.
    pub fn mount(folder: &Path, mebibytes: u64) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", KEEP]);
        command.arg(folder).arg(format!("{mebibytes}m"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = command.spawn().ok()?;
        let mut said = String::new();
        let _ = BufReader::new(keeper.stdout.take()?).read_line(&mut said);
        let path = PathBuf::from(format!("/proc/{}/root{}", keeper.id(), folder.display()));
        let mut disk = Self { keeper, path };
        if said.trim() != "mounted" {
            let _ = disk.keeper.wait();
            return None;
        }
        Some(disk)
    }

    /// What a program that is to see it is started by; a folder and the program follow.
    pub fn entrance(&self) -> Vec<String> {
        let keeper = self.keeper.id().to_string();
        let enter = ["nsenter", "--user", "--mount", "--preserve-credentials", "--target", &keeper];
        enter.into_iter().chain(["sh", "-c", ENTER]).map(str::to_owned).collect()
    }

    /// Copies the files of a folder on it to another one that is not.
    pub fn copy(&self, folder: &str, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(self.path.join(folder)).unwrap().flatten() {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }

    /// Takes whatever room is left.
    pub fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        let block = vec![0; 1 << 20];
        let mut size = block.len();
        while size > 0 {
            if file.write(&block[..size]).is_err() {
                size /= 2;
            }
        }
    }

    /// Gives it back.
    pub fn free(&self) {
        let _ = std::fs::remove_file(self.ballast());
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
