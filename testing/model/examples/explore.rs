//! Explores the model with bounds from the command line and prints what it finds:
//! `explore STEPS CRASHES AMBIGUOUS CONFLICTS LEASES LOST_JOBS [FAULT]`.
#![allow(clippy::print_stdout, reason = "a report for a person")]

use pyoco_model::{Bounds, Deployment, Fault};
use stateright::{Checker, Expectation, Model};

fn main() {
    let numbers: Vec<u8> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let wanted = std::env::args()
        .nth(7)
        .and_then(|name| Fault::ALL.into_iter().find(|fault| format!("{fault:?}") == name));
    let [steps, crashes, ambiguous, spurious_conflicts, expired_leases, lost_jobs] = numbers[..6] else {
        return;
    };
    let bounds =
        Bounds { steps: steps.into(), crashes, ambiguous, spurious_conflicts, expired_leases, lost_jobs };
    let checker = Deployment::new(bounds, wanted).checker().threads(2).spawn_bfs().join();
    println!("states {} max depth {}", checker.unique_state_count(), checker.max_depth());
    for (name, path) in checker.discoveries() {
        println!("{name}: {} steps", path.into_actions().len());
    }
    let always = |name: &&str| {
        checker
            .model()
            .properties()
            .iter()
            .any(|p| p.name == *name && matches!(p.expectation, Expectation::Always))
    };
    let broken: Vec<&str> = checker.discoveries().into_keys().filter(always).collect();
    assert!(broken.is_empty(), "broken: {broken:?}");
}
