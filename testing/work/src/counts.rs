//! The counters of this process.

use pyoco_server::Backend;
use stats_alloc::INSTRUMENTED_SYSTEM;

/// Of the figures, the one that counts transactions.
const COMMITS: &str = "pyoco_store_commit_duration_seconds_count{";

/// What was done, by all threads of the process together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Pieces of memory that were taken, or taken again because they had to grow.
    pub allocations: f64,
    /// The bytes of them.
    pub allocated: f64,
    /// System calls that read. For SQLite each is a page.
    pub reads: f64,
    /// System calls that write.
    pub writes: f64,
    /// The bytes of them.
    pub written: f64,
    /// Transactions of the store, each on disk before anybody is answered.
    pub commits: f64,
}

impl Counts {
    /// The names of the counts, in the order of [`Self::values`].
    pub const NAMES: [&'static str; 6] =
        ["allocations", "bytes allocated", "reads", "writes", "bytes written", "commits"];

    /// All counts.
    pub const fn values(&self) -> [f64; 6] {
        [self.allocations, self.allocated, self.reads, self.writes, self.written, self.commits]
    }

    /// The counts with these values.
    pub const fn of([allocations, allocated, reads, writes, written, commits]: [f64; 6]) -> Self {
        Self { allocations, allocated, reads, writes, written, commits }
    }

    /// What was done before counting begins, with what it takes to look.
    pub(crate) fn at_begin(backend: &Backend) -> Self {
        let seen = Self::at_end(backend);
        Self::with_memory(seen)
    }

    /// What was done by now, without what it takes to look. Reading the counters of the system is a few reads, the same at each look.
    pub(crate) fn at_end(backend: &Backend) -> Self {
        let memory = Self::with_memory(Self::default());
        let figures = backend.engine().figures().text();
        let commits = figures.lines().filter(|line| line.starts_with(COMMITS));
        let commits = commits.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        let io = procfs::process::Process::myself().and_then(|process| process.io()).unwrap();
        Self { reads: io.syscr as f64, writes: io.syscw as f64, written: io.wchar as f64, commits, ..memory }
    }

    fn with_memory(seen: Self) -> Self {
        let memory = INSTRUMENTED_SYSTEM.stats();
        Self {
            allocations: (memory.allocations + memory.reallocations) as f64,
            allocated: memory.bytes_allocated as f64,
            ..seen
        }
    }

    /// What was added since `before`, for each of `units`.
    pub(crate) fn since(&self, before: &Self, units: usize) -> Self {
        self.less(before).each(units)
    }

    /// What this has more than another.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        let (mine, theirs) = (self.values(), other.values());
        Self::of(std::array::from_fn(|number| mine[number] - theirs[number]))
    }

    /// The share of each of `units`.
    #[must_use]
    pub fn each(&self, units: usize) -> Self {
        Self::of(self.values().map(|value| value / units as f64))
    }
}

/// The least of each count. Whatever else the process does meanwhile (a sweep, lines that are written because their time has come) only
/// adds to it, and how often it does depends on how busy the machine is.
pub fn least(samples: &[Counts]) -> Counts {
    let of =
        |number: usize| samples.iter().map(|sample| sample.values()[number]).fold(f64::INFINITY, f64::min);
    Counts::of(std::array::from_fn(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_once_in_a_while_is_left_out() {
        let usual = Counts { allocations: 10.0, commits: 1.0, ..Counts::default() };
        let unlucky = Counts { allocations: 9_000.0, ..usual };
        let shared = Counts { allocations: 11.0, commits: 0.5, ..usual };
        assert_eq!(least(&[unlucky, usual, shared]), Counts { commits: 0.5, ..usual });
    }

    #[test]
    fn what_was_added_is_shared_by_the_units() {
        let before = Counts { writes: 100.0, ..Counts::default() };
        let now = Counts { writes: 150.0, commits: 5.0, ..Counts::default() };
        assert_eq!(now.since(&before, 10), Counts { writes: 5.0, commits: 0.5, ..Counts::default() });
    }
}
