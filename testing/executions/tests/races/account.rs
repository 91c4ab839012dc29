//! What is told of an execution after its race, and whether it fits together.

use std::collections::{BTreeMap, BTreeSet};

use pyoco_core::event::EventType;
use pyoco_testing_executions::{Answer, Site};
use serde_json::{Value, json};

use crate::rival::Rival;

/// Who was first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    Cancel,
    Rival,
}

/// An execution as it is shown, and its history.
#[derive(Debug)]
pub(crate) struct Account {
    shown: Value,
    events: Vec<Value>,
}

impl Account {
    /// Asks both gateways. They have to say the same, and the state as of the last event has to be the state.
    pub(crate) async fn of([one, other]: &[Site; 2], execution: &str) -> Self {
        let (shown, events) = (one.execution(execution).await, other.events(execution).await);
        let at = format!("/executions/{execution}?at={}", events.len());
        assert_eq!(other.shown(&at).await, shown, "{events:#?}");
        let account = Self { shown, events };
        account.is_whole();
        account
    }

    /// No gap, only the types that there are, and a fold that leads to what is shown.
    fn is_whole(&self) {
        let seqs: Vec<u64> = self.events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        let last = self.events.len() as u64;
        assert_eq!(seqs, (1..=last).collect::<Vec<_>>(), "{self:#?}");
        assert_eq!(self.shown["seq"], last, "{self:#?}");
        let ids: BTreeSet<&str> =
            self.events.iter().map(|event| event["eventId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), self.events.len(), "an id stands twice: {self:#?}");
        let known: BTreeSet<&str> = EventType::ALL.into_iter().map(EventType::as_str).collect();
        assert_eq!(known.len(), 24);
        assert!(self.types().all(|kind| known.contains(kind)), "{self:#?}");
        let (status, nodes) = self.folded();
        assert_eq!(self.shown["status"], status, "{self:#?}");
        for node in self.shown["nodes"].as_array().unwrap() {
            let id = node["nodeId"].as_str().unwrap();
            let told = nodes.get(id).copied().unwrap_or("PENDING");
            // Nothing of an execution that was canceled is still to come, whether it was reached or not.
            let is_open = !matches!(told, "SUCCEEDED" | "FAILED" | "CANCELED");
            let expected = if status == "CANCELED" && is_open { "CANCELED" } else { told };
            assert_eq!(node["status"], expected, "{id}: {self:#?}");
        }
    }

    /// The statuses of the execution and of its nodes, from the events alone and by rules of our own.
    fn folded(&self) -> (&'static str, BTreeMap<&str, &'static str>) {
        let mut status = "ACTIVE";
        let mut nodes = BTreeMap::new();
        for event in &self.events {
            let of_node = match event["type"].as_str().unwrap() {
                "EXECUTION_COMPLETED" => {
                    status = "COMPLETED";
                    None
                }
                "EXECUTION_FAILED" => {
                    status = "FAILED";
                    None
                }
                "EXECUTION_CANCELED" => {
                    status = "CANCELED";
                    None
                }
                "NODE_CREATED" => Some("PENDING"),
                "NODE_READY" => Some("READY"),
                "NODE_STARTED" | "NODE_RESUMED" => Some("RUNNING"),
                "NODE_WAITING" => Some("WAITING"),
                "NODE_SUCCEEDED" => Some("SUCCEEDED"),
                "NODE_FAILED" => Some("FAILED"),
                "NODE_CANCELED" => Some("CANCELED"),
                _ => None,
            };
            if let Some(of_node) = of_node {
                nodes.insert(event["payload"]["nodeId"].as_str().unwrap(), of_node);
            }
        }
        (status, nodes)
    }

    fn types(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(|event| event["type"].as_str().unwrap())
    }

    /// Where the one event of a type stands.
    fn place(&self, kind: &str) -> Option<usize> {
        assert!(self.types().filter(|other| *other == kind).count() <= 1, "{kind} twice: {self:#?}");
        self.types().position(|other| other == kind)
    }

    /// Whether both answers fit what happened; who was first.
    pub(crate) fn judge(&self, rival: Rival, cancel: &Answer, step: &Answer) -> First {
        let status = self.shown["status"].as_str().unwrap();
        let (requested, canceled) =
            (self.place("EXECUTION_CANCEL_REQUESTED"), self.place("EXECUTION_CANCELED"));
        let mark = self.place(rival.mark());
        let ended = [self.place("EXECUTION_COMPLETED"), self.place("EXECUTION_FAILED")];
        match (cancel.status, step.status) {
            (202, both_or_one @ (202 | 409)) => {
                assert_eq!(status, "CANCELED", "{self:#?}");
                assert!(requested.is_some() && requested < canceled, "{self:#?}");
                assert_eq!(ended, [None, None], "it ended after an accepted cancel: {self:#?}");
                if both_or_one == 202 {
                    assert_eq!(rival.end(), None, "two ends: {self:#?}");
                    assert!(mark.is_some() && mark < requested, "{self:#?}");
                    First::Rival
                } else {
                    assert_eq!(mark, None, "refused, and it happened: {self:#?}");
                    refused(step, rival.command(), &["cancel-requested", "CANCELED"]);
                    First::Cancel
                }
            }
            (409, 202) => {
                let end = rival.end().unwrap_or_else(|| panic!("nothing has ended: {cancel:?} {self:#?}"));
                assert_eq!(status, end);
                assert!(mark.is_some() && ended.iter().flatten().count() == 1, "{self:#?}");
                assert_eq!([requested, canceled], [None, None], "{self:#?}");
                refused(cancel, "CancelExecution", &[end]);
                First::Rival
            }
            other => panic!("{other:?}: {cancel:?} {step:?} {self:#?}"),
        }
    }
}

/// A refusal names the command and what the execution is.
fn refused(answer: &Answer, command: &str, what: &[&str]) {
    let message = &answer.denied(409, "COMMAND_REJECTED")["message"];
    let fits = |what: &&str| *message == json!(format!("{command} rejected because execution is {what}"));
    assert!(what.iter().any(fits), "{message}");
}
