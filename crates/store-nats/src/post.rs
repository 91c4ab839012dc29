//! The post: what is to be sent is gathered, what is answered is handed to whoever asked.
//!
//! Each message that goes to the connection by itself costs a system call here, one at the server, and often a wake-up of a sleeping core at
//! both ends. So messages wait until whoever else is about to send has done so: that is no time, only the end of the turn of the runtime
//! (ADR 0029). What a request means, and when none may be made, is in `connection`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, PublishError, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::Line;

/// So many are sent without waiting for more: the server is to work while the rest is made ready.
const ENOUGH: usize = 8;
/// What is in no hurry goes with what is, and waits no longer than this for it.
const LATER: Duration = Duration::from_millis(5);

/// How soon something is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Haste {
    /// With what others want to send at this moment.
    Now,
    /// With the next message, whoever's, or after a moment without one.
    Later,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// Nobody has answered for as long as anybody waits. It may have been heard.
    Late,
    /// The line that it went over is no more. It may have been heard.
    Lost,
    /// It was not sent.
    Refused(PublishError),
    /// The connection is being closed; it was not sent.
    Closed,
}

type Answer = Result<Message, Unanswered>;

/// A message on its way to the connection.
#[derive(Debug)]
struct Outgoing {
    subject: String,
    /// Where answers go, of which nothing is known here.
    reply: Option<String>,
    /// Which of our own requests it is.
    number: Option<u64>,
    headers: Option<HeaderMap>,
    payload: Bytes,
}

/// Somebody who asked.
#[derive(Debug)]
struct Waiting {
    sender: oneshot::Sender<Answer>,
    /// How often the line had been lost when it was asked.
    lost: u64,
    /// Nobody waits any longer than this.
    until: Instant,
}

#[derive(Debug, Default)]
struct Desk {
    outgoing: Vec<Outgoing>,
    /// How many of them are in a hurry.
    hurried: usize,
    /// By number. Those who go away take themselves off the list.
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    is_closed: bool,
}

impl Desk {
    /// Puts everything that lies there into another's hands, which are empty and may have held as much before.
    fn clear(&mut self, hands: &mut Vec<Outgoing>) {
        self.hurried = 0;
        std::mem::swap(&mut self.outgoing, hands);
    }
}

/// The post of one connection.
#[derive(Debug)]
pub(crate) struct Post {
    desk: Arc<Mutex<Desk>>,
    /// There is something to send.
    brought: Arc<Notify>,
    /// There is enough to send.
    enough: Arc<Notify>,
    /// There is something to send that can wait.
    unhurried: Arc<Notify>,
    line: watch::Receiver<Line>,
    patience: Duration,
    sending: Mutex<Option<JoinHandle<()>>>,
}

impl Post {
    /// Opens the post of a connection, until `closing`.
    pub(crate) async fn open(
        client: &Client,
        line: watch::Receiver<Line>,
        patience: Duration,
        closing: CancellationToken,
    ) -> Result<Self, async_nats::SubscribeError> {
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*")).await?;
        let desk = Arc::<Mutex<Desk>>::default();
        let [brought, enough, unhurried] = [(); 3].map(|()| Arc::new(Notify::new()));
        let reading = Reading { desk: desk.clone(), line: line.clone(), patience, closing: closing.clone() };
        tokio::spawn(reading.go_on(answers));
        let sending = Sending {
            desk: desk.clone(),
            brought: brought.clone(),
            enough: enough.clone(),
            unhurried: unhurried.clone(),
            client: client.clone(),
            inbox,
            closing,
        };
        let sending = Mutex::new(Some(tokio::spawn(sending.go_on())));
        Ok(Self { desk, brought, enough, unhurried, line, patience, sending })
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        haste: Haste,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Answer {
        let (sender, answer) = oneshot::channel();
        let mut number = 0;
        let is_open = self.bring(haste, |desk| {
            // Under the lock: whoever finds the line lost looks here afterwards.
            let lost = self.line.borrow().lost;
            number = desk.next;
            desk.next += 1;
            desk.waiting.insert(number, Waiting { sender, lost, until: Instant::now() + self.patience });
            Outgoing { subject, reply: None, number: Some(number), headers, payload }
        });
        if !is_open {
            return Err(Unanswered::Closed);
        }
        let _asked = Asked { desk: &self.desk, number };
        // Nobody is left to answer.
        answer.await.unwrap_or(Err(Unanswered::Lost))
    }

    /// Sends and forgets. Says whether there is still somebody to send it.
    pub(crate) fn send(&self, haste: Haste, subject: String, reply: Option<String>, payload: Bytes) -> bool {
        self.bring(haste, |_| Outgoing { subject, reply, number: None, headers: None, payload })
    }

    fn bring(&self, haste: Haste, message: impl FnOnce(&mut Desk) -> Outgoing) -> bool {
        let mut desk = open(&self.desk);
        if desk.is_closed {
            return false;
        }
        let message = message(&mut desk);
        desk.outgoing.push(message);
        if haste == Haste::Now {
            desk.hurried += 1;
        }
        let (count, hurried) = (desk.outgoing.len(), desk.hurried);
        drop(desk);
        // Each of them once: whoever sends takes all there is.
        match haste {
            Haste::Later if count == 1 => self.unhurried.notify_one(),
            Haste::Now if hurried == 1 => self.brought.notify_one(),
            Haste::Now if hurried == ENOUGH => self.enough.notify_one(),
            Haste::Later | Haste::Now => {}
        }
        true
    }

    /// Returns when everything that was brought before `closing` has been given to the connection.
    pub(crate) async fn sent(&self) {
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sending) = sending {
            // It ends by itself; were it to panic, there would be nothing to wait for.
            let _ = sending.await;
        }
    }
}

