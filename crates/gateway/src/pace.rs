//! The pace of a connection: how long it may be silent, take for the head of a request, or leave an answer lying.
//!
//! hyper has one time-out for the head of a request and for the silence before it. Here they differ: a client may keep a
//! connection open for a while, but once it has begun to speak it has to come to the point.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::ServerLimits;

/// How many requests of a connection are under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<AtomicUsize>);

/// A request under way, until its answer is sent.
#[derive(Debug)]
pub(crate) struct Busy(Activity);

impl Activity {
    pub(crate) fn begin(&self) -> Busy {
        self.0.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Busy {
    /// The request is under way for as long as this body is sent.
    pub(crate) fn until_end_of(self, body: Body) -> Body {
        Body::new(Sent { body, _busy: self })
    }
}

struct Sent {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What a connection waits for while no request is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first byte of a request, since then.
    Silent(Instant),
    /// The rest of its head, since then.
    Speaking(Instant),
    /// A request is under way.
    Served,
}

/// A stream that fails when its client is too slow.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    activity: Activity,
    waiting: Waiting,
    header_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
    is_write_stuck: bool,
    /// Bytes heard so far, up to the length of the words that HTTP/2 begins with.
    opening: usize,
    is_http2: bool,
}

/// What every HTTP/2 connection begins with is so long.
const PREFACE: usize = 24;

impl<S> Paced<S> {
    pub(crate) fn new(stream: S, activity: Activity, limits: &ServerLimits) -> Self {
        let now = Instant::now();
        Self {
            stream,
            activity,
            // Who connects has something to say.
            waiting: Waiting::Speaking(now),
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            write_timeout: limits.write_timeout,
            read_timer: Box::pin(tokio::time::sleep(limits.header_timeout)),
            write_timer: Box::pin(tokio::time::sleep(limits.write_timeout)),
            is_write_stuck: false,
            opening: 0,
            is_http2: false,
        }
    }

    /// Nothing came: whether that was for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.activity.is_busy() {
            self.waiting = Waiting::Served;
            return Poll::Pending;
        }
        if self.waiting == Waiting::Served {
            self.waiting = Waiting::Silent(Instant::now());
        }
        let due = match self.waiting {
            Waiting::Silent(since) => since + self.idle_timeout,
            Waiting::Speaking(since) => since + self.header_timeout,
            Waiting::Served => return Poll::Pending,
        };
        if self.read_timer.deadline() != due {
            self.read_timer.as_mut().reset(due);
        }
        self.read_timer.as_mut().poll(context)
    }

    fn heard(&mut self, bytes: &[u8]) {
        if self.opening == 0 {
            self.is_http2 = bytes.starts_with(b"PRI");
        }
        self.opening = self.opening.saturating_add(bytes.len()).min(PREFACE);
        // Frames of HTTP/2 come and go without a request, so there only requests end a silence.
        let is_open = self.is_http2 && self.opening == PREFACE;
        self.waiting = match self.waiting {
            Waiting::Speaking(_) if is_open => Waiting::Silent(Instant::now()),
            Waiting::Silent(_) if !self.is_http2 => Waiting::Speaking(Instant::now()),
            Waiting::Served if !self.is_http2 && !self.activity.is_busy() => {
                Waiting::Speaking(Instant::now())
            }
            Waiting::Speaking(_) | Waiting::Silent(_) | Waiting::Served => return,
        };
    }

    /// What a write came to; one that does not come to anything for too long fails.
    fn pace_write<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_write_stuck = false;
            return written;
        }
        if !self.is_write_stuck {
            self.is_write_stuck = true;
            let due = Instant::now() + self.write_timeout;
            self.write_timer.as_mut().reset(due);
        }
        ready!(self.write_timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.heard(buffer.filled().get(known..).unwrap_or_default());
            return read;
        }
        ready!(self.poll_silence(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client is silent")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pace_write(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.pace_write(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
