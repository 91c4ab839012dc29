//! Traces: the spans of an execution that has ended go to a collector, if the operator names one.
//!
//! Nothing here is in the way of a run. Ended executions wait in a bounded queue, their spans are made from their logs and sent in
//! batches, and what cannot be sent is dropped and counted. What a span is called stands in `pyoco_core::trace`; here are the queue
//! (this file), the spans (`spans`), the settings (`target`) and the way to the collector (`collector`).

mod collector;
mod spans;
mod target;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::ExecutionId;
use pyoco_engine::{Endings, Engine};
use pyoco_figures::Figures;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::StartError;
use crate::config::TracesConfig;
use collector::{Collector, Unsent};
use target::Target;

/// So many ended executions may wait; their ids are all that is kept of them.
const WAITING: usize = 4_096;
/// So many spans go together.
const BATCH: usize = 512;
/// So long the first of them waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// So often a batch is sent before it is dropped, with longer and longer pauses.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// At the end of the process what waits is sent, if it takes no longer than this.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often losses are told of, at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// What takes the endings of executions to a collector.
pub(crate) struct Traces {
    outbox: Arc<Outbox>,
    ended: mpsc::Receiver<ExecutionId>,
    collector: Collector,
}

/// Where the engine leaves what has ended.
struct Outbox {
    waiting: mpsc::Sender<ExecutionId>,
    /// Executions whose spans were not sent.
    dropped: AtomicUsize,
    figures: Figures,
}

impl Outbox {
    fn lose(&self, executions: usize) {
        self.dropped.fetch_add(executions, Ordering::Relaxed);
        self.figures.traces_dropped(executions);
    }
}

impl Endings for Outbox {
    fn ended(&self, execution: &ExecutionId, by: &Actor) {
        match by.kind {
            // What another implementation has run is not ours to tell of.
            ActorKind::External => {}
            ActorKind::System | ActorKind::User | ActorKind::Scheduler => {
                if self.waiting.try_send(execution.clone()).is_err() {
                    self.lose(1);
                }
            }
        }
    }
}

/// Spans that are sent together.
#[derive(Default)]
struct Batch {
    executions: usize,
    spans: Vec<Span>,
}

impl Traces {
    /// Traces of a configuration; none if it names no collector.
    pub(crate) fn new(config: &TracesConfig, figures: &Figures) -> Result<Option<Self>, StartError> {
        let Some(target) = Target::of(config)? else { return Ok(None) };
        tracing::info!(collector = %target.shown(), "spans of runs that end are sent");
        let (waiting, ended) = mpsc::channel(WAITING);
        let outbox = Arc::new(Outbox { waiting, dropped: AtomicUsize::new(0), figures: figures.clone() });
        Ok(Some(Self { outbox, ended, collector: Collector::new(target)? }))
    }

    /// What tells of endings.
    pub(crate) fn endings(&self) -> Arc<dyn Endings> {
        self.outbox.clone()
    }

    /// Sends until it is to stop, and then what is left.
    pub(crate) async fn run(mut self, engine: Engine, stopping: CancellationToken) {
        let (mut told, mut patience) = (Told::default(), FAREWELL);
        loop {
            let first = tokio::select! {
                first = self.ended.recv() => first,
                () = stopping.cancelled() => None,
            };
            let Some(first) = first else { break };
            let mut batch = Batch::default();
            self.add(&engine, &first, &mut batch).await;
            self.gather(&engine, &mut batch, &stopping).await;
            // A stop does not wait for a collector that is away.
            tokio::select! {
                () = self.send(&mut batch) => {}
                () = async {
                    stopping.cancelled().await;
                    tokio::time::sleep(FAREWELL).await;
                } => patience = Duration::ZERO,
            }
            self.drop_rest(&batch);
            told.tell(&self.outbox.dropped, false);
        }
        self.farewell(&engine, Instant::now() + patience).await;
        told.tell(&self.outbox.dropped, true);
    }

    /// Waits a moment for others that end.
    async fn gather(&mut self, engine: &Engine, batch: &mut Batch, stopping: &CancellationToken) {
        let over = Instant::now() + LINGER;
        while batch.spans.len() < BATCH {
            let next = tokio::select! {
                next = self.ended.recv() => next,
                () = tokio::time::sleep_until(over) => None,
                () = stopping.cancelled() => None,
            };
            let Some(next) = next else { return };
            self.add(engine, &next, batch).await;
        }
    }

    /// Sends what still waits, for a moment.
    async fn farewell(&mut self, engine: &Engine, over: Instant) {
        self.ended.close();
        let mut batch = Batch::default();
        while let Ok(next) = self.ended.try_recv() {
            if Instant::now() >= over {
                batch.executions += 1;
                continue;
            }
            self.add(engine, &next, &mut batch).await;
            if batch.spans.len() >= BATCH {
                let _ = tokio::time::timeout_at(over, self.send(&mut batch)).await;
            }
        }
        let _ = tokio::time::timeout_at(over, self.send(&mut batch)).await;
        self.drop_rest(&batch);
    }

    /// Adds the spans of an execution, unless its caller wants none kept.
    async fn add(&self, engine: &Engine, execution: &ExecutionId, batch: &mut Batch) {
        match spans::of(engine, execution).await {
            Ok(spans) if spans.is_empty() => {}
            Ok(spans) => {
                batch.executions += 1;
                batch.spans.extend(spans);
            }
            Err(error) => {
                tracing::debug!(run_id = %execution, reason = %error, "its spans cannot be made");
                self.outbox.lose(1);
            }
        }
    }

    /// Sends a batch, again and again if that may help. It is empty afterwards.
    async fn send(&self, batch: &mut Batch) {
        while !batch.spans.is_empty() {
            let rest = batch.spans.split_off(batch.spans.len().min(BATCH));
            let part = std::mem::replace(&mut batch.spans, rest);
            if let Err(reason) = self.send_part(part).await {
                tracing::debug!(%reason, "spans were not sent");
                // The rest of it would be no better off, and others wait.
                batch.spans.clear();
                self.drop_rest(batch);
            }
        }
        batch.executions = 0;
    }

    async fn send_part(&self, spans: Vec<Span>) -> Result<(), Unsent> {
        let message = self.collector.message(spans);
        let mut pause = FIRST_PAUSE;
        for tried in 1.. {
            match self.collector.send(message.clone()).await {
                Err(Unsent::ForNow { after, reason }) if tried < TRIES => {
                    tracing::debug!(reason, "spans are sent again");
                    tokio::time::sleep(after.unwrap_or(pause).min(LONGEST_PAUSE)).await;
                    pause *= 2;
                }
                sent => return sent,
            }
        }
        Ok(())
    }

    fn drop_rest(&self, batch: &Batch) {
        self.outbox.lose(batch.executions);
    }
}

/// What the operator was told of losses.
#[derive(Default)]
struct Told {
    dropped: usize,
    at: Option<Instant>,
}

impl Told {
    fn tell(&mut self, dropped: &AtomicUsize, at_once: bool) {
        let dropped = dropped.load(Ordering::Relaxed);
        let is_time = at_once || self.at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        if dropped > self.dropped && is_time {
            let runs = dropped - self.dropped;
            tracing::warn!(
                runs,
                all = dropped,
                "the spans of some runs were dropped: the collector of traces was away, or too slow"
            );
            (self.dropped, self.at) = (dropped, Some(Instant::now()));
        }
    }
}
