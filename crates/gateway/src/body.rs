//! Bodies of requests, read under a limit of size and time. What is too large is refused when the limit is crossed, not
//! after it was read.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::BytesMut;
use futures_util::{Stream, StreamExt as _};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use pyoco_core::notice::Notice;
use tokio::time::Sleep;

use crate::error::Refusal;

/// The longest JSON body.
pub(crate) const JSON_BYTES: usize = 1 << 20;

/// So much of a refused body is still read, and for so long after its last bytes, so that a client that sends first and
/// reads later gets the answer.
const LINGER_BYTES: usize = 4 << 20;
const LINGER: Duration = Duration::from_millis(500);

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("the body is too large")]
    TooLarge,
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body ended early")]
    Broken,
}

impl Trouble {
    /// The answer to it.
    pub(crate) fn refusal(self) -> Refusal {
        let status = match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        };
        Refusal::new(status, self.to_string()).noticed(Notice::InvalidRequest)
    }
}

/// A body on its way in.
pub(crate) struct Intake {
    stream: BodyDataStream,
    left: usize,
    deadline: Pin<Box<Sleep>>,
    /// How much later it may end for each byte that has come.
    extension: Duration,
    trouble: Arc<OnceLock<Trouble>>,
}

impl Intake {
    pub(crate) fn new(body: Body, limit: usize, patience: Duration) -> Self {
        Self {
            stream: body.into_data_stream(),
            left: limit,
            deadline: Box::pin(tokio::time::sleep(patience)),
            extension: Duration::ZERO,
            trouble: Arc::default(),
        }
    }

    /// The same for a body that may be so long that the patience cannot be for all of it: it is for what is slower than so many
    /// bytes a second.
    #[must_use]
    pub(crate) fn paced(self, bytes_per_second: u32) -> Self {
        Self { extension: Duration::from_secs(1) / bytes_per_second.max(1), ..self }
    }

    /// Where it says what went wrong, for readers that wrap errors in their own.
    pub(crate) fn trouble(&self) -> Arc<OnceLock<Trouble>> {
        self.trouble.clone()
    }

    fn extend(&mut self, bytes: usize) {
        if !self.extension.is_zero() {
            let more = self.extension.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX));
            let deadline = self.deadline.deadline() + more;
            self.deadline.as_mut().reset(deadline);
        }
    }

    fn stop(&self, trouble: Trouble) -> Trouble {
        let _ = self.trouble.set(trouble);
        trouble
    }
}

impl Stream for Intake {
    type Item = Result<Bytes, Trouble>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.trouble.get().is_some() {
            return Poll::Ready(None);
        }
        match self.stream.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(bytes))) => match self.left.checked_sub(bytes.len()) {
                Some(left) => {
                    self.left = left;
                    self.extend(bytes.len());
                    Poll::Ready(Some(Ok(bytes)))
                }
                None => Poll::Ready(Some(Err(self.stop(Trouble::TooLarge)))),
            },
            Poll::Ready(Some(Err(_))) => Poll::Ready(Some(Err(self.stop(Trouble::Broken)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.deadline.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(self.stop(Trouble::TooSlow)))),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

/// A body of which a refusal may leave a part unread. That part is read a little further: a connection that is closed on
/// unread bytes is reset, and the answer with it.
struct Lingering(Option<Body>);

/// The same body; whoever drops it early need not think of the rest.
pub(crate) fn lingering(body: Body) -> Body {
    if body.is_end_stream() { body } else { Body::new(Lingering(Some(body))) }
}

impl HttpBody for Lingering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let rest = self.0.take().filter(|body| !body.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, tokio::runtime::Handle::try_current()) {
            runtime.spawn(drain(rest.into_data_stream()));
        }
    }
}

/// Reads on while something comes, up to a point.
async fn drain(mut rest: BodyDataStream) {
    let mut left = LINGER_BYTES;
    while let Ok(Some(Ok(bytes))) = tokio::time::timeout(LINGER, rest.next()).await {
        match left.checked_sub(bytes.len()) {
            Some(less) => left = less,
            None => return,
        }
    }
}

/// Reads a whole body.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, Refusal> {
    let mut intake = Intake::new(body, limit, patience);
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(Trouble::TooLarge.refusal());
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = intake.next().await {
        bytes.extend_from_slice(&chunk.map_err(Trouble::refusal)?);
    }
    Ok(bytes.freeze())
}
