//! All peers beside this server and the original: a row for each.

use std::fmt::Write as _;

use super::Measured;
use crate::figures::{Figures, Metric, thousands};
use crate::stats::Figure;
use crate::table::value;

/// The columns but for the list, with what stands above them.
const COLUMNS: [(Metric, &str); 5] = [
    (Metric::Submit, "submit, 16 callers, /s"),
    (Metric::EndToEnd, "end to end, one task, /s"),
    (Metric::SingleRun, "one run, idle, ms"),
    (Metric::ChainWhole, "chain of 40, ms"),
    (Metric::FanOutWhole, "fan-out of 400, ms"),
];
/// For how many stored runs this server and the original are told.
const STORED: usize = 20_000;
const NOTHING: &str = "–";

/// The report on the peers.
pub(crate) fn markdown(ours: &Figures, original: &Figures, peers: &[Measured]) -> String {
    let mut text = "\nNext to what people use. Median, and p99 in parentheses. A run is seen from its submission to its end.\n\n|  |".to_owned();
    for (_, title) in COLUMNS {
        // Writing to a String cannot fail.
        let _ = write!(text, " {title} |");
    }
    text.push_str(
        " list newest 50, ms | memory of all processes, idle, MiB |\n|---|---|---|---|---|---|---|---|\n",
    );
    let known = [("this server", ours), ("pyoco-server 0.5.1", original)];
    let all = known.into_iter().chain(peers.iter().map(|peer| (peer.name, &peer.figures)));
    for (name, figures) in all.filter(|(_, figures)| !figures.of.is_empty()) {
        let _ = writeln!(text, "{}", row(name, figures));
    }
    text.push_str("\n| | version | what is on disk when it has answered | n: end to end, one run, graphs |\n|---|---|---|---|\n");
    let version = concat!("pyoco-server ", env!("CARGO_PKG_VERSION"));
    let known = [
        ("this server", version, "SQLite with a write-ahead log, synced before the answer", ours),
        ("pyoco-server 0.5.1", "with a nats-server 2.15.1", "JetStream, synced every two minutes", original),
    ];
    let peers_told = peers.iter().map(|peer| (peer.name, &*peer.versions, &*peer.durability, &peer.figures));
    for (name, version, durability, figures) in known.into_iter().chain(peers_told) {
        if !figures.of.is_empty() {
            let _ = writeln!(text, "| {name} | {version} | {durability} | {} |", samples(figures));
        }
    }
    for peer in peers {
        for problem in &peer.figures.problems {
            let _ = write!(text, "\nNot measured ({}): {problem}\n", peer.name);
        }
        for (metric, figure) in peer.figures.of.iter().filter(|(_, figure)| figure.failed > 0) {
            let _ = write!(text, "\nFailed ({}, {}): {} calls\n", peer.name, metric.title(), figure.failed);
        }
    }
    text
}

fn row(name: &str, figures: &Figures) -> String {
    let mut cells = vec![name.to_owned()];
    cells
        .extend(COLUMNS.map(|(metric, _)| figures.of.get(&metric).map_or_else(|| NOTHING.to_owned(), value)));
    cells.push(list(figures).unwrap_or_else(|| NOTHING.to_owned()));
    cells.push(figures.of.get(&Metric::MemoryOfAll).map_or_else(|| NOTHING.to_owned(), value));
    format!("| {} |", cells.join(" | "))
}

/// A peer has one list, of as many runs as it had; this server and the original have one of as many as is asked for here.
fn list(figures: &Figures) -> Option<String> {
    let lists = figures.of.iter().filter_map(|(metric, figure)| {
        if let Metric::List { stored } = metric { Some((*stored, figure)) } else { None }
    });
    let mut lists: Vec<(usize, &Figure)> = lists.collect();
    lists.sort_by_key(|(stored, _)| stored.abs_diff(STORED));
    lists.first().map(|(stored, figure)| format!("{} of {}", value(figure), thousands(*stored)))
}

fn samples(figures: &Figures) -> String {
    let of = [Metric::EndToEnd, Metric::SingleRun, Metric::FanOutWhole];
    of.map(|metric| {
        figures.of.get(&metric).map_or_else(|| NOTHING.to_owned(), |figure| figure.samples.to_string())
    })
    .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_every_figure_also_for_those_that_are_missing() {
        let of = [
            (Metric::Submit, Figure::single(5_300.0, 1, 0)),
            (Metric::SingleRun, Figure { middle: 4.3, p99: Some(9.0), samples: 300, failed: 0 }),
            (Metric::List { stored: 27_000 }, Figure::single(23.0, 1, 0)),
        ];
        let figures = Figures { of: of.into(), problems: Vec::new() };
        assert_eq!(
            row("Restate", &figures),
            "| Restate | 5300 | – | 4.30 (9.00) | – | – | 23.0 of 27,000 | – |"
        );
        assert_eq!(samples(&figures), "–, 300, –");
    }

    #[test]
    fn of_several_lists_the_one_of_20_000_is_told() {
        let one = |stored, time| (Metric::List { stored }, Figure::single(time, 1, 0));
        let of = [one(1_000, 1.0), one(20_000, 2.0), one(100_000, 3.0)];
        let figures = Figures { of: of.into(), problems: Vec::new() };
        assert_eq!(list(&figures), Some("2.00 of 20,000".to_owned()));
    }
}
