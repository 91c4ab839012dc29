//! Tries decoders with new inputs for a while, or repeats one input:
//! `fuzz MINUTES [TARGET]`, `fuzz repeat TARGET FILE`. With `fuzz MINUTES TARGET SEED` the inputs are those of that seed.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a report for a person, and a seed that nobody has used"
)]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pyoco_fuzz::{TARGETS, Target, exercise, repeat, target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["repeat", name, file] => match (target(name), std::fs::read(file)) {
            (Some(target), Ok(input)) => one(target, &input),
            (None, _) | (_, Err(_)) => ExitCode::from(2),
        },
        [minutes, rest @ ..] => {
            let named: Vec<&Target> = TARGETS
                .iter()
                .filter(|target| rest.first().is_none_or(|name| *name == target.name))
                .collect();
            let seed = rest.get(1).and_then(|seed| seed.parse().ok()).unwrap_or_else(any_seed);
            match minutes.parse::<f64>() {
                Ok(minutes) if !named.is_empty() => many(&named, minutes, seed),
                Ok(_) | Err(_) => ExitCode::from(2),
            }
        }
        [] => ExitCode::from(2),
    }
}

fn any_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn one(target: &Target, input: &[u8]) -> ExitCode {
    match repeat(target, input) {
        Ok(()) => {
            println!("{}: nothing is wrong with it", target.name);
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("{}: {what}", target.name);
            ExitCode::FAILURE
        }
    }
}

/// Each has its share of the time.
fn many(targets: &[&Target], minutes: f64, seed: u64) -> ExitCode {
    let share =
        Duration::from_secs_f64(minutes.clamp(0.0, 1e6) * 60.0) / u32::try_from(targets.len()).unwrap_or(1);
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        let over = Instant::now() + share;
        let outcome = exercise(target, seed, Path::new("target/fuzz"), |_| Instant::now() < over);
        println!("{:>16}: seed {seed}, {} inputs, {} read", target.name, outcome.tried, outcome.read);
        if let Some(failure) = outcome.failure {
            println!("{}: {}\nrepeat it with `{}`", target.name, failure.what, failure.command);
            code = ExitCode::FAILURE;
        }
    }
    code
}
