//! Every MUST of the ports has a case, and every case a MUST.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Promises without a case, and cases without a promise.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let Ok(suite) = fs::read_to_string(root.join("testing/conformance/src/lib.rs")) else {
        return Vec::new();
    };
    let cases: BTreeSet<String> = suite.lines().filter_map(case_of).collect();
    let mut promised = BTreeSet::new();
    let mut folders = vec![root.join("crates/ports/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(path).unwrap_or_default();
            let comments = text.lines().filter(|line| line.trim_start().starts_with("///"));
            promised.extend(comments.flat_map(promises_of));
        }
    }
    let untested =
        promised.difference(&cases).map(|id| format!("the ports promise [{id}], but there is no such case"));
    let unpromised = cases.difference(&promised).map(|id| format!("case {id} tests what no port promises"));
    untested.chain(unpromised).collect()
}

/// A line such as `"log/append" => log::append,`.
fn case_of(line: &str) -> Option<String> {
    let (id, _) = line.trim().strip_prefix('"')?.split_once("\" => ")?;
    Some(id.to_owned())
}

/// Names such as `[log/append]` in backticks.
fn promises_of(line: &str) -> Vec<String> {
    let names = line.split("`[").skip(1).filter_map(|rest| rest.split_once("]`"));
    names.map(|(id, _)| id.to_owned()).filter(|id| id.contains('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_stand() {
        assert_eq!(promises_of("/// MUST keep it. `[log/append]` `[log/race]`"), ["log/append", "log/race"]);
        assert_eq!(case_of("    \"queue/ack\" => queue::ack,"), Some("queue/ack".to_owned()));
        assert_eq!(case_of("cases! {"), None);
    }
}
