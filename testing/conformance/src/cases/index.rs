//! Cases of the index.

use std::sync::Arc;

use pyoco_core::ids::Version;
use pyoco_core::view::RunStatus;
use pyoco_ports::{Filter, IndexRow, Store};

use crate::samples::{at, execution, row, snapshot, tag, tenant, worker};
use crate::{Subject, Verdict};

async fn names(store: &dyn Store, filter: &Filter) -> Vec<String> {
    let page = store.list(filter, 100).await.unwrap();
    page.rows.into_iter().map(|row| row.execution.to_string()).collect()
}

/// Six rows that differ in everything a filter looks at.
fn varied() -> Vec<IndexRow> {
    let mut rows: Vec<IndexRow> = (0..6).map(|n| row(&format!("r{n}"), 1, n * 10)).collect();
    rows[1].summary.status = RunStatus::Completed;
    rows[2].summary.status = RunStatus::Completed;
    rows[2].summary.flow_name = "other".to_owned();
    rows[3].summary.tag = Some(tag("gpu"));
    rows[4].summary.tenant_id = Some(tenant("team"));
    rows[5].summary.tenant_id = Some(tenant("team"));
    rows[5].workflow_sha256 = Some("abc".to_owned());
    rows[5].summary.tag = None;
    rows
}

async fn filled(subject: &dyn Subject) -> Arc<dyn Store> {
    let store = subject.fresh().await;
    for row in varied() {
        store.put(row).await.unwrap();
    }
    store
}

pub(crate) async fn monotone(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.put(row("e", 3, 30)).await.unwrap();
    store.put(row("e", 2, 99)).await.unwrap();
    assert_eq!(store.get(&execution("e")).await.unwrap().unwrap().version, Version(3));
    let mut same = row("e", 3, 30);
    same.summary.heartbeat_at = Some(1.5);
    store.put(same.clone()).await.unwrap();
    assert_eq!(store.get(&execution("e")).await.unwrap(), Some(same));
    Verdict::Passed
}

pub(crate) async fn forget(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for name in ["e", "f"] {
        let row = row(name, 1, 10);
        let snapshot = snapshot(&row);
        store.publish_row(row, snapshot).await.unwrap();
    }
    store.forget(&execution("e")).await.unwrap();
    store.forget(&execution("never")).await.unwrap();
    assert_eq!(store.get(&execution("e")).await.unwrap(), None);
    let page = store.list(&Filter::default(), 9).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| row.execution.as_str()).collect::<Vec<_>>(), ["f"]);
    assert_eq!(store.counts(None).await.unwrap(), [(RunStatus::Pending, 1)]);
    Verdict::Passed
}

pub(crate) async fn publish(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let publish = async |row: IndexRow| {
        let snapshot = snapshot(&row);
        store.publish_row(row, snapshot).await.unwrap();
    };
    let stored = async || store.get(&execution("e")).await.unwrap();
    let mut rich = row("e", 2, 20);
    rich.summary.tenant_id = Some(tenant("team"));
    rich.summary.worker_id = Some(worker("w"));
    rich.summary.error = Some("it failed: \u{7f}ünï".to_owned());
    rich.summary.heartbeat_at = Some(1.5);
    rich.workflow_sha256 = Some("abc".to_owned());
    (rich.hidden, rich.next_timer, rich.wants_job) = (true, Some(at(7)), true);
    publish(rich.clone()).await;
    assert_eq!(stored().await, Some(rich));
    // Forward, again, and never back; whoever comes late is not told, for the newer one says it all.
    publish(row("e", 5, 50)).await;
    publish(row("e", 4, 99)).await;
    assert_eq!(stored().await, Some(row("e", 5, 50)));
    let mut same = row("e", 5, 50);
    same.summary.heartbeat_at = Some(2.5);
    publish(same.clone()).await;
    assert_eq!(stored().await, Some(same));
    // What was only put is newer too.
    store.put(row("e", 7, 70)).await.unwrap();
    publish(row("e", 6, 60)).await;
    assert_eq!(stored().await, Some(row("e", 7, 70)));
    // Several at the same time: the newest remains.
    let rivals: Vec<_> = (1..=12)
        .map(|version| {
            let store: Arc<dyn Store> = Arc::clone(&store);
            let row = row("raced", version, version);
            let snapshot = snapshot(&row);
            tokio::spawn(async move { store.publish_row(row, snapshot).await })
        })
        .collect();
    for rival in rivals {
        rival.await.unwrap().unwrap();
    }
    assert_eq!(store.get(&execution("raced")).await.unwrap(), Some(row("raced", 12, 12)));
    Verdict::Passed
}

