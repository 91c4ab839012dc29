//! Events, records and commands as bytes: exact names, round trips, and hostile input that only ever is an error.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

use proptest::prelude::*;
use pyoco_core::command::Command;
use pyoco_core::event::{EventEnvelope, EventType};
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::json::{self, JsonError, Limits};
use pyoco_core::plan::Plan;
use pyoco_core::record::{LogError, Record};
use pyoco_core::state::State;
use pyoco_testkit::*;
use serde_json::{Value, json};

fn envelope(kind: &str, payload: &Value) -> Value {
    json!({
        "eventId": "ev-1",
        "executionId": "e-1",
        "type": kind,
        "occurredAt": "2026-01-02T03:04:05.000006Z",
        "actor": {"kind": "user", "id": "alice"},
        "correlationId": "c-1",
        "causationId": "ev-0",
        "schemaVersion": 1,
        "payload": payload,
    })
}

fn decode(value: &Value) -> Result<EventEnvelope, JsonError> {
    json::decode(value.to_string().as_bytes(), Limits::RECORD)
}

/// A payload with every field of the contract, by type.
fn full_payload(kind: EventType) -> Value {
    let error = json!({"code": "E", "message": "m", "detail": {"x": 1}});
    let by = json!({"kind": "system", "id": "s"});
    match kind {
        EventType::ExecutionCreated => json!({"graphId": "g", "input": {"a": 1}}),
        EventType::ExecutionStarted => json!({"startedBy": by}),
        EventType::ExecutionCompleted => json!({"result": {"r": 1}}),
        EventType::ExecutionArchived => json!({"reason": "r"}),
        EventType::ExecutionCancelRequested | EventType::ExecutionFailRequested => {
            json!({"reason": "r", "requestedBy": by})
        }
        EventType::ExecutionCanceled => json!({"reason": "r", "canceledAt": "2026-01-02T03:04:05.000006Z"}),
        EventType::ExecutionFailed => json!({"reason": "r", "failedNodeId": "n", "error": error}),
        EventType::NodeCreated => json!({"nodeId": "n", "nodeType": "Task", "meta": {"m": 1}}),
        EventType::NodeReady | EventType::NodeResumed | EventType::JoinPassed => json!({"nodeId": "n"}),
        EventType::NodeStarted => json!({"nodeId": "n", "attempt": 1, "workerId": "w"}),
        EventType::NodeProgressReported => {
            json!({"nodeId": "n", "progress": 42.5, "message": "m", "metrics": {"x": 1}})
        }
        EventType::NodeWaiting => json!({"nodeId": "n", "waitKey": "k", "prompt": {"p": 1}}),
        EventType::NodeResumeRequested => json!({"nodeId": "n", "resumeKey": "k", "requestedBy": by}),
        EventType::NodeSucceeded => json!({"nodeId": "n", "output": {"o": 1}}),
        EventType::NodeFailReported | EventType::NodeFailed => json!({"nodeId": "n", "error": error}),
        EventType::NodeCancelRequested | EventType::NodeCanceled => json!({"nodeId": "n", "reason": "r"}),
        EventType::NodeInterruptRequested => json!({"nodeId": "n", "workerId": "w", "reason": "r"}),
        EventType::ForkOpened => json!({"nodeId": "n", "branchIds": ["a", "b"]}),
        EventType::JoinGateUpdated => json!({
            "nodeId": "n", "expectedBranches": ["a", "b"], "completedBranches": ["a"], "failedBranches": ["b"],
            "canceledBranches": [], "policy": "ALL_DONE", "isPassable": true,
        }),
    }
}

#[test]
fn every_type_keeps_every_field_of_the_contract_and_every_unknown_one() {
    for kind in EventType::ALL {
        let mut payload = full_payload(kind);
        payload["futureField"] = json!({"kept": [1, null, "x"]});
        let written = envelope(kind.as_str(), &payload);
        let read = decode(&written).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(read.event.event_type(), kind);
        assert_eq!(serde_json::to_value(&read).unwrap(), written, "{kind}");
    }
}

#[test]
fn optional_fields_may_be_missing_and_required_ones_may_not() {
    for kind in EventType::ALL {
        let full = full_payload(kind);
        let required = [
            "graphId",
            "nodeId",
            "nodeType",
            "attempt",
            "branchIds",
            "policy",
            "isPassable",
            "expectedBranches",
        ];
        for field in full.as_object().unwrap().keys() {
            let mut payload = full.clone();
            payload.as_object_mut().unwrap().shift_remove(field);
            let must = required.contains(&field.as_str()) || field.ends_with("Branches");
            assert_eq!(decode(&envelope(kind.as_str(), &payload)).is_err(), must, "{kind} without {field}");
        }
    }
}

#[test]
fn any_other_type_is_refused() {
    for kind in ["", "NODE_SKIPPED", "execution_created", "EXECUTION_CREATED ", "NODE_RETRIED"] {
        assert!(decode(&envelope(kind, &json!({"nodeId": "n"}))).is_err(), "{kind}");
    }
}

#[test]
fn the_payload_may_stand_before_the_type() {
    let text = r#"{"payload":{"nodeId":"n"},"schemaVersion":1,"actor":{"kind":"system"},"occurredAt":"2026-01-02T03:04:05Z",
        "type":"NODE_READY","executionId":"e","eventId":"v"}"#;
    let read: EventEnvelope = json::decode(text.as_bytes(), Limits::RECORD).unwrap();
    assert_eq!(read.event.event_type(), EventType::NodeReady);
}

