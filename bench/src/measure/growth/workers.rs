//! More and more worker processes around one gateway and one nats-server, all on the cores of this machine.

use super::curve::{Curve, cell};
use crate::Failure;
use crate::distributed::Distributed;
use crate::flows::{self, SERVED};
use crate::http;
use crate::measure::runs;
use crate::subject::Subject as _;

/// Runs of each kind, for each worker up to a bound: a bench must end.
const NAPS: usize = 100;
const MOST_NAPS: usize = 800;
const NOOPS: usize = 1_000;

pub(super) fn curve() -> Curve {
    Curve::new(
        "Worker processes on NATS, one run at a time each",
        "workers",
        &[
            "a task of 20 ms, runs/s",
            "of what the sleep allows",
            "a task that does nothing, runs/s",
            "memory of all processes, MiB",
        ],
        &[1, 2, 4, 8, 16],
    )
}

pub(super) async fn measure(ours: &Distributed<'_>, curve: &mut Curve) -> Result<(), Failure> {
    ours.check()?;
    for workers in curve.sizes.clone() {
        let ours = Distributed { workers, runs_at_once: 1, ..ours.clone() };
        let stack = ours.start(false).await?;
        runs::warm_up(stack.address).await?;
        let (nap, noop) = (flows::nap(), flows::noop());
        let naps = || http::submit_yaml(nap.name, SERVED, &nap.yaml);
        let count = (NAPS * workers).min(MOST_NAPS);
        let naps = runs::throughput(stack.address, count, naps).await?.map(|figure| figure.middle);
        let noops = || http::submit_yaml(noop.name, SERVED, &noop.yaml);
        let noops = runs::throughput(stack.address, NOOPS, noops).await?.map(|figure| figure.middle);
        let share = naps.map(|rate| rate / (workers as f64 * NAPS_A_SECOND));
        curve.keep(workers, vec![cell(naps), cell(share), cell(noops), cell(stack.memory_of_all())]);
        stack.stop().await;
    }
    Ok(())
}

/// What one worker could do if there were nothing but the sleep.
const NAPS_A_SECOND: f64 = 50.0;
