//! What a gateway holds of a wheel while it is uploaded. This test has a process for itself, because it asks the system how much
//! memory the process has ever had.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::stream;
use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Engine, Ids};
use pyoco_gateway::{Gateway, ServerLimits, Settings, WheelSettings, serve};
use pyoco_store_memory::MemoryStore;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const MIB: u64 = 1 << 20;
/// Some pieces of it, connections, and room for the allocator. A wheel that was held would be many times this.
const MOST_GROWTH: u64 = 24 * MIB;

struct World;

impl Clock for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }
}

impl Ids for World {
    fn event(&self) -> EventId {
        EventId::new(&uuid::Uuid::new_v4().to_string()).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        panic!("an execution")
    }
}

/// The most memory that this process has ever had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// A form with a file of so many bytes, made as it is sent.
fn form(bytes: u64) -> reqwest::Body {
    const PIECE: u64 = 64 << 10;
    let head = "--b\r\ncontent-disposition: form-data; name=wheel; filename=demo-1-py3-none-any.whl\r\n\r\n";
    let last = 1 + bytes / PIECE;
    let pieces = stream::unfold(0, move |place| async move {
        let piece = match place {
            0 => head.as_bytes().to_vec(),
            place if place < last => vec![7; 64 << 10],
            place if place == last => b"\r\n--b--\r\n".to_vec(),
            _ => return None,
        };
        Some((Ok::<_, Infallible>(piece), place + 1))
    });
    reqwest::Body::wrap_stream(pieces)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wheel_of_600_megabytes_goes_by_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let wheels = WheelSettings { max_bytes: 0, folder: folder.path().to_owned(), ..WheelSettings::default() };
    let settings = Settings { wheels, ..Settings::default() };
    let engine =
        Engine::new(Arc::new(MemoryStore::new()), Arc::new(World), Arc::new(World), Default::default());
    let router = Gateway::new(engine, Arc::new(World), settings).router();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/wheels", listener.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(listener, router, ServerLimits::default(), shutdown.clone()));
    let client = reqwest::Client::new();
    let post = |bytes| {
        let request = client.post(&url).header("content-type", "multipart/form-data; boundary=b");
        request.body(form(bytes)).send()
    };
    // Once, so that what is only made once is there.
    assert_eq!(post(MIB).await.unwrap().status(), 422);
    let before = peak();
    let answer = post(600 * MIB).await.unwrap();
    assert_eq!(answer.status(), 422, "all of it has come, and it is no wheel");
    let body: Value = answer.json().await.unwrap();
    assert!(body["detail"].as_str().unwrap().starts_with("the archive "), "{body}");
    let after = peak();
    assert!(after - before < MOST_GROWTH, "{before} to {after}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    shutdown.cancel();
    served.await.unwrap().unwrap();
}
