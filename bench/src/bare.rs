//! The bare loop: the writes of a tape, sent by nothing but the client library, each when the one before it was answered. What ours takes
//! longer is what ours adds.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{try_join, try_join_all};
use serde_json::Value;
use tokio::time::timeout;

use crate::broker::Storage;
use crate::flows::{SERVED, UNSERVED};
use crate::measure::{CONNECTIONS, MEASURED, WARM_UP};
use crate::stats::Figure;
use crate::tape::{Role, Tape};
use crate::{Failure, clock};

/// A UUID in text.
const ID_LENGTH: usize = 36;
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// What a taker asks for: one job, or word after 0.3 s that there is none.
const ONE_JOB: &[u8] = br#"{"batch":1,"expires":300000000}"#;
const PATIENCE: Duration = Duration::from_secs(10);
const NEXT: &str = "$JS.API.CONSUMER.MSG.NEXT.PYOCO_WORK.pyoco_workers_";

/// A run, as far as a writer has to know it: the last message of its log and of its key.
struct Run {
    id: String,
    record: u64,
    snapshot: u64,
}

/// One stored message of the tape.
struct Write {
    role: Role,
    headers: HeaderMap,
    payload: Bytes,
}

/// What is played, and where.
pub(crate) struct Loop {
    storage: Storage,
    accepting: Vec<Write>,
    running: Vec<Write>,
    /// Where a job names its run.
    id_at: usize,
    /// Tells the runs of this loop from those of others.
    series: u32,
    next: Cell<u64>,
}

impl Loop {
    pub(crate) fn new(storage: Storage, tape: &Tape, series: u32) -> Result<Self, Failure> {
        let stored = tape.sent.iter().filter(|sent| sent.role.is_stored());
        let mut accepting: Vec<Write> = stored
            .map(|sent| Write {
                role: sent.role,
                headers: sent.headers.clone(),
                payload: sent.payload.clone(),
            })
            .collect();
        let job = accepting.iter().position(|write| write.role == Role::Job).ok_or("no job on the tape")?;
        let running = accepting.split_off(job + 1);
        let body = accepting.last().map(|job| job.payload.clone()).unwrap_or_default();
        let id_at = body.windows(tape.id.len()).position(|window| window == tape.id.as_bytes());
        let id_at = id_at.ok_or("the job does not name its run")?;
        Ok(Self { storage, accepting, running, id_at, series, next: Cell::new(0) })
    }

    /// Submissions a second, as many at once as ours gets.
    pub(crate) async fn submissions(&self) -> Result<Option<Figure>, Failure> {
        let client = async_nats::connect(self.storage.url()).await?;
        let begin = clock::now() + WARM_UP;
        let end = begin + MEASURED;
        let within = Cell::new(0_usize);
        let one = async || -> Result<(), Failure> {
            while clock::now() < end {
                let mut run = self.new_run();
                for write in &self.accepting {
                    self.put(&client, write, UNSERVED, &mut run).await?;
                }
                let done = clock::now();
                within.set(within.get() + usize::from(done >= begin && done < end));
            }
            Ok(())
        };
        try_join_all((0..CONNECTIONS).map(|_| one())).await?;
        let rate = within.get() as f64 / MEASURED.as_secs_f64();
        Ok(Some(Figure::single(rate, within.get(), 0)))
    }

