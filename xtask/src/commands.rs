//! One file a command: `decide/<command>.rs` for every command, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Files of `decide/` that are no command.
const SHARED: &[&str] = &["mod", "batch", "draft", "ending", "guard"];

/// Commands without a file, and files without a command.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let source = root.join("crates/core/src");
    let Ok(commands) = fs::read_to_string(source.join("command.rs")) else {
        return vec!["crates/core/src/command.rs is not there".to_owned()];
    };
    let Some((_, list)) = commands.split_once("commands! {") else {
        return vec!["crates/core/src/command.rs has no list of commands".to_owned()];
    };
    let wanted: BTreeSet<String> =
        list.lines().filter_map(command_name).map(|name| file_name(&name)).collect();
    let found: BTreeSet<String> = fs::read_dir(source.join("decide"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .filter(|name| !SHARED.contains(&name.as_str()))
        .collect();
    let missing = wanted.difference(&found).map(|name| format!("decide/{name}.rs is missing"));
    let surplus = found.difference(&wanted).map(|name| format!("decide/{name}.rs belongs to no command"));
    missing.chain(surplus).collect()
}

/// A line such as `    StartNode {` inside the list.
fn command_name(line: &str) -> Option<String> {
    let name = line.strip_prefix("    ")?.split(" {").next()?;
    let is_name = line.contains(" {")
        && name.starts_with(char::is_uppercase)
        && name.chars().all(char::is_alphanumeric);
    is_name.then(|| name.to_owned())
}

/// `StartNode` lives in `start_node`; the agenda of `AdvanceExecution` in `advance`.
fn file_name(command: &str) -> String {
    if command == "AdvanceExecution" {
        return "advance".to_owned();
    }
    let mut name = String::new();
    for letter in command.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}
