//! Cases of blobs, workers and dead letters.

use pyoco_core::digest::Digest;
use pyoco_ports::{DeadLetterRecord, WorkerRecord};

use crate::samples::{at, report, unmarked, worker};
use crate::{Subject, Verdict};

fn letter(key: &str) -> DeadLetterRecord {
    DeadLetterRecord {
        key: key.to_owned(),
        tag: "any.tag".to_owned(),
        at: at(0),
        body: key.as_bytes().to_vec(),
    }
}

pub(crate) async fn blob_put(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let digest = store.put_blob(b"value").await.unwrap();
    assert_eq!(digest, Digest::of_bytes(b"value"));
    let Some(store) = subject.lose_and_reopen(store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    assert_eq!(store.get_blob(&digest).await.unwrap().as_deref(), Some(&b"value"[..]));
    Verdict::Passed
}

pub(crate) async fn blob_same(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let first = store.put_blob(b"same").await.unwrap();
    assert_eq!(store.put_blob(b"same").await.unwrap(), first);
    Verdict::Passed
}

pub(crate) async fn blob_get(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for bytes in [&b""[..], &[0, 255, 10, 13][..], &vec![7; 300_000]] {
        let digest = store.put_blob(bytes).await.unwrap();
        assert_eq!(store.get_blob(&digest).await.unwrap().as_deref(), Some(bytes));
    }
    assert_eq!(store.get_blob(&Digest::of_bytes(b"nobody's")).await.unwrap(), None);
    Verdict::Passed
}

pub(crate) async fn worker_report(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.report(report("w", 1)).await.unwrap();
    store.hide(&worker("w"), true).await.unwrap();
    store.report(report("w", 2)).await.unwrap();
    let known = store.worker(&worker("w")).await.unwrap().unwrap();
    assert_eq!(unmarked(known), unmarked(WorkerRecord { hidden: true, ..report("w", 2) }));
    assert_eq!(store.worker(&worker("nobody")).await.unwrap(), None);
    Verdict::Passed
}

pub(crate) async fn worker_list(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (name, millis) in [("a", 5), ("b", 9), ("c", 1)] {
        store.report(report(name, millis)).await.unwrap();
    }
    let known: Vec<_> = store.workers().await.unwrap().into_iter().map(unmarked).collect();
    assert_eq!(known, [report("b", 9), report("a", 5), report("c", 1)].map(unmarked));
    Verdict::Passed
}

pub(crate) async fn worker_hide(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.report(report("w", 1)).await.unwrap();
    let hidden = store.hide(&worker("w"), true).await.unwrap().unwrap();
    assert_eq!(unmarked(hidden), unmarked(WorkerRecord { hidden: true, ..report("w", 1) }));
    assert!(store.worker(&worker("w")).await.unwrap().unwrap().hidden);
    assert!(!store.hide(&worker("w"), false).await.unwrap().unwrap().hidden);
    assert_eq!(store.hide(&worker("nobody"), true).await.unwrap(), None);
    Verdict::Passed
}

pub(crate) async fn letter_once(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.publish(letter("k")).await.unwrap();
    store.publish(DeadLetterRecord { body: b"other".to_vec(), ..letter("k") }).await.unwrap();
    assert_eq!(store.letters(9).await.unwrap(), [letter("k")]);
    Verdict::Passed
}

pub(crate) async fn letter_count(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for key in ["a", "b", "c"] {
        store.publish(letter(key)).await.unwrap();
    }
    assert_eq!(store.count_letters().await.unwrap(), 3);
    assert_eq!(store.letters(2).await.unwrap(), [letter("c"), letter("b")]);
    Verdict::Passed
}
