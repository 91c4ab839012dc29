//! A client of the WebSocket of a job.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use pyoco_testing_executions::Site;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// An open WebSocket.
#[derive(Debug)]
pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// Nothing takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

impl Socket {
    /// Opens one; the answer's status if it is refused.
    pub async fn open(site: &Site, path: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let mut request = format!("ws://{}{path}", site.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("neither opened nor refused: {error}"),
        }
    }

    /// The socket of a job.
    pub async fn of(site: &Site, job: &str) -> Self {
        Self::open(site, &format!("/jobs/{job}/ws"), &[]).await.unwrap()
    }

    /// Sends a text.
    pub async fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// Sends anything, also to a server that may be gone.
    pub async fn send(&mut self, message: Message) {
        let _ = self.0.send(message).await;
    }

    /// The next message that is one of the protocol's own.
    pub async fn frame(&mut self) -> Option<Message> {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("a message in time");
        next.and_then(Result::ok)
    }

    /// The next text; the code of the close if there is none.
    pub async fn next(&mut self) -> Result<Value, u16> {
        loop {
            match self.frame().await {
                Some(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Message::Close(Some(frame))) => return Err(frame.code.into()),
                Some(Message::Close(None)) | None => return Err(1006),
                Some(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_)) => {}
            }
        }
    }

    /// The next text of a type; others are passed over.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let next = self.next().await.unwrap_or_else(|code| panic!("closed with {code} before a {kind}"));
            if next["type"] == kind {
                return next;
            }
        }
    }

    /// Every text until the close, and its code.
    pub async fn to_the_end(&mut self) -> (Vec<Value>, u16) {
        let mut texts = Vec::new();
        loop {
            match self.next().await {
                Ok(text) => texts.push(text),
                Err(code) => return (texts, code),
            }
        }
    }
}
