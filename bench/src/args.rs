//! The command line of the bench.

use std::path::PathBuf;

use crate::Failure;
use crate::figures::{Part, Parts};
use crate::measure::growth::Growth;
use crate::peers;

pub(crate) const HELP: &str = "\
Measures this server and pyoco-server 0.5.1 of PyPI with the same requests, and prints a table.

usage: pyoco-bench [--check] [--only ours|original|peers] [--part PART]... [--peer NAME]... [--python PATH] [--runs-at-once N]
                   [--rounds N] [--largest N]

  --check         end with 2 when a target is missed or was not measured
  --only WHICH    measure one of the two, or the peers alone
  --part PART     measure starts, memory, single-runs, graphs, watch, throughput, submit or lists of the server with its embedded
                  store; commands, event-streams, history-at, log-lines, log-latency, log-not-modified, tags, keys, prune or metrics of
                  what only this server has; or nats-runs, nats-cancel, nats-submit, nats-lists, nats-workers, nats-commands,
                  nats-log-lines, nats-log-latency, nats-log-not-modified or nats-metrics of gateway and workers around a nats-server;
                  peers, what people use today, with what of ours and of the original is told next to it; raw, what the disk, bare
                  SQLite and a bare nats-server give to everybody; all of these
                  unless named. And only when named, and then nothing else: growth-runs, growth-nats-runs, growth-tasks, growth-lines,
                  growth-readers or growth-workers, or growth for these six: what this server costs with more and more of each
  --peer NAME     of the peers only restate, celery, dbos, temporal or prefect
  --python PATH   a Python of version 3.12 or later, instead of the one on the PATH
  --runs-at-once N  of each of our two worker processes around a nats-server, and of those that the bare loop stands for; 4
                  unless given. Each of the original's has one
  --rounds N      measure what needs a nats-server so often, in turn, and tell the middle one of each figure
  --largest N     leave out larger sizes of growth

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
    /// All, when none is named.
    pub(crate) peers: Vec<String>,
    pub(crate) runs_at_once: usize,
    pub(crate) rounds: usize,
    pub(crate) growth: Vec<Growth>,
    pub(crate) largest: usize,
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
            peers: Vec::new(),
            runs_at_once: 4,
            rounds: 1,
            growth: Vec::new(),
            largest: usize::MAX,
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
                // Without what of ours and of the original would be told next to them.
                Some("peers") => args.parts.named.push(Part::Peers),
                Some(_) | None => return Err("--only takes ours, original or peers".into()),
            },
            "--part" => {
                let name = words.next().ok_or("--part takes a name")?;
                match (Part::of_name(&name), Growth::of_name(&name)) {
                    (Some(part), _) => {
                        args.parts.named.push(part);
                        args.parts.named.extend(part.needs());
                    }
                    (None, growth) if growth.is_empty() => {
                        return Err(format!("no part is called {name}").into());
                    }
                    (None, growth) => args.growth.extend(growth),
                }
            }
            "--peer" => {
                let name = words
                    .next()
                    .filter(|name| peers::is_known(name))
                    .ok_or("--peer takes the name of a peer")?;
                args.peers.push(name);
            }
            "--python" => args.python = Some(words.next().ok_or("--python takes a path")?.into()),
            "--runs-at-once" => {
                let number = words.next().and_then(|word| word.parse().ok()).filter(|number| *number > 0);
                args.runs_at_once = number.ok_or("--runs-at-once takes a number")?;
            }
            "--rounds" => {
                let number = words.next().and_then(|word| word.parse().ok()).filter(|number| *number > 0);
                args.rounds = number.ok_or("--rounds takes a number")?;
            }
            "--largest" => {
                let number = words.next().and_then(|word| word.parse().ok());
                args.largest = number.ok_or("--largest takes a number")?;
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
        let args = parse_words(&["--part", "peers", "--peer", "dbos"]).expect("fine");
        assert!(args.parts.include(Part::Submit) && !args.parts.include_any(&Part::NATS));
        assert_eq!(args.peers, ["dbos"]);
        let args = parse_words(&["--only", "peers"]).expect("fine");
        assert_eq!(args.parts, Parts { named: vec![Part::Peers] });
        let args = parse_words(&["--part", "nats-runs", "--runs-at-once", "4"]).expect("fine");
        assert!(args.parts.include_any(&Part::NATS) && !args.parts.include_any(&Part::EMBEDDED));
        assert_eq!(args.runs_at_once, 4);
        assert_eq!(parse_words(&["--rounds", "3"]).expect("fine").rounds, 3);
        let args = parse_words(&["--part", "growth-lines", "--largest", "1000"]).expect("fine");
        assert_eq!((args.growth, args.largest), (vec![Growth::Lines], 1_000));
        assert_eq!(args.parts, Parts::default());
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for words in [
            &["--fast"][..],
            &["--runs-at-once", "0"],
            &["--rounds", "0"],
            &["--largest", "all"],
            &["--only"],
            &["--only", "both"],
            &["--python"],
            &["--part", "all"],
            &["--peer", "us"],
        ] {
            assert!(parse_words(words).is_err(), "{words:?}");
        }
    }
}
