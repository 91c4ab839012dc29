//! Following the events of an execution: each one once, in order, also when the connection does not last.
//!
//! A connection that breaks, falls silent or ends before the execution is replaced, and the new one goes on after the last event
//! that was given out. That ends when the gateway says that nothing more will come, when it refuses, or when it is away too long.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::{self, BoxStream};
use pyoco_api::ExecutionEvent;
use reqwest::Method;
use tokio::time::{Instant, sleep};

use crate::answer::Answer;
use crate::connection::Connection;
use crate::error::{Call, Error};
use crate::sse::Frame;
use crate::transport::{Client, bad_answer};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The name of the event that says that nothing more will come.
const END: &str = "end";

/// Where to begin, and how long to wait for a gateway that is away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowOptions {
    /// Only events behind this number; 0 for all of them.
    pub after: u64,
    /// How long nothing at all may be heard before it is given up; 60 s unless told otherwise.
    pub patience: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { after: 0, patience: Duration::from_secs(60) }
    }
}

/// The events of an execution, a [`Stream`]. It ends when nothing more will come, or after an error.
pub struct EventStream {
    events: BoxStream<'static, Result<Answer<ExecutionEvent>, Error>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

impl Stream for EventStream {
    type Item = Result<Answer<ExecutionEvent>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(context)
    }
}

impl Client {
    /// Follows the events of an execution until it has ended: those that happened, then each as it happens.
    pub async fn follow_events(
        &self,
        execution_id: &str,
        options: &FollowOptions,
    ) -> Result<EventStream, Error> {
        let mut follow = Follow {
            client: self.clone(),
            execution_id: execution_id.to_owned(),
            last: options.after,
            patience: options.patience,
            heard: Instant::now(),
            connection: None,
            ready: VecDeque::new(),
            pause: FIRST_PAUSE,
            is_over: false,
        };
        follow.connection = Some(follow.connect().await?);
        let events = stream::unfold(follow, |mut follow| async {
            let event = follow.next().await?;
            Some((event, follow))
        });
        Ok(EventStream { events: Box::pin(events) })
    }
}

struct Follow {
    client: Client,
    execution_id: String,
    /// The number of the last event that was given out.
    last: u64,
    patience: Duration,
    /// When something came last.
    heard: Instant,
    connection: Option<Connection>,
    ready: VecDeque<Frame>,
    pause: Duration,
    is_over: bool,
}

impl Follow {
    async fn next(&mut self) -> Option<Result<Answer<ExecutionEvent>, Error>> {
        while !self.is_over {
            let step = match self.ready.pop_front() {
                Some(frame) => self.understand(&frame),
                None => self.listen().await.map(|()| None),
            };
            match step {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(error) => {
                    self.is_over = true;
                    self.connection = None;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Waits for more bytes, on another connection if this one is lost.
    async fn listen(&mut self) -> Result<(), Error> {
        let Some(connection) = &mut self.connection else { return self.reconnect(None).await };
        if connection.has_nothing_to_tell() {
            self.is_over = true;
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
        Err(trouble.unwrap_or_else(|| bad_answer(&self.call(), "the stream ends before its execution")))
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let outgoing =
            self.client.request(&Method::GET, &["executions", &self.execution_id, "events", "stream"])?;
        let last = self.last;
        let outgoing = match last {
            0 => outgoing,
            1.. => outgoing.with(|call| call.header("last-event-id", last)),
        };
        Connection::open(&self.client, outgoing).await
    }

    /// The event; none when it says that nothing more will come, or was given out before.
    fn understand(&mut self, frame: &Frame) -> Result<Option<Answer<ExecutionEvent>>, Error> {
        if frame.name == END {
            self.is_over = true;
            self.connection = None;
            return Ok(None);
        }
        let json = serde_json::from_str(&frame.data);
        let event: Answer<ExecutionEvent> = json.and_then(Answer::read).map_err(|error| {
            bad_answer(&self.call(), format!("an event of kind {} has another form: {error}", frame.name))
        })?;
        if event.seq <= self.last {
            return Ok(None);
        }
        if event.seq != self.last + 1 {
            let problem = format!("event {} follows event {}", event.seq, self.last);
            return Err(bad_answer(&self.call(), problem));
        }
        self.last = event.seq;
        self.pause = FIRST_PAUSE;
        Ok(Some(event))
    }

    fn call(&self) -> Call {
        let path = format!("/executions/{}/events/stream", self.execution_id);
        Call { method: "GET".to_owned(), path }
    }
}
