//! The report, in markdown.

use std::fmt::Write as _;

use crate::figures::{Figures, Metric};
use crate::stats::Figure;
use crate::targets::Verdict;

/// The whole report.
pub(crate) fn report(machine: &str, ours: &Figures, original: &Figures, verdicts: &[Verdict]) -> String {
    let mut text = format!("{machine}\n\n");
    text.push_str("Median, and p99 in parentheses; `n` is the number of samples, `failed` of answers that were not 200.\n\n");
    text.push_str(
        "| what | unit | ours | original | ours is better by | n | failed |\n|---|---|---|---|---|---|---|\n",
    );
    let mut metrics: Vec<Metric> = ours.of.keys().chain(original.of.keys()).copied().collect();
    metrics.sort_unstable();
    metrics.dedup();
    for metric in metrics {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", row(metric, ours.of.get(&metric), original.of.get(&metric)));
    }
    text.push_str("\n| target | measured | met |\n|---|---|---|\n");
    for Verdict { target, measured, unit, is_met } in verdicts {
        let measured = measured.map(|measured| format!("{} {unit}", number(measured)));
        let met = match (&measured, is_met) {
            (None, _) => "not measured",
            (Some(_), true) => "yes",
            (Some(_), false) => "**no**",
        };
        let _ = writeln!(text, "| {target} | {} | {met} |", measured.as_deref().unwrap_or("–"));
    }
    for (name, figures) in [("ours", ours), ("original", original)] {
        for problem in &figures.problems {
            let _ = write!(text, "\nFailed ({name}): {problem}\n");
        }
    }
    text
}

fn row(metric: Metric, ours: Option<&Figure>, original: Option<&Figure>) -> String {
    let ratio = ours.zip(original).map(|(ours, original)| {
        let times = ours.middle / original.middle;
        format!("{}×", number(if metric.is_rate() { times } else { 1.0 / times }))
    });
    let both = |tell: fn(&Figure) -> String| {
        let tell = |figure: Option<&Figure>| figure.map_or_else(|| "–".to_owned(), tell);
        (tell(ours), tell(original))
    };
    let (our_value, original_value) = both(value);
    let (our_count, original_count) = both(|figure| figure.samples.to_string());
    let (our_failed, original_failed) = both(|figure| figure.failed.to_string());
    format!(
        "| {} | {} | {our_value} | {original_value} | {} | {our_count} / {original_count} | {our_failed} / {original_failed} |",
        metric.title(),
        metric.unit(),
        ratio.as_deref().unwrap_or("–"),
    )
}

fn value(figure: &Figure) -> String {
    match figure.p99 {
        Some(p99) => format!("{} ({})", number(figure.middle), number(p99)),
        None => number(figure.middle),
    }
}

/// Three digits that matter, or all before the point.
fn number(value: f64) -> String {
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
