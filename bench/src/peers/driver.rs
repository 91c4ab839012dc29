//! The driver of a peer: its packages, its start, and the file that it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use super::{Measured, Peer};
use crate::figures::Metric;
use crate::measure::{CONNECTIONS, MEASURED, REPEATS, SETTLE, WARM_UP};
use crate::process::Process;
use crate::stats::Figure;
use crate::subject::Places;
use crate::{Failure, packages};

/// Where a driver writes, in the folder that it is started in.
const FIGURES: &str = "figures.json";
/// One page of runs, and at most how many of them.
const LISTED: usize = 50;
const LISTS: usize = 200;
const LIST_SECONDS: f64 = 5.0;

fn venv(places: &Places, peer: &Peer) -> PathBuf {
    places.peer_packages.join(peer.word).join("venv")
}

fn node_packages(places: &Places, peer: &Peer) -> PathBuf {
    places.peer_packages.join(peer.word).join("node")
}

pub(super) async fn install(places: &Places, python: &Path, peer: &Peer) -> Result<(), Failure> {
    let (pins, venv) = (places.peers.join(peer.word), venv(places, peer));
    fs::create_dir_all(&places.peer_packages)?;
    packages::of_python(python, &pins, &venv, &places.logs).await?;
    packages::of_node(&pins, &venv, &node_packages(places, peer), &places.logs).await
}

pub(super) fn start(places: &Places, peer: &Peer, folder: &Path) -> Result<Process, Failure> {
    let (venv, own) = (venv(places, peer), places.peers.join(peer.word));
    let order = json!({
        "callers": CONNECTIONS,
        "warm_up": WARM_UP.as_secs_f64(),
        "measured": MEASURED.as_secs_f64(),
        "settle": SETTLE.as_secs_f64(),
        "runs": peer.runs,
        "single_runs": peer.single_runs,
        "repeats": peer.repeats.min(REPEATS),
        "listed": LISTED,
        "lists": LISTS,
        "list_time": LIST_SECONDS,
    });
    let mut command = Command::new(venv.join("bin/python"));
    command.arg(own.join("drive.py")).arg(order.to_string()).current_dir(folder);
    command
        .env("PATH", packages::path_with(&venv)?)
        .env("PYTHONPATH", std::env::join_paths([&places.peers, &own])?)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PEER_PACKAGES", node_packages(places, peer));
    Process::start(&format!("peer-{}", peer.word), &mut command, &places.logs)
}

/// What the driver has written so far.
pub(super) fn read(folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
    match fs::read(folder.join(FIGURES)) {
        Ok(bytes) => understand(&serde_json::from_slice(&bytes)?, measured),
        // It had nothing to say, and its end tells why.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn understand(report: &Value, measured: &mut Measured) -> Result<(), Failure> {
    let text = |name: &str| report.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    measured.versions = text("versions");
    measured.durability = text("durability");
    let problems = report.get("problems").and_then(Value::as_array).into_iter().flatten();
    measured.figures.problems.extend(problems.filter_map(Value::as_str).map(str::to_owned));
    for (name, told) in report.get("figures").and_then(Value::as_object).into_iter().flatten() {
        let metric = metric(name, told).ok_or_else(|| format!("no figure is called {name}"))?;
        measured.figures.keep(metric, figure(told));
    }
    Ok(())
}

fn metric(name: &str, told: &Value) -> Option<Metric> {
    Some(match name {
        "submit" => Metric::Submit,
        "end_to_end" => Metric::EndToEnd,
        "one_run" => Metric::SingleRun,
        "chain" => Metric::ChainWhole,
        "fan_out" => Metric::FanOutWhole,
        "list" => Metric::List { stored: count(told, "stored").ok()? },
        "memory" => Metric::MemoryOfAll,
        _ => return None,
    })
}

fn figure(told: &Value) -> Result<Option<Figure>, Failure> {
    match (told.get("times").and_then(Value::as_array), told.get("value").and_then(Value::as_f64)) {
        (Some(times), _) => Ok(Figure::of(times.iter().filter_map(Value::as_f64).collect(), 0)),
        (None, Some(value)) => {
            Ok(Some(Figure::single(value, count(told, "samples")?, count(told, "failed")?)))
        }
        (None, None) => Err(format!("neither times nor a value: {told}").into()),
    }
}

fn count(told: &Value, name: &str) -> Result<usize, Failure> {
    let number = told.get(name).and_then(Value::as_u64).ok_or_else(|| format!("no {name} in {told}"))?;
    Ok(usize::try_from(number)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_wrote_becomes_figures_of_ours() {
        let mut measured = Measured::default();
        let report = json!({
            "versions": "it 1.0",
            "durability": "none",
            "problems": ["chain: no"],
            "figures": {
                "submit": {"value": 12.5, "samples": 60, "failed": 1},
                "one_run": {"times": [3.0, 1.0, 2.0]},
                "list": {"times": [4.0], "stored": 700},
            },
        });
        understand(&report, &mut measured).expect("understood");
        let figures = &measured.figures;
        assert_eq!(figures.of.get(&Metric::Submit), Some(&Figure::single(12.5, 60, 1)));
        assert_eq!(figures.of.get(&Metric::SingleRun).map(|figure| figure.middle), Some(2.0));
        assert!(figures.of.contains_key(&Metric::List { stored: 700 }));
        assert_eq!(
            (measured.versions.as_str(), figures.problems.as_slice()),
            ("it 1.0", &["chain: no".to_owned()][..])
        );
    }

    #[test]
    fn a_figure_that_nobody_knows_is_not_passed_over() {
        let report = json!({"figures": {"speed": {"value": 1.0, "samples": 1, "failed": 0}}});
        let problem = understand(&report, &mut Measured::default()).expect_err("refused").to_string();
        assert!(problem.contains("speed"), "{problem}");
    }
}
