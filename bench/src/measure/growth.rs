//! How cost grows: one thing is made ten times larger again and again, and what it costs is told for each size. Only of this server.

mod curve;
mod lines;
mod readers;
mod runs;
mod shared;
mod tasks;
mod workers;

pub(crate) use curve::Curve;

use std::time::Duration;

use tokio::time::timeout;

use crate::distributed::Distributed;
use crate::ours::Ours;
use crate::progress;
use crate::subject::Subject as _;

/// A million runs are seeded in some minutes.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What is made larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    Runs,
    SharedRuns,
    Tasks,
    Lines,
    Readers,
    Workers,
}

impl Growth {
    pub(crate) const ALL: [Self; 6] =
        [Self::Runs, Self::SharedRuns, Self::Tasks, Self::Lines, Self::Readers, Self::Workers];
    /// Names all of them.
    const EVERY: &str = "growth";

    /// Those that a name means; none, if it is not a name of theirs.
    pub(crate) fn of_name(name: &str) -> Vec<Self> {
        Self::ALL.into_iter().filter(|growth| name == Self::EVERY || growth.name() == name).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Runs => "growth-runs",
            Self::SharedRuns => "growth-nats-runs",
            Self::Tasks => "growth-tasks",
            Self::Lines => "growth-lines",
            Self::Readers => "growth-readers",
            Self::Workers => "growth-workers",
        }
    }

    fn curve(self) -> Curve {
        match self {
            Self::Runs => runs::curve(),
            Self::SharedRuns => shared::curve(),
            Self::Tasks => tasks::curve(),
            Self::Lines => lines::curve(),
            Self::Readers => readers::curve(),
            Self::Workers => workers::curve(),
        }
    }
}

/// The curves that were asked for, each up to the largest size that was asked for. One that failed keeps what it had.
pub(crate) async fn measure(
    asked: &[Growth],
    largest: usize,
    ours: &Ours<'_>,
    on_nats: &Distributed<'_>,
) -> Vec<Curve> {
    let mut curves = Vec::new();
    for growth in asked {
        let mut curve = growth.curve();
        curve.sizes.retain(|size| *size <= largest);
        progress(Ours::NAME, growth.name());
        let measuring = async {
            match growth {
                Growth::Runs => runs::measure(ours, &mut curve).await,
                Growth::SharedRuns => shared::measure(on_nats, &mut curve).await,
                Growth::Tasks => tasks::measure(ours, &mut curve).await,
                Growth::Lines => lines::measure(ours, &mut curve).await,
                Growth::Readers => readers::measure(ours, &mut curve).await,
                Growth::Workers => workers::measure(on_nats, &mut curve).await,
            }
        };
        let measured = timeout(PATIENCE, measuring).await;
        let problem = match measured {
            Ok(done) => done.err().map(|error| error.to_string()),
            Err(_) => Some(format!("not done after {PATIENCE:?}")),
        };
        curve.problem = problem;
        curves.push(curve);
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_means_one_and_growth_means_all() {
        for growth in Growth::ALL {
            assert_eq!(Growth::of_name(growth.name()), [growth]);
        }
        assert_eq!(Growth::of_name("growth"), Growth::ALL);
        assert_eq!(Growth::of_name("submit"), []);
    }

    #[test]
    fn every_curve_begins_small() {
        for growth in Growth::ALL {
            let curve = growth.curve();
            assert!(curve.sizes.is_sorted() && curve.sizes.len() > 2, "{}", growth.name());
        }
    }
}
