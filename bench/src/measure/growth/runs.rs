//! More and more runs in one embedded store. Nineteen of twenty have ended, the others wait for a worker that never comes.

use std::path::Path;

use tokio::time::sleep;

use super::curve::{Curve, both, cell};
use crate::flows::UNSERVED;
use crate::http::{self, Address, Connection};
use crate::measure::{CONNECTIONS, SETTLE, lists, run_id};
use crate::ours::Ours;
use crate::stats::{Figure, ms};
use crate::subject::{RARE_EVERY, Subject as _};
use crate::{Failure, clock, load};

/// Submitted to measure how fast that is; they stay.
const SUBMITTED: usize = 2_000;
/// How many runs are looked at, spread over all of them.
const LOOKS: usize = 1_000;
/// Connections that fill the store: more commands share a transaction.
const SEEDING: usize = 64;
/// Submitted, and then ended, before the next.
const CHUNK: usize = 20_000;

pub(super) fn curve() -> Curve {
    Curve::new(
        "Runs stored, embedded",
        "runs",
        &[
            "submit, 16 connections, /s",
            "list newest 50, ms",
            "list filtered 50, ms",
            "GET one of all, ms",
            "start → health, ms",
            "memory after the start, MiB",
            "memory after the requests, MiB",
            "on disk, MiB",
        ],
        &[1_000, 10_000, 100_000, 1_000_000],
    )
}

pub(super) async fn measure(ours: &Ours<'_>, curve: &mut Curve) -> Result<(), Failure> {
    let mut stack = ours.start(true).await?;
    let mut runs = Vec::new();
    for size in curve.sizes.clone() {
        while runs.len() < size {
            let more = CHUNK.min(size - runs.len());
            add(stack.address, more, &mut runs).await?;
        }
        // The first start has settled nothing and read nothing.
        stack = ours.start_on(stack.stop_and_keep().await).await?;
        sleep(SETTLE).await;
        let (start, idle) = (stack.start_ms, stack.gateway.memory());
        let disk = size_of(&Ours::store_in(stack.data()))?;
        let sizes = ours.sizes();
        let newest = lists::calls(stack.address, lists::NEWEST, &sizes).await?;
        let filtered = lists::calls(stack.address, lists::FILTERED, &sizes).await?;
        let looks = look(stack.address, &runs).await?;
        let rate = submit(stack.address, CONNECTIONS, "common", SUBMITTED, &mut runs).await?;
        curve.keep(
            size,
            vec![
                cell(Some(rate)),
                both(newest.as_ref()),
                both(filtered.as_ref()),
                both(looks.as_ref()),
                cell(Some(start)),
                cell(idle),
                cell(stack.gateway.memory()),
                cell(Some(disk)),
            ],
        );
    }
    stack.stop().await;
    Ok(())
}

/// Adds runs, and ends all but the rare ones: one that is cancelled before it was taken has ended at once.
async fn add(address: Address, count: usize, runs: &mut Vec<String>) -> Result<(), Failure> {
    let rare = count.div_ceil(RARE_EVERY);
    submit(address, SEEDING, "rare", rare, runs).await?;
    let first = runs.len();
    submit(address, SEEDING, "common", count - rare, runs).await?;
    let cancel = |number: usize| http::cancel(runs.get(first + number).map_or("", String::as_str));
    let cancelled = load::send_all(address, SEEDING, count - rare, cancel, |_| Ok(())).await?;
    cancelled.example.map_or(Ok(()), |problem| Err(problem.into()))
}

/// Submits runs that nobody takes; how many a second.
async fn submit(
    address: Address,
    connections: usize,
    flow: &str,
    count: usize,
    runs: &mut Vec<String>,
) -> Result<f64, Failure> {
    let begin = clock::now();
    let request = |_| http::submit(flow, UNSERVED);
    let submitted = load::send_all(address, connections, count, request, |answer| {
        runs.push(run_id(&answer.json()?)?);
        Ok(())
    })
    .await?;
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    submitted.example.map_or(Ok(rate), |problem| Err(problem.into()))
}

/// One look at a time on an idle server, at runs of all ages, in ms.
async fn look(address: Address, runs: &[String]) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    let (mut samples, mut failed) = (Vec::new(), 0);
    for run in runs.iter().step_by((runs.len() / LOOKS).max(1)) {
        let sent = clock::now();
        let answer = connection.get(&format!("/runs/{run}")).await;
        let took = sent.elapsed();
        let shown = answer.and_then(|answer| answer.json()).and_then(|shown| run_id(&shown));
        if shown.is_ok_and(|shown| shown == *run) {
            samples.push(ms(took));
        } else {
            failed += 1;
        }
    }
    Ok(Figure::of(samples, failed))
}

/// What a folder holds, in MiB.
fn size_of(folder: &Path) -> Result<f64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let about = entry?.metadata()?;
        if about.is_file() {
            bytes += about.len();
        }
    }
    Ok(bytes as f64 / f64::from(1_u32 << 20))
}
