//! A few seconds of every decoder, always with the same inputs. `make fuzz` goes on for longer, with others.

use std::path::Path;

use pyoco_fuzz::{TARGETS, exercise};

const SEED: u64 = 1;

/// One after the other, because the memory that is looked at is that of the whole process.
#[test]
fn no_bytes_from_outside_make_a_decoder_panic_swell_or_forget_what_it_read() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    for target in TARGETS {
        assert!(!target.samples().is_empty(), "{} has no samples", target.name);
        let outcome = exercise(target, SEED, &folder, |tried| tried < target.quick);
        if let Some(failure) = outcome.failure {
            panic!("{}: {}\nrepeat it with `{}`", target.name, failure.what, failure.command);
        }
        assert!(outcome.read > 0, "{} refuses everything: the rest proves nothing", target.name);
        assert!(outcome.read < outcome.tried, "{} takes everything", target.name);
    }
}

/// The watch itself is watched: a decoder that panics is found, and its input can be read from the file.
#[test]
fn an_input_that_fails_is_found_and_written_down() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-planted");
    let fragile = |bytes: &[u8]| {
        assert!(!bytes.windows(2).any(|pair| pair == b"--"), "it has two dashes");
        true
    };
    let mut target = TARGETS[0];
    target.check = fragile;
    let failure = exercise(&target, SEED, &folder, |tried| tried < 100_000).failure.unwrap();
    assert_eq!(failure.what, "it has two dashes");
    let input = std::fs::read(&failure.file).unwrap();
    assert!(input.windows(2).any(|pair| pair == b"--"));
    assert_eq!(pyoco_fuzz::repeat(&target, &input), Err(failure.what));
}
