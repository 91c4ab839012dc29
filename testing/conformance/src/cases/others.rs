//! Cases of blobs, workers and dead letters.

use pyoco_core::digest::Digest;
use pyoco_ports::{DeadLetterRecord, WorkerRecord};

use crate::samples::{at, execution, report, unmarked, worker};
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
    let digest = store.put_blob(&execution("e"), b"value").await.unwrap();
    assert_eq!(digest, Digest::of_bytes(b"value"));
    let Some(store) = subject.lose_and_reopen(store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    assert_eq!(store.get_blob(&digest).await.unwrap().as_deref(), Some(&b"value"[..]));
    Verdict::Passed
}

pub(crate) async fn blob_same(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let first = store.put_blob(&execution("e"), b"same").await.unwrap();
    assert_eq!(store.put_blob(&execution("e"), b"same").await.unwrap(), first);
    Verdict::Passed
}

pub(crate) async fn blob_get(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for bytes in [&b""[..], &[0, 255, 10, 13][..], &vec![7; 300_000]] {
        let digest = store.put_blob(&execution("e"), bytes).await.unwrap();
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

pub(crate) async fn letter_pages(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let names: Vec<String> = (0..40).map(|number| format!("k{number}")).collect();
    for name in &names {
        store.publish(letter(name)).await.unwrap();
    }
    // Holes of every size; what was shown goes while others are still looked for.
    for name in names.get(5..32).unwrap() {
        assert!(store.remove_letter(name).await.unwrap());
    }
    let (mut seen, mut behind) = (Vec::new(), None);
    loop {
        let page = store.letter_page(behind, 3).await.unwrap();
        assert!(page.letters.len() <= 3, "{page:?}");
        for shown in page.letters {
            assert!(store.remove_letter(&shown.key).await.unwrap());
            seen.push(shown);
        }
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    let left = (0..5).chain(32..40).rev().map(|number| letter(&format!("k{number}")));
    assert_eq!(seen, left.collect::<Vec<_>>());
    let none = store.letter_page(None, 3).await.unwrap();
    assert_eq!((none.letters, none.next), (Vec::new(), None));
    Verdict::Passed
}

pub(crate) async fn letter_get(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.letter("a").await.unwrap(), None, "there is none");
    for key in ["a", "b/1", "c"] {
        store.publish(letter(key)).await.unwrap();
    }
    for key in ["c", "a", "b/1", "a"] {
        assert_eq!(store.letter(key).await.unwrap(), Some(letter(key)));
    }
    assert_eq!(store.letter("nobody's").await.unwrap(), None);
    assert!(store.remove_letter("a").await.unwrap());
    assert_eq!(store.letter("a").await.unwrap(), None);
    Verdict::Passed
}

pub(crate) async fn letter_remove(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for key in ["a", "b/7", "c"] {
        store.publish(letter(key)).await.unwrap();
    }
    assert!(store.remove_letter("b/7").await.unwrap());
    assert!(!store.remove_letter("b/7").await.unwrap(), "it is gone");
    assert!(!store.remove_letter("nobody's").await.unwrap());
    assert_eq!(store.letters(9).await.unwrap(), [letter("c"), letter("a")]);
    // Also one that this process has seen before.
    assert!(store.remove_letter("c").await.unwrap());
    assert_eq!(
        (store.count_letters().await.unwrap(), store.letters(9).await.unwrap()),
        (1, vec![letter("a")])
    );
    Verdict::Passed
}

pub(crate) async fn letter_purge(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.purge_letters(at(9)).await.unwrap(), 0, "there is none");
    // Clocks differ: the times need not be in the order in which the letters came.
    let times = [("a", 1), ("b", 2), ("c", 7), ("d", 3), ("e", 4), ("f", 8), ("g", 2)];
    for (key, millis) in times {
        store.publish(DeadLetterRecord { at: at(millis), ..letter(key) }).await.unwrap();
    }
    assert_eq!(store.purge_letters(at(4)).await.unwrap(), 4);
    let keys =
        |letters: Vec<DeadLetterRecord>| letters.into_iter().map(|letter| letter.key).collect::<Vec<_>>();
    assert_eq!(keys(store.letters(9).await.unwrap()), ["f", "e", "c"], "an instant itself is not before it");
    assert_eq!(store.purge_letters(at(4)).await.unwrap(), 0);
    assert_eq!(store.purge_letters(at(9)).await.unwrap(), 3);
    assert_eq!(store.count_letters().await.unwrap(), 0);
    Verdict::Passed
}
