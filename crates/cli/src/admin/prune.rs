//! `prune`: removes runs that ended long ago, and says how many.

use std::io::{self, IsTerminal as _};

use pyoco_core::time::Timestamp;
use pyoco_server::admin::{Pruned, prune};
use pyoco_server::{Clock as _, Config, SystemClock};
use serde_json::json;

use super::arguments::Prune;
use super::{UNKNOWN, failed, listing};
use crate::errors::Failure;
use crate::output;

pub(super) async fn run(config: &Config, options: &Prune) -> Result<(), Failure> {
    let before = match options.before {
        Some(before) => before,
        None => kept_since(config)?,
    };
    let most = options.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let shows_progress = output::can_show_progress() && !options.dry_run;
    let told = |so_far: Pruned| {
        if shows_progress && so_far.removed > 0 {
            output::aside(&format!("{} removed so far", so_far.removed));
        }
    };
    let Pruned { removed, left } =
        prune(config, before, most, options.dry_run, told).await.map_err(|error| failed(&error))?;
    if options.json || !io::stdout().is_terminal() {
        let before = before.as_unix_seconds();
        return output::json(
            &json!({"before": before, "dry_run": options.dry_run, "removed": removed, "left": left}),
        );
    }
    let (runs, were) = if removed == 1 { ("run", "was") } else { ("runs", "were") };
    let done = if options.dry_run { "would be" } else { were };
    output::line(&format!("{removed} {runs} that ended before {} {done} removed", listing::second(before)))?;
    if left > 0 {
        output::aside(&format!(
            "{left} stay: their logs cannot be read, or somebody writes to them; see `pyoco-server doctor`"
        ));
    }
    Ok(())
}

/// As the server would by itself.
fn kept_since(config: &Config) -> Result<Timestamp, Failure> {
    let Some(retention) = config.runs_retention else {
        let why = "runs are kept for ever (PYOCO_RUNS_RETENTION_SEC=0): say with --before which are to go";
        return Err(Failure::arguments(why).exiting(UNKNOWN));
    };
    let micros = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_micros(SystemClock.now().as_micros().saturating_sub(micros)))
}
