//! Flows whose tasks write down, outside the system and to the disk, when they began and ended.

use std::path::Path;

use crate::support::Site;

/// Four tasks, two of them side by side.
const QUICK: &str = "\
version: 2
flow:
  graph: |
    first >> (left & right) >> last
tasks:
  first: {callable: 'quick_tasks:first'}
  left: {callable: 'quick_tasks:left'}
  right: {callable: 'quick_tasks:right'}
  last: {callable: 'quick_tasks:last'}
";

/// A task that takes as long as it is told, and one after it.
const SLOW: &str = "\
version: 2
flow:
  graph: |
    slow >> after
tasks:
  slow: {callable: 'slow_tasks:slow'}
  after: {callable: 'slow_tasks:after'}
";

/// A task that goes on until it is canceled.
const PATIENT: &str = "\
version: 2
flow:
  graph: |
    patient
tasks:
  patient: {callable: 'patient_tasks:patient'}
";

const NOTE: &str = r#"
import os, time

def note(ctx, task, word):
    ledger = os.open(ctx.params["ledger"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{ctx.params['id']} {task} {word} {time.time_ns() // 1000}\n".encode())
    os.fsync(ledger)
    os.close(ledger)

def body(ctx, task):
    note(ctx, task, "begins")
    time.sleep(ctx.params.get("seconds", 0) if task == "slow" else 0)
    note(ctx, task, "ends")
    return task
"#;

const QUICK_TASKS: &str = r#"
def first(ctx): return body(ctx, "first")
def left(ctx): return body(ctx, "left")
def right(ctx): return body(ctx, "right")
def last(ctx): return body(ctx, "last")
"#;

const SLOW_TASKS: &str = r#"
def slow(ctx): return body(ctx, "slow")
def after(ctx): return body(ctx, "after")
"#;

const PATIENT_TASKS: &str = r#"
def patient(ctx):
    note(ctx, "patient", "begins")
    while not ctx.is_cancelled:
        time.sleep(0.001)
    note(ctx, "patient", "is told")
"#;

pub(crate) fn flows(site: Site) -> Site {
    site.flow("quick", QUICK, &format!("{NOTE}{QUICK_TASKS}"))
        .flow("slow", SLOW, &format!("{NOTE}{SLOW_TASKS}"))
        .flow("patient", PATIENT, &format!("{NOTE}{PATIENT_TASKS}"))
}

/// What a task has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The `id` among the parameters of its run.
    pub(crate) id: String,
    pub(crate) task: String,
    /// `begins`, `ends` or `is told`.
    pub(crate) word: String,
    /// Microseconds since 1970.
    pub(crate) at: i64,
}

/// All whole lines; none if nobody has written yet.
pub(crate) fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(line).collect()
}

fn line(text: &str) -> Line {
    let parts = || -> Option<Line> {
        let (id, rest) = text.split_once(' ')?;
        let (task, rest) = rest.split_once(' ')?;
        let (word, at) = rest.rsplit_once(' ')?;
        let (id, task, word) = (id.to_owned(), task.to_owned(), word.to_owned());
        Some(Line { id, task, word, at: at.parse().ok()? })
    };
    parts().unwrap_or_else(|| panic!("{text:?} is no line of the ledger"))
}
