//! The pages of docs/reference that are written from the product: `UPDATE_DOCS=1` writes them anew, otherwise they are compared.
//!
//! docs/reference/configuration.md is not among them: `pyoco-server config --markdown` writes it, and its own test compares it.

use std::fmt::Write as _;
use std::process::Command;

use pyoco_core::event::EventType;
use serde_json::Value;

use crate::page;
use crate::support::Site;

const PROGRAMS: [(&str, &str); 5] = [
    ("pyoco-server", env!("CARGO_BIN_EXE_pyoco-server")),
    ("pyoco-client", env!("CARGO_BIN_EXE_pyoco-client")),
    ("pyoco-worker", env!("CARGO_BIN_EXE_pyoco-worker")),
    ("pyoco-server-admin", env!("CARGO_BIN_EXE_pyoco-server-admin")),
    ("nats-bootstrap", env!("CARGO_BIN_EXE_nats-bootstrap")),
];

/// A command with what `--help` says about it.
pub(crate) struct Help {
    /// `pyoco-client exec create`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Every command of every program, each behind the one it belongs to.
pub(crate) fn commands() -> Vec<Help> {
    let mut found = Vec::new();
    for (name, program) in PROGRAMS {
        collect(program, &[name.to_owned()], &mut found);
    }
    found
}

fn collect(program: &str, names: &[String], found: &mut Vec<Help>) {
    let mut command = Command::new(program);
    command.args(&names[1..]).arg("--help");
    // The width and the settings of whoever runs the test are not part of the reference.
    for name in ["COLUMNS", "PYOCO_SERVER_URL", "PYOCO_API_KEY"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{names:?} --help");
    let text = String::from_utf8(output.stdout).unwrap();
    let below: Vec<String> = subcommands(&text);
    found.push(Help { name: names.join(" "), text });
    for name in below {
        collect(program, &[names, &[name]].concat(), found);
    }
}

/// What stands below `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let named = lines.take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  "));
    let names = named.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// Compares a page with what it should be, or writes it.
fn check(path: &str, wanted: &str) {
    let place = page::root().join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&place, wanted).unwrap();
    }
    let written = std::fs::read_to_string(&place).unwrap_or_default();
    let differs = written.lines().zip(wanted.lines()).find(|(written, wanted)| written != wanted);
    assert!(
        written == wanted,
        "{path} is old, first at {differs:?}: UPDATE_DOCS=1 cargo test -p pyoco-cli --test docs reference"
    );
}

#[test]
fn the_reference_of_the_command_lines_is_what_help_says() {
    let mut text = "# Command lines

Written from `--help` by `UPDATE_DOCS=1 cargo test -p pyoco-cli --test docs reference`; to change it, change the help.

Exit codes: 0 done, 1 something that you can mend (said on standard error, with a reason and a hint), 130 interrupted or canceled.
`pyoco-server-admin` also has 2: no such key or dead letter, or bad arguments. Output is JSON in a pipe; a terminal gets tables where there is one.

"
    .to_owned();
    let all = commands();
    for (name, _) in PROGRAMS {
        let below = all.iter().filter(|help| help.name.split(' ').next() == Some(name)).skip(1);
        let links: Vec<String> =
            below.map(|help| format!("[{}](#{})", short(&help.name), anchor(&help.name))).collect();
        let _ = writeln!(
            text,
            "- [`{name}`](#{}){}{}",
            anchor(name),
            if links.is_empty() { "" } else { ": " },
            links.join(", ")
        );
    }
    for help in &all {
        let level = if help.name.contains(' ') { "###" } else { "##" };
        let lines: Vec<&str> = help.text.lines().map(str::trim_end).collect();
        let _ = write!(text, "\n{level} {}\n\n```text\n{}\n```\n", help.name, lines.join("\n").trim_end());
    }
    check("docs/reference/cli.md", &text);
}

/// Help is as wide as a terminal; an example that is wider would be broken where nobody can paste it.
#[test]
fn every_example_of_help_fits_into_its_line() {
    for help in commands() {
        let examples = help.text.lines().skip_while(|line| !line.starts_with("Example"));
        let mut goes_on = false;
        for line in examples.skip(1).take_while(|line| line.starts_with("  ")) {
            let names_a_program = PROGRAMS.iter().any(|(name, _)| line.contains(name));
            assert!(goes_on || names_a_program, "{} --help: {line}", help.name);
            goes_on = line.ends_with('\\');
        }
    }
}

fn short(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(_, rest)| rest)
}

fn anchor(name: &str) -> String {
    name.replace(' ', "-")
}

