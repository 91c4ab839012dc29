//! `watch` and `cancel --wait`: a run while it goes on.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use futures_util::StreamExt as _;
use pyoco_client::api::{RunSnapshot, WatchEvent};
use pyoco_client::{Answer, Client, WatchOptions, is_terminal};
use serde_json::Value;

use super::options::{Watch, WatchForm};
use super::progress::{Progress, summary};
use crate::errors::Failure;
use crate::output::{self, can_show_progress, cell, has_colours};

pub(super) async fn watch(client: &Client, options: &Watch) -> Result<(), Failure> {
    let asked = WatchOptions {
        include_records: options.records,
        since: options.since,
        timeout_sec: options.timeout_sec,
    };
    let mut events = client.watch_run(&options.run_id, asked).await?;
    let mut display = Display::new(options.form());
    let mut shown = 0_i64;
    while let Some(event) = events.next().await {
        let event = event?;
        display.show(&event)?;
        shown += 1;
        let has_ended = event.data.snapshot.as_ref().is_some_and(|run| is_terminal(run.status));
        if (options.max_events > 0 && shown >= options.max_events) || (options.until_terminal && has_ended) {
            break;
        }
    }
    display.finish()
}

pub(super) async fn cancel(
    client: &Client,
    run_id: &str,
    wait: bool,
    timeout_sec: u32,
) -> Result<(), Failure> {
    let run = client.cancel_run(run_id, None).await?;
    if !wait || is_terminal(run.status) {
        return output::json(run.json());
    }
    let progress = can_show_progress().then(Progress::start);
    let show = |run: &RunSnapshot| {
        if let Some(progress) = &progress {
            progress.show(run);
        }
    };
    show(&run);
    let limit = Duration::from_secs(timeout_sec.into());
    let run = client.wait_for_end(run_id, limit, show).await;
    drop(progress);
    output::json(run?.json())
}

/// How events are shown.
enum Display {
    Json,
    /// A line an event, for programs.
    Lines,
    /// A line that moves, for people, and the last snapshot for the end.
    Live(Progress, Option<Box<RunSnapshot>>),
}

impl Display {
    fn new(form: WatchForm) -> Self {
        match form {
            WatchForm::Json => Self::Json,
            WatchForm::Status if io::stdout().is_terminal() && can_show_progress() => {
                Self::Live(Progress::start(), None)
            }
            WatchForm::Status => Self::Lines,
        }
    }

    fn show(&mut self, event: &Answer<WatchEvent>) -> Result<(), Failure> {
        match self {
            Self::Json => output::json(event.json()),
            Self::Lines => output::line(&status_line(event.json())),
            Self::Live(progress, last) => {
                if let Some(run) = &event.data.snapshot {
                    progress.show(run);
                    *last = Some(run.clone());
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Json | Self::Lines | Self::Live(_, None) => Ok(()),
            Self::Live(progress, Some(run)) => {
                drop(progress);
                output::line(&summary(&run, has_colours()))
            }
        }
    }
}

/// Time, event, status and run, separated by tabs.
fn status_line(event: &Value) -> String {
    let at = |path: &str| event.pointer(path).filter(|value| !value.is_null());
    let ts = at("/data/ts").or_else(|| at("/data/snapshot/updated_at"));
    let run_id = at("/data/run_id").or_else(|| at("/data/snapshot/run_id"));
    [ts, at("/event"), at("/data/snapshot/status"), run_id].map(cell).join("\t")
}
