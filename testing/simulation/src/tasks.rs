//! The flows of a seed, and what their tasks do: end at once or after a while, fail, or not listen when they are to stop.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::plan::Plan;
use pyoco_core::state::Root;
use pyoco_flow::{Limits, Loaded};
use pyoco_worker::{Call, End, Flows, JobMessage, LoadError, Runtime, Stop, WheelFolder};

use crate::scenario::Scenario;
use crate::world::World;

/// The plans of a seed, by the name of their flow.
#[derive(Debug, Default)]
pub(crate) struct Plans(HashMap<String, Arc<Plan>>);

impl Plans {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let compiled = scenario.runs.iter().map(|run| {
            let flow = pyoco_flow::parse(run.text.as_bytes(), Limits::default());
            let plan = flow.and_then(|flow| flow.compile(&run.flow, &Loaded::default()));
            let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", run.text));
            (run.flow.clone(), Arc::new(plan))
        });
        Self(compiled.collect())
    }
}

#[async_trait]
impl Flows for Plans {
    async fn plan(&self, job: &JobMessage, _: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        self.0.get(&job.flow_name).cloned().ok_or_else(|| LoadError::NotFound(job.flow_name.clone()))
    }
}

/// Runs the tasks of one process.
pub(crate) struct Tasks {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<str>,
}

/// What an attempt does.
#[derive(Debug, Clone, Copy)]
struct Manner {
    takes: Duration,
    fails: bool,
    listens: bool,
}

impl Manner {
    /// The same for the same attempt of the same seed, whoever runs it.
    fn of(seed: u64, call: &Call) -> Self {
        let text = format!("{seed} {} {} {}", call.execution, call.node, call.attempt.0);
        let dice = Digest::of_bytes(text.as_bytes());
        let dice = dice.as_bytes().iter().take(8).fold(0, |dice, byte| dice << 8 | u64::from(*byte));
        let takes = match dice % 10 {
            0..=4 => dice / 10 % 20,
            5..=7 => 20 + dice / 10 % 500,
            _ => 500 + dice / 10 % 7_000,
        };
        Self {
            takes: Duration::from_millis(takes),
            fails: dice / 100_000 % 8 == 0,
            listens: dice / 1_000_000 % 3 > 0,
        }
    }
}

#[async_trait]
impl Runtime for Tasks {
    async fn run(&self, call: Call, mut stop: Stop) -> End {
        let (execution, node, attempt) = (&call.execution, &call.node, call.attempt);
        let results: BTreeMap<_, _> =
            call.context.root(Root::Results).as_object().into_iter().flatten().collect();
        let value = self.world.witness().begins(&self.process, execution, node, &results);
        self.world.note(format_args!("{} runs {execution} {node} {}", self.process, attempt.0));
        let manner = Manner::of(self.world.seed, &call);
        let work = tokio::time::sleep(manner.takes);
        if manner.listens {
            tokio::select! {
                biased;
                () = work => {}
                () = stop.requested() => return End::Stopped,
            }
        } else {
            work.await;
        }
        if manner.fails {
            return End::error("it was to fail");
        }
        self.world.witness().gave(execution, node, attempt, &value);
        End::value(value)
    }
}
