//! The process is killed while wheels come and go: each is there as a whole or not at all, and nothing is left of the others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{NewWheel, StoreError, WheelBytes, Wheels as _};
use pyoco_store_sqlite::{Options, SqliteStore};
use pyoco_wheels::{Sha256Digest, WheelName};
use sha2::{Digest as _, Sha256};

const FOLDER: &str = "PYOCO_WHEELS_CRASH_TEST_FOLDER";
const ROUNDS: u64 = 10;
const WRITERS: u64 = 3;
const LENGTH: usize = 1_500_000;

fn bytes(package: u64, version: u64) -> Vec<u8> {
    let seed = package.wrapping_mul(31).wrapping_add(version);
    (0..LENGTH).map(|place| ((place as u64).wrapping_mul(seed | 1) >> 3).to_le_bytes()[0]).collect()
}

fn hash(bytes: &[u8]) -> Sha256Digest {
    Sha256Digest::of_bytes(Sha256::digest(bytes).into())
}

fn name(package: u64, version: u64) -> WheelName {
    WheelName::parse(&format!("p{package}-{version}-py3-none-any.whl")).unwrap()
}

struct Sent(Vec<u8>);

#[async_trait]
impl WheelBytes for Sent {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let rest = self.0.split_off(self.0.len().min(64 * 1024));
        let piece = std::mem::replace(&mut self.0, rest);
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

/// Not a test of its own: what the other one starts and kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = SqliteStore::open(Path::new(&folder), Options::default()).unwrap();
    let tasks: Vec<_> = (0..WRITERS).map(|package| tokio::spawn(write(store.clone(), package))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Uploads one version after another, and deletes the one before.
async fn write(store: SqliteStore, package: u64) {
    let there = store.wheels().await.unwrap();
    let of_package = there.iter().filter(|wheel| wheel.name.package() == format!("p{package}"));
    let last = of_package.map(|wheel| wheel.name.version().to_string().parse::<u64>().unwrap()).max();
    let mut version = last.map_or(0, |last| last + 1);
    loop {
        let bytes = bytes(package, version);
        let wheel = NewWheel {
            name: name(package, version),
            size_bytes: LENGTH as u64,
            sha256: hash(&bytes),
            at: Timestamp::from_micros(7),
            tags: Vec::new(),
            content_type: "application/zip".to_owned(),
        };
        store.put_wheel(wheel, &mut Sent(bytes)).await.unwrap().unwrap();
        say(&format!("put {package} {version}"));
        if version > 0 {
            store.delete_wheel(&name(package, version - 1), Timestamp::from_micros(8)).await.unwrap();
            say(&format!("deleted {package} {}", version - 1));
        }
        version += 1;
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}").unwrap();
    out.flush().unwrap();
}

#[tokio::test]
async fn a_wheel_is_whole_or_not_there_after_the_kill_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    // What was acknowledged, and not deleted since.
    let mut known: BTreeSet<WheelName> = BTreeSet::new();
    for round in 0..ROUNDS {
        let wanted = 1 + RandomState::new().hash_one(round) % 20;
        let deleted = run_and_kill(folder.path(), wanted, &mut known);
        let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
        let wheels = store.wheels().await.unwrap();
        let there: BTreeSet<WheelName> = wheels.iter().map(|wheel| wheel.name.clone()).collect();
        // One of each may have been on its way out.
        for missing in known.difference(&there) {
            let newer = there
                .iter()
                .any(|wheel| wheel.package() == missing.package() && wheel.version() > missing.version());
            assert!(newer, "round {round}: {missing} was acknowledged and is not there");
        }
        assert!(there.is_disjoint(&deleted), "round {round}: one is back that was deleted");
        let mut files = BTreeSet::new();
        for wheel in &wheels {
            let (mut stream, mut read) = (store.read_wheel(wheel, 0).await.unwrap().unwrap(), 0);
            while let Some(piece) = stream.next().await.unwrap() {
                read += piece.len();
            }
            assert_eq!(read, LENGTH, "round {round}: {}", wheel.name);
            files.insert(format!("{}.whl", wheel.sha256));
        }
        let entries = std::fs::read_dir(folder.path().join("wheel-files")).unwrap();
        let left: BTreeSet<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(left, files, "round {round}: nothing else is left");
        known = there;
    }
}

/// Starts a process that uploads, and kills it after it has said so many things. Gives what it said it deleted.
fn run_and_kill(folder: &Path, wanted: u64, known: &mut BTreeSet<WheelName>) -> BTreeSet<WheelName> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_one_that_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut seen, mut line, mut deleted) = (0, String::new(), BTreeSet::new());
    while out.read_line(&mut line).unwrap() > 0 {
        // Its last line may be cut.
        let words: Vec<&str> = line.strip_suffix('\n').unwrap_or("").split(' ').collect();
        if let [what @ ("put" | "deleted"), package, version] = words[..] {
            let wheel = name(package.parse().unwrap(), version.parse().unwrap());
            if what == "put" {
                known.insert(wheel);
            } else {
                known.remove(&wheel);
                deleted.insert(wheel);
            }
            seen += 1;
            if seen == wanted {
                child.kill().unwrap();
            }
        }
        line.clear();
    }
    assert!(seen >= wanted, "the process ended by itself after {seen} things");
    child.wait().unwrap();
    deleted
}
