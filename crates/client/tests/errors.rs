//! Every way in which a call fails.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::net::TcpListener;
use std::time::Duration;

use pyoco_client::api::Detail;
use pyoco_client::{Client, Error, RunFilter, WatchOptions};
use support::{Gateway, Reply, json};

fn client(gateway: &Gateway) -> Client {
    Client::new(gateway.url()).unwrap()
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Client::new(format!("http://{address}")).unwrap().get_run("r").await.unwrap_err();
    let Error::Connection { call, problem } = &error else { panic!("{error:?}") };
    assert_eq!((call.method.as_str(), call.path.as_str()), ("GET", "/runs/r"));
    assert!(problem.contains("refused") && problem.contains(&address.to_string()), "{problem}");
    assert!(error.is_passing());
}

#[tokio::test]
async fn the_connection_breaks_in_the_middle_of_an_answer() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"run_id\"";
    let gateway = Gateway::start(move |_, _| Reply::Raw(answer.to_vec()));
    let error = client(&gateway).get_run("r").await.unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error:?}");
}

#[tokio::test]
async fn the_gateway_does_not_speak_http() {
    let gateway = Gateway::start(move |_, _| Reply::Raw(b"220 mail ready\r\n".to_vec()));
    let error = client(&gateway).get_run("r").await.unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error:?}");
}

#[tokio::test]
async fn the_answer_takes_too_long() {
    let gateway = Gateway::start(move |_, _| Reply::Silence);
    let limit = Duration::from_millis(100);
    let client = Client::builder(gateway.url()).request_timeout(limit).build().unwrap();
    let error = client.get_run("r").await.unwrap_err();
    assert!(matches!(&error, Error::Timeout { limit: told, .. } if *told == limit), "{error:?}");
    assert_eq!(error.to_string(), "GET /runs/r: timed out after 0.1 s");
    let error = client.watch_run("r", WatchOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn the_gateway_refuses() {
    let body = r#"{"detail":"run not found","err_id":"ERR-PYOCO-0005","msg_id":"MSG-PYOCO-0005"}"#;
    let gateway = Gateway::start(move |_, _| json(404, body));
    let error = client(&gateway).get_run("r").await.unwrap_err();
    assert_eq!((error.status(), error.is_passing()), (Some(404), false));
    assert_eq!(error.to_string(), format!("HTTP 404 GET /runs/r: {body}"));
    let Error::Status(refusal) = error else { panic!("not a status") };
    assert_eq!(refusal.detail(), Some(&Detail::Text("run not found".into())));
    assert_eq!((refusal.err_id(), refusal.msg_id()), (Some("ERR-PYOCO-0005"), Some("MSG-PYOCO-0005")));
    let error = client(&gateway).watch_run("r", WatchOptions::default()).await.unwrap_err();
    assert_eq!(error.status(), Some(404));
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let gateway = Gateway::start(move |_, _| {
        Reply::Raw(b"HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec())
    });
    let error = client(&gateway).get_run("r").await.unwrap_err();
    assert_eq!(error.status(), Some(307));
}

#[tokio::test]
async fn a_refusal_of_any_length_is_cut() {
    let gateway = Gateway::start(move |_, _| Reply::Whole(500, "text/plain", "x".repeat(5_000_000)));
    let Error::Status(refusal) = client(&gateway).get_run("r").await.unwrap_err() else {
        panic!("not a status")
    };
    assert_eq!(refusal.body.len(), 16_384);
}

#[tokio::test]
async fn the_answer_is_no_json() {
    let gateway = Gateway::start(move |_, _| Reply::Whole(200, "text/html", "<html>".into()));
    let error = client(&gateway).get_run("r").await.unwrap_err();
    assert!(error.to_string().starts_with("GET /runs/r: the answer is no JSON"), "{error}");
    let Error::BadAnswer { .. } = error else { panic!("{error:?}") };
    let error = client(&gateway).watch_run("r", WatchOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "GET /runs/r/watch: the answer is no event stream but 'text/html'");
}

#[tokio::test]
async fn the_answer_is_json_of_another_kind() {
    let gateway = Gateway::start(move |_, _| json(200, r#"{"message":"hello"}"#));
    for error in [
        client(&gateway).get_run("r").await.err(),
        client(&gateway).list_runs(&RunFilter::default()).await.err(),
        client(&gateway).list_runs_vnext(&RunFilter::default(), &Default::default()).await.err(),
    ] {
        assert!(matches!(error, Some(Error::BadAnswer { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read() {
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n";
    let gateway = Gateway::start(move |_, number| {
        Reply::Raw(if number == 0 {
            announced.to_vec()
        } else {
            [&chunked[..], &chunked[47..], &chunked[47..]].concat()
        })
    });
    let client = Client::builder(gateway.url()).max_answer_bytes(20).build().unwrap();
    for _ in 0..2 {
        let error = client.get_run("r").await.unwrap_err();
        assert_eq!(error.to_string(), "GET /runs/r: the answer has more than 20 bytes");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_is_sent() {
    let gateway = Gateway::start(move |_, _| json(200, "{}"));
    for id in ["", ".", ".."] {
        let error = client(&gateway).get_run(id).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
    }
    assert_eq!(gateway.asked().len(), 0);
    let urls = [
        "",
        "localhost",
        "localhost:8000",
        "ftp://x",
        "https://x",
        "http://",
        "http://x/?a=1",
        "http://x/#a",
    ];
    for url in urls {
        let error = Client::new(url).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{url}: {error:?}");
    }
    let error = Client::builder("http://x").api_key("a\nb").build().unwrap_err();
    assert_eq!(error.to_string(), "the API key has characters that a header cannot carry");
    let error = Client::builder("http://x").api_key("a").api_key_header("a b").build().unwrap_err();
    assert_eq!(error.to_string(), "the API key header 'a b' is no header name");
}
