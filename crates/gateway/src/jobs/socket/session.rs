//! What is said over the socket of a job, until the job has ended or nobody listens any more.
//!
//! One task reads and writes in turn. The log is asked for more only when the socket has taken what there was, so that a slow reader
//! costs no memory.

use std::net::SocketAddr;

use axum::extract::ws::{Message, WebSocket};
use axum::http::StatusCode;
use pyoco_api::{Job, JobNews, JobProgress, JobWish};
use pyoco_core::access::Role;
use pyoco_core::command::CancelExecution;
use pyoco_core::ids::ExecutionId;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::{EngineError, LogFollower, NumberedLine, Watcher};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::line::{End, Line};
use super::progress;
use super::wishes::{self, Patience};
use crate::App;
use crate::audit::{Deed, SOCKET_CANCEL, Told};
use crate::caller::Guest;
use crate::error::{Code, Denial, Refusal};
use crate::fields::REASON;
use crate::jobs::job;
use crate::logs::{Token, entry};

/// After so many unanswered pings nobody is there.
const PINGS: u32 = 4;

/// One open socket.
pub(super) struct Session {
    app: App,
    guest: Guest,
    /// The other side of the connection.
    source: Option<SocketAddr>,
    job: ExecutionId,
    follower: LogFollower,
    watcher: Watcher,
    closing: CancellationToken,
    told_job: Option<Job>,
    told_progress: JobProgress,
}

/// What happens next.
enum Event {
    Heard(Option<Result<Message, axum::Error>>),
    Changed,
    Lines(Result<Option<Vec<NumberedLine>>, EngineError>),
    Tick,
    KeyIsDue,
}

impl Session {
    pub(super) fn new(
        app: App,
        guest: Guest,
        source: Option<SocketAddr>,
        job: ExecutionId,
        follower: LogFollower,
        watcher: Watcher,
        closing: CancellationToken,
    ) -> Self {
        Self {
            app,
            guest,
            source,
            job,
            follower,
            watcher,
            closing,
            told_job: None,
            told_progress: JobProgress::default(),
        }
    }

    /// Speaks and listens to the end.
    pub(super) async fn run(mut self, socket: WebSocket) {
        let mut line = Line(socket);
        let Err(end) = self.converse(&mut line).await;
        tracing::debug!(run_id = %self.job, reason = ?end, "a WebSocket ends");
        line.close(end).await;
    }

    async fn converse(&mut self, line: &mut Line) -> Result<std::convert::Infallible, End> {
        let ping = self.app.settings.socket_ping;
        let mut tick = tokio::time::interval_at(Instant::now() + ping, ping);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Also while everything is in motion: a key that is taken back ends it soon.
        let recheck = self.app.settings.key_recheck;
        let mut key_due = tokio::time::interval_at(Instant::now() + recheck, recheck);
        key_due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard_at = Instant::now();
        let mut patience = Patience::new(heard_at);
        self.tell_state(line).await?;
        loop {
            // In no fixed order: a job that changes without a pause must not keep its lines back.
            let event = tokio::select! {
                () = self.closing.cancelled() => return Err(End::STOPPING),
                heard = line.0.recv() => Event::Heard(heard),
                _ = self.watcher.changed() => Event::Changed,
                lines = self.follower.next() => Event::Lines(lines),
                _ = tick.tick() => Event::Tick,
                _ = key_due.tick() => Event::KeyIsDue,
            };
            match event {
                Event::Heard(heard) => {
                    let message = heard.ok_or(End::Gone)?.map_err(End::of)?;
                    heard_at = Instant::now();
                    patience.hear(heard_at)?;
                    self.hear(line, message, &mut patience).await?;
                }
                Event::Changed => self.tell_state(line).await?,
                Event::Lines(Ok(Some(lines))) => self.tell_lines(line, &lines).await?,
                Event::Lines(Ok(None)) => return Err(self.tell_end(line).await?),
                Event::Lines(Err(error)) => {
                    tracing::warn!(run_id = %self.job, reason = %error, "a WebSocket ends");
                    return Err(End::BROKEN);
                }
                Event::Tick if heard_at.elapsed() >= ping * PINGS => return Err(End::SILENT),
                Event::KeyIsDue if self.guest.may_stay().await => {}
                Event::KeyIsDue => return Err(End::NOT_ADMITTED),
                Event::Tick => {
                    // Somebody may have written and died before anybody was told. What cannot be read now is, before it is missed.
                    let _ = self.follower.look_again().await;
                    line.ping().await?;
                }
            }
        }
    }

