//! How far a file is on its way: a bar on a terminal, a line now and then elsewhere, both on standard error.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{self, can_show_progress, may_colour, one_line};

/// Of a smaller file there is nothing to tell before it is there.
const WORTH_TELLING: u64 = 8 << 20;
/// There is a line after so many hundredths.
const STEP: u64 = 10;

/// A file on its way. Clones show the same one.
#[derive(Clone)]
pub(super) struct Transfer {
    what: String,
    size: Arc<AtomicU64>,
    shown: Shown,
}

#[derive(Clone)]
enum Shown {
    Bar(ProgressBar),
    /// How many steps have been told.
    Lines(Arc<AtomicU64>),
}

impl Transfer {
    pub(super) fn start(verb: &str, path: &Path, size: u64) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let what = format!("{verb} {}", one_line(&name));
        let shown = if can_show_progress() {
            let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
            bar.set_style(style());
            bar.set_message(what.clone());
            Shown::Bar(bar)
        } else {
            Shown::Lines(Arc::default())
        };
        Self { what, size: Arc::new(AtomicU64::new(size)), shown }
    }

    /// It is so long, as has turned out.
    pub(super) fn expect(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
        if let Shown::Bar(bar) = &self.shown {
            bar.set_length(size);
        }
    }

    /// So many bytes of it are through.
    pub(super) fn show(&self, through: u64) {
        let size = self.size.load(Ordering::Relaxed);
        match &self.shown {
            Shown::Bar(bar) => bar.set_position(through),
            Shown::Lines(told) => {
                if let Some(line) = line(&self.what, through, size, told) {
                    output::aside(&line);
                }
            }
        }
    }

    /// It is through, or never will be.
    pub(super) fn end(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// What is told of it, if that was not told before.
fn line(what: &str, through: u64, size: u64, told: &AtomicU64) -> Option<String> {
    if size < WORTH_TELLING {
        return None;
    }
    let percent = through.saturating_mul(100) / size;
    let step = percent / STEP;
    let is_new = told.fetch_max(step, Ordering::Relaxed) < step;
    let mib = |bytes: u64| bytes >> 20;
    is_new.then(|| format!("{what}: {}% ({} of {} MiB)", step * STEP, mib(through), mib(size)))
}

fn style() -> ProgressStyle {
    let template = if may_colour() {
        "{msg} [{bar:24.cyan}] {bytes}/{total_bytes} {bytes_per_sec:.dim} {eta:.dim}"
    } else {
        "{msg} [{bar:24}] {bytes}/{total_bytes} {bytes_per_sec} {eta}"
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_told_of_every_tenth_and_a_short_one_not_at_all() {
        let told = AtomicU64::new(0);
        let size = 200 << 20;
        let lines: Vec<String> =
            (0..=200_u64).filter_map(|mib| line("uploading a", mib << 20, size, &told)).collect();
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[0], "uploading a: 10% (20 of 200 MiB)");
        assert_eq!(lines[9], "uploading a: 100% (200 of 200 MiB)");
        let told = AtomicU64::new(0);
        assert_eq!(line("uploading a", 1 << 20, 1 << 20, &told), None);
        assert_eq!(line("uploading a", 0, 0, &told), None);
    }
}
