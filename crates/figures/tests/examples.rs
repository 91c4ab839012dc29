//! What people read and copy (docs/metrics.md, examples/monitoring) speaks of figures that exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use pyoco_figures::table::{Figure, Kind, TABLE, markdown};
use saphyr_parser::{Event, Parser};
use serde_json::Value;

fn file(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The figure that a name in a query means. A histogram is asked by its parts.
fn figure(name: &str) -> Option<&'static Figure> {
    let part = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
    TABLE.iter().find(|figure| match figure.kind {
        Kind::Histogram => Some(figure.name) == part,
        Kind::Counter | Kind::Gauge => figure.name == name,
    })
}

/// Labels that Prometheus itself gives.
const GIVEN: &[&str] = &["le", "job", "instance"];

/// Checks the names in a query, and the labels in braces behind them. How many names there are.
fn check(query: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut rest = query;
    let mut found = 0;
    while let Some(start) = rest.find(is_name) {
        rest = rest.get(start..).unwrap();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        rest = behind;
        // Prometheus' own: whether it could read a process at all.
        found += usize::from(name == "up");
        if !name.starts_with("pyoco_") && !name.starts_with("process_") {
            continue;
        }
        let figure = figure(name).unwrap_or_else(|| panic!("{name} does not exist: {query}"));
        found += 1;
        if let Some((labels, behind)) = behind.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            for label in labels.split(',').filter(|label| !label.is_empty()) {
                let label = label.split(['=', '!', '~']).next().unwrap().trim();
                let is_there = figure.labels.contains(&label) || GIVEN.contains(&label);
                assert!(is_there, "{name} has no label {label}: {query}");
            }
            rest = behind;
        }
    }
    // What is summed by something must have it somewhere.
    for list in query.split("by (").skip(1) {
        for label in list.split(')').next().unwrap().split(',').map(str::trim) {
            let is_there =
                TABLE.iter().any(|figure| figure.labels.contains(&label)) || GIVEN.contains(&label);
            assert!(is_there, "nothing has a label {label}: {query}");
        }
    }
    found
}

/// The texts of a YAML file, in their order: keys and values.
fn scalars(text: &str) -> Vec<String> {
    let event = |event: Result<(Event<'_>, _), saphyr_parser::ScanError>| {
        if let Event::Scalar(text, ..) = event.unwrap().0 { Some(text.into_owned()) } else { None }
    };
    Parser::new_from_str(text).filter_map(event).collect()
}

#[test]
fn the_reference_has_exactly_the_figures_of_the_table() {
    let page = file("docs/metrics.md");
    assert!(page.contains(&markdown()), "docs/metrics.md is to have this table:\n\n{}", markdown());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for name in page.split(|c| !is_name(c)).filter(|name| name.starts_with("pyoco_")) {
        assert!(TABLE.iter().any(|known| known.name == name) || figure(name).is_some(), "{name}");
    }
}

#[test]
fn every_alert_asks_for_figures_that_exist_and_says_what_to_do() {
    let texts = scalars(&file("examples/monitoring/prometheus-alerts.yml"));
    let of = |key: &str| -> Vec<&String> {
        texts
            .iter()
            .zip(texts.iter().skip(1))
            .filter(|(found, _)| *found == key)
            .map(|(_, value)| value)
            .collect()
    };
    let alerts = of("alert");
    assert!(alerts.len() >= 10, "{alerts:?}");
    for query in of("expr") {
        assert!(check(query) > 0, "{query}");
    }
    for key in ["expr", "severity", "summary", "description"] {
        assert_eq!(of(key).len(), alerts.len(), "{key} of each of {alerts:?}");
    }
    let mut names = alerts.clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), alerts.len(), "{alerts:?}");
}

#[test]
fn every_panel_of_the_dashboard_asks_for_figures_that_exist() {
    let dashboard: Value = serde_json::from_str(&file("examples/monitoring/grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = Vec::new();
    for panel in panels {
        ids.push(panel["id"].as_u64().unwrap());
        if panel["type"] == "row" {
            continue;
        }
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        for target in targets {
            assert!(check(target["expr"].as_str().unwrap()) > 0, "{target}");
        }
    }
    let panels = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() == panels && panels >= 12, "{ids:?}");
}

#[test]
fn a_name_or_a_label_that_does_not_exist_is_found() {
    assert_eq!(check("sum by (tag) (pyoco_queue_depth{tag=\"cpu\"}) / up > 3"), 2);
    assert_eq!(
        check("histogram_quantile(0.99, sum by (le) (rate(pyoco_submit_duration_seconds_bucket[5m])))"),
        1
    );
    for wrong in [
        "pyoco_queue_length",
        "pyoco_submit_duration_seconds",
        "pyoco_queue_depth_bucket",
        "pyoco_queue_depth{flow=\"x\"}",
        "sum by (tenant) (pyoco_queue_depth)",
    ] {
        assert!(std::panic::catch_unwind(|| check(wrong)).is_err(), "{wrong}");
    }
}
