//! A client that breaks the rules of WebSockets: it sends bytes, not frames.

use std::time::Duration;

use pyoco_testing_executions::Site;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection that was upgraded.
#[derive(Debug)]
pub struct Raw(TcpStream);

impl Raw {
    /// Opens the socket of a job.
    pub async fn open(site: &Site, job: &str) -> Self {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        let head = format!(
            "GET /jobs/{job}/ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
            site.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
        assert!(!answer.to_ascii_lowercase().contains("permessage-deflate"), "compressed: {answer}");
        Self(stream)
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) {
        // The server may close before it has read all.
        let _ = self.0.write_all(bytes).await;
    }

    /// Reads to the end; the code of the close, if there was one.
    pub async fn closed(mut self) -> Option<u16> {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.0.read_to_end(&mut bytes)).await;
        // A reset after the close is none of this test's business.
        let _ = read.expect("an end in time");
        code(&bytes)
    }
}

/// The code of the close frame in what a server sent.
fn code(mut bytes: &[u8]) -> Option<u16> {
    while let [first, second, rest @ ..] = bytes {
        let (length, rest) = match second & 0x7f {
            126 => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), rest.get(2..)?),
            127 => {
                (usize::try_from(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?)).ok()?, rest.get(8..)?)
            }
            short => (usize::from(short), rest),
        };
        if first & 0x0f == 8 {
            return Some(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?));
        }
        bytes = rest.get(length..)?;
    }
    None
}
