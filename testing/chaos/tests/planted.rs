//! Mistakes that were planted on purpose are found, each by the rule that it breaks: otherwise the rules prove nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use pyoco_chaos::fleet::Kind;
use pyoco_chaos::nemesis::Blow;
use pyoco_chaos::site::Programs;
use pyoco_chaos::storm::{Trial, run};
use pyoco_faults::MISTAKES;

/// One at a time: each wants the whole machine.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const PROGRAM: &str = env!("CARGO_BIN_EXE_pyoco-chaos");

/// Where a mistake is looked for, and the rules of which at least one must find it.
enum Where {
    /// In a small stage.
    Scene(&'static str, &'static [&'static str]),
    /// In a trial with a real process that is killed now and then.
    Storm(&'static [&'static str]),
}

fn place(mistake: &str) -> Where {
    match mistake {
        "append-anywhere" | "resend-on-conflict" | "record-flipped" => Where::Scene("two-writers", &["R5"]),
        "decide-stale" => Where::Scene("two-readers", &["R10"]),
        "epoch-unchecked" => Where::Scene("zombie", &["R6"]),
        "ack-before-end" => Where::Storm(&["R4"]),
        "keys-forgotten" => Where::Storm(&["R3"]),
        "cancel-dropped" => Where::Storm(&["R2"]),
        "commit-dropped" => Where::Storm(&["R1", "R10"]),
        "rerun-completed" => Where::Storm(&["R7"]),
        "row-not-written" => Where::Storm(&["R9"]),
        "event-skipped" => Where::Storm(&["R21"]),
        other => panic!("nobody looks for {other}"),
    }
}

/// What a scene finds.
fn scene(name: &str, plant: &str) -> BTreeSet<String> {
    let said = Command::new(PROGRAM).args(["scene", name]).env("PYOCO_PLANT", plant).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{name} with {plant:?}: {}", String::from_utf8_lossy(&said.stderr));
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

async fn storm(plant: Option<&'static str>) -> BTreeSet<String> {
    let programs = Programs::Own(PathBuf::from(PROGRAM));
    let mut trial = Trial::new(Kind::Sqlite, Duration::from_secs(6), 7, programs);
    trial.blows = vec![Blow::Kill];
    trial.pause = Duration::from_millis(60);
    trial.patience = Duration::from_secs(15);
    trial.plant = plant;
    let (summary, violations) = run(&trial).await;
    eprintln!("{plant:?}: {violations:#?}\n{summary}");
    violations.into_iter().map(|violation| violation.rule.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes with real processes that want the machine to themselves: make soak"]
async fn every_planted_mistake_is_found_by_the_rule_that_it_breaks() {
    let _alone = ALONE.lock().await;
    for (mistake, what) in MISTAKES {
        let (found, rules) = match place(mistake) {
            Where::Scene(name, rules) => (scene(name, mistake), rules),
            Where::Storm(rules) => (storm(Some(mistake)).await, rules),
        };
        assert!(
            rules.iter().any(|rule| found.contains(*rule)),
            "{mistake} ({what}): only {found:?} was found"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes with real processes that want the machine to themselves: make soak"]
async fn without_a_mistake_the_same_stages_find_nothing() {
    let _alone = ALONE.lock().await;
    for name in ["two-writers", "two-readers", "zombie"] {
        assert_eq!(scene(name, ""), BTreeSet::new(), "{name}");
    }
    assert_eq!(storm(None).await, BTreeSet::new());
}
