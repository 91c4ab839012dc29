//! A key that is taken back, or means somebody else from now on, ends what was opened with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::access::Role;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{Access, Admitted, NotAdmitted, Settings};
use pyoco_ports::{ErrorKind, StoreError};
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{Socket, write};
use serde_json::json;

on_every_store!(
    what_was_opened_with_a_key_that_is_taken_back_ends,
    what_was_opened_with_a_key_that_is_changed_ends,
);

const GOOD: u8 = 0;
const TAKEN_BACK: u8 = 1;
const DEMOTED: u8 = 2;
const UNKNOWN: u8 = 3;

/// One key, and what became of it.
#[derive(Default)]
struct One {
    state: AtomicU8,
    asked: AtomicUsize,
}

impl One {
    /// Returns when it was asked for so often again.
    async fn asked(&self, times: usize) {
        let before = self.asked.load(Ordering::SeqCst);
        let asked = async {
            while self.asked.load(Ordering::SeqCst) < before + times {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), asked).await.expect("it is asked for again and again");
    }
}

#[async_trait]
impl Access for One {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        assert_eq!(secret, Some("ann"));
        let role = match self.state.load(Ordering::SeqCst) {
            GOOD => Role::Submit,
            DEMOTED => Role::Read,
            UNKNOWN => return Err(NotAdmitted::Unknown(StoreError::plain(ErrorKind::Unavailable, "key"))),
            _ => return Err(NotAdmitted::Wrong),
        };
        Ok(Admitted { tenant: Some(TenantId::new("anns-team").unwrap()), key: Some("ann".to_owned()), role })
    }
}

async fn what_was_opened_with_a_key_that_is_taken_back_ends(site: Site) {
    ends(site, TAKEN_BACK).await;
}

async fn what_was_opened_with_a_key_that_is_changed_ends(site: Site) {
    ends(site, DEMOTED).await;
}

async fn ends(site: Site, because: u8) {
    let access = Arc::new(One::default());
    let settings = Settings { key_recheck: Duration::from_millis(50), ..Settings::default() };
    let ann = site.for_one_with(access.clone(), Some("ann"), settings).await;
    ann.graph("g", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let job = ann.started("g").await;
    let mut streams = Vec::new();
    for path in [
        format!("/runs/{job}/watch?timeout_sec=600"),
        format!("/runs/{job}/logs/stream"),
        format!("/jobs/{job}/logs/stream"),
        format!("/executions/{job}/events/stream"),
    ] {
        streams.push(ann.stream_at(&path, None).await);
    }
    let mut socket = Socket::open(&ann, &format!("/jobs/{job}/ws"), &[("x-api-key", "ann")]).await.unwrap();
    access.asked(3 * 5).await;
    // As long as nobody can tell, everything stays open.
    access.state.store(UNKNOWN, Ordering::SeqCst);
    access.asked(3 * 5).await;
    access.state.store(GOOD, Ordering::SeqCst);
    write(&ann, &job, &["late"]).await;
    let tags = ann.client.post(ann.url(&format!("/jobs/{job}/tags"))).json(&json!({"tag": "late"}));
    tags.send().await.unwrap().error_for_status().unwrap();
    ann.node(&job, "a", "start", json!({"workerId": "late"})).await;
    for stream in &mut streams {
        while !stream.next().await.expect("it is still told what happens").data.to_string().contains("late") {
        }
    }
    assert_eq!(socket.next_of("log").await["entry"]["message"], "late");
    access.state.store(because, Ordering::SeqCst);
    for stream in &mut streams {
        while stream.next().await.is_some() {}
    }
    assert_eq!(socket.to_the_end().await.1, 1008);
}
