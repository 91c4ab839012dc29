//! A command for the writer: what to write, how safe it must be, and whom to answer.

use std::fmt::Display;
use std::sync::Arc;

use pyoco_core::ids::Tag;
use pyoco_ports::{Durability, ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error;

/// Something to write, of whatever type its answer is.
pub(crate) trait Command: Send {
    /// How safe it must be before it is answered.
    fn durability(&self) -> Durability;
    /// Writes. Again when the transaction has to be made again, unless it has failed by itself before.
    fn run(&mut self, connection: &Connection) -> Ran;
    /// The tag that has got work, once the transaction is committed.
    fn wakes(&self) -> Option<&Tag>;
    /// The transaction is committed. Answers whoever need not wait for the disk to go on, and is told later that it is there.
    fn committed(&mut self);
    /// Answers, after the transaction has ended and is as safe as it must be.
    fn answer(self: Box<Self>, lost: Option<&Lost>);
}

/// How a command went.
pub(crate) enum Ran {
    /// Well.
    Keep,
    /// It failed and what it wrote must go; the others of its transaction are not concerned.
    Undo,
    /// It failed and took the whole transaction with it.
    Lose(rusqlite::Error),
}

/// Why a whole transaction was not done.
#[derive(Clone)]
pub(crate) struct Lost {
    kind: ErrorKind,
    why: Arc<str>,
}

impl Lost {
    pub(crate) fn new(kind: ErrorKind, error: &impl Display) -> Self {
        Self { kind, why: Arc::from(error.to_string()) }
    }

    /// Also everything that comes later.
    pub(crate) fn stopped(error: &impl Display) -> Self {
        let why =
            format!("nothing is written any more since this failed: {error}; restart to open the file again");
        Self { kind: ErrorKind::Unavailable, why: Arc::from(why) }
    }

    pub(crate) fn into_error(self, operation: &'static str) -> StoreError {
        StoreError::new(self.kind, operation, &*self.why)
    }
}

/// What is common to all commands.
pub(crate) struct Terms {
    /// What is being done, for messages.
    pub(crate) operation: &'static str,
    /// How safe it must be before the answer.
    pub(crate) durability: Durability,
    /// Whom to wake once it is done.
    pub(crate) wakes: Option<Tag>,
}

/// Who waits for an answer: for what was written, and what is still to come if it need not wait for that.
pub(crate) type Reply<T> = oneshot::Sender<Result<(T, Option<Kept>), StoreError>>;

/// What comes when what was written is on the disk.
pub(crate) type Kept = oneshot::Receiver<Result<(), StoreError>>;

/// A command whose answer is a `T`.
pub(crate) struct Task<T, F> {
    pub(crate) terms: Terms,
    pub(crate) work: F,
    pub(crate) result: Option<Result<T, StoreError>>,
    pub(crate) reply: Option<Reply<T>>,
    /// Where it is told that what was promised is kept, once that was promised.
    pub(crate) promise: Option<oneshot::Sender<Result<(), StoreError>>>,
    /// Its place in the bounded inbox, free again when the command is gone.
    pub(crate) _place: OwnedSemaphorePermit,
}

impl<T: Send, F: FnMut(&Connection) -> rusqlite::Result<T> + Send> Command for Task<T, F> {
    fn durability(&self) -> Durability {
        self.terms.durability
    }

    fn run(&mut self, connection: &Connection) -> Ran {
        if matches!(self.result, Some(Err(_))) {
            return Ran::Keep;
        }
        match (self.work)(connection) {
            Ok(value) => {
                self.result = Some(Ok(value));
                Ran::Keep
            }
            // SQLite ends the transaction by itself after some errors, and after others nothing may be written any more.
            Err(error) if connection.is_autocommit() || error::is_fatal(&error) => Ran::Lose(error),
            Err(error) => {
                self.result = Some(Err(error::store(self.terms.operation, error)));
                Ran::Undo
            }
        }
    }

    fn wakes(&self) -> Option<&Tag> {
        self.terms.wakes.as_ref().filter(|_| matches!(self.result, Some(Ok(_))))
    }

    fn committed(&mut self) {
        if self.terms.durability != Durability::Promised || !matches!(self.result, Some(Ok(_))) {
            return;
        }
        if let (Some(reply), Some(Ok(value))) = (self.reply.take(), self.result.take()) {
            let (promise, kept) = oneshot::channel();
            self.promise = Some(promise);
            let _ = reply.send(Ok((value, Some(kept))));
        }
    }

    fn answer(self: Box<Self>, lost: Option<&Lost>) {
        let operation = self.terms.operation;
        let lost = lost.map(|lost| lost.clone().into_error(operation));
        // The caller may have gone away; the command was carried out all the same.
        if let Some(promise) = self.promise {
            let _ = promise.send(lost.map_or(Ok(()), Err));
        } else if let Some(reply) = self.reply {
            let result = match lost {
                Some(lost) => Err(lost),
                None => self.result.unwrap_or_else(|| Err(StoreError::plain(ErrorKind::Internal, operation))),
            };
            let _ = reply.send(result.map(|value| (value, None)));
        }
    }
}
