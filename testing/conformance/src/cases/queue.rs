//! Cases of the work queue.

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::time::Millis;
use pyoco_ports::{Delivery, Store};

use crate::samples::{LEASE, at, execution, job, tag, worker};
use crate::{Subject, Verdict};

async fn take(store: &dyn Store, tags: &[&str], most: usize, millis: u64) -> Vec<Delivery> {
    let tags: Vec<_> = tags.iter().map(|name| tag(name)).collect();
    store.take(&tags, &worker("w"), most, LEASE, at(millis)).await.unwrap()
}

fn bodies(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| std::str::from_utf8(&delivery.body).unwrap()).collect()
}

pub(crate) async fn deliver(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    let taken = take(&*store, &["default"], 10, 0).await;
    assert_eq!(bodies(&taken), ["job of e"]);
    assert_eq!((taken[0].number, &taken[0].tag), (1, &tag("default")));
    Verdict::Passed
}

pub(crate) async fn reopen(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("waiting", "default"), at(0)).await.unwrap();
    store.enqueue(job("taken", "other"), at(0)).await.unwrap();
    assert_eq!(take(&*store, &["other"], 1, 0).await.len(), 1);
    let Some(store) = subject.lose_and_reopen(store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    assert_eq!(
        bodies(&take(&*store, &["default", "other"], 9, 40_000).await),
        ["job of waiting", "job of taken"]
    );
    Verdict::Passed
}

pub(crate) async fn tags(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (name, tag_name) in [("a", "cpu"), ("b", "gpu"), ("c", "cpu"), ("d", "big")] {
        store.enqueue(job(name, tag_name), at(0)).await.unwrap();
    }
    assert_eq!(bodies(&take(&*store, &["gpu", "cpu"], 2, 0).await), ["job of a", "job of b"]);
    assert_eq!(bodies(&take(&*store, &["gpu", "cpu"], 2, 0).await), ["job of c"]);
    assert_eq!(bodies(&take(&*store, &["none"], 2, 0).await), Vec::<&str>::new());
    assert_eq!(bodies(&take(&*store, &[], 2, 0).await), Vec::<&str>::new());
    Verdict::Passed
}

pub(crate) async fn lease(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    assert_eq!(take(&*store, &["default"], 1, 0).await.len(), 1);
    assert_eq!(take(&*store, &["default"], 1, 29_999).await, []);
    Verdict::Passed
}

pub(crate) async fn redeliver(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    let first = take(&*store, &["default"], 1, 0).await;
    let second = take(&*store, &["default"], 1, 30_000).await;
    assert_eq!((&second[0].id, second[0].number), (&first[0].id, 2));
    Verdict::Passed
}

pub(crate) async fn race(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for number in 0..40 {
        store.enqueue(job(&format!("e{number}"), "default"), at(0)).await.unwrap();
    }
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let store: Arc<dyn Store> = store.clone();
            tokio::spawn(async move { take(&*store, &["default"], 10, 0).await })
        })
        .collect();
    let mut ids = Vec::new();
    for taker in takers {
        ids.extend(taker.await.unwrap().into_iter().map(|delivery| delivery.id));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40);
    Verdict::Passed
}

pub(crate) async fn wake(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let waiter: Arc<dyn Store> = store.clone();
    let waiting = tokio::spawn(async move { waiter.wait(&[tag("default")], Duration::from_secs(60)).await });
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("woken by the job").unwrap().unwrap();
    // Something is there already: no waiting at all.
    let tags = [tag("default")];
    let soon = store.wait(&tags, Duration::from_secs(60));
    tokio::time::timeout(Duration::from_secs(10), soon).await.expect("nothing to wait for").unwrap();
    // Nothing of this tag: patience ends it.
    store.wait(&[tag("other")], Duration::from_millis(1)).await.unwrap();
    Verdict::Passed
}

pub(crate) async fn extend(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    let taken = take(&*store, &["default"], 1, 0).await;
    store.extend(&taken[0], LEASE, at(20_000)).await.unwrap();
    assert_eq!(take(&*store, &["default"], 1, 40_000).await, []);
    assert_eq!(take(&*store, &["default"], 1, 50_000).await.len(), 1);
    Verdict::Passed
}

pub(crate) async fn ack(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    let taken = take(&*store, &["default"], 1, 0).await;
    store.ack(&taken[0]).await.unwrap();
    store.ack(&taken[0]).await.unwrap();
    assert_eq!(take(&*store, &["default"], 1, 99_000).await, []);
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 0);
    Verdict::Passed
}

pub(crate) async fn nak(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    let taken = take(&*store, &["default"], 1, 0).await;
    store.nak(&taken[0], Millis(2_000), at(1_000)).await.unwrap();
    assert_eq!(take(&*store, &["default"], 1, 2_999).await, []);
    let again = take(&*store, &["default"], 1, 3_000).await;
    assert_eq!((again.len(), again[0].number), (1, 2));
    Verdict::Passed
}

pub(crate) async fn drop_waiting(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    let taken = take(&*store, &["default"], 1, 0).await;
    store.enqueue(job("e", "default"), at(0)).await.unwrap();
    store.enqueue(job("f", "default"), at(0)).await.unwrap();
    store.drop_waiting(&execution("e")).await.unwrap();
    assert_eq!(bodies(&take(&*store, &["default"], 9, 0).await), ["job of f"]);
    // The one in hand is still there, and comes back when its lease runs out.
    let back = take(&*store, &["default"], 9, 30_000).await;
    assert_eq!(back.iter().map(|delivery| &delivery.id).collect::<Vec<_>>()[0], &taken[0].id);
    Verdict::Passed
}

pub(crate) async fn depth(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for name in ["a", "b", "c"] {
        store.enqueue(job(name, "default"), at(0)).await.unwrap();
    }
    take(&*store, &["default"], 1, 0).await;
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 3);
    assert_eq!(store.depth(&tag("other")).await.unwrap(), 0);
    Verdict::Passed
}
