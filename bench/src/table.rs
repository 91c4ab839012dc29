//! The report, in markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::figures::{Figures, Metric};
use crate::stats::Figure;
use crate::targets::Verdict;
use crate::trial::Trial;

/// What the figures mean.
const LEGEND: &str = "Median, and p99 in parentheses; `n` is the number of samples, `failed` of requests that were not answered as asked.\n";

/// The server with its embedded store, and its targets.
pub(crate) fn embedded(ours: &Figures, original: &Figures, verdicts: &[Verdict]) -> String {
    let mut text = format!("{LEGEND}\n");
    text.push_str(
        "| what | unit | ours | original | ours is better by | n | failed |\n|---|---|---|---|---|---|---|\n",
    );
    for metric in metrics(&[ours, original]) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", row(metric, ours.of.get(&metric), original.of.get(&metric)));
    }
    text.push_str(&targets(verdicts));
    for (name, figures) in [("ours", ours), ("original", original)] {
        for problem in &figures.problems {
            let _ = write!(text, "\nFailed ({name}): {problem}\n");
        }
    }
    text
}

/// Gateway and workers around a nats-server, and their targets.
pub(crate) fn distributed(trial: &Trial, verdicts: &[Verdict]) -> String {
    let mut text = format!("\nOn NATS, {}. {LEGEND}\n", trial.sync);
    text.push_str(
        "| what | unit | ours | original | ours is better by | bare loop | ours / bare | n | failed |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for metric in metrics(&[&trial.ours, &trial.original, &trial.bare]) {
        let (ours, bare) = (trial.ours.of.get(&metric), trial.bare.of.get(&metric));
        let share = ours.zip(bare).map(|(ours, bare)| number(ours.middle / bare.middle));
        let bare = [bare.map(value), share].map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        let (both, counts) = cells(metric, ours, trial.original.of.get(&metric));
        let _ = writeln!(text, "| {} | {} | {} |", both.join(" | "), bare.join(" | "), counts.join(" | "));
    }
    text.push_str(&targets(verdicts));
    for (name, tape) in &trial.tapes {
        let _ = write!(
            text,
            "\nWhat ours sends for {name}:\n\n| message | headers, bytes | body, bytes |\n|---|---|---|\n"
        );
        for sent in &tape.sent {
            let (title, headers, body) = (sent.title(), sent.header_bytes(), sent.payload.len());
            let _ = writeln!(text, "| {title} | {headers} | {body} |");
        }
    }
    for (name, problem) in trial.problems() {
        let _ = write!(text, "\nFailed ({name}, {}): {problem}\n", trial.sync);
    }
    text
}

fn metrics(all: &[&Figures]) -> BTreeSet<Metric> {
    all.iter().flat_map(|figures| figures.of.keys()).copied().collect()
}

fn targets(verdicts: &[Verdict]) -> String {
    let mut text = "\n| target | measured | met |\n|---|---|---|\n".to_owned();
    for Verdict { target, measured, unit, is_met } in verdicts {
        let measured = measured.map(|measured| format!("{} {unit}", number(measured)));
        let met = match (&measured, is_met) {
            (None, _) => "not measured",
            (Some(_), true) => "yes",
            (Some(_), false) => "**no**",
        };
        let _ = writeln!(text, "| {target} | {} | {met} |", measured.as_deref().unwrap_or("–"));
    }
    text
}

fn row(metric: Metric, ours: Option<&Figure>, original: Option<&Figure>) -> String {
    let (both, counts) = cells(metric, ours, original);
    format!("| {} | {} |", both.join(" | "), counts.join(" | "))
}

/// What is told of a metric, and how many samples and failures there were.
fn cells(metric: Metric, ours: Option<&Figure>, original: Option<&Figure>) -> ([String; 5], [String; 2]) {
    let ratio = ours.zip(original).map(|(ours, original)| {
        let times = ours.middle / original.middle;
        format!("{}×", number(if metric.is_rate() { times } else { 1.0 / times }))
    });
    let both = |tell: fn(&Figure) -> String| {
        [ours, original].map(|figure| figure.map_or_else(|| "–".to_owned(), tell))
    };
    let [our_value, original_value] = both(value);
    let ratio = ratio.unwrap_or_else(|| "–".to_owned());
    let counts = [both(|figure| figure.samples.to_string()), both(|figure| figure.failed.to_string())];
    (
        [metric.title(), metric.unit().to_owned(), our_value, original_value, ratio],
        counts.map(|both| both.join(" / ")),
    )
}

pub(crate) fn value(figure: &Figure) -> String {
    match figure.p99 {
        Some(p99) => format!("{} ({})", number(figure.middle), number(p99)),
        None => number(figure.middle),
    }
}

/// Three digits that matter, or all before the point.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_both_and_how_much_better_ours_is() {
        let ours = Figure { middle: 2.0, p99: Some(4.5), samples: 300, failed: 0 };
        let original = Figure { middle: 500.0, p99: Some(900.25), samples: 60, failed: 1 };
        assert_eq!(
            row(Metric::WatchAge, Some(&ours), Some(&original)),
            "| age of a watch event on arrival | ms | 2.00 (4.50) | 500 (900) | 250× | 300 / 60 | 0 / 1 |"
        );
        let rate = |value| Figure::single(value, 1, 0);
        let row = row(Metric::Submit, Some(&rate(50.0)), Some(&rate(100.0)));
        assert!(row.contains("| 50.0 | 100 | 0.50× |"), "{row}");
    }
}
