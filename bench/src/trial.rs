//! The distributed engine beside the original and beside a bare loop, on nats-servers that sync in the same way.

use crate::args::Args;
use crate::bare::Loop;
use crate::broker::Sync;
use crate::distributed::Distributed;
use crate::figures::{Figures, Metric, Part};
use crate::measure::{self, nats};
use crate::original::Original;
use crate::subject::Subject as _;
use crate::tape::{self, Tape};
use crate::{Failure, progress};

/// What came of one way to sync.
pub(crate) struct Trial {
    pub(crate) sync: Sync,
    pub(crate) ours: Figures,
    pub(crate) original: Figures,
    pub(crate) bare: Figures,
    /// What one submission and one run of ours sent.
    pub(crate) tapes: Vec<(&'static str, Tape)>,
}

impl Trial {
    pub(crate) fn new(sync: Sync) -> Self {
        let [ours, original, bare] = [(); 3].map(|()| Figures::default());
        Self { sync, ours, original, bare, tapes: Vec::new() }
    }

    /// Several rounds as one.
    fn middle(sync: Sync, rounds: Vec<Self>) -> Self {
        let mut trial = Self::new(sync);
        let [mut ours, mut original, mut bare] = [(); 3].map(|()| Vec::new());
        for round in rounds {
            ours.push(round.ours);
            original.push(round.original);
            bare.push(round.bare);
            // Every round plays the same.
            trial.tapes = round.tapes;
        }
        trial.ours = Figures::middle(ours);
        trial.original = Figures::middle(original);
        trial.bare = Figures::middle(bare);
        trial
    }

    /// What went wrong, with whose it is.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [("ours", &self.ours), ("original", &self.original), ("bare loop", &self.bare)];
        all.into_iter()
            .flat_map(|(name, figures)| figures.problems.iter().map(move |problem| (name, problem)))
    }
}

/// Both ways to sync, in the parts that were asked for. `lists` are the original's, if they were measured already.
pub(crate) async fn measure(
    args: &Args,
    original: Option<&Original<'_>>,
    ours: &Distributed<'_>,
    lists: &Figures,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    if args.parts.include_any(&Part::NATS) {
        for sync in Sync::ALL {
            let mut rounds = Vec::new();
            for _ in 0..args.rounds {
                rounds.push(measure_one(args, original, ours, lists, sync).await);
            }
            trials.push(Trial::middle(sync, rounds));
        }
    }
    trials
}

async fn measure_one(
    args: &Args,
    original: Option<&Original<'_>>,
    ours: &Distributed<'_>,
    lists: &Figures,
    sync: Sync,
) -> Trial {
    let parts = &args.parts;
    let mut trial = Trial::new(sync);
    if let Some(original) = original {
        trial.original = nats::measure(&original.with_sync(sync), sync, parts, lists).await;
    }
    if args.skip_ours {
        return trial;
    }
    if let Err(error) = ours.check() {
        trial.ours.problems.push(error.to_string());
        return trial;
    }
    let ours = Distributed { sync, ..ours.clone() };
    trial.ours = nats::measure(&ours, sync, parts, &Figures::default()).await;
    if parts.include(Part::NatsRuns) {
        trial.ours.add(nats::together(&ours, sync).await);
    }
    if parts.include(Part::NatsWorkers) {
        trial.ours.add(nats::workers(&ours, sync).await);
    }
    if parts.include(Part::NatsCommands) {
        trial.ours.add(nats::commands(&ours, sync).await);
    }
    trial.ours.add(nats::logs(&ours, sync, parts).await);
    // To read writes nothing: how the disk is synced does not matter.
    if parts.include(Part::NatsMetrics) && sync == Sync::Default {
        trial.ours.add(nats::figures_of_gateway(&ours).await);
    }
    if (parts.include(Part::NatsSubmit) || parts.include(Part::NatsRuns))
        && let Err(error) = bare(args, &ours, &mut trial).await
    {
        trial.bare.problems.push(error.to_string());
    }
    trial
}

/// Listens to ours, then plays what was heard without ours, on the same nats-server.
async fn bare(args: &Args, ours: &Distributed<'_>, trial: &mut Trial) -> Result<(), Failure> {
    progress("bare loop", &trial.sync.to_string());
    let stack = ours.start(false).await?;
    let storage = stack.storage.ok_or("ours stores in a nats-server")?;
    measure::warm_up(stack.address).await?;
    let submission = tape::submission(stack.address, storage).await?;
    let run = tape::run(stack.address, storage).await?;
    let left = stack.leave_storage().await?;
    if args.parts.include(Part::NatsRuns) {
        let player = Loop::new(left.storage, &run, 1)?;
        let count = ours.sizes().throughput_runs;
        let rate = player.runs(count, ours.workers, ours.runs_at_once).await;
        trial.bare.keep(Metric::EndToEnd, rate);
    }
    if args.parts.include(Part::NatsSubmit) {
        let player = Loop::new(left.storage, &submission, 2)?;
        trial.bare.keep(Metric::Submit, player.submissions().await);
    }
    trial.tapes = vec![("one submission, by name", submission), ("one run, as flow.yaml", run)];
    Ok(())
}
