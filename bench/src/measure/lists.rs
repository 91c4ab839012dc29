//! Lists of runs, with more and more runs stored.

use std::time::Duration;

use serde_json::Value;

use crate::figures::{Figures, Metric};
use crate::http::{Address, Connection};
use crate::stats::{Figure, ms};
use crate::subject::{Sizes, Subject};
use crate::{Failure, clock, progress};

pub(super) const NEWEST: &str = "/runs?limit=50";
pub(super) const FILTERED: &str = "/runs?limit=50&flow=rare&status=PENDING";
const WANTED: usize = 50;
/// However slow a list is.
const AT_LEAST: usize = 3;

/// Measures both lists for each number of stored runs, in one growing store.
pub(crate) async fn measure<S: Subject>(subject: &S, figures: &mut Figures) -> Result<(), Failure> {
    measure_stored(subject, subject.sizes().stored, figures).await
}

/// The same for the numbers of stored runs that are given, smallest first.
pub(crate) async fn measure_stored<S: Subject>(
    subject: &S,
    all_stored: &[usize],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let stack = subject.start(true).await?;
    let sizes = subject.sizes();
    let mut seeded = 0;
    for &stored in all_stored {
        progress(S::NAME, &format!("lists of {stored} runs"));
        subject.seed(&stack, seeded..stored).await?;
        seeded = stored;
        let list = Metric::List { stored };
        figures.keep(list, calls(stack.address, NEWEST, &sizes).await);
        let filtered = Metric::FilteredList { stored };
        figures.keep(filtered, calls(stack.address, FILTERED, &sizes).await);
    }
    stack.stop().await;
    Ok(())
}

/// One call at a time on an idle server, in ms. Answers that are not what was asked for are counted and not timed.
pub(super) async fn calls(address: Address, path: &str, sizes: &Sizes) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    // Not timed: the first call may fill caches.
    let _ = connection.get(path).await?;
    let begin = clock::now();
    let mut samples = Vec::new();
    let mut failed = 0;
    for number in 0..sizes.lists {
        if number >= AT_LEAST && begin.elapsed() > sizes.list_time {
            break;
        }
        let sent = clock::now();
        let answer = connection.get(path).await;
        let took: Duration = sent.elapsed();
        let rows = answer.and_then(|answer| answer.json());
        if rows.is_ok_and(|rows| rows.as_array().map(Vec::len) == Some(WANTED) && is_as_asked(path, &rows)) {
            samples.push(ms(took));
        } else {
            failed += 1;
        }
    }
    Ok(Figure::of(samples, failed))
}

fn is_as_asked(path: &str, rows: &Value) -> bool {
    let is_rare = |row: &Value| row.get("flow_name").and_then(Value::as_str) == Some("rare");
    path != FILTERED || rows.as_array().is_some_and(|rows| rows.iter().all(is_rare))
}