#[test]
fn hostile_envelopes_are_errors() {
    let good = envelope("NODE_READY", &json!({"nodeId": "n"}));
    for (field, value) in [
        ("schemaVersion", json!(2)),
        ("eventId", json!("a.>")),
        ("executionId", json!("")),
        ("occurredAt", json!("yesterday")),
        ("actor", json!({"kind": "god"})),
        ("payload", json!([])),
        ("payload", json!({"nodeId": ""})),
        ("payload", json!({"nodeId": "x".repeat(5000)})),
        ("payload", json!({"nodeId": "a\u{0}b"})),
        ("type", json!(null)),
    ] {
        let mut bad = good.clone();
        bad[field] = value.clone();
        assert!(decode(&bad).is_err(), "{field}: {value}");
    }
    let text = good.to_string();
    for (from, to) in [
        (r#""nodeId":"n""#, r#""nodeId":"n","nodeId":"n""#),
        (r#""nodeId":"n""#, r#""nodeId":"n","x":{"a":1,"a":2}"#),
        (r#""nodeId":"n""#, r#""nodeId":"n","x":1,"x":2"#),
        (r#""nodeId":"n""#, r#""nodeId":"n","x":NaN"#),
        (r#""nodeId":"n""#, r#""nodeId":"n","x":100000000000000000000000"#),
        (r#""type":"NODE_READY""#, r#""type":"NODE_READY","type":"NODE_READY""#),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_ne!(bad, text);
        assert!(json::decode::<EventEnvelope>(bad.as_bytes(), Limits::RECORD).is_err(), "{to}");
    }
    let deep =
        text.replacen(r#""n""#, &format!(r#""n","x":{}1{}"#, "[".repeat(10_000), "]".repeat(10_000)), 1);
    assert!(matches!(
        json::decode::<EventEnvelope>(deep.as_bytes(), Limits::RECORD),
        Err(JsonError::TooDeep { .. })
    ));
}

fn some_log() -> Execution {
    let plan = Graph::chain(&["a", "b"], &callable()).plan();
    Execution::claimed(&plan)
        .when_keyed(key("k"), &worker(1), start_node("a"))
        .execution
        .given(&worker(1), succeed("a", json!({"x": [1, 2.5, "ü"]})))
        .given(&caller(), add_label("l"))
}

#[test]
fn a_record_survives_its_stored_form_byte_for_byte() {
    for bytes in some_log().log() {
        assert_eq!(Record::decode(bytes).unwrap().encode(), *bytes);
    }
}

#[test]
fn a_changed_missing_or_repeated_record_is_found() {
    let execution = some_log();
    let log = execution.log();
    let fold =
        |log: &[Vec<u8>]| State::from_log(ExecutionId::new("e-1").unwrap(), log.iter().map(Vec::as_slice));
    assert!(fold(log).is_ok());
    for at in 0..log.len() {
        let mut missing = log.to_vec();
        missing.remove(at);
        assert_eq!(
            fold(&missing).is_ok(),
            at == log.len() - 1,
            "only the loss of the tail needs another witness"
        );
        let mut repeated = log.to_vec();
        repeated.insert(at, log[at].clone());
        assert!(matches!(fold(&repeated), Err(LogError::Gap { .. })));
        if at < log.len() - 1 {
            let mut changed = log.to_vec();
            let text =
                String::from_utf8(changed[at].clone()).unwrap().replace("w1", "w2").replace("main", "mein");
            changed[at] = text.into_bytes();
            assert!(changed[at] == log[at] || fold(&changed).is_err(), "record {at}");
        }
    }
    let newer = String::from_utf8(log[0].clone()).unwrap().replacen("\"v\":1", "\"v\":2", 1).into_bytes();
    assert_eq!(fold(&[newer]), Err(LogError::NewerFormat { seq: Version(1), format: 2 }));
    let other = State::from_log(ExecutionId::new("e-2").unwrap(), log.iter().map(Vec::as_slice));
    assert_eq!(other, Err(LogError::Misplaced { seq: Version(1) }));
}

#[test]
fn a_command_survives_its_json_form_and_its_digest_ignores_the_order_of_members() {
    let command: Command = succeed("a", json!({"x": 1, "y": 2})).into();
    let text = serde_json::to_string(&command).unwrap();
    assert_eq!(json::decode::<Command>(text.as_bytes(), Limits::BODY).unwrap(), command);
    let turned: Command = succeed("a", json!({"y": 2, "x": 1})).into();
    assert_eq!(turned.digest(), command.digest());
    for bad in [
        r#"{"command":"Explode","body":{}}"#,
        r#"{"command":"StartNode","body":{}}"#,
        r#"{"command":"StartNode","body":{"nodeId":"a","attempt":-1}}"#,
        r#"{"command":"StartNode","body":{"nodeId":"a","surprise":1}}"#,
        r#"{"command":"StartNode","body":{"nodeId":"a","nodeId":"b"}}"#,
        r#"{"command":"StartNode"}"#,
        "[]",
        "",
    ] {
        assert!(json::decode::<Command>(bad.as_bytes(), Limits::BODY).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = json::decode::<EventEnvelope>(&bytes, Limits::RECORD);
        let _ = Record::decode(&bytes);
        let _ = json::decode::<Command>(&bytes, Limits::BODY);
        let _ = json::decode::<Plan>(&bytes, Limits::BODY);
        let _ = pyoco_core::cursor::Cursor::decode(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_damage_to_a_record_makes_folding_panic(at in any::<prop::sample::Index>(), which in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let execution = some_log();
        let mut log = execution.log().to_vec();
        let which = which.index(log.len());
        let at = at.index(log[which].len());
        log[which][at] = byte;
        let _ = State::from_log(ExecutionId::new("e-1").unwrap(), log.iter().map(Vec::as_slice));
    }
}
