//! The audit trail of a process: batches, a store that is away, floods, and the end.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Ids, Trail};
use pyoco_figures::Figures;
use pyoco_ports::{AuditEntry, AuditFilter, AuditPage, AuditTrail, ErrorKind, StoreError};

/// Takes what it is given, unless it is away or broken.
#[derive(Default)]
struct Paper {
    batches: Mutex<Vec<Vec<String>>>,
    trouble: Mutex<Option<ErrorKind>>,
}

#[async_trait]
impl AuditTrail for Paper {
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        if let Some(kind) = *self.trouble.lock().unwrap() {
            return Err(StoreError::plain(kind, "write"));
        }
        self.batches.lock().unwrap().push(entries.into_iter().map(|entry| entry.id).collect());
        Ok(())
    }

    async fn audit(&self, _filter: &AuditFilter, _limit: usize) -> Result<AuditPage, StoreError> {
        Ok(AuditPage { entries: Vec::new(), next: None })
    }

    async fn prune_audit(&self, _before: Timestamp, _most: usize) -> Result<usize, StoreError> {
        Ok(0)
    }
}

impl Paper {
    fn is(&self, trouble: Option<ErrorKind>) {
        *self.trouble.lock().unwrap() = trouble;
    }

    fn batches(&self) -> Vec<usize> {
        self.batches.lock().unwrap().iter().map(Vec::len).collect()
    }

    fn ids(&self) -> Vec<String> {
        self.batches.lock().unwrap().concat()
    }
}

#[derive(Default)]
struct Numbers(AtomicU64);

impl Ids for Numbers {
    fn event(&self) -> EventId {
        EventId::new(&format!("n-{}", self.0.fetch_add(1, Ordering::Relaxed))).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        ExecutionId::new("e").unwrap()
    }
}

fn trail() -> (Arc<Paper>, Trail, Figures) {
    let (paper, figures) = (Arc::new(Paper::default()), Figures::default());
    let trail = Trail::new(paper.clone(), Arc::new(Numbers::default()), figures.clone());
    (paper, trail, figures)
}

fn entry(id: &impl ToString) -> AuditEntry {
    let at = Timestamp::from_micros(1);
    let (action, body) = ("a".to_owned(), b"{}".to_vec());
    AuditEntry { id: id.to_string(), at, action, tenant: None, target: None, body }
}

fn dropped(figures: &Figures) -> u64 {
    let text = figures.text();
    let line = text
        .lines()
        .find(|line| line.contains("audit") && line.contains("dropped") && !line.starts_with('#'));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_noted_together_is_written_together_and_in_order() {
    let (paper, trail, _) = trail();
    (0..600).for_each(|number| trail.note(entry(&number)));
    assert_eq!(paper.batches(), [0_usize; 0], "nobody waits for it");
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(paper.batches(), [256, 256, 88]);
    assert_eq!(paper.ids(), (0..600).map(|number| number.to_string()).collect::<Vec<_>>());
    trail.note(entry(&"later"));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(paper.batches().last(), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn what_a_store_that_is_away_does_not_take_waits_and_what_is_too_much_is_counted() {
    let (paper, trail, figures) = trail();
    paper.is(Some(ErrorKind::Unavailable));
    (0..16_384 + 10).for_each(|number| trail.note(entry(&number)));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((paper.ids().len(), dropped(&figures)), (0, 10));
    paper.is(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(paper.ids(), (0..16_384).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(dropped(&figures), 10);
}

#[tokio::test(start_paused = true)]
async fn what_was_tried_in_vain_is_tried_again_as_it_was() {
    let (paper, trail, _) = trail();
    paper.is(Some(ErrorKind::Timeout));
    (0..3).for_each(|number| trail.note(entry(&number)));
    tokio::time::sleep(Duration::from_millis(60)).await;
    (3..8).for_each(|number| trail.note(entry(&number)));
    paper.is(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The store may have the three, and can tell only if it is given the same three.
    assert_eq!(paper.batches(), [3, 5]);
    assert_eq!(paper.ids(), (0..8).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_written_keeps_nothing_back() {
    let (paper, trail, figures) = trail();
    paper.is(Some(ErrorKind::TooLarge));
    trail.note(entry(&"huge"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    paper.is(None);
    trail.note(entry(&"next"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((paper.ids(), dropped(&figures)), (vec!["next".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_one_entry_a_second() {
    let (paper, trail, _) = trail();
    let counted = |count| entry(&format!("count {count}"));
    (0..5_000).for_each(|_| trail.count(counted));
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(paper.ids().len(), 0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(paper.ids(), ["count 5000"]);
    trail.count(counted);
    trail.count(counted);
    trail.flush().await;
    assert_eq!(paper.ids(), ["count 5000", "count 2"], "an end is not waited for");
}

#[tokio::test(start_paused = true)]
async fn an_end_writes_what_waits_and_gives_up_on_a_store_that_is_away() {
    let (paper, trail, figures) = trail();
    trail.note(entry(&"a"));
    trail.flush().await;
    assert_eq!(paper.ids(), ["a"]);
    paper.is(Some(ErrorKind::Unavailable));
    trail.note(entry(&"b"));
    let began = tokio::time::Instant::now();
    trail.flush().await;
    assert!(began.elapsed() <= Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(dropped(&figures), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_written_through_is_there_or_comes_later() {
    let (paper, trail, _) = trail();
    trail.write(entry(&"a")).await.unwrap();
    assert_eq!(paper.ids(), ["a"]);
    paper.is(Some(ErrorKind::Unavailable));
    assert!(trail.write(entry(&"b")).await.is_err());
    paper.is(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(paper.ids(), ["a", "b"]);
}