    /// Does what the client says.
    async fn hear(&self, line: &mut Line, message: Message, patience: &mut Patience) -> Result<(), End> {
        let wish = match message {
            Message::Text(text) => wishes::read(&text),
            Message::Binary(_) => Err("messages are texts of JSON".to_owned()),
            // The answer to a ping is sent by itself.
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(End::Gone),
        };
        match wish {
            Ok(wish) => {
                patience.understand();
                self.follow(line, wish).await
            }
            Err(why) => {
                let message = format!("this is not understood: {why}");
                line.say(&JobNews::Error { code: Code::BadRequest.to_string(), message }).await?;
                Ok(patience.wonder()?)
            }
        }
    }

    async fn follow(&self, line: &mut Line, wish: JobWish) -> Result<(), End> {
        let reason = match wish {
            JobWish::Ping {} => return line.say(&JobNews::Pong).await,
            JobWish::Cancel { reason } => reason,
        };
        if reason.as_ref().is_some_and(|reason| reason.chars().nth(REASON).is_some()) {
            let message = format!("reason: it is longer than {REASON} characters");
            return line.say(&JobNews::Error { code: Code::InvalidInput.to_string(), message }).await;
        }
        let deed = Deed::of(&self.app, SOCKET_CANCEL, Some(&self.guest.caller), self.source).about(&self.job);
        let note = Told::because(reason.clone());
        let told = match self.guest.caller.must_have(Role::Submit) {
            Ok(()) => self.app.tell(&self.guest.caller, &self.job, CancelExecution { reason }).await,
            Err(refusal) => Err(refusal),
        };
        let refusal = match told {
            // It has ended: that is told anyway.
            Ok(Ok(()) | Err(EngineError::Rejected(Rejection { reason: Reason::Ended(_), .. }))) => {
                deed.ended(StatusCode::OK, note).await;
                return Ok(());
            }
            Ok(Err(error)) => Refusal::from(error),
            Err(refusal) => refusal,
        };
        deed.ended(refusal.status(), note).await;
        let (code, message) = Denial::from(refusal).said();
        line.say(&JobNews::Error { code, message }).await
    }

    /// Tells how the job is, as far as that is news.
    async fn tell_state(&mut self, line: &mut Line) -> Result<(), End> {
        let seen = self
            .app
            .found_job(&self.guest.caller, &self.job, |state| (job(state), progress::of(state)))
            .await;
        let (job, progress) = match seen {
            Ok(Some(seen)) => seen,
            // Deleted meanwhile.
            Ok(None) => return Err(End::JOB_ENDED),
            Err(refusal) => {
                // The next change, or the end, is told again.
                tracing::debug!(run_id = %self.job, reason = ?refusal, "a job cannot be looked at now");
                return Ok(());
            }
        };
        if self.told_job.as_ref() != Some(&job) {
            line.say(&JobNews::Status { job: Box::new(job.clone()) }).await?;
            self.told_job = Some(job);
        }
        if self.told_progress != progress {
            line.say(&JobNews::Progress(progress.clone())).await?;
            self.told_progress = progress;
        }
        Ok(())
    }

    async fn tell_lines(&self, line: &mut Line, lines: &[NumberedLine]) -> Result<(), End> {
        for (number, written) in lines {
            let news = JobNews::Log { entry: entry(*number, written), token: Token::of(&self.job, *number) };
            line.feed(&news).await?;
        }
        line.flush().await
    }

    /// The last word, also if it was said before.
    async fn tell_end(&mut self, line: &mut Line) -> Result<End, End> {
        self.told_job = None;
        self.tell_state(line).await?;
        Ok(if self.told_job.is_some() { End::JOB_ENDED } else { End::BROKEN })
    }
}
