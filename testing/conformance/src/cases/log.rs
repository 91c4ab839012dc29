//! Cases of the log.

use std::sync::Arc;

use pyoco_core::ids::Version;
use pyoco_ports::{AppendError, DeadLetterRecord, Durability, Store, StoredRecord};

use crate::samples::{at, execution, job, record, row, tag, worker};
use crate::{Subject, Verdict};

async fn versions(store: &dyn Store, name: &str) -> Vec<u64> {
    let records = store.read(&execution(name), Version(0)).await.unwrap();
    records.into_iter().map(|record| record.version.0).collect()
}

pub(crate) async fn append(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for expected in 0..3 {
        let mut append = record("e", expected);
        append.durability = if expected == 1 { Durability::Process } else { Durability::Full };
        store.append(append).await.unwrap();
    }
    assert_eq!(versions(&*store, "e").await, [1, 2, 3]);
    Verdict::Passed
}

pub(crate) async fn conflict(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.append(record("e", 0)).await.unwrap();
    for expected in [0, 2, 7] {
        let mut late = record("e", expected);
        late.enqueue = Some(job("e", "default"));
        late.row = Some(row("e", 9, 9));
        match store.append(late).await {
            Err(AppendError::Conflict { expected: given, actual }) => {
                assert_eq!((given, actual), (Version(expected), Version(1)));
            }
            other => panic!("expected a conflict, got {other:?}"),
        }
    }
    assert_eq!(versions(&*store, "e").await, [1]);
    assert_eq!(store.get(&execution("e")).await.unwrap(), None, "a refused append has no consequences");
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 0);
    Verdict::Passed
}

pub(crate) async fn race(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for expected in 0..20 {
        let rivals: Vec<_> = (0..8)
            .map(|rival| {
                let store: Arc<dyn Store> = store.clone();
                let mut append = record("e", expected);
                append.bytes = format!("rival {rival}").into_bytes();
                tokio::spawn(async move { store.append(append).await.is_ok() })
            })
            .collect();
        let mut winners = 0;
        for rival in rivals {
            winners += usize::from(rival.await.unwrap());
        }
        assert_eq!(winners, 1, "at version {expected}");
    }
    assert_eq!(versions(&*store, "e").await, (1..=20).collect::<Vec<_>>());
    Verdict::Passed
}

pub(crate) async fn isolation(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.append(record("e", 0)).await.unwrap();
    store.append(record("f", 0)).await.unwrap();
    store.append(record("e", 1)).await.unwrap();
    assert_eq!(versions(&*store, "e").await, [1, 2]);
    assert_eq!(versions(&*store, "f").await, [1]);
    Verdict::Passed
}

pub(crate) async fn reopen(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.append(record("e", 0)).await.unwrap();
    let mut progress = record("e", 1);
    progress.durability = Durability::Process;
    store.append(progress).await.unwrap();
    let Some(store) = subject.lose_and_reopen(store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    assert_eq!(versions(&*store, "e").await, [1, 2]);
    Verdict::Passed
}

pub(crate) async fn consequences(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let mut append = record("e", 0);
    append.row = Some(row("e", 1, 5));
    append.enqueue = Some(job("e", "default"));
    append.dead_letter = Some(DeadLetterRecord {
        key: "k".to_owned(),
        tag: "default".to_owned(),
        at: at(0),
        body: b"{}".to_vec(),
    });
    let done = store.append(append).await.unwrap().left.is_none();
    let found = (
        store.get(&execution("e")).await.unwrap().is_some(),
        store.depth(&tag("default")).await.unwrap() == 1,
        store.count_letters().await.unwrap() == 1,
    );
    assert_eq!(found, (done, done, done), "all of them or none");
    if !done {
        // They are the caller's then, and each role is there for them.
        return Verdict::Passed;
    }
    let mut append = record("e", 1);
    append.drop_job = true;
    store.append(append).await.unwrap();
    let taken = store.take(&[tag("default")], &worker("w"), 1, subject.lease(), at(0)).await.unwrap();
    assert_eq!(taken, [], "the waiting job was dropped");
    Verdict::Passed
}

pub(crate) async fn read(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let bytes: Vec<u8> = (0..=255).collect();
    for expected in 0..3 {
        let mut append = record("e", expected);
        append.bytes = [&bytes[..], &expected.to_le_bytes()].concat();
        store.append(append).await.unwrap();
        let tail = store.read(&execution("e"), Version(expected)).await.unwrap();
        let wanted = StoredRecord {
            version: Version(expected + 1),
            bytes: [&bytes[..], &expected.to_le_bytes()].concat(),
        };
        assert_eq!(tail, [wanted]);
    }
    assert_eq!(store.read(&execution("e"), Version(3)).await.unwrap(), []);
    assert_eq!(store.read(&execution("e"), Version(99)).await.unwrap(), []);
    Verdict::Passed
}

pub(crate) async fn read_some(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for expected in 0..7 {
        store.append(record("e", expected)).await.unwrap();
        store.append(record("other", expected)).await.unwrap();
    }
    let all = store.read(&execution("e"), Version(0)).await.unwrap();
    for (after, limit) in [(0, 1), (0, 3), (2, 2), (4, 3), (4, 100), (6, 1), (7, 5), (99, 5), (0, 0)] {
        let some = store.read_some(&execution("e"), Version(after), limit).await.unwrap();
        let skipped = usize::try_from(after).unwrap();
        let wanted: Vec<StoredRecord> = all.iter().skip(skipped).take(limit).cloned().collect();
        assert_eq!(some, wanted, "{limit} after {after}");
    }
    assert_eq!(store.read_some(&execution("nobody"), Version(0), 5).await.unwrap(), []);
    Verdict::Passed
}

pub(crate) async fn peek(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for expected in 0..3 {
        store.append(record("e", expected)).await.unwrap();
        let all = store.read(&execution("e"), Version(0)).await.unwrap();
        let seen = store.peek(&execution("e")).await.unwrap();
        assert!(!seen.is_empty() && all.starts_with(&seen), "{seen:?} of {all:?}");
    }
    assert_eq!(store.peek(&execution("nobody")).await.unwrap(), []);
    // What was only peeked at is no reason to refuse what is right, nor to take what is wrong.
    store.append(record("f", 0)).await.unwrap();
    store.peek(&execution("f")).await.unwrap();
    assert!(store.append(record("f", 0)).await.is_err());
    store.append(record("f", 1)).await.unwrap();
    Verdict::Passed
}

pub(crate) async fn read_unknown(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.read(&execution("nobody"), Version(0)).await.unwrap(), []);
    Verdict::Passed
}