#[tokio::test]
async fn the_reference_of_the_http_surface_is_what_the_server_describes() {
    let site = Site::new().argument("--no-worker");
    let running = site.start();
    let answer = reqwest::get(format!("{}/openapi.json", running.url)).await.unwrap();
    let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let mut text = "# HTTP

Written from `GET /openapi.json` by `UPDATE_DOCS=1 cargo test -p pyoco-cli --test docs reference`; to change it, change the handlers.

A running server shows the same at `/docs`, with every field, and lets you try it. `/openapi.json` is the machine's form: OpenAPI 3.1.
What is answered when something is wrong is in [errors.md](errors.md).

| request | what it does | query | body | answers |
|---|---|---|---|---|
"
    .to_owned();
    let paths = document["paths"].as_object().unwrap();
    let mut rows: Vec<(String, String)> = Vec::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            rows.push((format!("{path} {method}"), row(path, method, operation)));
        }
    }
    rows.sort();
    for (_, row) in rows {
        text.push_str(&row);
    }
    check("docs/reference/openapi.md", &text);
}

fn row(path: &str, method: &str, operation: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let query: Vec<String> = list(&operation["parameters"])
        .iter()
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| format!("`{}`", parameter["name"].as_str().unwrap()))
        .collect();
    let body = operation["requestBody"]["content"].as_object();
    let body =
        body.map(|content| content.keys().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", "));
    let answers: Vec<&str> = operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
    let summary =
        operation["summary"].as_str().or_else(|| operation["description"].as_str()).unwrap_or_default();
    let summary = summary.split("\n\n").next().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
    let summary = summary.trim_end_matches('.');
    format!(
        "| `{} {path}` | {summary} | {} | {} | {} |\n",
        method.to_uppercase(),
        query.join(", "),
        body.unwrap_or_default(),
        answers.join(", ")
    )
}

#[test]
fn the_reference_of_events_is_what_the_core_defines() {
    let source = page::read("crates/core/src/event/payload.rs");
    let mut text = "# Events

Written from the code by `UPDATE_DOCS=1 cargo test -p pyoco-cli --test docs reference`; to change it, change `crates/core/src/event`.

An execution is its events: everything that is shown of it follows from them. `pyoco-client exec events EXECUTION_ID` and
`GET /executions/{id}/events` give them, numbered from 1 without a gap. There are 24 types; their names never change, and an event that is written
never changes. Each comes in an envelope:

| member | what |
|---|---|
| `seq` | its number in the execution |
| `eventId`, `executionId` | its own id, and whose it is |
| `eventType` | one of the names below |
| `occurredAt` | when, RFC 3339 |
| `actor` | who caused it: `{kind, id?}`, kind `system`, `user`, `scheduler` or `external` |
| `correlationId` | the caller's thread through several commands |
| `causationId` | the event before it that led to it |
| `payload` | what it says, below |

Members in *italics* may be missing. Readers must not stumble over members they do not know.
"
    .to_owned();
    for kind in EventType::ALL {
        let name: String = format!("{kind:?}");
        let (meaning, members) = payload(&source, &name);
        let _ = write!(text, "\n## {kind}\n\n{meaning}\n");
        if !members.is_empty() {
            text.push_str("\n| member | what |\n|---|---|\n");
        }
        for (member, is_required, what) in members {
            let member = if is_required { format!("`{member}`") } else { format!("*`{member}`*") };
            let _ = writeln!(text, "| {member} | {what} |");
        }
    }
    check("docs/reference/events.md", &text);
}

/// What the source says about a payload: its meaning, and its members with whether they must be there.
fn payload(source: &str, name: &str) -> (String, Vec<(String, bool, String)>) {
    let (before, behind) =
        source.split_once(&format!("    {name} {{\n")).unwrap_or_else(|| panic!("{name} has no payload"));
    let meaning = before.lines().next_back().unwrap().trim().trim_start_matches("/// ").to_owned();
    let (body, _) = behind.split_once("\n    }\n").unwrap_or_else(|| panic!("{name} has no end"));
    let mut members = Vec::new();
    let mut what = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(word) = line.strip_prefix("/// ") {
            what.push(word.trim_start_matches("Ours: "));
        } else if let Some((_, said)) = line.split_once(" = ") {
            let (need, member) = said.split_once(' ').unwrap();
            let mut sentence = std::mem::take(&mut what).join(" ");
            if let Some(first) = sentence.get(..1) {
                sentence = first.to_uppercase() + &sentence[1..];
            }
            members.push((member.trim_matches(['"', ',']).to_owned(), need == "required", sentence));
        }
    }
    (meaning, members)
}
