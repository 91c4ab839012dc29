//! How far a job is.

use pyoco_api::{JobProgress, RunningTask};
use pyoco_core::ids::NodeId;
use pyoco_core::state::{NodeState, NodeStatus, State};

/// So many running tasks are named.
const NAMED: usize = 100;

/// How many tasks are settled, and what those that run say of themselves.
pub(super) fn of(state: &State) -> JobProgress {
    let completed = state.tasks.iter().filter(|task| task.status.is_settled()).count();
    let total = state.plan.as_ref().map_or(0, |plan| plan.tasks.len());
    let open = state.open.running.iter().chain(&state.open.waiting);
    let tasks = open.filter_map(|number| state.node(*number)).take(NAMED).map(task).collect();
    JobProgress { completed: completed as u64, total: total as u64, tasks }
}

fn task((id, node): (&NodeId, &NodeState)) -> RunningTask {
    let status = if node.status == NodeStatus::Waiting { "waiting" } else { "running" };
    RunningTask {
        task: id.to_string(),
        status: status.to_owned(),
        progress: node.progress,
        message: node.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pyoco_testkit::{Execution, Graph, caller, external, start_node, succeed};
    use serde_json::json;

    use super::*;

    #[test]
    fn settled_tasks_are_counted_and_running_ones_named() {
        let plan = Graph::new().task("a", external()).task("b", external()).edge("a", "b").plan();
        let driven = Execution::started(&plan);
        assert_eq!(of(driven.state()), JobProgress { completed: 0, total: 2, tasks: Vec::new() });
        let driven = driven.given(&caller(), start_node("a")).given(&caller(), succeed("a", json!(1)));
        let driven = driven.given(&caller(), start_node("b"));
        let progress = of(driven.state());
        assert_eq!((progress.completed, progress.total), (1, 2));
        let running: Vec<_> =
            progress.tasks.iter().map(|task| (task.task.as_str(), task.status.as_str())).collect();
        assert_eq!(running, [("b", "running")]);
    }
}