pub(crate) async fn get(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    for row in varied() {
        assert_eq!(store.get(&row.execution).await.unwrap(), Some(row));
    }
    assert_eq!(store.get(&execution("nobody")).await.unwrap(), None);
    Verdict::Passed
}

pub(crate) async fn filter(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    let all = Filter::default();
    let cases: Vec<(Filter, &[&str])> = vec![
        (all.clone(), &["r5", "r4", "r3", "r2", "r1", "r0"]),
        (Filter { status: Some(RunStatus::Completed), ..all.clone() }, &["r2", "r1"]),
        (Filter { flow: Some("other".to_owned()), ..all.clone() }, &["r2"]),
        (Filter { flow: Some("OTHER".to_owned()), ..all.clone() }, &[]),
        (Filter { tag: Some("gpu".to_owned()), ..all.clone() }, &["r3"]),
        (Filter { tenant: Some(tenant("team")), ..all.clone() }, &["r5", "r4"]),
        (Filter { workflow_sha256: Some("abc".to_owned()), ..all.clone() }, &["r5"]),
        (Filter { updated_after: Some(at(30)), ..all.clone() }, &["r5", "r4"]),
        (
            Filter { status: Some(RunStatus::Completed), flow: Some("main".to_owned()), ..all.clone() },
            &["r1"],
        ),
        (Filter { flow: Some("main".to_owned()), ..all.clone() }, &["r5", "r4", "r3", "r1", "r0"]),
        (Filter { tag: Some("default".to_owned()), ..all.clone() }, &["r4", "r2", "r1", "r0"]),
        (
            Filter { tenant: Some(tenant("team")), flow: Some("main".to_owned()), ..all.clone() },
            &["r5", "r4"],
        ),
        (
            Filter {
                status: Some(RunStatus::Completed),
                flow: Some("main".to_owned()),
                tag: Some("default".to_owned()),
                ..all
            },
            &["r1"],
        ),
    ];
    for (filter, wanted) in cases {
        assert_eq!(names(&*store, &filter).await, wanted, "{filter:?}");
    }
    Verdict::Passed
}

const STATUSES: [RunStatus; 6] = [
    RunStatus::Pending,
    RunStatus::Running,
    RunStatus::Cancelling,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Cancelled,
];

pub(crate) async fn pages(subject: &dyn Subject) -> Verdict {
    for (filter, size) in [
        (Filter::default(), 25),
        // Of all statuses, whatever a store keeps apart.
        (Filter { flow: Some("main".to_owned()), ..Filter::default() }, 25),
        (Filter { tag: Some("default".to_owned()), ..Filter::default() }, 25),
        (Filter { status: Some(RunStatus::Failed), tag: Some("default".to_owned()), ..Filter::default() }, 4),
    ] {
        through(subject, filter, size).await;
    }
    Verdict::Passed
}

