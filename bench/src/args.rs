//! The command line of the bench.

use std::path::PathBuf;

use crate::Failure;
use crate::figures::{Part, Parts};

pub(crate) const HELP: &str = "\
Measures this server and pyoco-server 0.5.1 of PyPI with the same requests, and prints a table.

usage: pyoco-bench [--check] [--only ours|original] [--part PART]... [--python PATH] [--runs-at-once N]

  --check         end with 2 when a target is missed or was not measured
  --only WHICH    measure one of the two
  --part PART     measure starts, memory, single-runs, graphs, watch, throughput, submit or lists of the server with its embedded
                  store; commands, event-streams, history-at, log-lines, log-latency, log-not-modified, tags, keys, prune or metrics of
                  what only this server has; or nats-runs, nats-cancel, nats-submit, nats-lists, nats-workers, nats-commands,
                  nats-log-lines, nats-log-latency, nats-log-not-modified or nats-metrics of gateway and workers around a nats-server;
                  all unless named
  --python PATH   a Python of version 3.12 or later, instead of the one on the PATH
  --runs-at-once N  of each of our two worker processes around a nats-server, and of those that the bare loop stands for; 1, as
                  each of the original's, unless given

example: cargo run --release -p pyoco-bench -- --check
";

/// What was asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Args {
    pub(crate) parts: Parts,
    pub(crate) check: bool,
    pub(crate) help: bool,
    pub(crate) skip_ours: bool,
    pub(crate) skip_original: bool,
    pub(crate) python: Option<PathBuf>,
    pub(crate) runs_at_once: usize,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            parts: Parts::default(),
            check: false,
            help: false,
            skip_ours: false,
            skip_original: false,
            python: None,
            runs_at_once: 1,
        }
    }
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, Failure> {
    let mut args = Args::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => args.check = true,
            "--help" | "-h" => args.help = true,
            "--only" => match words.next().as_deref() {
                Some("ours") => args.skip_original = true,
                Some("original") => args.skip_ours = true,
                Some(_) | None => return Err("--only takes ours or original".into()),
            },
            "--part" => {
                let name = words.next().ok_or("--part takes a name")?;
                let part = Part::of_name(&name);
                args.parts.named.push(part.ok_or_else(|| format!("no part is called {name}"))?);
            }
            "--python" => args.python = Some(words.next().ok_or("--python takes a path")?.into()),
            "--runs-at-once" => {
                let number = words.next().and_then(|word| word.parse().ok()).filter(|number| *number > 0);
                args.runs_at_once = number.ok_or("--runs-at-once takes a number")?;
            }
            _ => return Err(format!("unknown argument {word}\n\n{HELP}").into()),
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Args, Failure> {
        parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn arguments_are_read() {
        let words = ["--check", "--only", "original", "--python", "py", "--part", "submit"];
        let args = parse_words(&words).expect("fine");
        let parts = Parts { named: vec![Part::Submit] };
        let expected =
            Args { parts, check: true, skip_ours: true, python: Some("py".into()), ..Args::default() };
        assert_eq!(args, expected);
        assert!(args.parts.include(Part::Submit) && !args.parts.include(Part::Lists));
        assert!(Args::default().parts.include(Part::Lists));
        let args = parse_words(&["--part", "event-streams"]).expect("fine");
        assert!(args.parts.include_any(&Part::EXECUTIONS) && !args.parts.include_any(&Part::EMBEDDED));
        let args = parse_words(&["--part", "nats-runs", "--runs-at-once", "4"]).expect("fine");
        assert!(args.parts.include_any(&Part::NATS) && !args.parts.include_any(&Part::EMBEDDED));
        assert_eq!(args.runs_at_once, 4);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for words in [
            &["--fast"][..],
            &["--runs-at-once", "0"],
            &["--only"],
            &["--only", "both"],
            &["--python"],
            &["--part", "all"],
        ] {
            assert!(parse_words(words).is_err(), "{words:?}");
        }
    }
}
