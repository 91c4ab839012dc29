//! Cases of the work queue.

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, Store};

use crate::samples::{at, execution, job, tag, worker};
use crate::{Subject, Verdict};

/// Long enough for everything that is to happen at once.
const SOON: Duration = Duration::from_secs(10);

/// A store, and the time it is told.
struct Bench<'a> {
    subject: &'a dyn Subject,
    store: Arc<dyn Store>,
    now: Timestamp,
}

impl<'a> Bench<'a> {
    async fn new(subject: &'a dyn Subject) -> Self {
        assert!(subject.slack().0 * 2 < subject.lease().0, "with so much slack nothing can be told");
        Self { subject, store: subject.fresh().await, now: at(0) }
    }

    async fn enqueue(&self, name: &str, tag_name: &str) {
        self.store.enqueue(job(name, tag_name), self.now).await.unwrap();
    }

    async fn take(&self, tags: &[&str], most: usize) -> Vec<Delivery> {
        take(&*self.store, tags, most, self.subject.lease(), self.now).await
    }

    /// Takes what was put there a moment ago, as workers do: a store in real time may need that moment.
    async fn take_soon(&self, tag_name: &str, most: usize) -> Vec<Delivery> {
        let tags = [tag(tag_name)];
        let waiting = self.store.wait(&tags, SOON);
        tokio::time::timeout(SOON, waiting).await.expect("there is something to take").unwrap();
        self.take(&[tag_name], most).await
    }

    async fn pass(&mut self, by: u64) {
        self.now = self.subject.pass(self.now, Millis(by)).await;
    }

    /// Until just before that much time is over.
    async fn pass_nearly(&mut self, by: u64) {
        self.pass(by - self.subject.slack().0 - 1).await;
    }

    /// From there until that much time is surely over.
    async fn pass_rest(&mut self) {
        self.pass(self.subject.slack().0 * 2 + 1).await;
    }

    /// Until a lease has run out.
    async fn pass_lease(&mut self) {
        self.pass(self.lease() + self.subject.slack().0).await;
    }

    fn lease(&self) -> u64 {
        self.subject.lease().0
    }
}

async fn take(store: &dyn Store, tags: &[&str], most: usize, lease: Millis, now: Timestamp) -> Vec<Delivery> {
    let tags: Vec<_> = tags.iter().map(|name| tag(name)).collect();
    store.take(&tags, &worker("w"), most, lease, now).await.unwrap()
}

/// The runs that jobs are of, by what their bodies say.
fn runs(deliveries: &[Delivery]) -> Vec<String> {
    let run = |delivery: &Delivery| {
        let body: serde_json::Value = serde_json::from_slice(&delivery.body).unwrap();
        body["run_id"].as_str().unwrap().to_owned()
    };
    deliveries.iter().map(run).collect()
}

pub(crate) async fn deliver(subject: &dyn Subject) -> Verdict {
    let bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let taken = bench.take(&["default"], 10).await;
    assert_eq!(runs(&taken), ["e"]);
    assert_eq!(taken[0].body, job("e", "default").body);
    assert_eq!((taken[0].number, &taken[0].tag), (1, &tag("default")));
    Verdict::Passed
}

