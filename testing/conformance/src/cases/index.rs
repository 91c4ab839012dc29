//! Cases of the index.

use std::sync::Arc;

use pyoco_core::ids::Version;
use pyoco_core::view::RunStatus;
use pyoco_ports::{Filter, IndexRow, Queue, Store, WaitFilter, WaitPlace};

use crate::samples::{at, execution, row, snapshot, tag, tenant, wait, worker};
use crate::{Subject, Verdict};

async fn names(store: &dyn Store, filter: &Filter) -> Vec<String> {
    let page = store.list(filter, 100).await.unwrap();
    page.rows.into_iter().map(|row| row.execution.to_string()).collect()
}

/// A label of characters that mean something elsewhere.
const ODD: &str = "'\"\u{0}[%_";

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
    // Labels: the tag and more (the rule of `row`), the tag alone, none, others, one twice, and what means something elsewhere.
    rows[1].summary.tags = vec!["default".to_owned()];
    rows[2].summary.tags = Vec::new();
    rows[3].summary.tags = vec!["nightly".to_owned(), "default".to_owned(), "nightly".to_owned()];
    rows[5].summary.tags = vec!["nightly".to_owned(), ODD.to_owned()];
    for (number, row) in (0..).zip(&mut rows) {
        row.created_at = at(number * 9);
    }
    rows[4].waits = vec![wait("b", 1), wait("a", 2)];
    rows[4].has_waited = true;
    rows[5].has_waited = true;
    rows[1].started_at = Some(at(10));
    rows[1].ended_at = Some(at(11));
    rows[4].started_at = Some(at(37));
    rows[4].cancel_requested_at = Some(at(38));
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

pub(crate) async fn put_all(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.put_all(Arc::new([])).await.unwrap();
    store.put(row("a", 3, 30)).await.unwrap();
    store
        .put_all(Arc::new([row("c", 1, 10), row("a", 2, 99), row("b", 1, 20), row("b", 2, 40)]))
        .await
        .unwrap();
    let page = store.list(&Filter::default(), 9).await.unwrap();
    let found: Vec<(&str, u64)> =
        page.rows.iter().map(|row| (row.execution.as_str(), row.version.0)).collect();
    assert_eq!(found, [("b", 2), ("a", 3), ("c", 1)], "the newest of each");
    Verdict::Passed
}

pub(crate) async fn forget(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for name in ["e", "f"] {
        let mut row = row(name, 1, 10);
        (row.waits, row.has_waited) = (vec![wait("a", 1), wait("b", 2)], true);
        let snapshot = snapshot(&row);
        store.publish_row(row, snapshot).await.unwrap();
    }
    store.forget(&execution("e")).await.unwrap();
    store.forget(&execution("never")).await.unwrap();
    assert_eq!(store.get(&execution("e")).await.unwrap(), None);
    let page = store.list(&Filter::default(), 9).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| row.execution.as_str()).collect::<Vec<_>>(), ["f"]);
    assert_eq!(store.counts(None).await.unwrap(), [(RunStatus::Pending, 1)]);
    for name in ["default", "ünï"] {
        assert_eq!(names(&*store, &label(name)).await, ["f"]);
    }
    assert_eq!(waiting(&*store, &WaitFilter::default()).await, ["f/b", "f/a"]);
    // As if it had never been there: what comes under its name begins anew.
    store.put(row("e", 1, 5)).await.unwrap();
    assert_eq!(names(&*store, &label("ünï")).await, ["f", "e"]);
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
    (rich.started_at, rich.cancel_requested_at, rich.ended_at) = (Some(at(5)), Some(at(6)), Some(at(8)));
    (rich.waits, rich.has_waited) = (vec![wait("retry/2/ünï", 3), wait("b", 4)], true);
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

fn label(label: &str) -> Filter {
    Filter { label: Some(label.to_owned()), ..Filter::default() }
}

