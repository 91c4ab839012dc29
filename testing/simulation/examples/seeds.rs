//! One seed with everything that happens in it, or many with what is broken in them:
//! `cargo run -p pyoco-simulation --example seeds -- 42`, `... -- 0..1000000`.
#![allow(clippy::print_stdout, reason = "a report for a person")]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pyoco_simulation::{Seen, Verdict, run, run_with};

fn main() -> ExitCode {
    let Some(wanted) = std::env::args().nth(1) else { return ExitCode::from(2) };
    let broken = match wanted.split_once("..") {
        Some((from, to)) => match (from.parse(), to.parse()) {
            (Ok(from), Ok(to)) => many(from, to),
            _ => return ExitCode::from(2),
        },
        None => match wanted.parse() {
            Ok(seed) => one(seed),
            Err(_) => return ExitCode::from(2),
        },
    };
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn one(seed: u64) -> bool {
    let verdict = run_with(seed, None, true);
    for line in &verdict.lines {
        println!("{line}");
    }
    report(&verdict);
    println!("fingerprint {:016x}", verdict.fingerprint);
    !verdict.broken.is_empty()
}

fn many(from: u64, to: u64) -> bool {
    let (next, seen, broken) = (AtomicU64::new(from), Mutex::new(Seen::default()), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= to {
                        return;
                    }
                    let verdict = run(seed);
                    report(&verdict);
                    broken.fetch_add(u64::from(!verdict.broken.is_empty()), Ordering::Relaxed);
                    let mut all = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *all = all.and(verdict.seen);
                }
            });
        }
    });
    let broken = broken.into_inner();
    println!("{} seeds, {broken} broken", to.saturating_sub(from));
    for (name, count) in seen.into_inner().unwrap_or_default().all() {
        println!("{count:>10} {name}");
    }
    broken > 0
}

fn report(verdict: &Verdict) {
    for promise in &verdict.broken {
        println!("seed {}: {promise}", verdict.seed);
    }
    if !verdict.broken.is_empty() {
        println!("again with: cargo run -p pyoco-simulation --example seeds -- {}", verdict.seed);
    }
}
