//! Several connections, each of which sends its next request when the last one was answered: a closed loop. Its rate is what
//! the server sustains for that many clients. Its answer times are those of a loaded server, and are not told as latency:
//! a slow answer delays the requests behind it, which nobody then counts.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hyper::{Request, StatusCode};

use crate::http::{Address, Answer};
use crate::wire::Wire;
use crate::{Failure, clock};

/// What came of a loop.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Answers with status 200.
    pub(crate) answered: usize,
    /// Other answers, and requests without one.
    pub(crate) failed: usize,
    /// An example of what went wrong.
    pub(crate) example: Option<String>,
}

/// Sends `count` requests over `connections`; each good answer is handed over.
pub(crate) async fn send_all(
    address: Address,
    connections: usize,
    count: usize,
    request: impl Fn(usize) -> Result<Request<String>, Failure>,
    mut seen: impl FnMut(&Answer) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let next = Cell::new(0);
    let take = || {
        let number = next.replace(next.get() + 1);
        (number < count).then(|| request(number))
    };
    run(address, connections, take, |answer, _| seen(answer)).await
}

/// Sends for `measured` after a warm-up, and counts the answers that arrived within it.
pub(crate) async fn send_for(
    address: Address,
    connections: usize,
    warm_up: Duration,
    measured: Duration,
    request: impl Fn() -> Result<Request<String>, Failure>,
) -> Result<Outcome, Failure> {
    let start = clock::now() + warm_up;
    let end = start + measured;
    let take = || (clock::now() < end).then(&request);
    let mut within = 0;
    let mut outcome = run(address, connections, take, |_, arrived| {
        within += usize::from(arrived >= start && arrived < end);
        Ok(())
    })
    .await?;
    outcome.answered = within;
    Ok(outcome)
}

async fn run(
    address: Address,
    connections: usize,
    take: impl Fn() -> Option<Result<Request<String>, Failure>>,
    seen: impl FnMut(&Answer, Instant) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let outcome = RefCell::new(Outcome::default());
    let seen = RefCell::new(seen);
    let one = async || -> Result<(), Failure> {
        let mut wire = Wire::open(address).await?;
        while let Some(request) = take() {
            let answer = wire.send(&request?).await;
            let arrived = clock::now();
            let problem = match &answer {
                Ok(answer) if answer.status == StatusCode::OK => {
                    (*seen.borrow_mut())(answer, arrived)?;
                    None
                }
                Ok(answer) => Some(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body))),
                Err(error) => Some(error.to_string()),
            };
            let mut outcome = outcome.borrow_mut();
            match problem {
                None => outcome.answered += 1,
                Some(problem) => {
                    outcome.failed += 1;
                    outcome.example = Some(problem);
                }
            }
        }
        Ok(())
    };
    join_all((0..connections).map(|_| one())).await.into_iter().collect::<Result<(), _>>()?;
    Ok(outcome.into_inner())
}
