//! Flows of more and more tasks that do nothing, in a row and side by side.

use std::time::Duration;

use hyper::Request;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::curve::{Curve, both, cell};
use crate::flows::{self, SERVED};
use crate::http::{self, Address, Connection};
use crate::measure::runs::is_completed;
use crate::measure::{run_id, warm_up};
use crate::ours::Ours;
use crate::stats::{Figure, ms};
use crate::subject::Subject as _;
use crate::{Failure, clock};

/// A flow.yaml has room for so many; a larger flow comes from the resolver, by name.
const MOST_IN_YAML: usize = 1_000;
/// Whole runs of each shape; the median is told.
const REPEATS: usize = 3;
const LOOKS: usize = 50;
/// Between two looks at a run: its answer may be large, and must not be what is measured.
const GLANCE_EVERY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn curve() -> Curve {
    Curve::new(
        "Tasks in a flow, embedded",
        "tasks",
        &[
            "submit, ms",
            "in a row: each, ms",
            "side by side: each, ms",
            "GET /runs/ID, ms",
            "its size, KiB",
            "with records, ms",
            "its size, KiB",
        ],
        &[10, 100, 1_000, 10_000],
    )
}

pub(super) async fn measure(ours: &Ours<'_>, curve: &mut Curve) -> Result<(), Failure> {
    let stack = ours.start(false).await?;
    let address = stack.address;
    warm_up(address).await?;
    for size in curve.sizes.clone() {
        let mut submits = Vec::new();
        let (chain, run) = each(address, Shape::Chain, size, &mut submits).await?;
        let (fan, _) = each(address, Shape::Fan, size, &mut submits).await?;
        let (plain, plain_size) = look(address, &format!("/runs/{run}")).await?;
        let (full, full_size) = look(address, &format!("/runs/{run}?include=records")).await?;
        curve.keep(
            size,
            vec![
                both(Figure::of(submits, 0).as_ref()),
                cell(chain),
                cell(fan),
                both(plain.as_ref()),
                cell(Some(plain_size)),
                both(full.as_ref()),
                cell(Some(full_size)),
            ],
        );
    }
    stack.stop().await;
    Ok(())
}

#[derive(Clone, Copy)]
enum Shape {
    Chain,
    Fan,
}

impl Shape {
    fn request(self, size: usize) -> Result<Request<String>, Failure> {
        if size > MOST_IN_YAML {
            let name = match self {
                Self::Chain => "chain",
                Self::Fan => "fan",
            };
            return http::submit(&format!("{name}-{size}"), SERVED);
        }
        let flow = match self {
            Self::Chain => flows::chain_of("growing-chain", &flows::steps(size)),
            Self::Fan => flows::fan_out_of("growing-fan", size),
        };
        http::submit_yaml(flow.name, SERVED, &flow.yaml)
    }
}

/// The time of a whole run for each of its tasks, by the start and the end that the server has stamped; and one of the runs.
async fn each(
    address: Address,
    shape: Shape,
    size: usize,
    submits: &mut Vec<f64>,
) -> Result<(Option<f64>, String), Failure> {
    let mut connection = Connection::open(address).await?;
    let (mut samples, mut run) = (Vec::new(), String::new());
    for _ in 0..REPEATS {
        let request = shape.request(size)?;
        let sent = clock::now();
        let answer = connection.send(request).await?;
        submits.push(ms(sent.elapsed()));
        run = run_id(&answer.json()?)?;
        let path = format!("/runs/{run}");
        let ended = async {
            loop {
                let shown = connection.get(&path).await?.json()?;
                if is_completed(&shown)? {
                    return Ok::<_, Failure>(shown);
                }
                sleep(GLANCE_EVERY).await;
            }
        };
        let shown = timeout(PATIENCE, ended).await.map_err(|_| format!("{size} tasks took too long"))??;
        let at = |member: &str| shown.get(member).and_then(Value::as_f64).ok_or("a run without its times");
        samples.push((at("end_time")? - at("start_time")?) * 1_000.0 / size as f64);
    }
    Ok((Figure::of(samples, 0).map(|figure| figure.middle), run))
}

/// One look at a time, in ms, and how large the answer is in KiB.
async fn look(address: Address, path: &str) -> Result<(Option<Figure>, f64), Failure> {
    let mut connection = Connection::open(address).await?;
    let (mut samples, mut size) = (Vec::new(), 0);
    for _ in 0..LOOKS {
        let sent = clock::now();
        let answer = connection.get(path).await?;
        samples.push(ms(sent.elapsed()));
        size = answer.body.len();
        answer.json()?;
    }
    Ok((Figure::of(samples, 0), size as f64 / 1_024.0))
}
