//! Cases of removing executions, and of what has to know that some were removed.

use pyoco_core::digest::Digest;
use pyoco_core::ids::Version;
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::{
    EndedFilter, EndedPlace, IndexRow, JobFilter, LabelFilter, Removal, Store, StoredRecord, Tombstone,
};

use crate::samples::{OPEN, at, execution, job, line, record, row, snapshot};
use crate::{Subject, Verdict};

fn tombstone(name: &str, millis: u64) -> Tombstone {
    Tombstone { execution: execution(name), at: at(millis), digest: Some(Digest::of_bytes(name.as_bytes())) }
}

fn removal(name: &str, version: u64) -> Removal {
    Removal { tombstone: tombstone(name, 9_000), version: Version(version) }
}

/// A row of an execution that ended so many milliseconds after the beginning.
fn ended_row(name: &str, version: u64, ended: u64) -> IndexRow {
    let mut row = row(name, version, ended);
    row.summary.status = RunStatus::Completed;
    row.ended_at = Some(at(ended));
    row
}

/// An execution with everything that one can have: two records, a row, a job, lines.
async fn finished(store: &dyn Store, name: &str, ended: u64) {
    for version in 0..2 {
        store.append(record(name, version)).await.unwrap();
    }
    let row = ended_row(name, 2, ended);
    store.publish_row(row.clone(), snapshot(&row)).await.unwrap();
    store.enqueue(job(name, "default"), at(0)).await.unwrap();
    let lines = vec![line("a", 1, 1, "one"), line("a", 1, 2, "two")];
    store.write_lines(&execution(name), lines, OPEN).await.unwrap();
}

async fn is_whole(store: &dyn Store, name: &str) -> bool {
    let records = store.read(&execution(name), Version(0)).await.unwrap();
    let lines = store.read_lines(&execution(name), 0, 9).await.unwrap();
    let row = store.get(&execution(name)).await.unwrap();
    records.len() == 2 && lines.len() == 2 && row.is_some()
}

async fn assert_gone(store: &dyn Store, name: &str) {
    let id = execution(name);
    assert_eq!(store.read(&id, Version(0)).await.unwrap(), [], "{name}");
    assert_eq!(store.read_lines(&id, 0, 9).await.unwrap(), [], "{name}");
    assert_eq!(store.log_end(&id).await.unwrap(), Default::default(), "{name}");
    assert_eq!(store.get(&id).await.unwrap(), None, "{name}");
    assert_eq!(store.snapshot_body(&id).await.unwrap(), None, "{name}");
    let listed = store.list(&Default::default(), 99).await.unwrap();
    assert!(listed.rows.iter().all(|row| row.execution != id), "{name}");
    let jobs = store.jobs(&JobFilter::default(), 99).await.unwrap();
    assert!(jobs.rows.iter().all(|row| row.execution != id), "{name}");
}

async fn assert_buried(store: &dyn Store) {
    for name in ["a", "b"] {
        let found = store.tombstone(&execution(name)).await.unwrap();
        assert_eq!(found, Some(tombstone(name, 9_000)), "{name}");
    }
    assert_eq!(store.tombstone(&execution("stays")).await.unwrap(), None);
}

fn filter(before: Timestamp) -> EndedFilter {
    EndedFilter { before, is_foreign_too: false, after: None }
}

fn names(places: &[EndedPlace]) -> Vec<&str> {
    places.iter().map(|place| place.execution.as_str()).collect()
}

