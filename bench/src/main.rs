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
mod packages;
mod peers;
mod process;
mod raw;
mod sse;
mod stats;
mod subject;
mod table;
mod tagged;
mod tape;
mod targets;
mod trial;
mod wire;

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
const PATIENCE: Duration = Duration::from_secs(3000);
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
    if !args.growth.is_empty() {
        return measure_growth(&args, &places, original_python(&places, python.ok())).await;
    }
    let original = match &python {
        Ok(python) if !args.skip_original && is_compared(&args) => {
            progress("packages", "installing");
            Some(Original::install(&places, python).await?)
        }
        Ok(_) => None,
        Err(error) => {
            say(&format!("The original is not measured: {error}. Name one with --python.\n"));
            None
        }
    };
    let peers = install_peers(&args, &places, &python).await;
    let machine = machine::describe(&places)?;
    let python = original_python(&places, python.ok());
    let ours_on_nats = Distributed {
        places: &places,
        python: python.clone(),
        sync: Sync::Default,
        workers: WORKERS,
        runs_at_once: args.runs_at_once,
        is_together: false,
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
        let peers = peers::measure(&places, peers).await;
        let limits = if args.parts.include(Part::Raw) { Some(raw::measure(&places).await) } else { None };
        (figures, ours, trials, peers, limits)
    });
    let (original, ours, trials, peers, limits) =
        measured.await.map_err(|_| format!("not done after {PATIENCE:?}"))?;

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
    if !peers.is_empty() {
        report.push_str(&peers::markdown(&ours, &original, &peers));
    }
    if let Some(limits) = &limits {
        report.push_str(&raw::markdown(limits));
    }
    std::fs::write(&places.report, &report)?;
    print(&report)?;
    let is_missed = verdicts.iter().any(|verdict| !verdict.is_met);
    let has_failed = [&ours, &original].iter().any(|figures| !figures.problems.is_empty())
        || trials.iter().any(|trial| trial.problems().next().is_some())
        || limits.is_some_and(|limits| !raw::is_complete(&limits));
    Ok(if has_failed {
        ExitCode::FAILURE
    } else if args.check && is_missed {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    })
}

/// How cost grows, and nothing else.
async fn measure_growth(args: &Args, places: &Places, python: PathBuf) -> Result<ExitCode, Failure> {
    let machine = machine::describe(places)?;
    let ours = Ours::new(places, python.clone())?;
    let (workers, runs_at_once, is_together) = (WORKERS, 1, false);
    let on_nats = Distributed { places, python, sync: Sync::Default, workers, runs_at_once, is_together };
    let curves = measure::growth::measure(&args.growth, args.largest, &ours, &on_nats).await;
    let tables: Vec<String> = curves.iter().map(measure::growth::Curve::markdown).collect();
    print(&format!("{machine}\n\n{}", tables.join("\n")))?;
    let has_failed = curves.iter().any(|curve| curve.problem.is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

/// The peers that were asked for. Whoever asks for ours or the original only gets them when naming them.
async fn install_peers(
    args: &Args,
    places: &Places,
    python: &Result<PathBuf, Failure>,
) -> Vec<peers::Installed> {
    let is_asked = args.parts.include(Part::Peers)
        && (args.parts.named.contains(&Part::Peers) || !(args.skip_ours || args.skip_original));
    match python {
        Ok(python) if is_asked => peers::install(places, python, &args.peers).await,
        Ok(_) => Vec::new(),
        Err(_) if is_asked => {
            say("The peers are not measured: they need the same Python.\n");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Whether anything was asked for of which the original has its own.
fn is_compared(args: &Args) -> bool {
    args.parts.include_any(&Part::EMBEDDED) || args.parts.include_any(&Part::NATS)
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
