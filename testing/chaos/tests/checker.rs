//! The rules on histories made by hand: what is right is left alone, and each thing that is wrong is found by its rule.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use pyoco_chaos::check::{End, Evidence, Happened, Record, Run, check};
use pyoco_chaos::flows::Body;
use pyoco_chaos::history::{Line, Said};

fn record(seq: u64, first_event: u64, worker: Option<&str>, epoch: u64, events: Vec<Happened>) -> Record {
    let at = i64::try_from(seq).unwrap() * 1_000;
    Record { seq, first_event, epoch, worker: worker.map(str::to_owned), claim: None, at, events }
}

fn claimed(mut record: Record, epoch: u64, worker: &str) -> Record {
    record.claim = Some((epoch, worker.to_owned()));
    record
}

/// Made, claimed by `w`, and ended; with a body in the ledger for its task.
fn sound() -> Evidence {
    let log = vec![
        record(1, 1, None, 0, vec![Happened::Created]),
        claimed(record(2, 2, Some("w"), 1, vec![Happened::Started("first".to_owned())]), 1, "w"),
        record(
            3,
            3,
            Some("w"),
            1,
            vec![Happened::Succeeded("first".to_owned()), Happened::Ended(End::Completed)],
        ),
    ];
    let shown = Some("COMPLETED".to_owned());
    let run = Run { label: Some("a".to_owned()), listed: shown.clone(), shown, log, ..Run::default() };
    let mut evidence = Evidence { runs: [("r".to_owned(), run)].into(), ..Evidence::default() };
    evidence.ledger.push(Body { label: "a".to_owned(), task: "first".to_owned(), at: 2_500 });
    say(&mut evidence, 0, Said::Submits { label: "a".to_owned(), key: Some("k".to_owned()) });
    say(&mut evidence, 0, Said::Accepted { label: "a".to_owned(), run: "r".to_owned() });
    evidence
}

fn say(evidence: &mut Evidence, operation: u64, said: Said) {
    evidence.history.push(Line { at: 0, operation, said });
}

fn run(evidence: &mut Evidence) -> &mut Run {
    evidence.runs.get_mut("r").unwrap()
}