/// Reads a whole list in pages.
async fn through(subject: &dyn Subject, mut filter: Filter, size: usize) {
    let store = subject.fresh().await;
    // Several share an instant, so that the id has to decide.
    for (number, status) in (0..25).zip(STATUSES.into_iter().cycle()) {
        let mut row = row(&format!("r{number:02}"), 1, number / 4);
        row.summary.status = status;
        store.put(row).await.unwrap();
    }
    let whole = names(&*store, &filter).await;
    assert_eq!(whole.len(), size, "{filter:?}");
    let mut paged = Vec::new();
    loop {
        let page = store.list(&filter, 3).await.unwrap();
        paged.extend(page.rows.iter().map(|row| row.execution.to_string()));
        // A row that comes in between is newer than the cursor and disturbs nothing.
        let mut between = row(&format!("new{}", paged.len()), 1, 99);
        between.summary.status = RunStatus::Failed;
        store.put(between).await.unwrap();
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(paged, whole, "{filter:?}");
}

pub(crate) async fn counts(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    assert_eq!(store.counts(None).await.unwrap(), [(RunStatus::Pending, 4), (RunStatus::Completed, 2)]);
    assert_eq!(store.counts(Some(&tenant("team"))).await.unwrap(), [(RunStatus::Pending, 2)]);
    let mut ended = row("r0", 2, 70);
    ended.summary.status = RunStatus::Failed;
    store.put(ended).await.unwrap();
    let counts = store.counts(None).await.unwrap();
    assert_eq!(counts, [(RunStatus::Pending, 3), (RunStatus::Completed, 2), (RunStatus::Failed, 1)]);
    Verdict::Passed
}

pub(crate) async fn counts_since(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    let since = |millis| store.counts_since(None, at(millis));
    assert_eq!(since(0).await.unwrap(), store.counts(None).await.unwrap());
    // The instant itself counts.
    assert_eq!(since(20).await.unwrap(), [(RunStatus::Pending, 3), (RunStatus::Completed, 1)]);
    assert_eq!(since(21).await.unwrap(), [(RunStatus::Pending, 3)]);
    assert_eq!(since(51).await.unwrap(), []);
    let team = tenant("team");
    assert_eq!(store.counts_since(Some(&team), at(50)).await.unwrap(), [(RunStatus::Pending, 1)]);
    assert_eq!(store.counts_since(Some(&tenant("nobody")), at(0)).await.unwrap(), []);
    // A run that changes again counts once, as what it is now.
    let mut ended = row("r0", 2, 70);
    ended.summary.status = RunStatus::Failed;
    store.put(ended).await.unwrap();
    assert_eq!(since(50).await.unwrap(), [(RunStatus::Pending, 1), (RunStatus::Failed, 1)]);
    Verdict::Passed
}

pub(crate) async fn timers(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (name, timer) in [("late", Some(300)), ("soon", Some(100)), ("never", None), ("next", Some(200))] {
        let mut row = row(name, 1, 0);
        row.next_timer = timer.map(at);
        store.put(row).await.unwrap();
    }
    assert_eq!(store.due(at(200), 10).await.unwrap(), [execution("soon"), execution("next")]);
    assert_eq!(store.due(at(200), 1).await.unwrap(), [execution("soon")]);
    store.put(row("soon", 2, 1)).await.unwrap();
    assert_eq!(store.due(at(200), 10).await.unwrap(), [execution("next")]);
    Verdict::Passed
}

pub(crate) async fn runnable(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (name, wants, updated) in [("b", true, 20), ("a", true, 10), ("c", false, 5)] {
        let mut row = row(name, 1, updated);
        row.wants_job = wants;
        store.put(row).await.unwrap();
    }
    assert_eq!(store.runnable(&tag("default"), 10).await.unwrap(), [execution("a"), execution("b")]);
    assert_eq!(store.runnable(&tag("gpu"), 10).await.unwrap(), []);
    assert_eq!(store.runnable_tags().await.unwrap(), [tag("default")]);
    store.put(row("a", 2, 30)).await.unwrap();
    assert_eq!(store.runnable(&tag("default"), 10).await.unwrap(), [execution("b")]);
    Verdict::Passed
}