    /// Runs a second: as many submit at once as ours has connections, and as many take as ours has runs at once, on a connection
    /// for each worker.
    pub(crate) async fn runs(
        &self,
        count: usize,
        workers: usize,
        runs_at_once: usize,
    ) -> Result<Option<Figure>, Failure> {
        let (left, done) = (Cell::new(count), Cell::new(0_usize));
        let accepted: RefCell<HashMap<String, Run>> = RefCell::default();
        let gateway = async_nats::connect(self.storage.url()).await?;
        let mut worker_clients = Vec::new();
        for _ in 0..workers {
            worker_clients.push(async_nats::connect(self.storage.url()).await?);
        }
        let begin = clock::now();
        let last = Cell::new(begin);
        let submit = async || -> Result<(), Failure> {
            while left.get() > 0 {
                left.set(left.get() - 1);
                let mut run = self.new_run();
                for write in &self.accepting {
                    if write.role == Role::Job {
                        // Before the job: whoever takes it wants to know.
                        let Run { id, record, snapshot } = &run;
                        let known = Run { id: id.clone(), record: *record, snapshot: *snapshot };
                        accepted.borrow_mut().insert(run.id.clone(), known);
                    }
                    self.put(&gateway, write, SERVED, &mut run).await?;
                }
            }
            Ok(())
        };
        let take = async |client: &Client| -> Result<(), Failure> {
            // A job comes under its own subject, so the library would not take it for the answer to a request.
            let inbox = client.new_inbox();
            let mut jobs = client.subscribe(inbox.clone()).await?;
            while done.get() < count {
                let next = format!("{NEXT}{SERVED}");
                client.publish_with_reply(next, inbox.clone(), Bytes::from_static(ONE_JOB)).await?;
                let job = timeout(PATIENCE, jobs.next()).await?.ok_or("the broker went away")?;
                // Nothing came in time.
                if job.status.is_some() {
                    continue;
                }
                let id = job.payload.get(self.id_at..self.id_at + ID_LENGTH).unwrap_or_default();
                let run = accepted.borrow_mut().remove(&String::from_utf8_lossy(id).into_owned());
                let mut run = run.ok_or("a job of a run that nobody accepted")?;
                for write in &self.running {
                    self.put(client, write, SERVED, &mut run).await?;
                }
                last.set(clock::now());
                done.set(done.get() + 1);
                // Ours does not wait for that either.
                client
                    .publish(job.reply.ok_or("a job without a reply")?, Bytes::from_static(b"+ACK"))
                    .await?;
            }
            Ok(())
        };
        let takers = worker_clients.iter().flat_map(|client| std::iter::repeat_n(client, runs_at_once));
        // The first failure ends it: the others would wait for jobs that never come.
        let submitters = try_join_all((0..CONNECTIONS).map(|_| submit()));
        try_join(submitters, try_join_all(takers.map(take))).await?;
        let rate = count as f64 / last.get().duration_since(begin).as_secs_f64();
        Ok(Some(Figure::single(rate, count, 0)))
    }

    /// A run with a name as long as every other, and no message yet.
    fn new_run(&self) -> Run {
        let number = self.next.replace(self.next.get() + 1);
        Run { id: format!("{:08x}-0000-4000-8000-{number:012x}", self.series), record: 0, snapshot: 0 }
    }

    /// Sends one message and waits until it is stored.
    async fn put(&self, client: &Client, write: &Write, tag: &str, run: &mut Run) -> Result<(), Failure> {
        let mut headers = write.headers.clone();
        let (subject, payload, last) = match write.role {
            Role::Record => {
                (format!("pyoco.events.{}", run.id), write.payload.clone(), Some(&mut run.record))
            }
            Role::Snapshot => {
                (format!("$KV.pyoco_runs.{}", run.id), write.payload.clone(), Some(&mut run.snapshot))
            }
            Role::Job => (format!("pyoco.work.{tag}"), self.job(write, &run.id), None),
            Role::Answer | Role::Pull | Role::Question => return Err("not a write".into()),
        };
        if let Some(last) = &last {
            headers.insert(EXPECTED, last.to_string());
        }
        let answer = client.request_with_headers(subject, headers, payload).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        let sequence = answer.get("seq").and_then(Value::as_u64);
        let sequence = sequence.ok_or_else(|| format!("the bare loop was answered {answer}"))?;
        if let Some(last) = last {
            *last = sequence;
        }
        Ok(())
    }

    fn job(&self, write: &Write, id: &str) -> Bytes {
        let mut payload = write.payload.to_vec();
        if let Some(place) = payload.get_mut(self.id_at..self.id_at + ID_LENGTH) {
            place.copy_from_slice(id.as_bytes());
        }
        payload.into()
    }
}
