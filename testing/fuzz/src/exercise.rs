//! Trying a target: inputs from a seed, an eye on the memory, and a file for the input that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pyoco_core::digest::Digest;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::damage::damaged;
use crate::targets::Target;

/// So many inputs are tried between two looks at the memory.
const BATCH: u64 = 128;
/// No input of 64 KiB may take more than this. A limit of ours is a few MiB; what a decoder would reserve because a number in its input
/// says so would be far more.
const MOST_KIB: u64 = 48 * 1024;

/// An input that failed.
#[derive(Debug)]
pub struct Failure {
    /// Where it was written to.
    pub file: PathBuf,
    /// What happened.
    pub what: String,
    /// The command that repeats it.
    pub command: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// How many inputs were tried.
    pub tried: u64,
    /// How many of them were read, and not refused.
    pub read: u64,
    /// The first that failed.
    pub failure: Option<Failure>,
}

/// Tries a target with what a seed makes of its samples, for as long as `goes_on` says so, by the number of inputs so far.
pub fn exercise(target: &Target, seed: u64, folder: &Path, mut goes_on: impl FnMut(u64) -> bool) -> Outcome {
    let samples = target.samples();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut outcome = Outcome { tried: 0, read: 0, failure: None };
    let mut first = samples.clone().into_iter();
    while goes_on(outcome.tried) {
        // First the samples as they are.
        let batch: Vec<Vec<u8>> =
            (0..BATCH).map(|_| first.next().unwrap_or_else(|| damaged(&samples, &mut rng))).collect();
        let before = reset_peak();
        for input in &batch {
            outcome.tried += 1;
            match attempt(target, input) {
                Ok(was_read) => outcome.read += u64::from(was_read),
                Err(what) => {
                    outcome.failure = Some(write_down(target, input, what, folder));
                    return outcome;
                }
            }
        }
        if grown(before) > MOST_KIB
            && let Some((input, kib)) =
                batch.iter().map(|input| (input, weigh(target, input))).max_by_key(|(_, kib)| *kib)
            && kib > MOST_KIB
        {
            outcome.failure = Some(write_down(target, input, format!("it took {kib} KiB"), folder));
            return outcome;
        }
    }
    outcome
}

/// Tries one input. Says what happened if it failed.
pub fn repeat(target: &Target, input: &[u8]) -> Result<(), String> {
    attempt(target, input)?;
    match weigh(target, input) {
        kib if kib > MOST_KIB => Err(format!("it took {kib} KiB")),
        _ => Ok(()),
    }
}

fn attempt(target: &Target, input: &[u8]) -> Result<bool, String> {
    catch_unwind(AssertUnwindSafe(|| (target.check)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "it panicked".to_owned())
    })
}

fn write_down(target: &Target, input: &[u8], what: String, folder: &Path) -> Failure {
    let digest = Digest::of_bytes(input).to_string();
    let file = folder.join(format!("{}-{}", target.name, digest.get(..12).unwrap_or_default()));
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(&file, input).unwrap();
    let command =
        format!("cargo run -p pyoco-fuzz --example fuzz -- repeat {} {}", target.name, file.display());
    Failure { file, what, command }
}

fn weigh(target: &Target, input: &[u8]) -> u64 {
    let before = reset_peak();
    // Whether it fails was looked at before.
    let _ = attempt(target, input);
    grown(before)
}

/// Forgets the peak of memory so far, where the system can, and says what is in use now.
fn reset_peak() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

fn grown(before: Option<u64>) -> u64 {
    match (before, status("VmHWM:")) {
        (Some(before), Some(peak)) => peak.saturating_sub(before),
        (None, _) | (_, None) => 0,
    }
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