pub(crate) async fn filter(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    let all = Filter::default();
    let cases: Vec<(Filter, &[&str])> = vec![
        (all.clone(), &["r5", "r4", "r3", "r2", "r1", "r0"]),
        (Filter { statuses: vec![RunStatus::Completed], ..all.clone() }, &["r2", "r1"]),
        (Filter { flow: Some("other".to_owned()), ..all.clone() }, &["r2"]),
        (Filter { flow: Some("OTHER".to_owned()), ..all.clone() }, &[]),
        (Filter { tag: Some("gpu".to_owned()), ..all.clone() }, &["r3"]),
        (Filter { tenant: Some(tenant("team")), ..all.clone() }, &["r5", "r4"]),
        (Filter { workflow_sha256: Some("abc".to_owned()), ..all.clone() }, &["r5"]),
        (Filter { updated_after: Some(at(30)), ..all.clone() }, &["r5", "r4"]),
        (
            Filter { statuses: vec![RunStatus::Completed], flow: Some("main".to_owned()), ..all.clone() },
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
                statuses: vec![RunStatus::Completed],
                flow: Some("main".to_owned()),
                tag: Some("default".to_owned()),
                ..all.clone()
            },
            &["r1"],
        ),
        (
            Filter {
                statuses: vec![RunStatus::Pending, RunStatus::Completed, RunStatus::Pending],
                ..all.clone()
            },
            &["r5", "r4", "r3", "r2", "r1", "r0"],
        ),
        (Filter { statuses: vec![RunStatus::Failed, RunStatus::Completed], ..all.clone() }, &["r2", "r1"]),
        (Filter { statuses: vec![RunStatus::Failed], ..all.clone() }, &[]),
        (label("default"), &["r4", "r3", "r1", "r0"]),
        (label("ünï"), &["r4", "r0"]),
        (label("nightly"), &["r5", "r3"]),
        (label(ODD), &["r5"]),
        (label("'\""), &[]),
        (label("gpu"), &[]),
        (label("DEFAULT"), &[]),
        (label(""), &[]),
        (Filter { statuses: vec![RunStatus::Completed], ..label("default") }, &["r1"]),
        (Filter { tenant: Some(tenant("team")), ..label("default") }, &["r4"]),
        (Filter { tenant: Some(tenant("team")), ..label("nightly") }, &["r5"]),
        (Filter { tag: Some("default".to_owned()), ..label("ünï") }, &["r4", "r0"]),
        (Filter { tag: Some("gpu".to_owned()), ..label("default") }, &["r3"]),
        (Filter { flow: Some("main".to_owned()), ..label("default") }, &["r4", "r3", "r1", "r0"]),
        (Filter { flow: Some("other".to_owned()), ..label("default") }, &[]),
        (Filter { workflow_sha256: Some("abc".to_owned()), ..label("nightly") }, &["r5"]),
        (Filter { updated_after: Some(at(10)), updated_before: Some(at(40)), ..label("default") }, &["r3"]),
        (Filter { updated_before: Some(at(30)), ..all.clone() }, &["r2", "r1", "r0"]),
        (Filter { updated_after: Some(at(10)), updated_before: Some(at(30)), ..all.clone() }, &["r2"]),
        (Filter { created_after: Some(at(27)), ..all.clone() }, &["r5", "r4"]),
        (Filter { created_before: Some(at(27)), ..all.clone() }, &["r2", "r1", "r0"]),
        (
            Filter { created_after: Some(at(0)), created_before: Some(at(36)), ..label("default") },
            &["r3", "r1"],
        ),
        (Filter { created_after: Some(at(17)), updated_after: Some(at(30)), ..all }, &["r5", "r4"]),
    ];
    for (filter, wanted) in cases {
        assert_eq!(names(&*store, &filter).await, wanted, "{filter:?}");
    }
    // Labels come and go.
    for (version, labels, ours, others) in [
        (2, vec!["default"], true, false),
        (3, vec!["default", "new"], true, true),
        (4, vec!["new"], false, true),
        (5, vec!["default", "default"], true, false),
        (6, vec!["default"], true, false),
        (7, vec![], false, false),
    ] {
        let mut row = row("r0", version, 0);
        row.summary.tags = labels.into_iter().map(str::to_owned).collect();
        store.put(row).await.unwrap();
        let has = async |name| names(&*store, &label(name)).await.contains(&"r0".to_owned());
        let found = (has("default").await, has("new").await, has("ünï").await);
        assert_eq!(found, (ours, others, false), "{version}");
    }
    // What is older than the row changes none of it.
    store.put(row("r0", 6, 99)).await.unwrap();
    assert_eq!(names(&*store, &label("default")).await, ["r4", "r3", "r1"]);
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
        (
            Filter {
                statuses: vec![RunStatus::Failed],
                tag: Some("default".to_owned()),
                ..Filter::default()
            },
            4,
        ),
        (Filter { statuses: vec![RunStatus::Completed, RunStatus::Running], ..Filter::default() }, 8),
        (label("default"), 25),
        (label("odd"), 12),
        (Filter { flow: Some("main".to_owned()), ..label("odd") }, 12),
        (Filter { updated_before: Some(at(5)), ..label("default") }, 20),
        (Filter { created_before: Some(at(2)), ..Filter::default() }, 25),
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
        let labels: &[&str] = if number % 2 == 1 { &["default", "odd"] } else { &["default"] };
        row.summary.tags = labels.iter().copied().map(str::to_owned).collect();
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

