//! A body in sips. The reader of forms takes whatever it can get before it looks at any of it, and keeps what it looks for the end
//! of; so it is given a piece at a time, and no more when it has had much and given nothing back.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use futures_util::{Stream, StreamExt as _};

use crate::body::{Intake, Trouble};

/// A piece.
const SIP: usize = 64 << 10;
/// What the reader may hold: the header of a part, which is much shorter, and what came along with it.
const MOST_HELD: usize = 4 * SIP;

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    #[error(transparent)]
    Trouble(#[from] Trouble),
    #[error("what stands before the data of a part is too long")]
    Held,
}

/// How much the reader holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Arc<AtomicUsize>);

impl Held {
    /// The reader gave something back.
    pub(super) fn given_back(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the reader had too much.
    pub(super) fn is_too_much(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MOST_HELD
    }
}

/// A body on its way to the reader.
pub(super) struct Trickle {
    intake: Intake,
    held: Held,
    /// What is left of what came last.
    rest: Bytes,
    /// The reader has had a piece and looks at it now.
    is_pausing: bool,
}

impl Trickle {
    pub(super) fn new(intake: Intake) -> Self {
        Self { intake, held: Held::default(), rest: Bytes::new(), is_pausing: false }
    }

    pub(super) fn held(&self) -> Held {
        self.held.clone()
    }
}

impl Stream for Trickle {
    type Item = Result<Bytes, Stopped>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.is_pausing) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        while self.rest.is_empty() {
            match ready!(self.intake.poll_next_unpin(context)) {
                Some(Ok(bytes)) => self.rest = bytes,
                Some(Err(trouble)) => return Poll::Ready(Some(Err(trouble.into()))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(SIP);
        let sip = self.rest.split_to(length);
        self.held.0.fetch_add(length, Ordering::Relaxed);
        if self.held.is_too_much() {
            return Poll::Ready(Some(Err(Stopped::Held)));
        }
        self.is_pausing = true;
        Poll::Ready(Some(Ok(sip)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use futures_util::FutureExt as _;

    use super::*;

    fn trickle(bytes: usize) -> Trickle {
        Trickle::new(Intake::new(Body::from(vec![7; bytes]), usize::MAX, Duration::from_secs(60)))
    }

    #[tokio::test]
    async fn what_is_there_is_given_in_pieces_with_a_pause_behind_each() {
        let mut body = trickle(SIP + 10);
        assert_eq!(body.next().now_or_never().unwrap().unwrap().unwrap().len(), SIP);
        assert!(body.next().now_or_never().is_none(), "whoever reads on at once gets nothing");
        assert_eq!(body.next().await.unwrap().unwrap().len(), 10);
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_gives_nothing_back_gets_no_more() {
        let mut body = trickle(100 * SIP);
        let mut had = 0;
        let stopped = loop {
            match body.next().await.unwrap() {
                Ok(sip) => had += sip.len(),
                Err(stopped) => break stopped,
            }
        };
        assert!(matches!(stopped, Stopped::Held) && body.held().is_too_much());
        assert_eq!(had, MOST_HELD);

        let mut body = trickle(100 * SIP);
        let mut had = 0;
        while let Some(sip) = body.next().await {
            had += sip.unwrap().len();
            body.held().given_back();
        }
        assert_eq!(had, 100 * SIP);
    }
}
