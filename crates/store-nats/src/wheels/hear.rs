//! Hears that something is described: a plain subscription, which costs the servers nothing to keep.
//!
//! What is heard is what somebody sent, at the moment when the stream gets it. Whoever is told looks at once, so it is told when it is
//! stored, or when it should have been: it may also have been refused.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use pyoco_ports::{ShelfListening, StoreError};
use tokio::sync::watch;

use super::{HEAR, Shelf};
use crate::connection::Line;
use crate::error;

/// The pauses between looks for what was heard.
const LOOKS: [Duration; 7] = [
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
];

/// Begins to listen. When it returns, the server knows that somebody does.
pub(super) async fn listen(shelf: &Arc<Shelf>) -> Result<Box<dyn ShelfListening>, StoreError> {
    let all = shelf.settings.all_wheels();
    let mut line = shelf.connection.line();
    line.mark_unchanged();
    let messages = shelf.connection.subscribe(HEAR, &all).await?;
    // On the same connection as the subscription, and answered after it.
    match shelf.connection.last(HEAR, &shelf.stream, &all).await {
        Err(error) if !error::is_missing(&error) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let made = line.borrow().made;
    Ok(Box::new(Listening { shelf: Arc::clone(shelf), messages, line, made, heard: None }))
}

struct Listening {
    shelf: Arc<Shelf>,
    messages: Subscriber,
    line: watch::Receiver<Line>,
    /// How often the line was made when we last knew of everything.
    made: u64,
    /// What was heard and not told yet. It is kept when nobody waits any more.
    heard: Option<Message>,
}

#[async_trait]
impl ShelfListening for Listening {
    async fn changed(&mut self) -> bool {
        let closing = self.shelf.connection.closing().clone();
        while self.heard.is_none() {
            tokio::select! {
                () = closing.cancelled() => return false,
                message = self.messages.next() => match message {
                    Some(message) => self.heard = Some(message),
                    None => return false,
                },
                changed = self.line.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    let made = self.line.borrow_and_update().made;
                    // What was sent while there was no line was not heard.
                    if std::mem::replace(&mut self.made, made) != made {
                        return true;
                    }
                }
            }
        }
        if closing.run_until_cancelled(self.settle()).await.is_none() {
            return false;
        }
        self.heard = None;
        true
    }
}

impl Listening {
    /// Waits until what was heard is stored, for a while.
    async fn settle(&self) {
        let Some(heard) = &self.heard else { return };
        for pause in LOOKS {
            let last = self.shelf.connection.last(HEAR, &self.shelf.stream, heard.subject.as_str()).await;
            match last {
                Ok(Some(last)) if last.payload == heard.payload => return,
                Ok(_) => tokio::time::sleep(pause).await,
                // Whoever looks will see.
                Err(_) => return,
            }
        }
    }
}
