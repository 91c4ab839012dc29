//! Connections that are slow, large, endless or malformed, and the end of the server.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use pyoco_gateway::{ServerLimits, Settings, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::{Answer, Server, read_to_end, status_of};

const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n";

async fn with(limits: ServerLimits) -> Server {
    Server::with(Settings::default(), limits).await
}

/// Reads one answer of a connection that stays open.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    let read = async {
        loop {
            let count = stream.read(&mut buffer).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
            if count == 0 || text.ends_with('}') {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), read).await.expect("an answer in time");
    text
}

#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_is_not_waited_for() {
    let limits = ServerLimits { header_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let server = with(limits).await;
    for begun in ["", "G", "PRI * HTTP/2", "GET /health HTTP/1.1\r\nhost: x\r\nx-a: "] {
        let mut stream = server.connect().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        let start = Instant::now();
        let left = read_to_end(&mut stream).await;
        assert!(left.is_empty() || status_of(&left) == 408, "{begun:?}: {left}");
        assert!(start.elapsed() < Duration::from_secs(3), "{begun:?}: {:?}", start.elapsed());
    }
    // A drop now and then does not help.
    let mut stream = server.connect().await;
    let start = Instant::now();
    stream.write_all(b"GET /health HTTP/1.1\r\n").await.unwrap();
    while start.elapsed() < Duration::from_secs(5) && stream.write_all(b"x-a: b\r\n").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_connection_may_be_silent_between_requests_but_not_for_ever() {
    let limits = ServerLimits {
        header_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(900),
        ..ServerLimits::default()
    };
    let server = with(limits).await;
    let mut stream = server.connect().await;
    stream.write_all(HEALTH.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer(&mut stream).await), 200);
    // Longer than a head may take, shorter than silence may.
    tokio::time::sleep(Duration::from_millis(450)).await;
    stream.write_all(HEALTH.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer(&mut stream).await), 200);
    let start = Instant::now();
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(start.elapsed() > Duration::from_millis(600) && start.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_answered_408() {
    let limits = ServerLimits { body_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let server = with(limits).await;
    let run = server.submit().await;
    let before = server.stored().await;
    let requests = [
        ("/runs".to_owned(), "application/json"),
        ("/runs/yaml".to_owned(), "multipart/form-data; boundary=B"),
        (format!("/runs/{run}/cancel"), "text/plain"),
    ];
    let framings =
        ["content-length: 100\r\n\r\n{\"flow", "transfer-encoding: chunked\r\n\r\n5\r\n{\"flo\r\n"];
    let slow = requests.iter().flat_map(|(path, kind)| {
        let server = &server;
        framings.iter().map(move |framing| async move {
            let text = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n{framing}");
            let start = Instant::now();
            let answer = server.raw(text.as_bytes()).await;
            assert_eq!(status_of(&answer), 408, "{path} {framing}: {answer}");
            assert!(start.elapsed() < Duration::from_secs(5));
        })
    });
    futures_util::future::join_all(slow).await;
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_when_it_crosses_the_limit() {
    let server = Server::start().await;
    let before = server.stored().await;
    // Announced: not a byte of it is needed.
    let mut stream = server.connect().await;
    let head = "POST /runs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status_of(&answer(&mut stream).await), 413);
    // Not announced, and without an end.
    let mut stream = server.connect().await;
    let head = "POST /runs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 65_536, " ".repeat(65_536));
    for _ in 0..17 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    assert_eq!(status_of(&answer(&mut stream).await), 413);
    // A client that sends all of it before it reads still gets the answer.
    for path in ["/runs", "/runs/x/cancel"] {
        let answer = server.post_bytes(path, vec![b' '; 2 << 20]).await;
        assert_eq!(answer.status, 413, "{path}: {}", answer.json);
    }
    for (path, status) in
        [("/nothing", 404), ("/health", 405), ("/runs/a.b/cancel", 404), ("/runs/yaml", 422)]
    {
        let answer = server.post_bytes(path, vec![b' '; 3 << 20]).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.json);
    }
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn a_compressed_body_is_refused() {
    let server = Server::start().await;
    let request = server.client.post(server.url("/runs")).header("content-encoding", "gzip");
    let answer = Answer::of(request.json(&json!({"flow_name": "m"})).send().await.unwrap()).await;
    assert_eq!(answer.detail(415), "a request body must not be compressed");
    let request = server.client.post(server.url("/runs")).header("content-encoding", "identity");
    assert_eq!(Answer::of(request.json(&json!({"flow_name": "m"})).send().await.unwrap()).await.status, 200);
    assert_eq!(server.stored().await.0.len(), 1);
}

#[tokio::test]
async fn heads_that_are_too_large_are_answered_431() {
    let server = Server::start().await;
    let many = "x-a: b\r\n".repeat(80);
    let answer = server.raw(format!("GET /health HTTP/1.1\r\nhost: x\r\n{many}\r\n").as_bytes()).await;
    assert_eq!(status_of(&answer), 431);
    let long = "x".repeat(17 << 10);
    let answer =
        server.raw(format!("GET /health HTTP/1.1\r\nhost: x\r\nx-a: {long}\r\n\r\n").as_bytes()).await;
    assert_eq!(status_of(&answer), 431);
    let fine = "x".repeat(12 << 10);
    let text = format!("GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-a: {fine}\r\n\r\n");
    assert_eq!(status_of(&server.raw(text.as_bytes()).await), 200);
}

#[tokio::test]
async fn malformed_requests_are_answered_400_and_closed() {
    let server = Server::start().await;
    let before = server.stored().await;
    let body = "{\"flow_name\":\"m\"}";
    let post = "POST /runs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    for (text, what) in [
        ("nonsense\r\n\r\n".to_owned(), "no request"),
        ("GET /health HTTP/9.9\r\n\r\n".to_owned(), "no version"),
        (format!("{post}content-length: 17\r\ncontent-length: 18\r\n\r\n{body}"), "two lengths"),
        (format!("{post}content-length: -1\r\n\r\n{body}"), "a negative length"),
        (format!("{post}content-length: x\r\n\r\n{body}"), "a length that is none"),
        (format!("{post}transfer-encoding: chunked, gzip\r\n\r\n{body}"), "another encoding last"),
        (format!("{post}transfer-encoding: gzip\r\n\r\n{body}"), "another encoding"),
        (format!("{post}x-a: b\r\n folded\r\ncontent-length: 17\r\n\r\n{body}"), "a folded header"),
        (format!("{post}x a: b\r\ncontent-length: 17\r\n\r\n{body}"), "a blank in a name"),
        (
            format!("{post}transfer-encoding: chunked\r\n\r\nzz\r\n{body}\r\n0\r\n\r\n"),
            "a chunk that is none",
        ),
    ] {
        let answer = server.raw(text.as_bytes()).await;
        assert_eq!(status_of(&answer), 400, "{what}: {answer}");
    }
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn a_request_with_two_framings_is_never_read_as_two_requests() {
    let server = Server::start().await;
    let body = "{\"flow_name\":\"m\"}";
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let smuggled = "GET /runs HTTP/1.1\r\nhost: x\r\n\r\n";
    for framing in
        ["content-length: 3\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 3"]
    {
        let text = format!(
            "POST /runs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{framing}\r\n\r\n{chunked}{smuggled}"
        );
        let answer = server.raw(text.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let limits = ServerLimits { connections: 2, ..ServerLimits::default() };
    let server = with(limits).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    for stream in [&mut first, &mut second] {
        stream.write_all(HEALTH.as_bytes()).await.unwrap();
        assert_eq!(status_of(&answer(stream).await), 200);
    }
    let mut third = server.connect().await;
    third.write_all(HEALTH.as_bytes()).await.unwrap();
    let mut buffer = [0; 64];
    let early = tokio::time::timeout(Duration::from_millis(300), third.read(&mut buffer)).await;
    assert!(early.is_err(), "it was not its turn");
    drop(first);
    assert_eq!(status_of(&answer(&mut third).await), 200);
}

/// A server whose handlers do what the test wants.
async fn own(
    router: Router,
    limits: ServerLimits,
) -> (std::net::SocketAddr, CancellationToken, tokio::task::JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
    (address, shutdown, served)
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_it_has_begun_and_takes_nothing_new() {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        "done"
    };
    let (address, shutdown, served) =
        own(Router::new().route("/slow", get(slow)), ServerLimits::default()).await;
    let request =
        tokio::spawn(
            async move { reqwest::get(format!("http://{address}/slow")).await.unwrap().text().await },
        );
    // A connection that is kept open does not hold it up.
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    shutdown.cancel();
    assert_eq!(request.await.unwrap().unwrap(), "done");
    assert!(read_to_end(&mut idle).await.ends_with("done"));
    tokio::time::timeout(Duration::from_secs(3), served).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let limits = ServerLimits { shutdown_timeout: Duration::from_millis(300), ..ServerLimits::default() };
    let (address, shutdown, served) =
        own(Router::new().route("/stuck", get(std::future::pending::<()>)), limits).await;
    let mut stuck = TcpStream::connect(address).await.unwrap();
    stuck.write_all(b"GET /stuck HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(3), served).await.unwrap().unwrap().unwrap();
    assert_eq!(read_to_end(&mut stuck).await, "");
}

#[tokio::test]
async fn several_requests_in_one_write_are_answered_in_order() {
    let server = Server::start().await;
    let last = "GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = server.raw(format!("{HEALTH}{HEALTH}{last}").as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2);
    assert!(answer.ends_with("{\"detail\":\"Not Found\"}"), "{answer}");
}

#[tokio::test]
async fn http_2_is_spoken_to_those_who_begin_with_it_and_may_be_silent_as_long_as_http_1() {
    let limits = ServerLimits {
        header_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(900),
        ..ServerLimits::default()
    };
    let server = with(limits).await;
    let mut stream = server.connect().await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&settings).await.unwrap();
    let start = Instant::now();
    let mut frame = [0; 9];
    tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut frame)).await.unwrap().unwrap();
    assert_eq!(frame[3], 4, "the first frame is its settings: {frame:?}");
    read_to_end(&mut stream).await;
    assert!(start.elapsed() > Duration::from_millis(600) && start.elapsed() < Duration::from_secs(4));
}

/// Opens the WebSocket of a job.
async fn socket(server: &Server) -> TcpStream {
    let run = server.submit().await;
    let mut stream = server.connect().await;
    let head = format!(
        "GET /jobs/{run}/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The first message says how the job stands.
    assert_eq!(status_of(&answer(&mut stream).await), 101);
    stream
}

#[tokio::test]
async fn a_websocket_may_be_silent_for_longer_than_a_connection_without_a_request() {
    let limits = ServerLimits {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(200),
        connections: 1,
        ..ServerLimits::default()
    };
    let server = with(limits).await;
    let mut stream = socket(&server).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    // A ping with nothing in it, under a mask of zeros.
    stream.write_all(&[0x89, 0x80, 0, 0, 0, 0]).await.unwrap();
    let mut pong = [0; 2];
    tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut pong)).await.unwrap().unwrap();
    assert_eq!(pong, [0x8a, 0]);
    // It has its place among the connections for as long as it is open.
    let mut next = server.connect().await;
    next.write_all(HEALTH.as_bytes()).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(200), next.read_u8()).await;
    assert!(waited.is_err(), "there was no place for it: {waited:?}");
    drop(stream);
    assert_eq!(status_of(&answer(&mut next).await), 200);
}
