//! A long log that has not changed since it was asked for.

use hyper::StatusCode;
use hyper::header::{ETAG, IF_NONE_MATCH};
use serde_json::json;

use super::LONG_ROWS;
use crate::http::{Address, Connection, get_with};
use crate::job::{self, Writing};
use crate::stats::{Figure, ms};
use crate::{Failure, clock};

const ASKED: usize = 2_000;
const FLOW: &str = "bench-long-log";

/// One GET at a time on an idle server, in ms.
pub(super) async fn measure(address: Address) -> Result<Option<Figure>, Failure> {
    Writing::command(FLOW, &job::short_row(), LONG_ROWS).put(address).await?;
    let job = job::submit(address, FLOW, &json!({})).await?;
    job::closed(address, &job, LONG_ROWS).await?;
    ask(address, &format!("/jobs/{job}/logs"), ASKED).await
}

/// Asks so often whether a log has changed that has not.
pub(super) async fn ask(address: Address, path: &str, times: usize) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    let whole = connection.get(path).await?;
    if whole.status != StatusCode::OK {
        return Err(whole.problem());
    }
    let tag = whole.headers.get(ETAG).ok_or("a log without an ETag")?.to_str()?;
    let (mut samples, mut failed) = (Vec::new(), 0);
    for _ in 0..times {
        let request = get_with(path, IF_NONE_MATCH, tag)?;
        let sent = clock::now();
        let answer = connection.send(request).await;
        let took = sent.elapsed();
        if answer.is_ok_and(|answer| answer.status == StatusCode::NOT_MODIFIED && answer.body.is_empty()) {
            samples.push(ms(took));
        } else {
            failed += 1;
        }
    }
    Ok(Figure::of(samples, failed))
}