/// A question, for as long as somebody waits for its answer. One that was not sent by then is not sent any more.
struct Asked<'a> {
    desk: &'a Mutex<Desk>,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        open(self.desk).waiting.remove(&self.number);
    }
}

/// Nothing on the desk can be left half done.
fn open(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives what was brought to the connection.
struct Sending {
    desk: Arc<Mutex<Desk>>,
    brought: Arc<Notify>,
    enough: Arc<Notify>,
    unhurried: Arc<Notify>,
    client: Client,
    inbox: String,
    closing: CancellationToken,
}

impl Sending {
    async fn go_on(self) {
        let mut hands = Vec::new();
        while self.closing.run_until_cancelled(self.wait()).await.is_some() {
            open(&self.desk).clear(&mut hands);
            self.give(&mut hands).await;
        }
        {
            let mut desk = open(&self.desk);
            desk.is_closed = true;
            desk.clear(&mut hands);
        }
        self.give(&mut hands).await;
    }

    /// Returns when it is time to send.
    async fn wait(&self) {
        tokio::select! {
            biased;
            () = self.brought.notified() => {}
            () = self.unhurried.notified() => tokio::select! {
                biased;
                () = self.brought.notified() => {}
                () = tokio::time::sleep(LATER) => return,
            },
        }
        // Whoever else runs now and wants to send does so first.
        tokio::select! {
            biased;
            () = self.enough.notified() => {}
            () = tokio::task::yield_now() => {}
        }
    }

    async fn give(&self, hands: &mut Vec<Outgoing>) {
        for Outgoing { subject, reply, number, headers, payload } in hands.drain(..) {
            // Whoever has gone meanwhile was told that nobody knows.
            if number.is_some_and(|number| !open(&self.desk).waiting.contains_key(&number)) {
                continue;
            }
            let reply = number.map(|number| format!("{}.{number}", self.inbox)).or(reply);
            let given = match (reply, headers) {
                (Some(reply), Some(headers)) => {
                    self.client.publish_with_reply_and_headers(subject, reply, headers, payload).await
                }
                (Some(reply), None) => self.client.publish_with_reply(subject, reply, payload).await,
                (None, _) => self.client.publish(subject, payload).await,
            };
            if let (Err(error), Some(number)) = (given, number)
                && let Some(waiting) = open(&self.desk).waiting.remove(&number)
            {
                let _ = waiting.sender.send(Err(Unanswered::Refused(error)));
            }
        }
    }
}

/// Hands out what comes.
struct Reading {
    desk: Arc<Mutex<Desk>>,
    line: watch::Receiver<Line>,
    patience: Duration,
    closing: CancellationToken,
}

impl Reading {
    async fn go_on(mut self, mut answers: Subscriber) {
        let (closing, patience) = (self.closing.clone(), self.patience);
        // Who asked before the end may still be answered: a connection that is closed ends when everything has come. One that is let
        // go does not end while this listens.
        let over = async {
            closing.cancelled().await;
            tokio::time::sleep(patience).await;
        };
        // One clock for all who wait: they wait equally long, so the first one to ask is the first to be told.
        let late = tokio::time::sleep(patience);
        tokio::pin!(over, late);
        loop {
            tokio::select! {
                biased;
                () = &mut late => {
                    let next = self.give_up_late();
                    late.as_mut().reset(next);
                }
                answer = answers.next() => match answer {
                    Some(answer) => self.hand_out(answer),
                    None => break,
                },
                Ok(()) = self.line.changed() => self.give_up_lost(),
                () = &mut over => break,
            }
        }
        // Nobody would hear an answer any more.
        let mut desk = open(&self.desk);
        desk.is_closed = true;
        desk.waiting.clear();
    }

    fn hand_out(&self, answer: Message) {
        let number = answer.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        let waiting = number.and_then(|number: u64| open(&self.desk).waiting.remove(&number));
        // One that nobody waits for any more is dropped.
        if let Some(waiting) = waiting {
            let _ = waiting.sender.send(Ok(answer));
        }
    }

    /// Tells those who have waited for long enough; says when somebody may next have done so.
    fn give_up_late(&self) -> Instant {
        let now = Instant::now();
        let mut desk = open(&self.desk);
        while let Some(first) = desk.waiting.first_entry() {
            if first.get().until > now {
                return first.get().until;
            }
            let _ = first.remove().sender.send(Err(Unanswered::Late));
        }
        now + self.patience
    }

    /// What was asked over a line that is lost is not answered over another.
    fn give_up_lost(&mut self) {
        let lost = self.line.borrow_and_update().lost;
        let mut desk = open(&self.desk);
        let gone: Vec<_> = desk.waiting.extract_if(.., |_, waiting| waiting.lost != lost).collect();
        drop(desk);
        for (_, waiting) in gone {
            let _ = waiting.sender.send(Err(Unanswered::Lost));
        }
    }
}
