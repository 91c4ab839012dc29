//! The flows that both servers run, as flow.yaml. Their tasks are in `flows/bench_flows.py`.

use std::fmt::Write as _;

/// The tag that the measured workers serve.
pub(crate) const SERVED: &str = "bench";
/// A tag that nobody serves: runs with it stay PENDING.
pub(crate) const UNSERVED: &str = "nobody";

/// A flow and its name.
pub(crate) struct Workflow {
    pub(crate) name: &'static str,
    pub(crate) yaml: String,
}

/// One task that does nothing.
pub(crate) fn noop() -> Workflow {
    workflow("noop", "flow >> tick", &["tick".to_owned()], "tick")
}

/// The names of the tasks of [`chain`].
pub(crate) fn chain_tasks() -> Vec<String> {
    steps(40)
}

/// Names for so many tasks of a chain.
pub(crate) fn steps(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number}")).collect()
}

/// Forty tasks that do nothing, one after the other.
pub(crate) fn chain() -> Workflow {
    chain_of("chain40", &chain_tasks())
}

/// These tasks, which do nothing, one after the other.
pub(crate) fn chain_of(name: &'static str, tasks: &[String]) -> Workflow {
    workflow(name, &format!("flow >> {}", tasks.join(" >> ")), tasks, "tick")
}

/// One task, then 400 at once, then one.
pub(crate) fn fan_out() -> Workflow {
    fan_out_of("fanout400", 400)
}

/// One task, then so many at once, then one.
pub(crate) fn fan_out_of(name: &'static str, width: usize) -> Workflow {
    let mut tasks: Vec<String> = (0..width).map(|number| format!("f{number}")).collect();
    let graph = format!("flow >> root >> [{}] >> join", tasks.join(", "));
    tasks.extend(["root".to_owned(), "join".to_owned()]);
    workflow(name, &graph, &tasks, "tick")
}

/// Five tasks that take a while: a run that changes while it is watched.
pub(crate) fn paced() -> Workflow {
    let tasks: Vec<String> = (0..5).map(|number| format!("p{number}")).collect();
    workflow("paced", &format!("flow >> {}", tasks.join(" >> ")), &tasks, "pause")
}

/// One task that sleeps 20 ms: workers wait, and cores do not.
pub(crate) fn nap() -> Workflow {
    workflow("nap", "flow >> nap", &["nap".to_owned()], "nap")
}

/// A flow of the resolver's: one task that waits until it is canceled. Its parameter `mark` is where it tells what it sees.
pub(crate) const HELD: &str = "held";

fn workflow(name: &'static str, graph: &str, tasks: &[String], function: &str) -> Workflow {
    let mut yaml = format!("version: 1\nflow:\n  graph: {graph:?}\ntasks:\n");
    for task in tasks {
        // Writing to a String cannot fail.
        let _ = writeln!(yaml, "  {task}: {{callable: \"bench_flows:{function}\"}}");
    }
    Workflow { name, yaml }
}
