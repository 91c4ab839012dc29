//! `GET /wheels/{wheel_name}`.

use std::sync::Arc;

use pyoco_gateway::{ServerLimits, WheelSettings};
use pyoco_store_sqlite::SqliteStore;
use pyoco_testkit::wheel;
use reqwest::header::HeaderMap;

use super::Place;
use crate::support::Answer;

struct Got {
    status: u16,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn ask(place: &Place, method: &str, name: &str, headers: &[(&str, &str)]) -> Got {
    let mut request =
        place.server.client.request(method.parse().unwrap(), place.server.url(&format!("/wheels/{name}")));
    for (header, value) in headers {
        request = request.header(*header, *value);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Got { status, headers, bytes: response.bytes().await.unwrap().to_vec() }
}

/// A wheel of several pieces, that cannot be compressed.
async fn large(place: &Place) -> (String, Vec<u8>, String) {
    let mut state = 1_u64;
    let noise: String = (0..400_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + u8::try_from(state >> 58).unwrap())
        })
        .collect();
    let (name, bytes) = wheel("demo", "1", &[("demo/noise.txt", &noise)]);
    assert!(bytes.len() > 250_000);
    let answer = place.send(&name, bytes.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.json);
    (name, bytes, format!("\"{}\"", answer.json["sha256_hex"].as_str().unwrap()))
}

#[tokio::test]
async fn a_wheel_is_sent_as_it_came() {
    let place = Place::start().await;
    let (name, bytes, mark) = large(&place).await;
    let whole = ask(&place, "GET", &name, &[]).await;
    assert!((whole.status, &whole.bytes) == (200, &bytes));
    let head = ask(&place, "HEAD", &name, &[("range", "bytes=0-1")]).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    for got in [&whole, &head] {
        for (header, value) in [
            ("content-type", "application/octet-stream"),
            ("content-length", bytes.len().to_string().as_str()),
            ("content-disposition", &format!("attachment; filename=\"{name}\"")),
            ("x-content-type-options", "nosniff"),
            ("accept-ranges", "bytes"),
            ("etag", &mark),
            ("content-range", ""),
        ] {
            assert_eq!(got.header(header), value, "{header}");
        }
    }
}

#[tokio::test]
async fn a_client_that_has_it_is_told_so() {
    let place = Place::start().await;
    let (name, bytes, mark) = large(&place).await;
    for known in [mark.clone(), format!("W/{mark}"), format!("\"x\", {mark}"), "*".to_owned()] {
        for method in ["GET", "HEAD"] {
            let got = ask(&place, method, &name, &[("if-none-match", &known), ("range", "bytes=0-1")]).await;
            assert_eq!((got.status, got.bytes.len(), got.header("etag")), (304, 0, mark.as_str()), "{known}");
        }
    }
    let other = ask(&place, "GET", &name, &[("if-none-match", "\"x\"")]).await;
    assert!((other.status, &other.bytes) == (200, &bytes));
}

#[tokio::test]
async fn a_part_is_sent_to_whoever_asks_for_one() {
    let place = Place::start().await;
    let (name, bytes, mark) = large(&place).await;
    let size = bytes.len();
    for (range, first, last) in [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=10-19".to_owned(), 10, 19),
        // Over the edges of pieces.
        ("bytes=60000-200000".to_owned(), 60_000, 200_000),
        (format!("bytes={}-", size - 5), size - 5, size - 1),
        ("bytes=-7".to_owned(), size - 7, size - 1),
        ("bytes=0-".to_owned(), 0, size - 1),
        (format!("bytes=100-{}", u64::MAX), 100, size - 1),
        (format!("bytes=-{}", u64::MAX), 0, size - 1),
    ] {
        for condition in [None, Some(("if-range", mark.as_str()))] {
            let mut headers = vec![("range", range.as_str())];
            headers.extend(condition);
            let got = ask(&place, "GET", &name, &headers).await;
            assert!((got.status, &got.bytes[..]) == (206, &bytes[first..=last]), "{range}: {}", got.status);
            assert_eq!(got.header("content-range"), format!("bytes {first}-{last}/{size}"));
            assert_eq!(
                (got.header("etag"), got.header("content-length")),
                (mark.as_str(), (last - first + 1).to_string().as_str())
            );
        }
    }
    // Several ranges need not be followed, nor what says nothing, nor a part of something else.
    for headers in [
        &[("range", "bytes=0-1,4-5")][..],
        &[("range", "bytes=5-3")],
        &[("range", "lines=0-1")],
        &[("range", "bytes=0-1"), ("if-range", "\"x\"")],
        &[("range", "bytes=0-1"), ("if-range", "Wed, 18 Feb 2026 12:00:00 GMT")],
        &[("range", "bytes=99999999-"), ("if-range", "\"x\"")],
    ] {
        let got = ask(&place, "GET", &name, headers).await;
        assert!((got.status, &got.bytes) == (200, &bytes), "{headers:?}: {}", got.status);
    }
    for range in [format!("bytes={size}-"), "bytes=-0".to_owned(), format!("bytes={}-", u64::MAX)] {
        let got = ask(&place, "GET", &name, &[("range", &range)]).await;
        assert_eq!(
            (got.status, got.header("content-range")),
            (416, format!("bytes */{size}").as_str()),
            "{range}"
        );
        let body: serde_json::Value = serde_json::from_slice(&got.bytes).unwrap();
        assert_eq!(body["err_id"], "ERR-PYOCO-0002");
    }
}

#[tokio::test]
async fn a_wheel_that_is_damaged_in_the_store_is_never_sent_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), Default::default()).unwrap());
    let place = Place::on(store, WheelSettings::default(), ServerLimits::default()).await;
    let (long, ..) = large(&place).await;
    let short = place.put("short", "1").await["name"].as_str().unwrap().to_owned();
    for file in std::fs::read_dir(folder.path().join("wheel-files")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    // All of it is looked at before any of it is sent, when it is short; a longer one breaks off.
    let got = ask(&place, "GET", &short, &[]).await;
    assert_eq!(got.status, 503, "{}", String::from_utf8_lossy(&got.bytes));
    let response =
        place.server.client.get(place.server.url(&format!("/wheels/{long}"))).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.is_err(), "a part must not be taken for the whole");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let place = Place::start().await;
    let (name, ..) = large(&place).await;
    place.delete(&name).await;
    for name in [
        name.as_str(),
        "none-1-py3-none-any.whl",
        "odd.whl",
        "..%2F..%2Fetc%2Fpasswd",
        "%ff.whl",
        "a%00b.whl",
    ] {
        let response =
            place.server.client.get(place.server.url(&format!("/wheels/{name}"))).send().await.unwrap();
        let answer = Answer::of(response).await;
        assert_eq!(answer.detail(404), "wheel not found", "{name}");
        assert_eq!(
            (&answer.json["err_id"], &answer.json["msg_id"]),
            (&"ERR-PYOCO-0023".into(), &"MSG-PYOCO-0023".into())
        );
    }
    assert_eq!(ask(&place, "HEAD", &name, &[]).await.status, 404);
}
