//! What people use today for the same work, measured by the same definitions. Each peer has a folder in `peers/` with its pinned packages and a
//! driver in Python, which starts it, asks it through its own client library and writes down what it saw; figures are made of that here.
//! A peer that cannot be had is named with the reason, and nothing else suffers.

mod driver;
mod table;

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

pub(crate) use table::markdown;

use crate::figures::Figures;
use crate::subject::Places;
use crate::{Failure, progress};

/// A peer and how much is asked of it: less of those that would take too long.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Of its folder, and after `--peer`.
    pub(crate) word: &'static str,
    runs: usize,
    single_runs: usize,
    repeats: usize,
    /// All of it; what was measured by then counts.
    patience: Duration,
}

const ALL: [Peer; 5] = [
    Peer { name: "Restate", word: "restate", ..FAST },
    Peer { name: "Celery and Redis", word: "celery", ..FAST },
    Peer { name: "DBOS and SQLite", word: "dbos", ..FAST },
    Peer {
        name: "Temporal, development server",
        word: "temporal",
        runs: 100,
        single_runs: 50,
        repeats: 5,
        ..FAST
    },
    // A run is a process there, which takes seconds.
    Peer {
        name: "Prefect",
        word: "prefect",
        runs: 20,
        single_runs: 5,
        repeats: 2,
        patience: Duration::from_secs(240),
    },
];

const FAST: Peer = Peer {
    name: "",
    word: "",
    runs: 1_000,
    single_runs: 300,
    repeats: 15,
    patience: Duration::from_secs(120),
};

/// What came of a peer.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) versions: String,
    /// What is on disk when it has answered.
    pub(crate) durability: String,
    pub(crate) figures: Figures,
}

/// A peer with its packages, or why there are none.
pub(crate) struct Installed {
    peer: &'static Peer,
    result: Result<(), Failure>,
}

/// Installs the packages of the peers that were named, of all when none was.
pub(crate) async fn install(places: &Places, python: &Path, named: &[String]) -> Vec<Installed> {
    let mut installed = Vec::new();
    for peer in ALL.iter().filter(|peer| named.is_empty() || named.iter().any(|name| name == peer.word)) {
        progress(peer.name, "installing");
        installed.push(Installed { peer, result: driver::install(places, python, peer).await });
    }
    installed
}

/// Whether a peer is called so on the command line.
pub(crate) fn is_known(word: &str) -> bool {
    ALL.iter().any(|peer| peer.word == word)
}

/// Measures them one after the other.
pub(crate) async fn measure(places: &Places, installed: Vec<Installed>) -> Vec<Measured> {
    let mut all = Vec::new();
    for Installed { peer, result } in installed {
        let mut measured = Measured { name: peer.name, ..Measured::default() };
        if let Err(error) = result {
            measured.figures.problems.push(shortly(&error));
        } else {
            progress(peer.name, "measuring");
            if let Err(error) = measure_one(places, peer, &mut measured).await {
                measured.figures.problems.push(shortly(&error));
            }
        }
        all.push(measured);
    }
    all
}

/// What was written down counts, also when the driver failed later.
async fn measure_one(places: &Places, peer: &Peer, measured: &mut Measured) -> Result<(), Failure> {
    let folder = places.fresh_data()?;
    let process = driver::start(places, peer, folder.path())?;
    let end = timeout(peer.patience, process.finish()).await;
    driver::read(folder.path(), measured)?;
    end.map_err(|_| format!("not done after {:?}", peer.patience))?
}

/// The last line, which is what a failed program says at the end; the rest is in its log.
fn shortly(error: &Failure) -> String {
    let text = error.to_string();
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(&text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_folder_with_pins_and_a_driver() {
        let places = Places::new();
        for peer in &ALL {
            for file in ["requirements.txt", "drive.py"] {
                assert!(places.peers.join(peer.word).join(file).exists(), "{} has no {file}", peer.word);
            }
        }
    }

    #[tokio::test]
    async fn a_peer_that_cannot_be_had_is_named_with_the_reason() {
        let peer = ALL.first().expect("a peer");
        let result = Err("pip ended with 1; its log ends with:\nERROR: no network\n".into());
        let measured = measure(&Places::new(), vec![Installed { peer, result }]).await;
        let text = markdown(&Figures::default(), &Figures::default(), &measured);
        assert!(text.contains("Not measured (Restate): ERROR: no network"), "{text}");
    }
}