pub(crate) async fn reopen(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("waiting", "default").await;
    bench.enqueue("taken", "other").await;
    assert_eq!(bench.take(&["other"], 1).await.len(), 1);
    let Some(store) = subject.lose_and_reopen(bench.store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    bench.store = store;
    bench.pass_lease().await;
    let back = bench.take(&["default", "other"], 9).await;
    let mut back = runs(&back);
    if !subject.orders_tags_together() {
        back.sort_unstable_by(|one, other| other.cmp(one));
    }
    assert_eq!(back, ["waiting", "taken"]);
    Verdict::Passed
}

pub(crate) async fn tags(subject: &dyn Subject) -> Verdict {
    let bench = Bench::new(subject).await;
    for (name, tag_name) in [("a", "cpu"), ("b", "gpu"), ("c", "cpu"), ("d", "big"), ("e", "cpu")] {
        bench.enqueue(name, tag_name).await;
    }
    let first = bench.take(&["gpu", "cpu"], 2).await;
    let second = bench.take(&["gpu", "cpu"], 9).await;
    assert_eq!(runs(&bench.take(&["gpu", "cpu"], 9).await), Vec::<String>::new());
    if subject.orders_tags_together() {
        assert_eq!(runs(&first), ["a", "b"]);
        assert_eq!(runs(&second), ["c", "e"]);
    } else {
        assert_eq!((first.len(), second.len()), (2, 2));
        let all = [first, second].concat();
        let of = |name: &str| -> Vec<Delivery> {
            all.iter().filter(|delivery| delivery.tag == tag(name)).cloned().collect()
        };
        assert_eq!(runs(&of("cpu")), ["a", "c", "e"]);
        assert_eq!(runs(&of("gpu")), ["b"]);
    }
    assert_eq!(runs(&bench.take(&["none"], 2).await), Vec::<String>::new());
    assert_eq!(runs(&bench.take(&[], 2).await), Vec::<String>::new());
    assert_eq!(runs(&bench.take(&["big"], 0).await), Vec::<String>::new());
    assert_eq!(runs(&bench.take(&["big"], 2).await), ["d"]);
    Verdict::Passed
}

pub(crate) async fn lease(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    assert_eq!(bench.take(&["default"], 1).await.len(), 1);
    bench.pass_nearly(bench.lease()).await;
    assert_eq!(bench.take(&["default"], 1).await, []);
    Verdict::Passed
}

pub(crate) async fn redeliver(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let first = bench.take(&["default"], 1).await;
    bench.pass_lease().await;
    let second = bench.take(&["default"], 1).await;
    assert_eq!((&second[0].id, second[0].number), (&first[0].id, 2));
    assert_eq!((&second[0].tag, &second[0].body), (&first[0].tag, &first[0].body));
    Verdict::Passed
}

pub(crate) async fn race(subject: &dyn Subject) -> Verdict {
    let bench = Bench::new(subject).await;
    for number in 0..40 {
        bench.enqueue(&format!("e{number}"), "default").await;
    }
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let (store, lease, now) = (Arc::clone(&bench.store), subject.lease(), bench.now);
            tokio::spawn(async move { take(&*store, &["default"], 10, lease, now).await })
        })
        .collect();
    let mut ids = Vec::new();
    for taker in takers {
        ids.extend(taker.await.unwrap().into_iter().map(|delivery| delivery.id));
    }
    assert_eq!(ids.len(), 40, "none is left over and none is given twice");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40);
    Verdict::Passed
}

pub(crate) async fn wake(subject: &dyn Subject) -> Verdict {
    let bench = Bench::new(subject).await;
    let waiter: Arc<dyn Store> = Arc::clone(&bench.store);
    let waiting = tokio::spawn(async move { waiter.wait(&[tag("default")], Duration::from_secs(60)).await });
    bench.enqueue("e", "default").await;
    tokio::time::timeout(SOON, waiting).await.expect("woken by the job").unwrap().unwrap();
    // Something is there already: no waiting at all.
    let tags = [tag("default")];
    let soon = bench.store.wait(&tags, Duration::from_secs(60));
    tokio::time::timeout(SOON, soon).await.expect("nothing to wait for").unwrap();
    assert_eq!(runs(&bench.take(&["default"], 9).await), ["e"], "waiting for it did not lose it");
    // Nothing of this tag: patience ends it.
    bench.store.wait(&[tag("other")], Duration::from_millis(1)).await.unwrap();
    Verdict::Passed
}

