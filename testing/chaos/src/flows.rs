//! The flows that are run, and the ledger that their tasks keep outside of what is tested, on the disk.

use std::path::Path;

/// A flow that every worker knows by name.
pub const NAMED: &str = "quick";
/// The task that fails in [`BROKEN`].
pub const BROKEN: &str =
    "version: 2\nflow: {graph: 'fails'}\ntasks:\n  fails: {callable: 'ledger_tasks:fails'}\n";
/// A person answers in the middle.
pub const APPROVAL: &str = "\
version: 2
flow:
  graph: first >> approve >> last
tasks:
  first: {callable: 'ledger_tasks:first'}
  approve: {wait: {key: go}}
  last: {callable: 'ledger_tasks:last'}
";
/// Four tasks, two of them side by side; sent along with each submission.
pub const FORKED: &str = "\
version: 2
flow:
  graph: |
    first >> (left & right) >> last
tasks:
  first: {callable: 'ledger_tasks:first'}
  left: {callable: 'ledger_tasks:left'}
  right: {callable: 'ledger_tasks:right'}
  last: {callable: 'ledger_tasks:last'}
";
/// The nodes that have a body.
pub const TASKS: [&str; 5] = ["first", "left", "right", "last", "fails"];

const QUICK: &str = "\
version: 2
flow:
  graph: first >> last
tasks:
  first: {callable: 'ledger_tasks:first'}
  last: {callable: 'ledger_tasks:last'}
";

const MODULE: &str = r#"
import os, time

def note(ctx, task):
    line = f"{ctx.params['label']} {task} {time.time_ns() // 1000}\n".encode()
    ledger = os.open(os.environ["CHAOS_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, line)
    os.fsync(ledger)
    os.close(ledger)

def body(ctx, task):
    note(ctx, task)
    pause = ctx.params.get("seconds", 0) if task == "first" else 0
    until = time.monotonic() + pause
    while time.monotonic() < until and not ctx.is_cancelled:
        time.sleep(0.01)
    return task

def first(ctx): return body(ctx, "first")
def left(ctx): return body(ctx, "left")
def right(ctx): return body(ctx, "right")
def last(ctx): return body(ctx, "last")

def fails(ctx):
    note(ctx, "fails")
    raise ValueError("as it should")
"#;

/// Puts everything where workers look for it.
pub fn lay_out(folder: &Path) {
    std::fs::create_dir_all(folder.join("flows").join(NAMED)).unwrap();
    std::fs::write(folder.join("flows").join(NAMED).join("flow.yaml"), QUICK).unwrap();
    // A worker's own folder is searched for modules, whatever the flow is called.
    std::fs::write(folder.join("ledger_tasks.py"), MODULE).unwrap();
}

/// A body that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The label of its run.
    pub label: String,
    /// Which.
    pub task: String,
    /// When it began, in microseconds since 1970.
    pub at: i64,
}

/// All whole lines of the ledger; none if nobody has written yet.
pub fn read_ledger(path: &Path) -> Vec<Body> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(body).collect()
}

fn body(line: &str) -> Body {
    let parts: Vec<&str> = line.split(' ').collect();
    let [label, task, at] = parts[..] else { panic!("{line:?} is no line of the ledger") };
    Body { label: label.to_owned(), task: task.to_owned(), at: at.parse().expect("a time") }
}
