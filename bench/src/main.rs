//! The load generator and the processes that it measures. `make bench` prints the table.

mod args;
mod bare;
mod broker;
mod clock;
mod distributed;
mod execution;
mod figures;
mod flows;
mod http;
mod job;
mod load;
mod machine;
mod measure;
mod original;
mod ours;
mod process;
mod sse;
mod stats;
mod subject;
mod table;
mod tagged;
mod tape;
mod targets;
mod trial;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::broker::Sync;
use crate::distributed::Distributed;
use crate::figures::{Figures, Part};
use crate::original::Original;
use crate::ours::Ours;
use crate::subject::Places;

/// Whatever went wrong, for a person.
pub(crate) type Failure = Box<dyn std::error::Error>;

const MISSED: u8 = 2;
const INTERRUPTED: u8 = 130;
/// The whole bench, without the installation of packages.
const PATIENCE: Duration = Duration::from_secs(2400);
/// As many as the original has.
const WORKERS: usize = 2;

/// One thread: the generator takes one core at most from what it measures.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Whatever is dropped takes its processes with it, so an interruption only has to drop.
    let end = tokio::select! {
        end = bench() => end,
        () = interruption() => Ok(ExitCode::from(INTERRUPTED)),
    };
    end.unwrap_or_else(|error| {
        say(&format!("pyoco-bench: {error}\n"));
        ExitCode::FAILURE
    })
}

async fn interruption() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {},
        _ = terminate.recv() => {},
    }
}

async fn bench() -> Result<ExitCode, Failure> {
    let args = args::parse(std::env::args().skip(1))?;
    if args.help {
        return Ok(print(args::HELP).map(|()| ExitCode::SUCCESS)?);
    }
    let places = Places::new();
    let python = original::find_python(args.python.clone()).await;
    let original = match &python {
        Ok(python) if !args.skip_original => {
            progress("packages", "installing");
            Some(Original::install(&places, python).await?)
        }
        Ok(_) => None,
        Err(error) => {
            say(&format!("The original is not measured: {error}. Name one with --python.\n"));
            None
        }
    };
    let machine = machine::describe(&places)?;
    let python = original_python(&places, python.ok());
    let ours_on_nats = Distributed {
        places: &places,
        python: python.clone(),
        sync: Sync::Default,
        workers: WORKERS,
        runs_at_once: args.runs_at_once,
    };
    let measured = tokio::time::timeout(PATIENCE, async {
        let figures = match &original {
            Some(original) if args.parts.include_any(&Part::EMBEDDED) => {
                measure::measure(original, &args.parts).await
            }
            Some(_) | None => Figures::default(),
        };
        let ours = measure_ours(&args, &places, python).await;
        let trials = trial::measure(&args, original.as_ref(), &ours_on_nats, &figures).await;
        (figures, ours, trials)
    });
    let (original, ours, trials) = measured.await.map_err(|_| format!("not done after {PATIENCE:?}"))?;

    let mut report = format!("{machine}\n\n");
    let mut verdicts = Vec::new();
    if is_embedded(&args) {
        verdicts = targets::verdicts(&ours, &original);
        report.push_str(&table::embedded(&ours, &original, &verdicts));
    }
    for trial in &trials {
        let of_trial = targets::verdicts_on_nats(trial);
        report.push_str(&table::distributed(trial, &of_trial));
        verdicts.extend(of_trial);
    }
    std::fs::write(&places.report, &report)?;
    print(&report)?;
    let is_missed = verdicts.iter().any(|verdict| !verdict.is_met);
    let has_failed = [&ours, &original].iter().any(|figures| !figures.problems.is_empty())
        || trials.iter().any(|trial| trial.problems().next().is_some());
    Ok(if has_failed {
        ExitCode::FAILURE
    } else if args.check && is_missed {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    })
}

async fn measure_ours(args: &Args, places: &Places, python: PathBuf) -> Figures {
    if args.skip_ours || !is_embedded(args) {
        return Figures::default();
    }
    match Ours::new(places, python) {
        Ok(ours) => {
            let mut figures = measure::measure(&ours, &args.parts).await;
            figures.add(measure::executions::measure(&ours, &args.parts).await);
            figures
        }
        Err(error) => Figures { problems: vec![error.to_string()], ..Figures::default() },
    }
}

/// Whether anything was asked for of the server with its embedded store.
fn is_embedded(args: &Args) -> bool {
    args.parts.include_any(&Part::EMBEDDED) || args.parts.include_any(&Part::EXECUTIONS)
}

/// The interpreter of the original's packages, so that both run the same Python; else any.
fn original_python(places: &Places, found: Option<PathBuf>) -> PathBuf {
    let installed = places.venv.join("bin/python");
    if installed.exists() { installed } else { found.unwrap_or_else(|| "python3".into()) }
}

/// What the bench is doing, for whoever waits.
pub(crate) fn progress(subject: &str, step: &str) {
    say(&format!("{subject}: {step} …\n"));
}

/// To stderr; nobody there to read it is no reason to stop.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn print(text: &str) -> std::io::Result<()> {
    std::io::stdout().write_all(text.as_bytes())
}