pub(crate) async fn ended(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.put(row("runs", 1, 1)).await.unwrap();
    for (name, millis) in [("c", 3), ("a", 1), ("b2", 2), ("b1", 2), ("late", 50)] {
        store.put(ended_row(name, 1, millis)).await.unwrap();
    }
    store.put(IndexRow { is_archived: true, ..ended_row("archived", 1, 1) }).await.unwrap();
    store.put(IndexRow { is_foreign: true, ..ended_row("foreign", 1, 2) }).await.unwrap();
    let both = IndexRow { is_archived: true, is_foreign: true, ..ended_row("both", 1, 1) };
    store.put(both.clone()).await.unwrap();
    assert_eq!(store.get(&execution("both")).await.unwrap(), Some(both));
    let all = store.ended_before(&filter(at(50)), 99).await.unwrap();
    assert_eq!(names(&all), ["a", "b1", "b2", "c"]);
    assert_eq!(all[0].ended_at, at(1));
    let too = EndedFilter { is_foreign_too: true, ..filter(at(50)) };
    assert_eq!(names(&store.ended_before(&too, 99).await.unwrap()), ["a", "b1", "b2", "foreign", "c"]);
    // Page by page.
    for filter in [filter(at(50)), too] {
        let whole = store.ended_before(&filter, 99).await.unwrap();
        let mut paged: Vec<EndedPlace> = Vec::new();
        loop {
            let filter = EndedFilter { after: paged.last().cloned(), ..filter.clone() };
            let page = store.ended_before(&filter, 2).await.unwrap();
            assert!(page.len() <= 2);
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, whole);
    }
    assert_eq!(names(&store.ended_before(&filter(at(3)), 99).await.unwrap()), ["a", "b1", "b2"]);
    assert_eq!(store.ended_before(&filter(at(1)), 99).await.unwrap(), []);
    // What is put away later stays.
    store.put(IndexRow { is_archived: true, ..ended_row("a", 2, 1) }).await.unwrap();
    assert_eq!(names(&store.ended_before(&filter(at(3)), 99).await.unwrap()), ["b1", "b2"]);
    Verdict::Passed
}

pub(crate) async fn read_on(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let id = execution("e");
    assert_eq!(store.read_on(&id, Version(0)).await.unwrap(), Some(Vec::new()));
    finished(&*store, "e", 1).await;
    let versions = |records: Option<Vec<StoredRecord>>| -> Option<Vec<u64>> {
        Some(records?.iter().map(|record| record.version.0).collect())
    };
    for (seen, wanted) in [(0, vec![1, 2]), (1, vec![2]), (2, vec![])] {
        assert_eq!(versions(store.read_on(&id, Version(seen)).await.unwrap()), Some(wanted), "{seen}");
    }
    store.remove(vec![removal("e", 2)]).await.unwrap();
    for seen in [1, 2] {
        assert_eq!(store.read_on(&id, Version(seen)).await.unwrap(), None, "{seen}");
    }
    assert_eq!(store.read_on(&id, Version(0)).await.unwrap(), Some(Vec::new()));
    // Another one of the same name, which is not as long.
    store.append(record("e", 0)).await.unwrap();
    assert_eq!(store.read_on(&id, Version(2)).await.unwrap(), None);
    assert_eq!(versions(store.read_on(&id, Version(0)).await.unwrap()), Some(vec![1]));
    Verdict::Passed
}

pub(crate) async fn share(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let digest = store.put_blob(&execution("a"), b"value").await.unwrap();
    assert!(store.share_blob(&execution("b"), &digest).await.unwrap());
    assert!(store.share_blob(&execution("b"), &digest).await.unwrap());
    assert!(!store.share_blob(&execution("b"), &Digest::of_bytes(b"nobody's")).await.unwrap());
    Verdict::Passed
}

pub(crate) async fn remove(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for name in ["a", "b", "stays"] {
        finished(&*store, name, 1).await;
    }
    assert_eq!(store.tombstone(&execution("a")).await.unwrap(), None);
    let both = vec![removal("a", 2), removal("b", 2)];
    assert_eq!(store.remove(both).await.unwrap(), [execution("a"), execution("b")]);
    assert_gone(&*store, "a").await;
    assert_gone(&*store, "b").await;
    assert!(is_whole(&*store, "stays").await);
    let counts = store.counts(None).await.unwrap();
    assert_eq!(counts, [(RunStatus::Completed, 1)]);
    let labels = store.labels(&LabelFilter::default(), 9).await.unwrap();
    assert_eq!(labels.labels, [("default".to_owned(), 1), ("ünï".to_owned(), 1)]);
    // Nothing goes on behind what was there.
    assert!(store.append(record("a", 2)).await.is_err());
    assert_buried(&*store).await;
    // Whoever is of the same name later has nothing of it.
    store.append(record("a", 0)).await.unwrap();
    assert_eq!(store.read(&execution("a"), Version(0)).await.unwrap().len(), 1);
    assert_eq!(store.read_lines(&execution("a"), 0, 9).await.unwrap(), []);
    if let Some(store) = subject.lose_and_reopen(store).await {
        assert_buried(&*store).await;
        assert_eq!(store.read(&execution("b"), Version(0)).await.unwrap(), []);
    }
    Verdict::Passed
}

