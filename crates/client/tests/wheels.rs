//! Wheels: what is sent, in which pieces, and that a file has its name only when it is whole.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyoco_client::{Client, Error, WheelFile, WheelHistoryFilter};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use support::{Gateway, Reply, json};

const NAME: &str = "demo-1-py3-none-any.whl";

fn client(gateway: &Gateway) -> Client {
    Client::new(gateway.url()).unwrap()
}

/// Bytes that differ from place to place.
fn bytes(count: u32) -> Vec<u8> {
    (0..count).flat_map(|number| number.to_le_bytes()).collect()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn wheels_are_listed_looked_up_and_deleted() {
    let gateway = Gateway::start(|asked, _| match (asked.method.as_str(), asked.target.as_str()) {
        ("GET", "/wheels") => json(200, json!([{"name": NAME, "size_bytes": 3, "new": 1}]).to_string()),
        ("DELETE", _) => json(200, json!({"name": NAME, "deleted": true}).to_string()),
        _ => json(
            200,
            json!([{"event_id": "e", "occurred_at": 1.5, "action": "upload", "wheel_name": NAME}])
                .to_string(),
        ),
    });
    let client = client(&gateway);
    let wheels = client.list_wheels().await.unwrap();
    assert_eq!((wheels[0].size_bytes, &wheels.json()[0]["new"]), (3, &json!(1)));
    let filter =
        WheelHistoryFilter { wheel_name: Some(NAME.into()), action: Some(String::new()), limit: Some(7) };
    assert_eq!(client.list_wheel_history(&filter).await.unwrap()[0].action, "upload");
    client.list_wheel_history(&WheelHistoryFilter::default()).await.unwrap();
    assert!(client.delete_wheel("a/b.whl").await.unwrap().deleted);
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    let history = format!("/wheels/history?limit=7&wheel_name={NAME}");
    assert_eq!(targets, ["/wheels", &history, "/wheels/history", "/wheels/a%2Fb.whl"]);
}

#[tokio::test]
async fn an_upload_sends_the_file_as_it_is_and_says_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let content = bytes(250_000);
    std::fs::write(&path, &content).unwrap();
    let gateway = Gateway::start(|_, _| json(200, json!({"name": NAME, "size_bytes": 1}).to_string()));
    let wheel = WheelFile { path, tags: vec!["gpu".into(), "linux".into()], replace: false };
    let steps = Arc::new(Mutex::new(Vec::new()));
    let told = steps.clone();
    let uploaded = client(&gateway).upload_wheel(&wheel, move |sent| told.lock().unwrap().push(sent)).await;
    assert_eq!(uploaded.unwrap().name, NAME);
    let asked = gateway.asked().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/wheels"));
    // The gateway can say at once that it is too long.
    assert!(asked.header("content-length").is_some());
    let boundary =
        asked.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = String::from_utf8_lossy(&asked.body);
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    assert!(parts[1].contains("name=\"replace\"") && parts[1].ends_with("\r\n\r\nfalse\r\n"), "{}", parts[1]);
    assert!(
        parts[2].contains("name=\"tags\"") && parts[2].ends_with("\r\n\r\ngpu,linux\r\n"),
        "{}",
        parts[2]
    );
    assert!(parts[3].contains(&format!("name=\"wheel\"; filename=\"{NAME}\"")), "{}", &parts[3][..200]);
    assert!(asked.body.windows(content.len()).any(|window| window == content));
    let steps = steps.lock().unwrap();
    assert!(steps.len() > 3 && steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    assert_eq!(steps.last(), Some(&(content.len() as u64)));
}

#[tokio::test]
async fn an_upload_that_nobody_takes_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    std::fs::write(&path, bytes(1_000)).unwrap();
    let gateway = Gateway::start(|_, _| Reply::Silence);
    let client = Client::builder(gateway.url()).request_timeout(Duration::from_millis(100)).build().unwrap();
    let wheel = WheelFile { path: path.clone(), ..WheelFile::default() };
    let error = client.upload_wheel(&wheel, |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    let wheel = WheelFile { path: folder.path().join("none.whl"), ..WheelFile::default() };
    let error = client.upload_wheel(&wheel, |_| {}).await.unwrap_err();
    assert!(matches!(&error, Error::File { path, .. } if path.ends_with("none.whl")), "{error:?}");
    assert_eq!(gateway.asked().len(), 1);
}

/// An answer with these bytes and this entity tag.
fn sent(content: &[u8], length: usize, mark: Option<&str>) -> Reply {
    let mark = mark.map(|mark| format!("etag: {mark}\r\n")).unwrap_or_default();
    let head = format!("HTTP/1.1 200 OK\r\n{mark}content-length: {length}\r\nconnection: close\r\n\r\n");
    Reply::Raw([head.as_bytes(), content].concat())
}

#[tokio::test]
async fn a_download_that_is_whole_gets_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    std::fs::write(&path, "what was there before").unwrap();
    let content = bytes(100_000);
    let (served, mark) = (content.clone(), format!("\"{}\"", hex(&content)));
    let gateway = Gateway::start(move |_, _| sent(&served, served.len(), Some(&mark)));
    let last = Mutex::new((0, None));
    let progress = |had, all| *last.lock().unwrap() = (had, all);
    let size = client(&gateway).download_wheel(NAME, &path, progress).await.unwrap();
    assert_eq!(size, content.len() as u64);
    assert_eq!(*last.lock().unwrap(), (size, Some(size)));
    assert!(std::fs::read(&path).unwrap() == content);
    assert_eq!(names(folder.path()), [NAME]);
    assert_eq!(gateway.asked()[0].target, format!("/wheels/{NAME}"));
}

#[tokio::test]
async fn one_that_is_not_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    std::fs::write(&path, "before").unwrap();
    let content = bytes(100_000);
    let mark = format!("\"{}\"", hex(&content));
    let mut flipped = content.clone();
    flipped[200_000] ^= 1;
    let half = content[..150_000].to_vec();
    let length = content.len();
    for (case, reply, problem) in [
        ("a flipped bit", sent(&flipped, length, Some(&mark)), "the wheel is damaged"),
        ("half of it", sent(&half, length, Some(&mark)), "GET /wheels"),
        ("no tag", sent(&content, length, None), "does not say what the wheel hashes to"),
        ("another tag", sent(&content, length, Some("W/\"1\"")), "does not say what the wheel hashes to"),
        ("nothing", json(404, r#"{"detail":"wheel not found"}"#), "wheel not found"),
    ] {
        let reply = Mutex::new(Some(reply));
        let gateway = Gateway::start(move |_, _| reply.lock().unwrap().take().unwrap());
        let error = client(&gateway).download_wheel(NAME, &path, |_, _| {}).await.unwrap_err();
        assert!(error.to_string().contains(problem), "{case}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"before", "{case}");
        assert_eq!(names(folder.path()), [NAME], "{case}");
    }
    let gateway = Gateway::start(move |_, _| sent(&content, length, Some(&mark)));
    let nowhere = folder.path().join("none").join(NAME);
    let error = client(&gateway).download_wheel(NAME, &nowhere, |_, _| {}).await.unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
}
