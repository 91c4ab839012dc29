//! What a job carries: whoever takes it knows the run without asking, and is never believed too much for it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and looks at the clock"
)]

mod ground;
mod runs;
mod site;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ground::{append, execution};
use pyoco_core::ids::Version;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{AppendError, EventLog as _, News, Peers as _, RunIndex as _, WorkQueue as _};
use pyoco_store_nats::NatsStore;
use runs::{publish, row, snapshot};
use site::{Site, enqueue, now, take_one};

/// A run as a gateway accepts it: record, snapshot, job.
async fn submit(gateway: &NatsStore, name: &str) {
    append(gateway, name, 0, b"{\"first\":1}").await.unwrap();
    publish(gateway, row(name, 1)).await;
    enqueue(gateway, name).await;
}

/// What the servers' clock says, too.
fn clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

async fn pair(site: &Site) -> (Arc<NatsStore>, Arc<NatsStore>) {
    (site.store().await, site.store().await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_a_new_run_asks_nothing_about_it() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    submit(&gateway, "r").await;
    take_one(&worker).await;
    let before = worker.messages_sent();
    let records = worker.peek(&execution("r")).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].version, &*records[0].bytes), (Version(1), &b"{\"first\":1}"[..]));
    assert_eq!(worker.messages_sent(), before, "nothing was asked");
    append(&worker, "r", 1, b"{\"second\":2}").await.unwrap();
    assert_eq!(worker.messages_sent(), before + 1, "a record goes behind the one that was carried");
    worker.publish_row(row("r", 2), snapshot(&row("r", 2))).await.unwrap();
    assert_eq!(worker.messages_sent(), before + 2, "a snapshot goes behind the one that was carried");
    assert_eq!(gateway.read(&execution("r"), Version(0)).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_since_is_found_by_the_append() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    submit(&gateway, "r").await;
    append(&gateway, "r", 1, b"{\"cancel\":1}").await.unwrap();
    take_one(&worker).await;
    assert_eq!(worker.peek(&execution("r")).await.unwrap().len(), 1, "as it was when the job was made");
    let refused = append(&worker, "r", 1, b"{\"claim\":1}").await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { expected: Version(1), actual: Version(2) })),
        "{refused:?}"
    );
    assert_eq!(worker.peek(&execution("r")).await.unwrap().len(), 2, "it is carried once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_comes_again_is_asked_about() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    submit(&gateway, "r").await;
    let first = take_one(&gateway).await;
    append(&gateway, "r", 1, b"{\"claim\":1}").await.unwrap();
    gateway.nak(&first, Millis(0), now()).await.unwrap();
    take_one(&worker).await;
    assert_eq!(worker.peek(&execution("r")).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_record_stays_where_it_is() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    let large = serde_json::to_vec(&"x".repeat(100_000)).unwrap();
    append(&gateway, "r", 0, large.clone()).await.unwrap();
    publish(&gateway, row("r", 1)).await;
    enqueue(&gateway, "r").await;
    take_one(&worker).await;
    let before = worker.messages_sent();
    assert_eq!(worker.peek(&execution("r")).await.unwrap()[0].bytes, large);
    assert_eq!(worker.messages_sent(), before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_strangers_are_not_believed() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    append(&gateway, "r", 0, b"{\"first\":1}").await.unwrap();
    for headers in [
        &[("Pyoco-Record", "{}"), ("Pyoco-Record-Sequence", "-1"), ("Pyoco-Snapshot", "1")][..],
        &[("Pyoco-Record", "{}"), ("Pyoco-Record-Sequence", "1")][..],
        &[("Pyoco-Record", "{}")][..],
    ] {
        site.other.publish("pyoco.work.default", headers, r#"{"run_id": "r"}"#).await;
        take_one(&worker).await;
        assert_eq!(worker.peek(&execution("r")).await.unwrap()[0].bytes, b"{\"first\":1}", "{headers:?}");
    }
    // One that looks right and is not: its record is read, and nothing can be written behind it.
    let headers = [("Pyoco-Record", "{}"), ("Pyoco-Record-Sequence", "77"), ("Pyoco-Snapshot", "1")];
    site.other.publish("pyoco.work.default", &headers, r#"{"run_id": "s"}"#).await;
    take_one(&worker).await;
    assert_eq!(worker.peek(&execution("s")).await.unwrap()[0].bytes, b"{}");
    assert!(append(&worker, "s", 1, b"{\"claim\":1}").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_in_any_language_is_carried_as_it_is() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    let record = "{\"params\":{\"名前\":\"日本語 Nats-TTL: 1 %4E ~\"}}";
    append(&gateway, "r", 0, record.as_bytes()).await.unwrap();
    publish(&gateway, row("r", 1)).await;
    enqueue(&gateway, "r").await;
    take_one(&worker).await;
    let before = worker.messages_sent();
    assert_eq!(worker.peek(&execution("r")).await.unwrap()[0].bytes, record.as_bytes());
    assert_eq!(worker.messages_sent(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_implementation_wrote_before_the_take_is_heard_while_the_run_is_young() {
    let site = Site::new().await;
    let (gateway, worker) = pair(&site).await;
    submit(&gateway, "r").await;
    let cancel = r#"{"run_id": "r", "flow_name": "main", "status": "RUNNING", "cancel_requested_at": 1.0, "tags": ["default"]}"#;
    site.other.publish("$KV.pyoco_runs.r", &[], cancel).await;
    take_one(&worker).await;
    let mut listening = worker.listen(&execution("r"), clock()).await.unwrap().expect("others write here");
    let heard = tokio::time::timeout(Duration::from_secs(5), listening.next()).await;
    let news = heard.expect("it is heard").expect("the store is open").news;
    assert!(matches!(news, News::Foreign { .. }), "{news:?}");
}
