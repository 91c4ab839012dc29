//! Following the events of an execution: each one once, in order, also when the connection does not last.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::BoxStream;
use pyoco_api::ExecutionEvent;
use reqwest::Method;

use crate::answer::Answer;
use crate::error::{Call, Error};
use crate::resume::{Heard, Source};
use crate::sse::Frame;
use crate::transport::{Client, Outgoing, bad_answer};

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
        let events = Events { execution_id: execution_id.to_owned(), last: options.after };
        Ok(EventStream { events: self.follow(events, options.patience).await? })
    }
}

struct Events {
    execution_id: String,
    /// The number of the last event that was given out.
    last: u64,
}

impl Source for Events {
    type Item = Answer<ExecutionEvent>;

    fn request(&self, client: &Client) -> Result<Outgoing, Error> {
        let outgoing =
            client.request(&Method::GET, &["executions", &self.execution_id, "events", "stream"])?;
        Ok(match self.last {
            0 => outgoing,
            last @ 1.. => outgoing.with(|call| call.header("last-event-id", last)),
        })
    }

    fn understand(&mut self, frame: &Frame, call: &Call) -> Result<Heard<Self::Item>, Error> {
        if frame.name == END {
            return Ok(Heard::End);
        }
        let json = serde_json::from_str(&frame.data);
        let event: Answer<ExecutionEvent> = json.and_then(Answer::read).map_err(|error| {
            bad_answer(call, format!("an event of kind {} has another form: {error}", frame.name))
        })?;
        if event.seq <= self.last {
            return Ok(Heard::Nothing);
        }
        if event.seq != self.last + 1 {
            return Err(bad_answer(call, format!("event {} follows event {}", event.seq, self.last)));
        }
        self.last = event.seq;
        Ok(Heard::Item(event))
    }
}
