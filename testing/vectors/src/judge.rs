//! Many vectors, several at once, and the report about all of them.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::num::NonZeroUsize;

use futures_util::{StreamExt as _, stream};
use pyoco_core::plan::Runner;
use serde_json::json;

use crate::check::{self, Mismatch};
use crate::decisions::{Verdict, verdict};
use crate::stage::{Outcome, Stage, flow_name, needs_own};
use crate::submission::{Source, plan_of};
use crate::vector::Vector;
use crate::{Broken, Moment, Run};

/// Vectors sleep more than they compute, but each starts a Python.
const AT_ONCE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// What differs, vector by vector. A test that returns it shows it as it is read best.
pub struct Report(String);

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs all vectors and compares each with what is promised about it. The report names every difference.
pub async fn judge_all(vectors: &[Vector], source: Source) -> Result<(), Report> {
    let stage = Stage::start(AT_ONCE).await.map_err(Report)?;
    let shared = &stage;
    let judged = stream::iter(vectors)
        .map(|vector| async move {
            let differences = match judge(shared, vector, source).await {
                Err(broken) => vec![format!("it could not be run: {broken}")],
                Ok(differences) => differences.iter().map(Mismatch::to_string).collect(),
            };
            (vector, differences)
        })
        .buffer_unordered(AT_ONCE.get());
    let mut judged: Vec<(&Vector, Vec<String>)> = judged.collect().await;
    judged.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    stage.stop().await.map_err(Report)?;
    let failed: Vec<_> = judged.into_iter().filter(|(_, differences)| !differences.is_empty()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let mut report = format!("{} of {} vectors differ:\n", failed.len(), vectors.len());
    for (vector, differences) in failed {
        // Writing into a string cannot fail.
        let _ = writeln!(report, "\n{}", vector.name);
        for difference in differences {
            let _ = writeln!(report, "    {difference}");
        }
    }
    Err(Report(report))
}

async fn judge(shared: &Stage, vector: &Vector, source: Source) -> Result<Vec<Mismatch>, Broken> {
    if !needs_own(vector, source) {
        return compare(vector, source, &shared.run(vector, source).await?);
    }
    let own = Stage::start_for(vector, source).await?;
    let outcome = own.run(vector, source).await;
    let found = outcome.and_then(|outcome| compare(vector, source, &outcome));
    own.stop().await?;
    found
}

fn compare(vector: &Vector, source: Source, outcome: &Outcome) -> Result<Vec<Mismatch>, Broken> {
    let mut found = differences(&verdict(vector, source), outcome);
    if let Outcome::Ran(run) = outcome {
        found.extend(uncalled(vector, run));
        found.extend(described_otherwise(vector, source, run)?);
    }
    Ok(found)
}

fn differences(verdict: &Verdict, outcome: &Outcome) -> Vec<Mismatch> {
    match (verdict, outcome) {
        (Verdict::Refused, Outcome::Refused(_)) => Vec::new(),
        (Verdict::Refused, Outcome::Ran(run)) if run.state.plan.is_none() => Vec::new(),
        (Verdict::Refused, Outcome::Ran(_)) => {
            let field = "phase".to_owned();
            vec![Mismatch { field, expected: "it is refused".into(), got: "it runs".into() }]
        }
        (Verdict::Like(expectation), Outcome::Refused(message)) => check::refusal(expectation, message),
        (Verdict::Like(expectation), Outcome::Ran(run)) => check::run(expectation, run),
        (Verdict::OneOf(verdicts), outcome) => {
            // The fewest differences are the most telling ones.
            let all = verdicts.iter().map(|verdict| differences(verdict, outcome));
            all.min_by_key(Vec::len).unwrap_or_default()
        }
    }
}

/// Functions whose calls, as their module said them, are not those that the log speaks of. The log may speak of more: a
/// call with the wrong arguments does not reach the function, and one whose time is over may not.
fn uncalled(vector: &Vector, run: &Run) -> Vec<Mismatch> {
    let sources = [vector.tasks_py.as_deref(), vector.flow_py.as_deref()];
    let is_known = |name: &str| sources.iter().flatten().any(|text| text.contains(&format!("def {name}(")));
    let mut of_function: HashMap<&str, Vec<&str>> = HashMap::new();
    for task in run.state.plan.iter().flat_map(|plan| &plan.tasks) {
        let function = match &task.runner {
            Runner::Callable(address) => address.rsplit(':').next().unwrap_or_default(),
            Runner::Registered(_) | Runner::Command(_) | Runner::Wait { .. } | Runner::External => &task.name,
        };
        if is_known(function) {
            of_function.entry(function).or_default().push(&task.name);
        }
    }
    let mut found = Vec::new();
    for (function, tasks) in of_function {
        let is_of = |task: &String| tasks.contains(&task.as_str());
        let most = run.calls.iter().filter(|task| is_of(task)).count();
        let least = run.moments.iter().filter(|(task, moment)| is_of(task) && *moment == Moment::End).count();
        let heard = run.heard.iter().filter(|name| *name == function).count();
        if !(least..=most).contains(&heard) {
            let field = format!("calls of {function} that its module said");
            found.push(Mismatch { field, expected: json!([least, most]), got: json!(heard) });
        }
    }
    found
}

/// A flow of a resolver is described as the vector describes it, so its plan is the same.
fn described_otherwise(vector: &Vector, source: Source, run: &Run) -> Result<Option<Mismatch>, Broken> {
    let (Some(ir), true) = (&vector.ir, source.is_by_name(vector)) else { return Ok(None) };
    let expected = plan_of(ir, flow_name(vector, source))?;
    let is_same = run.state.plan.as_deref() == Some(&expected);
    let (expected, got) = (json!(expected), json!(run.state.plan));
    Ok((!is_same).then(|| Mismatch { field: "plan".to_owned(), expected, got }))
}
