//! Which wheels a worker takes of all there are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pep440_rs::Version;

use crate::compatibility::SupportedTags;
use crate::name::{BuildTag, WheelName};

/// A wheel that a worker could take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub name: WheelName,
    /// The workers it is for; empty is all of them.
    pub tags: Vec<String>,
}

/// What a worker takes and what it cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// One wheel of each package, in the order of their packages.
    pub selected: Vec<&'a Candidate>,
    /// Those for this worker that its interpreter cannot run, in the order they were given.
    pub skipped_incompatible: Vec<&'a Candidate>,
}

/// Takes of each package that is for this worker the newest version that its interpreter can run. Of equal versions it takes
/// the one whose tag the interpreter names first, then the later build, then the greater name: the order in which the wheels
/// are given makes no difference.
#[must_use]
pub fn choose<'a>(wheels: &'a [Candidate], worker_tags: &[String], supported: &SupportedTags) -> Chosen<'a> {
    let mut best: BTreeMap<&str, (Rank<'_>, &Candidate)> = BTreeMap::new();
    let mut skipped_incompatible = Vec::new();
    for wheel in wheels {
        if !wheel.tags.is_empty() && !wheel.tags.iter().any(|tag| worker_tags.contains(tag)) {
            continue;
        }
        let Some(place) = supported.place(wheel.name.tags()) else {
            skipped_incompatible.push(wheel);
            continue;
        };
        let rank = (wheel.name.version(), Reverse(place), wheel.name.build(), wheel.name.as_str());
        let is_better = best.get(wheel.name.package()).is_none_or(|(known, _)| *known < rank);
        if is_better {
            best.insert(wheel.name.package(), (rank, wheel));
        }
    }
    Chosen { selected: best.into_values().map(|(_, wheel)| wheel).collect(), skipped_incompatible }
}

type Rank<'a> = (&'a Version, Reverse<usize>, Option<&'a BuildTag>, &'a str);
