//! Commands to nodes from outside: how many a second, and how long each waits for its answer.

use std::cell::{Cell, RefCell};

use futures_util::future::join_all;

use super::{CONNECTIONS, MEASURED, WARM_UP};
use crate::execution::{Chain, Driver};
use crate::figures::{Figures, Metric};
use crate::http::Address;
use crate::stats::{Figure, ms};
use crate::{Failure, clock};

/// A new execution every 200 commands: its two requests are not counted, and cost a hundredth of the time.
const CHAIN: Chain = Chain { graph: "bench-commands", nodes: 100 };

/// Each connection drives executions of its own, node after node: start, success. The answer times are those of 16 callers that
/// never pause.
pub(crate) async fn measure(address: Address, figures: &mut Figures) {
    let (rate, times) = match pairs(address).await {
        Ok(samples) => {
            let rate = samples.len() as f64 / MEASURED.as_secs_f64();
            let rate = (!samples.is_empty()).then(|| Figure::single(rate, samples.len(), 0));
            (Ok(rate), Ok(Figure::of(samples, 0)))
        }
        Err(error) => (Err(error.to_string().into()), Err(error)),
    };
    figures.keep(Metric::Commands, rate);
    figures.keep(Metric::CommandTime, times);
}

/// The time of each command that was answered in the measured seconds, in ms. One that is refused spoils the measurement.
async fn pairs(address: Address) -> Result<Vec<f64>, Failure> {
    CHAIN.put(address).await?;
    let keys = Cell::new(0);
    let samples = RefCell::new(Vec::new());
    let begin = clock::now() + WARM_UP;
    let end = begin + MEASURED;
    let one = async || -> Result<(), Failure> {
        let mut driver = Driver::open(address, &keys).await?;
        loop {
            let execution = driver.start(CHAIN.graph).await?;
            for node in 0..CHAIN.nodes {
                for (command, body) in [("start", ""), ("success", r#"{"output":{"n":1}}"#)] {
                    let sent = clock::now();
                    if sent >= end {
                        return Ok(());
                    }
                    driver.drive(&execution, node, command, body).await?;
                    let arrived = clock::now();
                    if arrived >= begin && arrived < end {
                        samples.borrow_mut().push(ms(arrived - sent));
                    }
                }
            }
        }
    };
    join_all((0..CONNECTIONS).map(|_| one())).await.into_iter().collect::<Result<(), _>>()?;
    Ok(samples.into_inner())
}
