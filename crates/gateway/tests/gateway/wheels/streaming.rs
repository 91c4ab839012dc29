//! Uploads that are long, slow, many or never end. Nothing of them is held, and nothing is left.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use pyoco_gateway::{ServerLimits, WheelSettings};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{Place, demo, left_in};
use crate::support::{Answer, read_to_end, status_of};

const MIB: u64 = 1 << 20;
const NAME: &str = "demo-1-py3-none-any.whl";

fn opening(name: &str) -> String {
    format!("--b\r\ncontent-disposition: form-data; name=\"wheel\"; filename=\"{name}\"\r\n\r\n")
}

/// The beginning of an upload of so many bytes.
fn head(length: u64) -> String {
    format!(
        "POST /wheels HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// A form with a file of so many bytes, made as it is sent, and how many were.
fn generated(bytes: u64) -> (reqwest::Body, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = sent.clone();
    let pieces = stream::unfold(0_u64, move |at| {
        let counter = counter.clone();
        async move {
            let piece = match at {
                0 => opening(NAME).into_bytes(),
                at if (at - 1) * 64 * 1024 < bytes => vec![7; 64 << 10],
                _ => return None,
            };
            counter.fetch_add(piece.len() as u64, Ordering::SeqCst);
            Some((Ok::<_, Infallible>(piece), at + 1))
        }
    });
    (reqwest::Body::wrap_stream(pieces), sent)
}

#[tokio::test]
async fn a_wheel_of_600_megabytes_is_refused_when_the_limit_is_crossed() {
    let place = Place::up_to(16 * MIB).await;
    let (body, sent) = generated(600 * MIB);
    let request = place.server.client.post(place.server.url("/wheels")).body(body);
    let request = request.header("content-type", "multipart/form-data; boundary=b");
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(answer.detail(413), "wheel too large");
    let sent = sent.load(Ordering::SeqCst);
    // What the limit allows, what is read on so that the answer arrives, and what was on its way.
    assert!((16 * MIB..64 * MIB).contains(&sent), "{sent}");
    until_nothing_is_left(&place).await;
    place.assert_untouched().await;
}

#[tokio::test]
async fn one_that_says_it_is_too_large_is_refused_at_once() {
    let place = Place::up_to(16 * MIB).await;
    let mut stream = place.server.connect().await;
    stream.write_all(head(600 * MIB).as_bytes()).await.unwrap();
    stream.write_all(opening(NAME).as_bytes()).await.unwrap();
    // Nothing more is sent, and nothing more is waited for.
    let answer = read_to_end(&mut stream).await;
    assert_eq!(status_of(&answer), 413, "{answer}");
    assert!(answer.contains("wheel too large"), "{answer}");
    place.assert_untouched().await;
}

/// Sends the beginning of an upload and waits until some of it has landed.
async fn begun(place: &Place, landed: usize) -> TcpStream {
    let mut stream = place.server.connect().await;
    stream.write_all(head(8 * MIB).as_bytes()).await.unwrap();
    stream.write_all(opening(NAME).as_bytes()).await.unwrap();
    stream.write_all(&vec![7; 1 << 20]).await.unwrap();
    until(|| left_in(place.folder.path()) == landed, "it lands").await;
    stream
}

async fn until(is_so: impl Fn() -> bool, what: &str) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(15), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_nothing_is_left(place: &Place) {
    until(|| left_in(place.folder.path()) == 0, "nothing is left").await;
}

#[tokio::test]
async fn one_whose_sender_goes_away_leaves_nothing() {
    let place = Place::start().await;
    drop(begun(&place, 1).await);
    until_nothing_is_left(&place).await;
    place.assert_untouched().await;
    // Nobody waits for it either.
    let (name, bytes) = demo("demo", "1");
    assert_eq!(place.send(&name, bytes).await.status, 200);
}

#[tokio::test]
async fn one_whose_sender_falls_silent_is_given_up() {
    let limits = ServerLimits { body_timeout: Duration::from_millis(100), ..ServerLimits::default() };
    let place = Place::with(WheelSettings::default(), limits).await;
    let mut stream = place.server.connect().await;
    stream.write_all(head(8 * MIB).as_bytes()).await.unwrap();
    stream.write_all(opening(NAME).as_bytes()).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert_eq!(status_of(&answer), 408, "{answer}");
    until_nothing_is_left(&place).await;
    place.assert_untouched().await;
}

#[tokio::test]
async fn one_that_keeps_coming_may_take_longer_than_any_other_body() {
    let limits = ServerLimits { body_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let place = Place::with(WheelSettings::default(), limits).await;
    let (_, bytes) = demo("demo", "1");
    let body = [opening(NAME).as_bytes(), &bytes, b"\r\n--b--\r\n"].concat();
    // A preamble, which counts for nothing, but shows that somebody is there.
    let preamble = vec![b'x'; 100 << 10];
    let mut stream = place.server.connect().await;
    let length = (preamble.len() + 2 + body.len()) as u64;
    stream
        .write_all(head(length).replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    stream.write_all(&preamble).await.unwrap();
    // Longer than the patience for a body, shorter than what 100 KiB are worth.
    tokio::time::sleep(Duration::from_millis(600)).await;
    stream.write_all(b"\r\n").await.unwrap();
    stream.write_all(&body).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert_eq!(status_of(&answer), 200, "{answer}");
}

#[tokio::test]
async fn more_at_once_than_there_is_room_for_are_asked_to_come_later() {
    let place = Place::start().await;
    let mut streams = Vec::new();
    for number in 1..=16 {
        streams.push(begun(&place, number).await);
    }
    let (name, bytes) = demo("demo", "1");
    let answer = place.send(&name, bytes.clone()).await;
    assert_eq!(answer.detail(503), "too many wheels are being uploaded");
    assert_eq!(answer.headers["retry-after"], "1");
    drop(streams.pop());
    until(|| left_in(place.folder.path()) == 15, "one is given up").await;
    assert_eq!(place.send(&name, bytes).await.status, 200);
}
