//! Why an execution is where it is.

use pyoco_core::plan::Policy;
use pyoco_core::time::Millis;
use pyoco_core::view::{Cause, CauseCode, causes};
use pyoco_testkit::*;
use serde_json::json;

fn of(execution: &Execution) -> Vec<Cause> {
    causes(execution.state())
}

/// The codes, each with its node.
fn codes(execution: &Execution) -> Vec<(CauseCode, Option<String>)> {
    of(execution).into_iter().map(|cause| (cause.code, cause.node_id.map(|node| node.to_string()))).collect()
}

#[test]
fn an_execution_that_nobody_has_started_or_taken_says_so() {
    let created = Execution::new().given(&caller(), create());
    assert_eq!(codes(&created), [(CauseCode::NotStarted, None)]);
    let mut command = create();
    command.start = true;
    let queued = Execution::new().given(&caller(), command);
    assert_eq!(codes(&queued), [(CauseCode::Queued, None)]);
    assert!(of(&queued)[0].since.is_some());
    assert_eq!(of(&Execution::new()), []);
}

#[test]
fn what_runs_is_named_with_who_runs_it() {
    let running =
        Execution::claimed(&Graph::chain(&["a"], &callable()).plan()).given(&worker(1), start_node("a"));
    assert_eq!(codes(&running), [(CauseCode::Running, Some("a".to_owned()))]);
    let cause = &of(&running)[0];
    assert!(cause.since.is_some() && cause.message.contains("attempt 1"), "{cause:?}");
    let canceling = running.clone().given(&caller(), cancel());
    let wanted = [(CauseCode::Cancelling, None), (CauseCode::Running, Some("a".to_owned()))];
    assert_eq!(codes(&canceling), wanted);
    let canceled = canceling.given(&worker(1), confirm_stopped("a"));
    assert_eq!(codes(&canceled), [(CauseCode::Cancelled, None)]);
    let done = running.given(&worker(1), succeed("a", json!(1)));
    assert_eq!(codes(&done), [(CauseCode::Completed, None)]);
}

#[test]
fn a_failure_names_its_node_and_its_error() {
    let failed = Execution::claimed(&Graph::chain(&["a"], &callable()).plan())
        .given(&worker(1), start_node("a"))
        .given(&worker(1), fail("a", "boom"));
    assert_eq!(codes(&failed), [(CauseCode::Failed, Some("a".to_owned()))]);
    assert!(of(&failed)[0].message.contains("boom"));
}

#[test]
fn a_pause_before_a_retry_says_when_it_ends() {
    let policy = Policy { retries: 1, retry_delay: Millis(5_000), ..Policy::default() };
    let resting = Execution::claimed(&Graph::new().task_with("a", callable(), policy).plan())
        .given(&worker(1), start_node("a"))
        .given(&worker(1), fail("a", "first"));
    assert_eq!(codes(&resting), [(CauseCode::RetryPause, Some("a".to_owned()))]);
    assert!(of(&resting)[0].until.is_some());
}

#[test]
fn a_node_that_waits_for_a_person_is_named_and_a_parked_execution_holds_no_worker() {
    let asking = Execution::claimed(&Graph::chain(&["ask"], &wait("k")).plan());
    assert_eq!(codes(&asking)[0], (CauseCode::WaitingForPerson, Some("ask".to_owned())));
    let parked = asking.given(&worker(1), park());
    let wanted = [(CauseCode::WaitingForPerson, Some("ask".to_owned())), (CauseCode::Parked, None)];
    assert_eq!(codes(&parked), wanted);
}