pub(crate) async fn changed(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    finished(&*store, "e", 1).await;
    for version in [0, 1, 3] {
        assert_eq!(store.remove(vec![removal("e", version)]).await.unwrap(), [], "{version}");
        assert!(is_whole(&*store, "e").await, "{version}");
    }
    assert_eq!(store.remove(vec![removal("e", 2)]).await.unwrap(), [execution("e")]);
    Verdict::Passed
}

pub(crate) async fn again(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    finished(&*store, "e", 1).await;
    store.remove(vec![removal("e", 2)]).await.unwrap();
    // As if whoever removed it had died before it came to the row and the lines.
    let row = ended_row("e", 2, 1);
    store.publish_row(row.clone(), snapshot(&row)).await.unwrap();
    let late = vec![line("a", 1, 1, "one")];
    store.write_lines(&execution("e"), late, OPEN).await.unwrap();
    assert_eq!(names(&store.ended_before(&filter(at(9)), 9).await.unwrap()), ["e"]);
    let rest = Removal { tombstone: tombstone("e", 9_999), version: Version(0) };
    assert_eq!(store.remove(vec![rest.clone()]).await.unwrap(), [execution("e")]);
    assert_gone(&*store, "e").await;
    // And when there is nothing left at all.
    assert_eq!(store.remove(vec![rest]).await.unwrap(), [execution("e")]);
    let found = store.tombstone(&execution("e")).await.unwrap();
    assert_eq!(found, Some(tombstone("e", 9_000)), "the first tombstone stays");
    // One that never had a log, as another implementation's runs.
    let foreign = IndexRow { is_foreign: true, ..ended_row("f", 0, 1) };
    store.put(foreign).await.unwrap();
    assert_eq!(store.remove(vec![removal("f", 0)]).await.unwrap(), [execution("f")]);
    assert_gone(&*store, "f").await;
    Verdict::Passed
}

pub(crate) async fn blobs(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for name in ["a", "b", "c"] {
        finished(&*store, name, 1).await;
    }
    let own = store.put_blob(&execution("a"), b"a's own").await.unwrap();
    let common = store.put_blob(&execution("a"), b"of all").await.unwrap();
    assert_eq!(store.put_blob(&execution("b"), b"of all").await.unwrap(), common);
    assert!(store.share_blob(&execution("c"), &common).await.unwrap());
    store.remove(vec![removal("a", 2)]).await.unwrap();
    assert_eq!(store.get_blob(&own).await.unwrap(), None);
    assert!(!store.share_blob(&execution("c"), &own).await.unwrap());
    assert!(store.get_blob(&common).await.unwrap().is_some());
    store.remove(vec![removal("b", 2)]).await.unwrap();
    assert_eq!(store.get_blob(&common).await.unwrap().as_deref(), Some(&b"of all"[..]));
    store.remove(vec![removal("c", 2)]).await.unwrap();
    assert_eq!(store.get_blob(&common).await.unwrap(), None);
    // What was removed can be put again.
    assert_eq!(store.put_blob(&execution("d"), b"of all").await.unwrap(), common);
    assert_eq!(store.get_blob(&common).await.unwrap().as_deref(), Some(&b"of all"[..]));
    // Many at once: more than one write takes.
    finished(&*store, "many", 1).await;
    let mut digests = Vec::new();
    for number in 0..20_u8 {
        digests.push(store.put_blob(&execution("many"), &[number; 64]).await.unwrap());
    }
    store.remove(vec![removal("many", 2)]).await.unwrap();
    for digest in digests {
        assert_eq!(store.get_blob(&digest).await.unwrap(), None);
    }
    Verdict::Passed
}

pub(crate) async fn tombstones(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (name, millis) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        let removal = Removal { tombstone: tombstone(name, millis), version: Version(0) };
        store.remove(vec![removal]).await.unwrap();
    }
    let mut left = Vec::new();
    for (before, most, dropped, wanted) in
        [(at(1), 9, 0, "abcd"), (at(4), 2, 2, "cd"), (at(4), 2, 1, "d"), (at(4), 2, 0, "d")]
    {
        assert_eq!(store.drop_tombstones(before, most).await.unwrap(), dropped);
        left.clear();
        for name in ["a", "b", "c", "d"] {
            if store.tombstone(&execution(name)).await.unwrap().is_some() {
                left.push(name);
            }
        }
        assert_eq!(left.concat(), wanted);
    }
    Verdict::Passed
}
