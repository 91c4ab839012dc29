//! Cases of the history of wheels.

use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Store, WheelAction, WheelActor, WheelEvent, WheelHistoryFilter, WheelSource};

use crate::samples::at;
use crate::{Subject, Verdict};

fn event(id: &str, when: Timestamp, action: WheelAction, wheel_name: &str) -> WheelEvent {
    WheelEvent {
        event_id: id.to_owned(),
        occurred_at: when.as_unix_seconds(),
        action,
        wheel_name: wheel_name.to_owned(),
        tags: Vec::new(),
        size_bytes: None,
        sha256_hex: None,
        replace: None,
        actor: WheelActor::default(),
        source: WheelSource::default(),
    }
}

/// With something in every member.
fn full(id: &str, when: Timestamp) -> WheelEvent {
    let some = |text: &str| Some(text.to_owned());
    WheelEvent {
        tags: vec!["gpu".to_owned(), "nightly".to_owned()],
        size_bytes: Some(1 << 40),
        sha256_hex: Some("0a".repeat(32)),
        replace: Some(false),
        actor: WheelActor { tenant_id: some("team"), api_key_id: some("key-1") },
        source: WheelSource {
            remote_addr: some("203.0.113.7"),
            x_forwarded_for: some("198.51.100.1, 203.0.113.7"),
            x_real_ip: some("198.51.100.1"),
            user_agent: some("日本 '; -- \"ünï\""),
            host: some("pyoco.example"),
            scheme: some("https"),
        },
        ..event(id, when, WheelAction::Upload, "tool-1.0-py3-none-any.whl")
    }
}

fn first(limit: usize) -> WheelHistoryFilter {
    WheelHistoryFilter { wheel_name: None, action: None, limit }
}

async fn shown(store: &dyn Store, filter: &WheelHistoryFilter) -> Vec<WheelEvent> {
    store.wheel_history(filter, at(10_000)).await.unwrap()
}

async fn ids(store: &dyn Store, filter: &WheelHistoryFilter) -> Vec<String> {
    shown(store, filter).await.into_iter().map(|event| event.event_id).collect()
}

pub(crate) async fn history(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(shown(&*store, &first(10)).await, []);
    let (tool, other) = ("tool-1.0-py3-none-any.whl", "Tool-1.0-py3-none-any.whl");
    let upload = full("bb", at(20));
    let events = [
        // Not in the order in which they happened.
        upload.clone(),
        event("cc", at(10), WheelAction::Delete, other),
        event("aa", at(20), WheelAction::Delete, tool),
        event("dd", at(30), WheelAction::Upload, other),
    ];
    for event in &events {
        store.note_wheel(event.clone()).await.unwrap();
    }
    // A repeat, as after an answer that got lost.
    store.note_wheel(upload.clone()).await.unwrap();
    let in_order = [events[3].clone(), upload, events[2].clone(), events[1].clone()];
    assert_eq!(shown(&*store, &first(10)).await, in_order, "the newest first; of one moment the greater id");
    assert_eq!(ids(&*store, &first(2)).await, ["dd", "bb"]);
    assert_eq!(shown(&*store, &first(0)).await, []);
    let of = |name: Option<&str>, action, limit| WheelHistoryFilter {
        wheel_name: name.map(str::to_owned),
        action,
        limit,
    };
    assert_eq!(ids(&*store, &of(Some(tool), None, 10)).await, ["bb", "aa"]);
    assert_eq!(ids(&*store, &of(Some(other), None, 10)).await, ["dd", "cc"], "names are compared exactly");
    assert_eq!(ids(&*store, &of(Some("tool"), None, 10)).await, [""; 0]);
    assert_eq!(ids(&*store, &of(None, Some(WheelAction::Delete), 10)).await, ["aa", "cc"]);
    assert_eq!(ids(&*store, &of(Some(tool), Some(WheelAction::Upload), 10)).await, ["bb"]);
    // A filter is applied before the limit, however much stands before what it shows.
    for number in 0..250_u64 {
        let noise = event(&format!("n-{number:03}"), at(100 + number), WheelAction::Upload, "noise");
        store.note_wheel(noise).await.unwrap();
    }
    assert_eq!(ids(&*store, &of(Some(tool), None, 1)).await, ["bb"]);
    assert_eq!(ids(&*store, &of(Some("noise"), None, 3)).await, ["n-249", "n-248", "n-247"]);
    assert_eq!(shown(&*store, &first(500)).await.len(), 254);
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    let all = shown(&*store, &first(500)).await;
    assert_eq!(all.len(), 254);
    assert_eq!(all[250..], in_order);
    Verdict::Passed
}

pub(crate) async fn forgotten(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let ttl = subject.wheel_history_ttl();
    store.note_wheel(full("old", at(0))).await.unwrap();
    store.note_wheel(full("young", at(4_000))).await.unwrap();
    let seen = |now: Timestamp| {
        let store = &store;
        async move {
            let events = store.wheel_history(&first(10), now).await.unwrap();
            events.into_iter().map(|event| event.event_id).collect::<Vec<_>>()
        }
    };
    assert_eq!(seen(at(ttl.0 - 1_000)).await, ["young", "old"]);
    assert_eq!(seen(at(ttl.0 + 2_000)).await, ["young"]);
    // One that is noted late is as old as it says.
    let now = at(0).after(Millis(ttl.0 + 2_000));
    store.note_wheel(full("late", at(1_000))).await.unwrap();
    assert_eq!(seen(now).await, ["young"]);
    assert_eq!(seen(at(ttl.0 + 6_000)).await, [""; 0]);
    Verdict::Passed
}
