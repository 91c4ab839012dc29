//! `/metrics`, with very many runs stored, all of them of today and waiting: nothing may be counted when somebody asks.

use hyper::StatusCode;

use crate::figures::{Figures, Metric};
use crate::http::{Answer, Connection};
use crate::stats::{Figure, ms};
use crate::subject::Subject;
use crate::{Failure, clock};

pub(crate) const STORED: usize = 100_000;
const READS: usize = 500;

/// Starts a gateway, stores runs and reads, one at a time.
pub(super) async fn measure<S: Subject>(subject: &S, figures: &mut Figures) -> Result<(), Failure> {
    let stack = subject.start(true).await?;
    subject.seed(&stack, 0..STORED).await?;
    let mut connection = Connection::open(stack.address).await?;
    // An index that is fed from elsewhere has seen all of them a moment later.
    while !is_whole(&connection.get("/metrics").await?) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let (mut samples, mut failed) = (Vec::new(), 0);
    for _ in 0..READS {
        let sent = clock::now();
        let answer = connection.get("/metrics").await;
        let took = sent.elapsed();
        if answer.is_ok_and(|answer| is_whole(&answer)) {
            samples.push(ms(took));
        } else {
            failed += 1;
        }
    }
    stack.stop().await;
    figures.keep(Metric::Metrics, Ok(Figure::of(samples, failed)));
    Ok(())
}

/// Whether all runs are counted: by status, and in their queue.
fn is_whole(answer: &Answer) -> bool {
    let text = String::from_utf8_lossy(&answer.body);
    let stored = format!(" {STORED}");
    let is_told = |name: &str| text.lines().any(|line| line.starts_with(name) && line.ends_with(&stored));
    answer.status == StatusCode::OK && ["pyoco_runs_total{", "pyoco_queue_depth{"].into_iter().all(is_told)
}