pub(crate) async fn extend(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let taken = bench.take(&["default"], 1).await;
    let most_of_it = bench.lease() * 2 / 3;
    bench.pass(most_of_it).await;
    bench.store.extend(&taken[0], subject.lease(), bench.now).await.unwrap();
    bench.pass(most_of_it).await;
    assert_eq!(bench.take(&["default"], 1).await, [], "the first lease is over, the second is not");
    bench.pass(bench.lease() - most_of_it + subject.slack().0).await;
    assert_eq!(bench.take(&["default"], 1).await.len(), 1);
    Verdict::Passed
}

pub(crate) async fn ack(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let taken = bench.take(&["default"], 1).await;
    bench.store.ack(&taken[0]).await.unwrap();
    bench.store.ack(&taken[0]).await.unwrap();
    gone(&mut bench).await;
    Verdict::Passed
}

pub(crate) async fn refuse(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let taken = bench.take(&["default"], 1).await;
    bench.store.refuse(&taken[0]).await.unwrap();
    bench.store.refuse(&taken[0]).await.unwrap();
    gone(&mut bench).await;
    // The next one is not in its way.
    bench.enqueue("f", "default").await;
    assert_eq!(runs(&bench.take_soon("default", 9).await), ["f"]);
    Verdict::Passed
}

/// The only job is gone for good.
async fn gone(bench: &mut Bench<'_>) {
    assert_eq!(bench.take(&["default"], 1).await, []);
    bench.pass_lease().await;
    assert_eq!(bench.take(&["default"], 1).await, []);
    assert_eq!(bench.store.depth(&tag("default")).await.unwrap(), 0);
}

pub(crate) async fn nak(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let taken = bench.take(&["default"], 1).await;
    // Shorter than the lease, so that it is the delay that brings it back.
    let delay = bench.lease() / 2;
    bench.store.nak(&taken[0], Millis(delay), bench.now).await.unwrap();
    bench.pass_nearly(delay).await;
    assert_eq!(bench.take(&["default"], 1).await, []);
    bench.pass_rest().await;
    let again = bench.take(&["default"], 1).await;
    assert_eq!((again.len(), again[0].number), (1, 2));
    assert_eq!(again[0].id, taken[0].id);
    Verdict::Passed
}

pub(crate) async fn drop_waiting(subject: &dyn Subject) -> Verdict {
    let mut bench = Bench::new(subject).await;
    bench.enqueue("e", "default").await;
    let taken = bench.take(&["default"], 1).await;
    for name in ["e", "f", "e"] {
        bench.enqueue(name, "default").await;
    }
    bench.store.drop_waiting(&execution("e")).await.unwrap();
    bench.store.drop_waiting(&execution("nobody")).await.unwrap();
    assert_eq!(runs(&bench.take_soon("default", 9).await), ["f"]);
    assert_eq!(bench.store.depth(&tag("default")).await.unwrap(), 2);
    // The one in hand is still there, and comes back when its lease runs out.
    bench.pass_lease().await;
    let back = bench.take(&["default"], 9).await;
    assert!(back.iter().any(|delivery| delivery.id == taken[0].id), "{back:?}");
    Verdict::Passed
}

pub(crate) async fn depth(subject: &dyn Subject) -> Verdict {
    let bench = Bench::new(subject).await;
    for name in ["a", "b", "c"] {
        bench.enqueue(name, "default").await;
    }
    holds(&bench, "default", &["a", "b", "c"]).await;
    let taken = bench.take(&["default"], 1).await;
    holds(&bench, "default", &["a", "b", "c"]).await;
    bench.store.ack(&taken[0]).await.unwrap();
    holds(&bench, "default", &["b", "c"]).await;
    holds(&bench, "other", &[]).await;
    Verdict::Passed
}

/// A tag has these jobs, waiting or in hand.
async fn holds(bench: &Bench<'_>, tag_name: &str, names: &[&str]) {
    assert_eq!(bench.store.depth(&tag(tag_name)).await.unwrap(), names.len() as u64);
    let mut queued = bench.store.queued(&tag(tag_name)).await.unwrap();
    queued.sort();
    assert_eq!(queued, names.iter().map(|name| execution(name)).collect::<Vec<_>>());
}
