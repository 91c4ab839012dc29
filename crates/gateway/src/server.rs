//! The server: connections with limits and time-outs, and an end that finishes what was begun.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt as _;

use crate::pace::{Activity, Busy, Paced};

/// What a connection may take, in time and size.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// The head of a request has to arrive within this time.
    pub header_timeout: Duration,
    /// The body of a request has to arrive within this time; then 408.
    pub body_timeout: Duration,
    /// A connection that is kept open may be silent for this long.
    pub idle_timeout: Duration,
    /// A client that takes nothing of its answer for this long is let go.
    pub write_timeout: Duration,
    /// Requests that run when the server stops have this long to end.
    pub shutdown_timeout: Duration,
    /// Most connections at once; further ones wait.
    pub connections: usize,
    /// The longest head of a request; then 431.
    pub header_bytes: usize,
    /// Most headers of a request; then 431.
    pub headers: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
            connections: 2_048,
            header_bytes: 16 << 10,
            headers: 64,
        }
    }
}

/// What a handler must know about the server it runs in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosting {
    pub(crate) limits: Arc<ServerLimits>,
    /// The server stops: streams that would go on end now.
    pub(crate) closing: CancellationToken,
    /// The other side of the connection.
    pub(crate) peer: Option<SocketAddr>,
    /// What goes on after the request that began it.
    kept: TaskTracker,
    connection: Connection,
}

/// One connection, as it counts: whether it is busy, and its place among all.
#[derive(Debug, Clone, Default)]
struct Connection {
    activity: Activity,
    slot: Option<Arc<OwnedSemaphorePermit>>,
}

/// A connection that goes on after its request, as a WebSocket does. It is no idle one, it keeps its place, and a server that stops
/// waits a while for it.
#[derive(Debug)]
pub(crate) struct Kept {
    _busy: Busy,
    _slot: Option<Arc<OwnedSemaphorePermit>>,
    _open: TaskTrackerToken,
}

impl Hosting {
    /// Keeps the connection for longer than its request.
    pub(crate) fn keep(&self) -> Kept {
        let Connection { activity, slot } = &self.connection;
        Kept { _busy: activity.begin(), _slot: slot.clone(), _open: self.kept.token() }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Hosting {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Serves until `shutdown` is cancelled. Then no connection is accepted any more, streams end, and requests that were begun
/// are finished as far as the time for it allows.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let hosting = Hosting { limits: Arc::new(limits), closing: shutdown.clone(), ..Hosting::default() };
    let host = Arc::new(Host { builder: builder(&hosting.limits), router, hosting });
    let graceful = GracefulShutdown::new();
    // Ends what is left when the time for it is over.
    let abort = CancellationToken::new();
    let _abort_on_drop = abort.clone().drop_guard();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, peer, slot)) = accepted else { continue };
        let watcher = graceful.watcher();
        tokio::spawn(host.clone().attend(stream, peer, slot, watcher, abort.clone()));
    }
    drop(listener);
    host.hosting.kept.close();
    let ended = async { tokio::join!(graceful.shutdown(), host.hosting.kept.wait()) };
    if tokio::time::timeout(host.hosting.limits.shutdown_timeout, ended).await.is_err() {
        tracing::warn!("requests were still running when the time to stop was over");
    }
    Ok(())
}

/// The next connection, once there is room for it. Meanwhile it waits where the system keeps it.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, slot)),
        Err(error) => {
            // Of one connection (reset before it was taken), or of the process (no more files): neither is the end of it.
            tracing::warn!(reason = %error, "a connection was not accepted");
            tokio::time::sleep(Duration::from_millis(20)).await;
            None
        }
    }
}

fn builder(limits: &ServerLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // `Paced` tells a slow head from a silent connection; this is the bound for both.
        .header_read_timeout(limits.idle_timeout.max(limits.header_timeout))
        .max_headers(limits.headers)
        // hyper takes no less than 8 KiB.
        .max_buf_size(limits.header_bytes.max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(100)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

struct Host {
    builder: Builder<TokioExecutor>,
    router: Router,
    hosting: Hosting,
}

impl Host {
    /// Serves one connection to its end.
    async fn attend(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        slot: OwnedSemaphorePermit,
        watcher: hyper_util::server::graceful::Watcher,
        abort: CancellationToken,
    ) {
        // An answer is not held back until there is more of it.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, reason = %error, "TCP_NODELAY cannot be set");
        }
        let activity = Activity::default();
        let io = TokioIo::new(Paced::new(stream, activity.clone(), &self.hosting.limits));
        let connection = Connection { activity: activity.clone(), slot: Some(Arc::new(slot)) };
        let hosting = Hosting { connection, peer: Some(peer), ..self.hosting.clone() };
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(hosting.clone());
            let busy = activity.begin();
            let answer = self.router.clone().oneshot(request);
            async move { answer.await.map(|response| response.map(|body| busy.until_end_of(body))) }
        });
        let connection = self.builder.serve_connection_with_upgrades(io, service);
        tokio::select! {
            ended = watcher.watch(connection.into_owned()) => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, reason = %error, "a connection ended early");
                }
            }
            () = abort.cancelled() => {}
        }
    }
}
