//! What is allowed, and what is said when more was done.

use std::fmt;

use crate::Counts;

/// What is asked for, and what it did when this was last written down.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// What is counted.
    pub of: &'static str,
    /// What it was.
    pub counts: Counts,
}

/// A count that is above what is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excess {
    /// What is counted.
    pub of: &'static str,
    /// Which of its counts.
    pub count: &'static str,
    /// What was counted now.
    pub now: f64,
    /// What was written down.
    pub then: f64,
    /// What is allowed.
    pub most: f64,
}

impl Budget {
    /// Each count may grow by this part of it. Memory is the same in every run; how much is read and written depends on who shares a
    /// transaction, and on what the file holds already.
    const ROOM: [f64; 6] = [0.15, 0.15, 0.5, 0.5, 0.5, 0.15];
    /// And by this: what the runtime does by chance (waking a thread that has just gone to sleep) is no regression. Much less than one
    /// whole commit or system call of ours.
    const CHANCE: f64 = 0.35;

    /// Every count that is above what is allowed.
    pub fn excesses(&self, now: &Counts) -> Vec<Excess> {
        let pairs = now.values().into_iter().zip(self.counts.values());
        let named = Counts::NAMES.into_iter().zip(Self::ROOM).zip(pairs);
        let excess = |((count, room), (now, then)): ((&'static str, f64), (f64, f64))| {
            let most = then * (1.0 + room) + Self::CHANCE;
            (now > most).then_some(Excess { of: self.of, count, now, then, most })
        };
        named.filter_map(excess).collect()
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, count, now, then, most } = self;
        write!(f, "{of}: {now:.1} {count}, allowed are {most:.1} (it was {then:.1})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: Budget = Budget {
        of: "POST /runs",
        counts: Counts {
            allocations: 400.0,
            allocated: 50_000.0,
            reads: 0.0,
            writes: 12.0,
            written: 40_000.0,
            commits: 1.0,
        },
    };

    #[test]
    fn what_was_written_down_is_allowed_and_a_little_more() {
        assert_eq!(POST.excesses(&POST.counts), []);
        let more = Counts { allocations: 459.0, written: 55_000.0, ..POST.counts };
        assert_eq!(POST.excesses(&more), []);
    }

    #[test]
    fn a_second_commit_is_found() {
        let now = Counts { commits: 2.0, ..POST.counts };
        let found = POST.excesses(&now);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].to_string(), "POST /runs: 2.0 commits, allowed are 1.5 (it was 1.0)");
    }

    #[test]
    fn twice_as_many_writes_are_found() {
        let found = POST.excesses(&Counts { writes: 24.0, written: 80_000.0, ..POST.counts });
        let found: Vec<&str> = found.iter().map(|excess| excess.count).collect();
        assert_eq!(found, ["writes", "bytes written"]);
    }

    #[test]
    fn a_sixth_more_memory_is_found_and_each_count_stands_alone() {
        let now = Counts { allocations: 467.0, allocated: 60_000.0, ..POST.counts };
        let found: Vec<&str> = POST.excesses(&now).iter().map(|excess| excess.count).collect();
        assert_eq!(found, ["allocations", "bytes allocated"]);
    }
}
