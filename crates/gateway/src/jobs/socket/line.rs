//! The socket itself: how messages are sent so that nothing piles up, and with which code a connection ends.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::SinkExt as _;
use pyoco_api::JobNews;
use tungstenite::Error as SocketError;

use super::wishes::Exhausted;

/// A client that takes nothing for so long is let go.
const SENT_WITHIN: Duration = Duration::from_secs(30);
/// So long the other side may take to close, too.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The other side has closed, or is gone: there is nobody to tell.
    Gone,
    /// With this code, for this reason.
    Because(u16, &'static str),
}

impl End {
    pub(super) const JOB_ENDED: Self = Self::Because(close_code::NORMAL, "the job has ended");
    pub(super) const STOPPING: Self = Self::Because(close_code::AWAY, "the server is stopping");
    pub(super) const SILENT: Self = Self::Because(close_code::POLICY, "nothing was heard for too long");
    pub(super) const NOT_ADMITTED: Self = Self::Because(close_code::POLICY, "the api key is no longer good");
    pub(super) const BROKEN: Self = Self::Because(close_code::ERROR, "the log cannot be read now");

    /// What became of reading from the socket.
    pub(super) fn of(error: axum::Error) -> Self {
        let Ok(error) = error.into_inner().downcast::<SocketError>() else { return Self::Gone };
        match *error {
            SocketError::Capacity(_) => Self::Because(close_code::SIZE, "the message is too long"),
            SocketError::Utf8(_) => Self::Because(close_code::INVALID, "a text must be UTF-8"),
            SocketError::Protocol(_) => Self::Because(close_code::PROTOCOL, "this is no WebSocket frame"),
            SocketError::ConnectionClosed | SocketError::AlreadyClosed | SocketError::Io(_) => Self::Gone,
            SocketError::Tls(_) | SocketError::WriteBufferFull(_) | SocketError::AttackAttempt => Self::Gone,
            // Of a client, which this is not.
            SocketError::Url(_) | SocketError::Http(_) | SocketError::HttpFormat(_) => Self::Gone,
        }
    }
}

impl From<Exhausted> for End {
    fn from(exhausted: Exhausted) -> Self {
        Self::Because(close_code::POLICY, exhausted.0)
    }
}

/// A socket that is written to at the pace of its reader.
pub(super) struct Line(pub(super) WebSocket);

impl Line {
    /// Says something.
    pub(super) async fn say(&mut self, news: &JobNews) -> Result<(), End> {
        self.feed(news).await?;
        self.flush().await
    }

    /// Says something soon: at the latest when the line is flushed. It waits while the reader takes nothing.
    pub(super) async fn feed(&mut self, news: &JobNews) -> Result<(), End> {
        let text = serde_json::to_string(news).unwrap_or_default();
        taken(self.0.feed(Message::Text(text.into()))).await
    }

    pub(super) async fn flush(&mut self) -> Result<(), End> {
        taken(self.0.flush()).await
    }

    /// Asks for a sign of life.
    pub(super) async fn ping(&mut self) -> Result<(), End> {
        taken(self.0.send(Message::Ping(Default::default()))).await
    }

    /// Ends the connection.
    pub(super) async fn close(mut self, end: End) {
        let closed = async {
            if let End::Because(code, reason) = end {
                let frame = CloseFrame { code, reason: reason.into() };
                self.0.send(Message::Close(Some(frame))).await?;
            }
            // What the other side still says is not heard, but its own close is waited for: then nothing is lost on the way.
            while let Some(heard) = self.0.recv().await {
                heard?;
            }
            Ok::<(), axum::Error>(())
        };
        match tokio::time::timeout(CLOSED_WITHIN, closed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(reason = %error, "a WebSocket was not closed in good order"),
            Err(_) => tracing::debug!("a WebSocket was not closed from the other side in time"),
        }
    }
}

async fn taken(sent: impl Future<Output = Result<(), axum::Error>>) -> Result<(), End> {
    match tokio::time::timeout(SENT_WITHIN, sent).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(End::Gone),
    }
}
