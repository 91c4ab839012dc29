//! A stream of events over connections that do not last: what was given out is not given out again, and nothing is left out.
//!
//! A connection that breaks, falls silent or ends too early is replaced by one that goes on after the last event. That ends when the
//! gateway says that nothing more will come, when it refuses, or when it is away too long. Not here: what the events are.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use tokio::time::{Instant, sleep};

use crate::connection::Connection;
use crate::error::{Call, Error};
use crate::sse::Frame;
use crate::transport::{Client, Outgoing, bad_answer};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What is followed. It knows how far it was given out.
pub(crate) trait Source: Send + Sync + 'static {
    type Item: Send;

    /// The request for what comes behind the last one that was understood.
    fn request(&self, client: &Client) -> Result<Outgoing, Error>;

    /// What an event says.
    fn understand(&mut self, frame: &Frame, call: &Call) -> Result<Heard<Self::Item>, Error>;
}

/// What an event says.
pub(crate) enum Heard<T> {
    Item(T),
    /// It was given out before, or is of a kind that this version does not know.
    Nothing,
    /// Nothing more will come.
    End,
}

impl Client {
    /// Connects, and follows a source to its end. At most for `patience` nothing at all may be heard.
    pub(crate) async fn follow<S: Source>(
        &self,
        source: S,
        patience: Duration,
    ) -> Result<BoxStream<'static, Result<S::Item, Error>>, Error> {
        let call = source.request(self)?.call;
        let mut follow = Follow {
            client: self.clone(),
            source,
            call,
            patience,
            heard: Instant::now(),
            connection: None,
            ready: VecDeque::new(),
            pause: FIRST_PAUSE,
            is_over: false,
        };
        follow.connection = Some(follow.connect().await?);
        let items = stream::unfold(follow, |mut follow| async {
            let item = follow.next().await?;
            Some((item, follow))
        });
        Ok(Box::pin(items))
    }
}

struct Follow<S> {
    client: Client,
    source: S,
    call: Call,
    patience: Duration,
    /// When something came last.
    heard: Instant,
    connection: Option<Connection>,
    ready: VecDeque<Frame>,
    pause: Duration,
    is_over: bool,
}

impl<S: Source> Follow<S> {
    async fn next(&mut self) -> Option<Result<S::Item, Error>> {
        while !self.is_over {
            let step = match self.ready.pop_front() {
                Some(frame) => self.source.understand(&frame, &self.call),
                None => self.listen().await.map(|()| Heard::Nothing),
            };
            match step {
                Ok(Heard::Item(item)) => {
                    self.pause = FIRST_PAUSE;
                    return Some(Ok(item));
                }
                Ok(Heard::Nothing) => {}
                Ok(Heard::End) => self.end(),
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            }
        }
        None
    }

    fn end(&mut self) {
        self.is_over = true;
        self.connection = None;
    }

    /// Waits for more bytes, on another connection if this one is lost.
    async fn listen(&mut self) -> Result<(), Error> {
        let Some(connection) = &mut self.connection else { return self.reconnect(None).await };
        if connection.has_nothing_to_tell() {
            self.end();
            return Ok(());
        }
        match connection.read(self.client.limits().silence).await {
            Ok(Some(bytes)) => {
                self.heard = Instant::now();
                connection.decode(&bytes, &mut self.ready)
            }
            Ok(None) => self.reconnect(None).await,
            Err(error) => self.reconnect(Some(error)).await,
        }
    }

    async fn reconnect(&mut self, mut trouble: Option<Error>) -> Result<(), Error> {
        self.connection = None;
        while self.heard.elapsed() + self.pause < self.patience {
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            match self.connect().await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(error) if error.is_passing() => trouble = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(trouble.unwrap_or_else(|| bad_answer(&self.call, "the stream ends before its execution")))
    }

    async fn connect(&self) -> Result<Connection, Error> {
        Connection::open(&self.client, self.source.request(&self.client)?).await
    }
}
