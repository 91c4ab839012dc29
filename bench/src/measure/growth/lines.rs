//! Logs of more and more lines, each of one command.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{ACCEPT, RANGE};
use serde_json::json;

use super::curve::{Curve, both, cell};
use crate::http::{Address, Connection, get_with};
use crate::job::{self, Writing};
use crate::measure::logs;
use crate::ours::Ours;
use crate::stats::{Figure, ms};
use crate::{Failure, clock};

const FLOW: &str = "bench-growing-log";
/// Room for the longest of them.
const MAX_BYTES: (&str, &str) = ("PYOCO_RUN_LOG_MAX_BYTES", "4000000000");
const LOOKS: usize = 300;
/// The end of a log, as a browser asks for it.
const LAST: &str = "bytes=-65536";
const PATIENCE: Duration = Duration::from_secs(900);

pub(super) fn curve() -> Curve {
    Curve::new(
        "Lines in the log of one run, embedded",
        "lines",
        &["stored, /s", "first page, ms", "last 64 KiB, ms", "304, ms", "memory, MiB"],
        &[1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    )
}

pub(super) async fn measure(ours: &Ours<'_>, curve: &mut Curve) -> Result<(), Failure> {
    let (data, _) = ours.fresh_store()?;
    let stack = ours.start_with(data, &[MAX_BYTES]).await?;
    stack.wait_for_workers(1).await?;
    let address = stack.address;
    for size in curve.sizes.clone() {
        Writing::command(FLOW, &job::wide_row(), size).put(address).await?;
        let begin = clock::now();
        let job = job::submit(address, FLOW, &json!({})).await?;
        job::closed_within(PATIENCE, address, &job, size).await?;
        let rate = size as f64 / begin.elapsed().as_secs_f64();
        let path = format!("/jobs/{job}/logs");
        let first = page(address, &path, None).await?;
        let last = page(address, &path, Some(LAST)).await?;
        let unchanged = logs::unchanged(address, &path, LOOKS).await?;
        let memory = stack.gateway.memory();
        curve.keep(
            size,
            vec![
                cell(Some(rate)),
                both(first.as_ref()),
                both(last.as_ref()),
                both(unchanged.as_ref()),
                cell(memory),
            ],
        );
    }
    stack.stop().await;
    Ok(())
}

/// One page at a time on an idle server, in ms.
async fn page(address: Address, path: &str, range: Option<&str>) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut samples = Vec::new();
    for _ in 0..LOOKS {
        let mut request =
            get_with(path, ACCEPT, if range.is_some() { "text/plain" } else { "application/json" })?;
        if let Some(range) = range {
            request.headers_mut().insert(RANGE, range.parse()?);
        }
        let sent = clock::now();
        let answer = connection.send(request).await?;
        samples.push(ms(sent.elapsed()));
        if !matches!(answer.status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Err(answer.problem());
        }
    }
    Ok(Figure::of(samples, 0))
}
