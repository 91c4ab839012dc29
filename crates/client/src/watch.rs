//! Watching a run: one stream of events, also when its connection does not last.
//!
//! A connection that breaks or falls silent is replaced, and the new one goes on after the last event that had an id. That ends
//! when the time asked for is over, when the gateway refuses, or when nothing more can come.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::{self, BoxStream};
use pyoco_api::{WatchData, WatchEvent};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::answer::Answer;
use crate::connection::Connection;
use crate::error::{Call, Error};
use crate::sse::Frame;
use crate::transport::{Client, bad_answer};
use crate::wait::is_terminal;

/// How long the gateway keeps a watch open that does not say.
const DEFAULT_SECONDS: u32 = 60;
/// The shortest watch that the gateway accepts; with less time left there is no reconnect.
const SHORTEST: Duration = Duration::from_secs(1);
/// The gateway ends a watch by its own clock; it may be this late.
const LATE: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What to watch of a run, and for how long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchOptions {
    /// Snapshots with the records of tasks.
    pub include_records: bool,
    /// Only snapshots that changed at or after this moment, in unix seconds.
    pub since: Option<f64>,
    /// How long; the gateway takes 1 to 600 s and 60 s when there is none.
    pub timeout_sec: Option<u32>,
}

/// The events of a run, a [`Stream`]. After an error it ends.
pub struct Watch {
    events: BoxStream<'static, Result<Answer<WatchEvent>, Error>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Stream for Watch {
    type Item = Result<Answer<WatchEvent>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(context)
    }
}

impl Client {
    /// Watches a run: its snapshot now and after every change, heartbeats in between. The stream does not end with the run.
    pub async fn watch_run(&self, run_id: &str, options: WatchOptions) -> Result<Watch, Error> {
        let seconds = options.timeout_sec.unwrap_or(DEFAULT_SECONDS);
        let mut follow = Follow {
            client: self.clone(),
            run_id: run_id.to_owned(),
            deadline: Instant::now() + Duration::from_secs(seconds.into()),
            options,
            connection: None,
            ready: VecDeque::new(),
            last_id: None,
            has_ended: false,
            is_over: false,
            pause: FIRST_PAUSE,
        };
        follow.connection = Some(follow.connect(follow.options.timeout_sec).await?);
        let events = stream::unfold(follow, |mut follow| async {
            let event = follow.next().await?;
            Some((event, follow))
        });
        Ok(Watch { events: Box::pin(events) })
    }
}

struct Follow {
    client: Client,
    run_id: String,
    options: WatchOptions,
    deadline: Instant,
    connection: Option<Connection>,
    ready: VecDeque<Frame>,
    last_id: Option<String>,
    /// The last snapshot was of a run that has ended: nothing more can come.
    has_ended: bool,
    /// Nothing is given out any more.
    is_over: bool,
    pause: Duration,
}

/// How a connection ended.
enum Loss {
    /// The gateway closed it in good order.
    Closed,
    Broken(Error),
}

impl Follow {
    async fn next(&mut self) -> Option<Result<Answer<WatchEvent>, Error>> {
        while !self.is_over {
            if let Some(frame) = self.ready.pop_front() {
                match self.understand(frame) {
                    Ok(Some(event)) => return Some(Ok(event)),
                    Ok(None) => continue,
                    Err(error) => return self.end(Err(error)),
                }
            }
            let Some(connection) = &mut self.connection else {
                return self.end(Ok(()));
            };
            let silence = self.client.limits().silence;
            let loss = match timeout_at(self.deadline + LATE, connection.read(silence)).await {
                Ok(Ok(Some(bytes))) => match connection.decode(&bytes, &mut self.ready) {
                    Ok(()) => continue,
                    Err(error) => return self.end(Err(error)),
                },
                Ok(Ok(None)) => Loss::Closed,
                Ok(Err(error)) => Loss::Broken(error),
                Err(_) => return self.end(Ok(())),
            };
            self.connection = None;
            if let Err(error) = self.replace(loss).await {
                return self.end(Err(error));
            }
        }
        None
    }

    fn end(&mut self, how: Result<(), Error>) -> Option<Result<Answer<WatchEvent>, Error>> {
        self.is_over = true;
        self.connection = None;
        how.err().map(Err)
    }

    /// Connects again while that makes sense; leaves no connection when the watch is complete.
    async fn replace(&mut self, loss: Loss) -> Result<(), Error> {
        let mut trouble = match loss {
            Loss::Broken(error) => Some(error),
            // Without ids a new connection would only repeat what was seen.
            Loss::Closed if self.has_ended || self.last_id.is_none() => return Ok(()),
            Loss::Closed => None,
        };
        let mut has_tried = false;
        loop {
            let again = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            if again + SHORTEST > self.deadline {
                // A connection that broke at the very end has shown everything it could.
                return trouble.filter(|_| has_tried).map_or(Ok(()), Err);
            }
            sleep_until(again).await;
            has_tried = true;
            match self.connect(Some(self.seconds_left())).await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                // It was there, and is gone.
                Err(error) if error.status() == Some(404) => return Ok(()),
                Err(error) if error.is_passing() => trouble = Some(error),
                Err(error) => return Err(error),
            }
        }
    }

    fn seconds_left(&self) -> u32 {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }

    async fn connect(&self, timeout_sec: Option<u32>) -> Result<Connection, Error> {
        let mut query: Vec<(&str, String)> = Vec::new();
        if self.options.include_records {
            query.push(("include", "records".to_owned()));
        }
        query.extend(self.options.since.map(|moment| ("since", moment.to_string())));
        query.extend(timeout_sec.map(|seconds| ("timeout_sec", seconds.to_string())));
        let outgoing = self.client.request(&Method::GET, &["runs", &self.run_id, "watch"])?.with(|call| {
            let call = call.query(&query);
            match &self.last_id {
                Some(id) => call.header("last-event-id", id),
                None => call,
            }
        });
        Connection::open(&self.client, outgoing).await
    }

    /// The typed event; none when it is of a kind that this version does not know.
    fn understand(&mut self, frame: Frame) -> Result<Option<Answer<WatchEvent>>, Error> {
        if let Some(id) = frame.id.filter(|id| !id.is_empty()) {
            self.last_id = Some(id);
        }
        let Frame { name, data, .. } = frame;
        if !matches!(name.as_str(), "snapshot" | "heartbeat") {
            return Ok(None);
        }
        let read = serde_json::from_str::<Value>(&data)
            .and_then(|json| Ok((serde_json::from_value::<WatchData>(json.clone())?, json)));
        let (typed, json) = match read {
            Ok(both) => both,
            Err(error) => {
                let call = Call { method: "GET".to_owned(), path: format!("/runs/{}/watch", self.run_id) };
                return Err(bad_answer(&call, format!("an event of kind {name} has another form: {error}")));
            }
        };
        self.pause = FIRST_PAUSE;
        if let Some(snapshot) = &typed.snapshot {
            self.has_ended = is_terminal(snapshot.status);
        }
        let json = json!({"event": name, "data": json});
        let event = WatchEvent { id: self.last_id.clone(), event: name, data: typed };
        Ok(Some(Answer::new(event, json)))
    }
}