fn shown(place: &WaitPlace) -> String {
    format!("{}/{}", place.execution, place.node)
}

async fn waiting(store: &dyn Store, filter: &WaitFilter) -> Vec<String> {
    store.waits(filter, 100).await.unwrap().waits.iter().map(shown).collect()
}

pub(crate) async fn waits(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let put = async |name: &str, version, owner: Option<&str>, labels: &[&str], nodes: &[(&str, u64)]| {
        let mut row = row(name, version, version);
        row.summary.tenant_id = owner.map(tenant);
        row.summary.tags = labels.iter().copied().map(str::to_owned).collect();
        row.waits = nodes.iter().map(|(node, since)| wait(node, *since)).collect();
        row.has_waited = true;
        store.put(row).await.unwrap();
    };
    store.put(row("quiet", 1, 99)).await.unwrap();
    put("e", 1, None, &["default"], &[("b", 10), ("a", 30), ("loop/2/ünï", 30)]).await;
    put("f", 1, Some("team"), &["default", "nightly"], &[("a", 20), ("b", 30)]).await;
    put("g", 1, Some("team"), &["nightly"], &[("a", 40)]).await;
    let all = WaitFilter::default();
    let label = |label: &str| WaitFilter { label: Some(label.to_owned()), ..WaitFilter::default() };
    let team = || Some(tenant("team"));
    let cases: Vec<(WaitFilter, &[&str])> = vec![
        (all.clone(), &["g/a", "f/b", "e/loop/2/ünï", "e/a", "f/a", "e/b"]),
        (WaitFilter { tenant: team(), ..all.clone() }, &["g/a", "f/b", "f/a"]),
        (WaitFilter { tenant: Some(tenant("nobody")), ..all.clone() }, &[]),
        // The instant itself counts.
        (WaitFilter { since_before: Some(at(20)), ..all.clone() }, &["f/a", "e/b"]),
        (WaitFilter { since_before: Some(at(19)), ..all.clone() }, &["e/b"]),
        (WaitFilter { since_before: Some(at(9)), ..all.clone() }, &[]),
        (label("default"), &["f/b", "e/loop/2/ünï", "e/a", "f/a", "e/b"]),
        (label("nightly"), &["g/a", "f/b", "f/a"]),
        (label("gpu"), &[]),
        (WaitFilter { tenant: team(), since_before: Some(at(30)), ..label("nightly") }, &["f/b", "f/a"]),
    ];
    for (mut filter, wanted) in cases {
        assert_eq!(waiting(&*store, &filter).await, wanted, "{filter:?}");
        let mut paged = Vec::new();
        loop {
            let page = store.waits(&filter, 2).await.unwrap();
            paged.extend(page.waits.iter().map(shown));
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(paged, wanted, "{filter:?}");
    }
    // A cursor later than the last that may be shown.
    let later = WaitPlace { since: at(35), execution: execution("x"), node: wait("n", 0).node };
    let both = WaitFilter { since_before: Some(at(20)), cursor: Some(later), ..all.clone() };
    assert_eq!(waiting(&*store, &both).await, ["f/a", "e/b"]);
    // One goes on, others stay; an older row changes nothing; one that waits again is shown where it stands now.
    put("e", 2, None, &["default"], &[("b", 10), ("a", 30)]).await;
    put("e", 1, None, &["default"], &[("z", 99)]).await;
    put("f", 2, Some("team"), &["default"], &[("a", 50)]).await;
    assert_eq!(waiting(&*store, &all).await, ["f/a", "g/a", "e/a", "e/b"]);
    assert_eq!(waiting(&*store, &label("nightly")).await, ["g/a"]);
    // Of another tenant, as no execution should become.
    put("g", 2, None, &["nightly"], &[("a", 40)]).await;
    assert_eq!(waiting(&*store, &WaitFilter { tenant: team(), ..all.clone() }).await, ["f/a"]);
    // Nobody is waited for any more.
    for name in ["e", "f", "g"] {
        put(name, 3, None, &["default"], &[]).await;
    }
    assert_eq!(waiting(&*store, &all).await, Vec::<String>::new());
    // Once more, and then it is taken back altogether.
    put("e", 4, None, &["default"], &[("b", 10)]).await;
    assert_eq!(waiting(&*store, &all).await, ["e/b"]);
    store.forget(&execution("e")).await.unwrap();
    assert_eq!(waiting(&*store, &all).await, Vec::<String>::new());
    Verdict::Passed
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
    // From the beginning of a day on.
    const DAY: u64 = 86_400_000;
    assert_eq!(since(DAY).await.unwrap(), []);
    let mut late = row("r1", 2, DAY - 1);
    late.summary.status = RunStatus::Completed;
    store.put(late).await.unwrap();
    store.put(row("r2", 2, DAY)).await.unwrap();
    store.put(row("r3", 2, 2 * DAY + 5)).await.unwrap();
    assert_eq!(since(DAY).await.unwrap(), [(RunStatus::Pending, 2)]);
    let mut ended = row("r3", 3, 2 * DAY + 6);
    ended.summary.status = RunStatus::Completed;
    store.put(ended).await.unwrap();
    assert_eq!(since(DAY).await.unwrap(), [(RunStatus::Pending, 1), (RunStatus::Completed, 1)]);
    assert_eq!(since(DAY - 1).await.unwrap(), [(RunStatus::Pending, 1), (RunStatus::Completed, 2)]);
    store.forget(&execution("r3")).await.unwrap();
    assert_eq!(since(2 * DAY).await.unwrap(), []);
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

pub(crate) async fn queues(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let put = async |name: &str, version: u64, updated: u64, of: Option<&str>, wants: bool| {
        let mut row = row(name, version, updated);
        row.summary.tag = of.map(tag);
        row.wants_job = wants;
        store.put(row).await.unwrap();
    };
    let queue = |name: &str, depth: u64, oldest: u64| Queue { tag: tag(name), depth, oldest: at(oldest) };
    assert_eq!(store.queues().await.unwrap(), []);
    for (name, updated, of, wants) in [
        ("a", 30, Some("gpu"), true),
        ("b", 20, Some("cpu"), true),
        ("c", 10, Some("cpu"), true),
        ("d", 5, Some("cpu"), false),
        ("e", 1, None, true),
    ] {
        put(name, 1, updated, of, wants).await;
    }
    assert_eq!(store.queues().await.unwrap(), [queue("cpu", 2, 10), queue("gpu", 1, 30)]);
    // A worker takes one; another wants one again; one changes, and one is of another tag now.
    put("c", 2, 40, Some("cpu"), false).await;
    put("d", 2, 41, Some("cpu"), true).await;
    put("b", 2, 42, Some("cpu"), true).await;
    put("a", 2, 43, Some("fpga"), true).await;
    assert_eq!(store.queues().await.unwrap(), [queue("cpu", 2, 41), queue("fpga", 1, 43)]);
    // What is older changes nothing, and what is forgotten waits no longer.
    put("c", 1, 10, Some("cpu"), true).await;
    store.forget(&execution("d")).await.unwrap();
    store.forget(&execution("a")).await.unwrap();
    assert_eq!(store.queues().await.unwrap(), [queue("cpu", 1, 42)]);
    Verdict::Passed
}
