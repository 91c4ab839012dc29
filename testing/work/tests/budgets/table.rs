//! What each kind of request did when this was last written down, as the test prints it with `--nocapture`.

use pyoco_work::{Budget, Counts, Excess};

const fn budget(of: &'static str, counts: [f64; 6]) -> Budget {
    Budget { of, counts: Counts::of(counts) }
}

/// Where several runs of the test differ, the largest of them. In the order of [`Counts::NAMES`]: allocations, bytes allocated, reads, writes, bytes written, commits.
const BUDGETS: &[Budget] = &[
    budget("GET /runs?limit=50, 100 stored", [538.0, 102_300.0, 21.0, 30.0, 57_700.0, 1.0]),
    budget("GET /runs?limit=50, 5,000 stored", [538.0, 102_300.0, 23.0, 30.0, 57_700.0, 1.0]),
    budget("POST /runs, alone", [273.0, 83_900.0, 4.2, 17.1, 31_200.0, 1.1]),
    budget("POST /runs, 16 at once, each", [270.0, 84_600.0, 2.0, 14.5, 23_800.0, 0.2]),
    budget("GET /runs/{id}", [69.1, 21_100.0, 0.3, 1.8, 14.0, 0.0]),
    budget("GET /runs/{id}, 200 tasks", [153.1, 40_900.0, 0.3, 0.7, 8.0, 0.0]),
    budget("GET /runs/{id}, 2,000 tasks", [156.1, 127_000.0, 0.3, 0.7, 8.0, 0.0]),
    budget("POST /runs/{id}/cancel", [162.0, 51_800.0, 0.3, 16.1, 30_300.0, 1.1]),
    budget("a run of one task", [507.0, 142_500.0, 14.0, 53.0, 99_000.0, 5.0]),
    budget("a chain of 40, a step", [105.1, 34_900.0, 0.3, 11.2, 21_200.0, 1.1]),
    budget("200 side by side, a step", [77.9, 29_100.0, 0.3, 4.8, 9_900.0, 0.4]),
    budget("2,000 side by side, a step", [73.1, 27_300.0, 0.5, 5.1, 11_300.0, 0.4]),
    budget("a report of progress", [206.7, 73_800.0, 0.3, 11.3, 20_900.0, 1.1]),
    budget(
        "an event, to one of 8 readers of /executions/{id}/events/stream",
        [13.1, 1_500.0, 0.0, 0.2, 300.0, 0.0],
    ),
    budget("a change, to one of 8 watchers of /runs/{id}/watch", [22.2, 2_950.0, 0.0, 0.2, 300.0, 0.0]),
];

const WHAT_TO_DO: &str = "\
More work is done than before. Look at what the change adds to this request: a clone, a read, a write, a second transaction. If it has to be so, write the new \
figures (they are printed above) into testing/work/tests/budgets/table.rs and say in the change what they buy.";

/// Pages that a list may read more when there are fifty times as many runs: trees are deeper, and what was written last stands elsewhere.
const DEEPER: f64 = 6.0;

/// A page of a long list takes no more than one of a short list. What it writes is what was submitted before, and no part of this.
pub(crate) fn must_not_grow(short: &Counts, long: &Counts) {
    let reading = |counts: &Counts| Counts { writes: 0.0, written: 0.0, commits: 0.0, ..*counts };
    let counts = Counts { reads: short.reads + DEEPER, ..reading(short) };
    let grown =
        Budget { of: "a page of a long list, beside one of a short list", counts }.excesses(&reading(long));
    let grown: Vec<String> = grown.iter().map(ToString::to_string).collect();
    assert!(grown.is_empty(), "{}", grown.join("\n"));
}

/// How much more memory may be taken when a flow is ten times as wide: what is kept in trees is a little deeper.
const WIDER: f64 = 1.5;

/// What is done for one task of a wide flow is what is done for one of a narrow flow, or close to it.
pub(crate) fn must_not_widen(of: &str, narrow: &Counts, wide: &Counts) {
    let counts = [
        ("allocations", narrow.allocations, wide.allocations),
        ("bytes allocated", narrow.allocated, wide.allocated),
    ];
    for (count, narrow, wide) in counts {
        assert!(wide <= narrow * WIDER, "{of}: {wide:.1} {count} where a narrow one takes {narrow:.1}");
    }
}

/// Compares what was seen with what is allowed, and says everything that is above at once.
pub(crate) fn check(seen: &[(&'static str, Counts)]) {
    let of = |name: &str| BUDGETS.iter().find(|budget| budget.of == name);
    let excesses: Vec<Excess> = seen
        .iter()
        .flat_map(|(name, counts)| of(name).map(|budget| budget.excesses(counts)).unwrap_or_default())
        .collect();
    let unknown =
        seen.iter().filter(|(name, _)| of(name).is_none()).map(|(name, _)| *name).collect::<Vec<_>>();
    let unseen = BUDGETS.iter().filter(|budget| seen.iter().all(|(name, _)| *name != budget.of));
    assert!(unknown.is_empty(), "no budget for {unknown:?}");
    assert_eq!(unseen.count(), 0, "there is a budget for what is not counted any more");
    let excesses: Vec<String> = excesses.iter().map(ToString::to_string).collect();
    assert!(excesses.is_empty(), "{}\n{WHAT_TO_DO}", excesses.join("\n"));
}
