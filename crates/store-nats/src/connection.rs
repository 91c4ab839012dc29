//! The connection: the one place that speaks to NATS. Requests of JetStream are built on it in `stream`.
//!
//! The client library keeps what it is given until a server takes it. We must not: whoever was told "not available" would see
//! the work appear later. So nothing is given to it while there is no connection, and whoever waits when a connection is lost is told
//! `Timeout`: nobody knows.

use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pyoco_ports::{ErrorKind, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{self, ApiError, OpenError, Refusal};
use crate::message::Headers;
use crate::post::{Haste, Post};
use crate::settings::{Access, Settings};

/// How often we ask a silent server whether it is there; two unanswered questions end the connection.
const PING: Duration = Duration::from_secs(10);
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(3);
/// The pause before the next attempt to connect, at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A question that nobody has answered for so long is asked again.
const AGAIN: Duration = Duration::from_millis(400);
/// Time to live for messages came with it, and reading many messages with one request.
const OLDEST: (u32, u32) = (2, 11);

/// A connection that comes back by itself, until it is closed.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    post: Post,
    patience: Duration,
    line: watch::Receiver<Line>,
    /// When a request was not answered in time, the last time.
    silence: watch::Sender<Option<Instant>>,
    closing: CancellationToken,
}

/// What became of the line to the server so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// How often it was made.
    pub(crate) made: u64,
    /// How often it was lost.
    pub(crate) lost: u64,
    /// Since when it is there, if it was not lost since.
    pub(crate) since: Option<Instant>,
}

impl Connection {
    /// Connects. A start without NATS fails; later the connection is made again, for ever.
    pub(crate) async fn open(settings: &Settings) -> Result<Arc<Self>, OpenError> {
        let shown = settings.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let failed = |why: String| OpenError::Connect { servers: shown.clone(), why };
        if settings.servers.is_empty() {
            return Err(failed("no server was named".to_owned()));
        }
        let (line, watched) = watch::channel(Line::default());
        let options = options(settings, line).await.map_err(|error| failed(error.to_string()))?;
        let addresses: Vec<&str> = settings.servers.iter().map(crate::settings::Server::secret).collect();
        let client = options.connect(addresses).await.map_err(|error| failed(error.to_string()))?;
        let version = client.server_info().version;
        if !is_new_enough(&version) {
            return Err(OpenError::TooOld { found: version, wanted: "2.11" });
        }
        tracing::info!(servers = %shown, version, "connected to NATS");
        let closing = CancellationToken::new();
        let post = Post::open(&client, watched.clone(), settings.patience, closing.clone())
            .await
            .map_err(|error| failed(error.to_string()))?;
        Ok(Arc::new(Self {
            client,
            post,
            patience: settings.patience,
            line: watched,
            silence: watch::Sender::new(None),
            closing,
        }))
    }

    /// The version of the server.
    pub(crate) fn server_version(&self) -> String {
        self.client.server_info().version
    }

