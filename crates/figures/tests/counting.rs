//! Everything in the table is counted, under its name, with its labels; nothing else is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use pyoco_figures::table::{self, Figure, TABLE};
use pyoco_figures::{Figures, Stopwatch, Stream};

/// What the gateway finds out when it is asked.
const FOUND_OUT: &[Figure] = &[
    table::RUNS,
    table::RUNS_TODAY,
    table::WORKERS_ALIVE,
    table::LETTERS_KEPT,
    table::QUEUE_DEPTH,
    table::QUEUE_OLDEST,
];

/// Figures of a process in which everything has happened once.
fn busy() -> Figures {
    let figures = Figures::new("1.2.3", "embedded");
    figures.http("/runs/{run_id}", "GET", "2xx", 0.002);
    figures.authenticated("ok");
    figures.submitted("accepted", 0.004);
    figures.commanded("CancelExecution", "accepted", 0.003);
    figures.appended("accepted", 0.001);
    figures.committed("main", 0.001, 17);
    figures.run_ended("report", "COMPLETED", Some(12.5));
    figures.task_ran("report", 3.0);
    figures.task_ended("report", "succeeded");
    figures.retried("report");
    figures.claim_lost();
    figures.letter("execution_error");
    figures.lines_written(3);
    figures.lines_dropped(2);
    figures.swept(0.01);
    figures.pruned(1);
    figures.audit_dropped(1);
    figures.traces_dropped(1);
    figures
}

/// The names of labels of each name of a value, without those of buckets.
fn labels(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let names = all.entry(name).or_default();
        if let Some((within, _)) = rest.strip_prefix('{').and_then(|rest| rest.rsplit_once('}')) {
            names.extend(within.split("\",").map(|label| label.split_once('=').unwrap().0));
        }
    }
    all
}

#[test]
fn every_figure_of_the_table_is_told_with_its_kind_its_meaning_and_its_labels() {
    let figures = busy();
    let text = figures.text();
    let labels = labels(&text);
    let mut heads: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    for figure in TABLE.iter().filter(|figure| !FOUND_OUT.contains(figure)) {
        let (name, kind) = (figure.name, figure.kind.as_str());
        assert!(heads.remove(format!("{name} {kind}").as_str()), "{name} {kind}: {text}");
        assert!(text.contains(&format!("# HELP {name} {}.\n", figure.help)), "{name}: {text}");
        let value = if kind == "histogram" { format!("{name}_count") } else { name.to_owned() };
        let wanted: BTreeSet<&str> = figure.labels.iter().copied().collect();
        assert_eq!(labels.get(value.as_str()), Some(&wanted), "{value}: {text}");
    }
    assert!(heads.is_empty(), "not in the table: {heads:?}");
}

#[test]
fn names_are_as_prometheus_wants_them() {
    let names: BTreeSet<&str> = TABLE.iter().map(|figure| figure.name).collect();
    assert_eq!(names.len(), TABLE.len(), "a name stands twice");
    for figure in TABLE.iter().filter(|figure| !FOUND_OUT.contains(figure)) {
        let is_counter = figure.kind == table::Kind::Counter;
        assert_eq!(figure.name.ends_with("_total"), is_counter, "{}", figure.name);
        for label in figure.labels {
            let is_many = ["id", "tenant", "key", "execution", "run", "worker", "le"].contains(label);
            assert!(!is_many, "{}: {label}", figure.name);
        }
    }
}

#[test]
fn values_are_what_happened() {
    let text = busy().text();
    for line in [
        "pyoco_build_info{version=\"1.2.3\",store=\"embedded\"} 1",
        "pyoco_runs_ended_total{flow=\"report\",status=\"COMPLETED\"} 1",
        "pyoco_run_duration_seconds_bucket{le=\"10.0\",flow=\"report\"} 0",
        "pyoco_run_duration_seconds_bucket{le=\"30.0\",flow=\"report\"} 1",
        "pyoco_store_commit_commands_sum{file=\"main\"} 17.0",
        "pyoco_log_lines_written_total 3",
        "pyoco_log_lines_dropped_total 2",
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
}

#[test]
fn two_processes_in_one_count_apart() {
    let (one, other) = (Figures::default(), Figures::default());
    one.claim_lost();
    let same = one.clone();
    same.claim_lost();
    drop(same);
    assert!(one.text().contains("pyoco_claims_lost_total 2\n"));
    assert!(other.text().contains("pyoco_claims_lost_total 0\n"));
    assert!(!one.text().contains("pyoco_build_info"));
}

#[test]
fn whoever_is_gone_is_not_counted_any_more() {
    let figures = Figures::default();
    let first = figures.open(Stream::Socket);
    let second = figures.open(Stream::Socket);
    drop(first);
    assert!(figures.text().contains("pyoco_websocket_clients 1\n"));
    drop(second);
    assert!(figures.text().contains("pyoco_websocket_clients 0\n"));
    assert!(figures.text().contains("pyoco_sse_clients 0\n"));
}

#[test]
fn a_hundred_flows_are_told_apart_and_the_others_are_one() {
    let figures = Figures::default();
    for number in 0..1_000 {
        figures.retried(&format!("flow{number}"));
    }
    figures.retried("flow7");
    figures.retried(&"x".repeat(10_000));
    let text = figures.text();
    assert!(text.contains("pyoco_task_retries_total{flow=\"flow7\"} 2\n"), "{text}");
    assert!(text.contains("pyoco_task_retries_total{flow=\"other\"} 901\n"), "{text}");
    assert_eq!(text.matches("pyoco_task_retries_total{").count(), 101);
}

#[test]
fn a_name_that_somebody_chose_cannot_forge_a_line() {
    let figures = Figures::default();
    figures.retried("a\"} 1\nforged_total 9\n\\");
    let text = figures.text();
    assert!(text.contains(r#"pyoco_task_retries_total{flow="a\"} 1\nforged_total 9\n\\"} 1"#), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("forged_total")), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_is_told_as_the_system_knows_it() {
    let text = Figures::default().text();
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
    };
    assert!(value("process_resident_memory_bytes") > 100_000.0);
    assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
    assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= value("process_open_fds"));
    // After the first of January 2020.
    let started = value("process_start_time_seconds");
    assert!(started > 1.5778e9, "{started}");
    assert!(value("process_cpu_seconds_total") >= 0.0);
}

#[test]
fn many_figures_are_told_fast_enough() {
    let figures = busy();
    for number in 0..100 {
        let flow = format!("flow{number}");
        for status in ["COMPLETED", "FAILED", "CANCELLED"] {
            figures.run_ended(&flow, status, Some(1.0));
            figures.task_ended(&flow, status);
        }
        figures.task_ran(&flow, 1.0);
        figures.http(&format!("/route{number}"), "GET", "2xx", 0.1);
    }
    figures.text();
    let watch = Stopwatch::start();
    let text = figures.text();
    // It takes some milliseconds in a test build; ten times as long would be a mistake.
    assert!(watch.seconds() < 0.25, "{} bytes in {} s", text.len(), watch.seconds());
}
