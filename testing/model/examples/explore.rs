//! Explores the model with bounds from the command line and prints what it finds.
use pyoco_model::{Bounds, Deployment, Fault};
use stateright::{Checker, Model};

fn main() {
    let numbers: Vec<u8> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let wanted = std::env::args().nth(7).and_then(|name| Fault::ALL.into_iter().find(|fault| format!("{fault:?}") == name));
    let [steps, crashes, ambiguous, spurious_conflicts, expired_leases, lost_jobs] = numbers[..6] else { return };
    let bounds = Bounds { steps: steps.into(), crashes, ambiguous, spurious_conflicts, expired_leases, lost_jobs };
    let checker = Deployment::new(bounds, wanted).checker().threads(2).spawn_bfs().join();
    println!("states {} max depth {}", checker.unique_state_count(), checker.max_depth());
    for (name, path) in checker.discoveries() {
        println!("{name}: {:?}", path.into_actions());
    }
    checker.assert_properties();
}
