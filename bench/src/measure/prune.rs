//! What pruning costs those who submit: a client alone, and beside the removal of very many finished runs.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::{CONNECTIONS, run_id};
use crate::figures::{Figures, Metric};
use crate::http::{self, Address, Connection};
use crate::ours::Ours;
use crate::stats::{Figure, ms};
use crate::{Failure, clock, flows, load};

/// Runs that have ended.
pub(crate) const FINISHED: usize = 100_000;
/// How long the client is alone, before and again afterwards.
const ALONE: Duration = Duration::from_secs(15);
/// What ended a moment ago is not removed.
const JUST_NOW: Duration = Duration::from_secs(6);

/// Starts a server, lets very many runs end on it, and has them removed.
pub(super) async fn measure(ours: &Ours<'_>, figures: &mut Figures) -> Result<(), Failure> {
    let (data, _) = ours.fresh_store()?;
    let stack = ours.start_with(data, &[("PYOCO_RUNS_RETENTION_SEC", "0")]).await?;
    finish(stack.address).await?;
    let mut connection = Connection::open(stack.address).await?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    submit_for(&mut connection, ALONE, &mut alone).await?;
    tokio::time::sleep(JUST_NOW).await;
    let began = clock::now();
    let mut prune = Command::new(ours.admin());
    prune.arg("--data-dir").arg(Ours::store_in(stack.data())).args(["prune", "--before", "0s", "--json"]);
    let mut pruning = prune.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
    while pruning.try_wait()?.is_none() {
        submit_one(&mut connection, &mut beside).await?;
    }
    let took = began.elapsed();
    let said = pruning.wait_with_output().await?;
    let removed = serde_json::from_slice::<serde_json::Value>(&said.stdout)
        .ok()
        .and_then(|said| said.get("removed")?.as_u64())
        .ok_or_else(|| format!("nothing was removed: {}", String::from_utf8_lossy(&said.stderr)))?;
    if removed != FINISHED as u64 {
        return Err(format!("{removed} of {FINISHED} runs were removed").into());
    }
    submit_for(&mut connection, ALONE, &mut alone).await?;
    stack.stop().await;
    let rate = removed as f64 / took.as_secs_f64();
    figures.keep(Metric::Pruned, Ok(Some(Figure::single(rate, FINISHED, 0))));
    figures.keep(Metric::SubmitBesidePrune { is_pruning: false }, Ok(Figure::of(alone, 0)));
    figures.keep(Metric::SubmitBesidePrune { is_pruning: true }, Ok(Figure::of(beside, 0)));
    Ok(())
}

/// Runs that are submitted and cancelled have ended at once.
async fn finish(address: Address) -> Result<(), Failure> {
    let mut runs = Vec::with_capacity(FINISHED);
    let submit = |_| http::submit("common", flows::UNSERVED);
    let submitted = load::send_all(address, CONNECTIONS, FINISHED, submit, |answer| {
        runs.push(run_id(&answer.json()?)?);
        Ok(())
    })
    .await?;
    let cancel = |number: usize| http::cancel(runs.get(number).map_or("", String::as_str));
    let cancelled = load::send_all(address, CONNECTIONS, runs.len(), cancel, |_| Ok(())).await?;
    match submitted.example.or(cancelled.example) {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

async fn submit_for(
    connection: &mut Connection,
    time: Duration,
    samples: &mut Vec<f64>,
) -> Result<(), Failure> {
    let end = clock::now() + time;
    while clock::now() < end {
        submit_one(connection, samples).await?;
    }
    Ok(())
}

async fn submit_one(connection: &mut Connection, samples: &mut Vec<f64>) -> Result<(), Failure> {
    let request = http::submit("common", flows::UNSERVED)?;
    let sent = clock::now();
    connection.send(request).await?.json()?;
    samples.push(ms(sent.elapsed()));
    Ok(())
}
