//! `pyoco-chaos --store sqlite|nats|nats3 --minutes N [--seed S] [--programs DIR]`: a trial. It is also the server and the worker of
//! its own trials, with places to fail at, unless it is given the folder of those that are shipped.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use pyoco_chaos::fleet::Kind;
use pyoco_chaos::site::Programs;
use pyoco_chaos::storm::{Trial, run};
use pyoco_chaos::{scenes, storm};

const USAGE: &str =
    "pyoco-chaos --store sqlite|nats|nats3 --minutes N [--seed S] [--pause MILLISECONDS] [--programs DIR]";

fn main() -> ExitCode {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    match arguments.get(1).and_then(|argument| argument.to_str()) {
        Some("server") => {
            arguments.remove(1);
            pyoco_cli::serve::server(arguments)
        }
        Some("worker") => {
            arguments.remove(1);
            pyoco_cli::serve::worker(arguments)
        }
        Some("scene") => scene(&arguments),
        _ => match trial() {
            Some(trial) => storm(&trial),
            None => {
                eprintln!("{USAGE}");
                ExitCode::from(2)
            }
        },
    }
}

fn runtime() -> tokio::runtime::Runtime {
    #[allow(clippy::expect_used, reason = "nothing can be done without")]
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A small stage for one planted mistake: what was found is written, a line each.
fn scene(arguments: &[std::ffi::OsString]) -> ExitCode {
    let Some(name) = arguments.get(2).and_then(|name| name.to_str()) else { return ExitCode::from(2) };
    for violation in runtime().block_on(scenes::play(name)) {
        println!("{} {}", violation.rule, violation.what);
    }
    ExitCode::SUCCESS
}

#[allow(clippy::disallowed_methods, reason = "a seed that nobody has named comes from the clock")]
fn trial() -> Option<Trial> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = given.iter().position(|argument| argument == name)?;
        given.get(place + 1).cloned()
    };
    let kind = Kind::named(&value("--store")?)?;
    let minutes: f64 = value("--minutes")?.parse().ok()?;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let seed = value("--seed").map_or(Some(since.as_secs()), |seed| seed.parse().ok())?;
    let programs = match value("--programs") {
        Some(folder) => Programs::Shipped(PathBuf::from(folder)),
        None => Programs::Own(std::env::current_exe().ok()?),
    };
    let mut trial = Trial::new(kind, Duration::from_secs_f64(minutes * 60.0), seed, programs);
    if let Some(pause) = value("--pause") {
        trial.pause = Duration::from_millis(pause.parse().ok()?);
    }
    Some(trial)
}

fn storm(trial: &storm::Trial) -> ExitCode {
    let (summary, violations) = runtime().block_on(run(trial));
    print!("{summary}");
    for violation in &violations {
        println!("  VIOLATED {}: {}", violation.rule, violation.what);
    }
    println!("  violations: {}", violations.len());
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
