//! More and more runs on a nats-server. All of them wait: a run that has ended costs the streams about as much.

use super::curve::{Curve, both, cell};
use crate::Failure;
use crate::clock;
use crate::distributed::Distributed;
use crate::measure::lists;
use crate::subject::Subject as _;

pub(super) fn curve() -> Curve {
    Curve::new(
        "Runs stored, on NATS",
        "runs",
        &[
            "submit, 64 connections, /s",
            "list newest 50, ms",
            "memory of the gateway, MiB",
            "memory of the nats-server, MiB",
        ],
        &[1_000, 10_000, 100_000],
    )
}

pub(super) async fn measure(ours: &Distributed<'_>, curve: &mut Curve) -> Result<(), Failure> {
    ours.check()?;
    let stack = ours.start(true).await?;
    let mut seeded = 0;
    for size in curve.sizes.clone() {
        let begin = clock::now();
        ours.seed(&stack, seeded..size).await?;
        let rate = (size - seeded) as f64 / begin.elapsed().as_secs_f64();
        seeded = size;
        let newest = lists::calls(stack.address, lists::NEWEST, &ours.sizes()).await?;
        let broker = stack.others.first().and_then(crate::process::Process::memory);
        curve.keep(
            size,
            vec![cell(Some(rate)), both(newest.as_ref()), cell(stack.gateway.memory()), cell(broker)],
        );
    }
    stack.stop().await;
    Ok(())
}