    /// Whether there is a connection now, as far as anybody knows.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected && !self.closing.is_cancelled()
    }

    /// How long everybody has been answered by now; no time while there is no connection.
    pub(crate) fn calm_for(&self) -> Duration {
        let Some(since) = self.line.borrow().since else { return Duration::ZERO };
        let silence = *self.silence.borrow();
        silence.map_or(since, |silence| silence.max(since)).elapsed()
    }

    /// Tells when the line was made again or lost.
    pub(crate) fn line(&self) -> watch::Receiver<Line> {
        self.line.clone()
    }

    /// Is cancelled when the store is closed or let go: every task of the store ends then.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// How long one request may take.
    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// The largest payload the server takes, headers included.
    pub(crate) fn max_payload(&self) -> usize {
        self.client.max_payload()
    }

    /// How many messages were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.client.statistics().out_messages.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A name that nobody has.
    pub(crate) fn unused_name(&self) -> String {
        let inbox = self.client.new_inbox();
        inbox.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// A subject that nobody uses, for answers.
    pub(crate) fn inbox(&self) -> String {
        self.client.new_inbox()
    }

    /// Sends and waits for the answer. An answer of no responders is `Unavailable`.
    pub(crate) async fn request(
        &self,
        operation: &'static str,
        subject: impl Into<String> + Send,
        headers: Headers,
        payload: Bytes,
    ) -> Result<async_nats::Message, StoreError> {
        self.request_with(Haste::Now, operation, subject, headers, payload).await
    }

    /// The same, with more or less haste.
    pub(crate) async fn request_with(
        &self,
        haste: Haste,
        operation: &'static str,
        subject: impl Into<String> + Send,
        headers: Headers,
        payload: Bytes,
    ) -> Result<async_nats::Message, StoreError> {
        self.check(operation)?;
        let answered = match self.post.ask(haste, subject.into(), headers.into_map(), payload).await {
            Ok(answer) if answer.status == Some(StatusCode::NO_RESPONDERS) => {
                Err(StoreError::new(ErrorKind::Unavailable, operation, "no responders"))
            }
            Ok(answer) => Ok(answer),
            Err(why) => Err(error::unanswered(operation, why)),
        };
        if answered.as_ref().is_err_and(|error| error.kind == ErrorKind::Timeout) {
            self.silence.send_replace(Some(Instant::now()));
        }
        answered
    }

    /// Sends and does not wait. It is gone when there is no connection, and may be lost with one.
    pub(crate) fn send(
        &self,
        haste: Haste,
        operation: &'static str,
        subject: &str,
        reply: Option<&str>,
        payload: Bytes,
    ) -> Result<(), StoreError> {
        self.check(operation)?;
        if self.post.send(haste, subject.to_owned(), reply.map(str::to_owned), payload) {
            Ok(())
        } else {
            Err(StoreError::plain(ErrorKind::Closed, operation))
        }
    }

    /// Listens to a subject. The library subscribes again by itself when the connection comes back; what came in between is lost.
    pub(crate) async fn subscribe(
        &self,
        operation: &'static str,
        subject: &str,
    ) -> Result<Subscriber, StoreError> {
        self.check(operation)?;
        self.in_time(operation, self.client.subscribe(subject.to_owned())).await
    }

    /// Listens to a subject together with others: each message reaches one of the group.
    pub(crate) async fn subscribe_shared(
        &self,
        operation: &'static str,
        subject: &str,
        group: &str,
    ) -> Result<Subscriber, StoreError> {
        self.check(operation)?;
        self.in_time(operation, self.client.queue_subscribe(subject.to_owned(), group.to_owned())).await
    }

    /// What is given to the library waits for its turn, but not for ever.
    async fn in_time<T, E: std::error::Error + Send + Sync + 'static>(
        &self,
        operation: &'static str,
        given: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.patience, given).await {
            Ok(taken) => taken.map_err(|error| error::internal(operation, error)),
            Err(_) => Err(StoreError::plain(ErrorKind::Timeout, operation)),
        }
    }

    /// Asks JetStream; `subject` is what follows `$JS.API.`.
    pub(crate) async fn api<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        subject: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, ApiError> {
        #[derive(Deserialize)]
        struct Failed {
            error: Option<Refusal>,
        }
        let mut body = serde_json::to_vec(body).map_err(|error| error::internal(operation, error))?;
        // Some questions must have no body at all.
        if body == b"null" {
            body.clear();
        }
        let subject = format!("$JS.API.{subject}");
        let answer = self.request(operation, &subject, Headers::new(), body.into()).await?;
        let failed: Failed =
            serde_json::from_slice(&answer.payload).map_err(|error| error::internal(operation, error))?;
        match failed.error {
            Some(refusal) => Err(ApiError::Refused(refusal)),
            None => serde_json::from_slice(&answer.payload)
                .map_err(|error| error::internal(operation, error).into()),
        }
    }

    /// Asks JetStream something that may be asked twice. While a leader is elected nobody answers, and what was asked then stays
    /// without an answer also when there is one: so it is asked again, and whichever answer comes first counts.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        subject: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, ApiError> {
        let mut asked = FuturesUnordered::new();
        loop {
            // The patience is that of the first one.
            asked.push(self.api(operation, subject, body));
            tokio::select! {
                biased;
                Some(answer) = asked.next() => return answer,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    /// Ends everything that listens, sends what is on its way and closes the connection.
    pub(crate) async fn close(&self) {
        let is_connected = self.is_connected();
        self.closing.cancel();
        // Without a connection there is nothing to end: the library looks for a server until it finds one, and ends then.
        if !is_connected {
            return;
        }
        let mut line = self.line.clone();
        let ended = async {
            self.post.sent().await;
            // The library drops the callback, and with it the other end of the watch, when it is done.
            if self.client.drain().await.is_ok() {
                while line.changed().await.is_ok() {}
            }
        };
        if tokio::time::timeout(self.patience, ended).await.is_err() {
            tracing::warn!("the connection to NATS did not end in time");
        }
    }

    /// Nothing is given to the library while there is no connection: it would keep it and send it later.
    fn check(&self, operation: &'static str) -> Result<(), StoreError> {
        if self.closing.is_cancelled() {
            return Err(StoreError::plain(ErrorKind::Closed, operation));
        }
        match self.client.connection_state() {
            State::Connected => Ok(()),
            State::Pending | State::Disconnected => {
                Err(StoreError::new(ErrorKind::Unavailable, operation, "there is no connection to NATS"))
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

async fn options(settings: &Settings, line: watch::Sender<Line>) -> std::io::Result<ConnectOptions> {
    let mut options = ConnectOptions::new()
        .name(&settings.name)
        .ping_interval(PING)
        .connection_timeout(CONNECT)
        .request_timeout(Some(settings.patience))
        .reconnect_delay_callback(pause)
        .require_tls(settings.tls.required)
        .event_callback(move |event| {
            heard(&line, &event);
            std::future::ready(())
        });
    if let Some(prefix) = &settings.inbox_prefix {
        options = options.custom_inbox_prefix(prefix);
    }
    if let Some(ca) = &settings.tls.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &settings.tls.client {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(match &settings.named_access() {
        Access::Open => options,
        Access::Token(token) => options.token(token.clone()),
        Access::UserPassword { user, password } => options.user_and_password(user.clone(), password.clone()),
        Access::Credentials(path) => options.credentials_file(path).await.map_err(|error| {
            std::io::Error::new(error.kind(), format!("the credentials {}: {error}", path.display()))
        })?,
    })
}

/// Soon at first, then every half second: a server that is back is found before anybody complains.
fn pause(attempt: usize) -> Duration {
    let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
    Duration::from_millis(10).saturating_mul(attempt.saturating_sub(1)).min(LONGEST_PAUSE)
}

fn heard(line: &watch::Sender<Line>, event: &Event) {
    match event {
        Event::Connected => {
            line.send_modify(|line| {
                line.made += 1;
                line.since = Some(Instant::now());
            });
            // The first one is told by whoever opens the store.
            if line.borrow().made > 1 {
                tracing::info!("connected to NATS again");
            }
        }
        Event::Disconnected => {
            tracing::warn!("the connection to NATS was lost; trying again");
            line.send_modify(|line| {
                line.lost += 1;
                line.since = None;
            });
        }
        Event::LameDuckMode => tracing::info!("the NATS server is about to stop"),
        Event::SlowConsumer(subscription) => {
            tracing::warn!(subscription, "messages of NATS came faster than they were taken, and were lost");
        }
        Event::ServerError(error) => tracing::warn!(%error, "the NATS server complained"),
        // One for each attempt: the loss itself was told.
        Event::ClientError(error) => tracing::debug!(%error, "cannot connect to NATS"),
        Event::Draining | Event::Closed => tracing::debug!(%event, "the connection to NATS ends"),
    }
}

/// Whether a version such as `2.11.4` or `2.15.0-dev` will do.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        (Some(_) | None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for version in ["2.11.0", "2.15.1", "v2.12.0-RC.1", "3.0.0", "2.100.0"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["2.10.29", "1.99.0", "", "two", "2"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }

    #[test]
    fn the_pause_between_attempts_is_short_and_bounded() {
        assert_eq!(pause(1), Duration::ZERO);
        assert!(pause(3) < LONGEST_PAUSE);
        assert_eq!(pause(usize::MAX), LONGEST_PAUSE);
    }
}
