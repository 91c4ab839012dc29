//! Several vectors at once, and the report about all of them.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::check::{self, Mismatch};
use crate::decisions::{Verdict, verdict};
use crate::driver::{Outcome, drive};
use crate::load::Source;
use crate::vector::Vector;

/// Vectors sleep more than they compute, so there may be a few more than processors.
const AT_ONCE: usize = 4;

/// Does something with every item, several at once; the results are in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    let result = work(item);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs all vectors and compares each with what is promised about it. The text names every difference.
pub fn judge_all(vectors: &[Vector], source: Source) -> Result<(), String> {
    let mut report = String::new();
    let mut failed = 0;
    for (vector, differences) in vectors.iter().zip(in_parallel(vectors, |vector| judge(vector, source))) {
        if differences.is_empty() {
            continue;
        }
        failed += 1;
        // Writing into a string cannot fail.
        let _ = writeln!(report, "\n{}", vector.name);
        for difference in differences {
            let _ = writeln!(report, "    {difference}");
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} vectors differ:\n{report}", vectors.len())) }
}

fn judge(vector: &Vector, source: Source) -> Vec<String> {
    match drive(vector, source) {
        Err(broken) => vec![format!("it could not be run: {broken}")],
        Ok(outcome) => {
            differences(&verdict(vector, source), &outcome).iter().map(Mismatch::to_string).collect()
        }
    }
}

fn differences(verdict: &Verdict, outcome: &Outcome) -> Vec<Mismatch> {
    match (verdict, outcome) {
        (Verdict::Refused, Outcome::Refused(_)) => Vec::new(),
        (Verdict::Refused, Outcome::Ran(run)) if run.state.plan.is_none() => Vec::new(),
        (Verdict::Refused, Outcome::Ran(_)) => {
            let field = "phase".to_owned();
            vec![Mismatch { field, expected: "it is refused".into(), got: "it runs".into() }]
        }
        (Verdict::Like(expectation), Outcome::Refused(message)) => check::refusal(expectation, message),
        (Verdict::Like(expectation), Outcome::Ran(run)) => check::run(expectation, run),
        (Verdict::OneOf(verdicts), outcome) => {
            // The fewest differences are the most telling ones.
            let all = verdicts.iter().map(|verdict| differences(verdict, outcome));
            all.min_by_key(Vec::len).unwrap_or_default()
        }
    }
}
