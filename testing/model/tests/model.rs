//! Whole state spaces, clean, with their sizes pinned; and ten planted mistakes, each found.

use std::collections::BTreeSet;

use pyoco_model::{Bounds, Deployment, Fault};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

const NOTHING_GOES_WRONG: Bounds =
    Bounds { steps: 2, crashes: 0, ambiguous: 0, spurious_conflicts: 0, expired_leases: 0, lost_jobs: 0 };

/// What may go wrong together, and how many states there are then. A silent change of the model or of the core
/// changes a number. Larger bounds: `make soak`.
const SPACES: [(Bounds, usize); 5] = [
    (Bounds { crashes: 1, ambiguous: 1, ..NOTHING_GOES_WRONG }, 136_601),
    (Bounds { crashes: 1, spurious_conflicts: 1, lost_jobs: 1, ..NOTHING_GOES_WRONG }, 114_758),
    (Bounds { expired_leases: 1, ..NOTHING_GOES_WRONG }, 199_188),
    (Bounds { steps: 1, crashes: 1, expired_leases: 1, ..NOTHING_GOES_WRONG }, 359_404),
    (Bounds { steps: 1, ambiguous: 1, expired_leases: 1, ..NOTHING_GOES_WRONG }, 581_315),
];

fn names(expectation: &Expectation) -> BTreeSet<&'static str> {
    let model = Deployment::new(NOTHING_GOES_WRONG, None);
    let wanted = std::mem::discriminant(expectation);
    let properties = model.properties().into_iter();
    properties.filter(|p| std::mem::discriminant(&p.expectation) == wanted).map(|p| p.name).collect()
}

#[test]
fn every_interleaving_keeps_every_promise_and_every_case_occurs() {
    let (always, sometimes) = (names(&Expectation::Always), names(&Expectation::Sometimes));
    let mut seen = BTreeSet::new();
    for (bounds, states) in SPACES {
        let checker = Deployment::new(bounds, None).checker().threads(2).spawn_bfs().join();
        for (name, path) in checker.discoveries() {
            assert!(!always.contains(name), "{name} is broken by {:?}", path.into_actions());
            seen.insert(name);
        }
        assert!(checker.is_done());
        assert_eq!(checker.unique_state_count(), states, "{bounds:?}");
    }
    assert_eq!(seen, sometimes, "a case that never occurs proves nothing");
}

#[test]
fn each_planted_mistake_is_found() {
    let always = names(&Expectation::Always);
    for fault in Fault::ALL {
        let bounds = match fault {
            Fault::TransientConflictIsFinal | Fault::TimeoutIsFailure => {
                Bounds { ambiguous: 1, spurious_conflicts: 1, ..NOTHING_GOES_WRONG }
            }
            Fault::NoEpoch | Fault::ZombieNak => Bounds { expired_leases: 1, ..NOTHING_GOES_WRONG },
            Fault::CompleteWithoutExpectedVersion
            | Fault::ResendOnConflict
            | Fault::AckBeforeTerminal
            | Fault::WindowOnlyDedup
            | Fault::DecideOnSnapshot
            | Fault::SweeperWithoutExpectedVersion => NOTHING_GOES_WRONG,
        };
        let checker = Deployment::new(bounds, Some(fault)).checker().threads(2);
        let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let found: Vec<_> = checker.discoveries().into_keys().filter(|name| always.contains(name)).collect();
        assert!(!found.is_empty(), "{fault:?} was not found");
    }
}