/// The rules that do not hold after a change.
fn broken(change: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = sound();
    change(&mut evidence);
    let mut rules: Vec<&str> = check(&evidence).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn what_is_right_is_left_alone() {
    assert_eq!(check(&sound()), []);
    // What nobody knows the outcome of may be there or not.
    let unknown = |evidence: &mut Evidence| {
        say(evidence, 1, Said::Submits { label: "b".to_owned(), key: None });
        say(evidence, 1, Said::Unknown { why: "broken".to_owned() });
        say(evidence, 2, Said::Cancels { run: "r".to_owned() });
        say(evidence, 2, Said::Canceling { run: "r".to_owned(), status: "COMPLETED".to_owned() });
    };
    assert!(broken(unknown).is_empty());
}

#[test]
fn a_run_that_was_accepted_and_is_lost_is_found() {
    let lost = |evidence: &mut Evidence| {
        evidence.runs.clear();
        evidence.ledger.clear();
    };
    assert_eq!(broken(lost), ["R1"]);
    assert_eq!(broken(|evidence| run(evidence).label = Some("other".to_owned())), ["R1", "R7"]);
}

#[test]
fn a_second_end_is_found() {
    let twice = |evidence: &mut Evidence| {
        run(evidence).log.push(record(4, 5, Some("w"), 1, vec![Happened::Ended(End::Failed)]));
    };
    assert_eq!(broken(twice), ["R1"]);
}

#[test]
fn a_cancel_that_does_not_win_is_found() {
    let in_the_log = |evidence: &mut Evidence| run(evidence).log[1].events.push(Happened::CancelRequested);
    assert_eq!(broken(in_the_log), ["R5", "R2"], "and the numbers of its events are wrong too");
    for status in ["CANCELLING", "CANCELLED", "RUNNING"] {
        let answered = |evidence: &mut Evidence| {
            say(evidence, 1, Said::Canceling { run: "r".to_owned(), status: status.to_owned() });
        };
        assert_eq!(broken(answered), ["R2"], "{status}");
    }
}

#[test]
fn a_key_with_two_answers_is_found() {
    let two = |evidence: &mut Evidence| {
        let mut other = run(evidence).clone();
        other.log.remove(1);
        evidence.runs.insert("s".to_owned(), other);
        say(evidence, 1, Said::Submits { label: "a".to_owned(), key: Some("k".to_owned()) });
        say(evidence, 1, Said::Accepted { label: "a".to_owned(), run: "s".to_owned() });
    };
    assert!(broken(two).contains(&"R3"));
}

#[test]
fn a_run_that_does_not_end_is_found() {
    let open = |evidence: &mut Evidence| {
        let run = run(evidence);
        run.log.pop();
        run.shown = Some("RUNNING".to_owned());
    };
    assert_eq!(broken(open), ["R4"]);
}

#[test]
fn a_gap_and_what_the_auditor_says_are_found() {
    assert_eq!(broken(|evidence| run(evidence).log[2].seq = 4), ["R5"]);
    assert_eq!(broken(|evidence| run(evidence).findings.push("BrokenLog".to_owned())), ["R5"]);
    assert_eq!(broken(|evidence| run(evidence).findings.push("RowRepaired".to_owned())), ["R9"]);
}

#[test]
fn a_writer_that_does_not_hold_the_claim_is_found() {
    let stranger = |evidence: &mut Evidence| run(evidence).log[2].worker = Some("v".to_owned());
    assert_eq!(broken(stranger), ["R6"]);
    let late = |evidence: &mut Evidence| run(evidence).log[2].epoch = 0;
    assert_eq!(broken(late), ["R6"]);
}

#[test]
fn a_body_that_ran_again_is_found() {
    let body = |at| Body { label: "a".to_owned(), task: "first".to_owned(), at };
    assert_eq!(
        broken(|evidence| evidence.ledger.push(body(2_600))),
        ["R7"],
        "more often than the log has attempts"
    );
    assert_eq!(broken(|evidence| evidence.ledger[0] = body(9_000)), ["R7"], "after its success");
    assert_eq!(broken(|evidence| evidence.ledger.clear()), ["R7"], "never");
}

#[test]
fn what_lists_do_not_show_and_failures_without_a_letter_are_found() {
    assert_eq!(broken(|evidence| run(evidence).listed = Some("RUNNING".to_owned())), ["R9"]);
    let failed = |evidence: &mut Evidence| {
        let run = run(evidence);
        run.log[2].events[1] = Happened::Ended(End::Failed);
        run.listed = Some("FAILED".to_owned());
        run.shown = Some("FAILED".to_owned());
    };
    assert_eq!(broken(failed), ["R11"]);
}

#[test]
fn a_read_that_goes_back_is_found() {
    let sees = |version| Said::Sees { run: "r".to_owned(), version, status: "RUNNING".to_owned() };
    let reads = || Said::Reads { run: "r".to_owned() };
    let back = |evidence: &mut Evidence| {
        for (operation, said) in [(1, reads()), (1, sees(3)), (2, reads()), (2, sees(2))] {
            say(evidence, operation, said);
        }
    };
    assert_eq!(broken(back), ["R10"]);
    // Two who ask at the same time may be answered in any order.
    let together = |evidence: &mut Evidence| {
        for (operation, said) in [(1, reads()), (2, reads()), (1, sees(3)), (2, sees(2))] {
            say(evidence, operation, said);
        }
    };
    assert!(broken(together).is_empty());
    let missed = |evidence: &mut Evidence| {
        say(evidence, 1, reads());
        say(evidence, 1, Said::Misses { run: "r".to_owned() });
    };
    assert_eq!(broken(missed), ["R10"]);
}

#[test]
fn a_stream_with_a_gap_a_repeat_or_an_early_end_is_found() {
    let told = |numbers: &'static [u64], after| {
        move |evidence: &mut Evidence| {
            let run = || "r".to_owned();
            say(evidence, 1, Said::Follows { run: run(), after });
            for seq in numbers {
                say(evidence, 1, Said::Hears { run: run(), seq: *seq });
            }
            say(evidence, 1, Said::HearsTheEnd { run: run() });
        }
    };
    assert!(broken(told(&[1, 2, 3, 4], 0)).is_empty());
    assert!(broken(told(&[3, 4], 2)).is_empty());
    for wrong in [&[1, 3, 4][..], &[1, 2, 2, 3, 4], &[1, 2, 3]] {
        assert_eq!(broken(told(wrong, 0)), ["R21"], "{wrong:?}");
    }
}

#[test]
fn a_wheel_that_is_lost_or_changed_is_found() {
    let uploaded = Said::Uploaded { wheel: "w.whl".to_owned(), sha256: "1".to_owned() };
    for found in [None, Some("2")] {
        let lost = |evidence: &mut Evidence| {
            say(evidence, 1, uploaded.clone());
            evidence.wheels.extend(found.map(|hash| ("w.whl".to_owned(), hash.to_owned())));
        };
        assert_eq!(broken(lost), ["R18"]);
    }
}
