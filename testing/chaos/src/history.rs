//! What was asked and what was answered, in a file of its own, outside of what is tested.
//!
//! An intent is on the disk before it is sent, an answer before anybody goes on. What is read comes too often for that: it is
//! written in the same order, and reaches the disk with the next intent.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// What a client says or hears.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// It asks for a run. The label is among its parameters.
    Submits {
        /// What the ledger calls it.
        label: String,
        /// Its key, if it may be repeated.
        key: Option<String>,
    },
    /// It was accepted: from here on the run is owed.
    Accepted {
        /// What the ledger calls it.
        label: String,
        /// What the server calls it.
        run: String,
    },
    /// It asks for the end of a run.
    Cancels {
        /// Which.
        run: String,
    },
    /// It was answered, and so the run is shown.
    Canceling {
        /// Which.
        run: String,
        /// How it is shown.
        status: String,
    },
    /// It answers what waits.
    Resumes {
        /// Which run.
        run: String,
    },
    /// The answer was taken.
    Resumed {
        /// Which run.
        run: String,
    },
    /// It uploads a wheel.
    Uploads {
        /// Its file name.
        wheel: String,
        /// What it hashes to.
        sha256: String,
    },
    /// The wheel is there.
    Uploaded {
        /// Its file name.
        wheel: String,
        /// What it hashes to.
        sha256: String,
    },
    /// It looks at a run.
    Reads {
        /// Which.
        run: String,
    },
    /// What it saw.
    Sees {
        /// Which.
        run: String,
        /// The number of its last record.
        version: u64,
        /// How it is shown.
        status: String,
    },
    /// There is no such run.
    Misses {
        /// Which.
        run: String,
    },
    /// It follows the events of a run, from behind one.
    Follows {
        /// Which.
        run: String,
        /// What it has seen.
        after: u64,
    },
    /// It was told an event.
    Hears {
        /// Of which run.
        run: String,
        /// Its number.
        seq: u64,
    },
    /// It was told that nothing more will come.
    HearsTheEnd {
        /// Of which run.
        run: String,
    },
    /// The server says that it did not do it.
    Refused {
        /// With which status.
        status: u16,
    },
    /// Nobody knows whether it was done.
    Unknown {
        /// What happened.
        why: String,
    },
}

impl Said {
    /// Whether somebody relies on it being on the disk.
    const fn is_promise(&self) -> bool {
        !matches!(
            self,
            Self::Reads { .. }
                | Self::Sees { .. }
                | Self::Misses { .. }
                | Self::Follows { .. }
                | Self::Hears { .. }
                | Self::HearsTheEnd { .. }
        )
    }
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds since the history began.
    pub at: u64,
    /// What was asked and its answer have the same number.
    pub operation: u64,
    /// What was said.
    #[serde(flatten)]
    pub said: Said,
}

struct Order {
    line: Line,
    written: Option<oneshot::Sender<()>>,
}

/// Writes the history.
#[derive(Debug)]
pub struct Recorder {
    orders: Sender<Order>,
    began: Instant,
    operations: AtomicU64,
}

impl Recorder {
    /// Begins a history in a file.
    pub fn begin(path: &Path) -> Self {
        let file = File::options().create_new(true).append(true).open(path).expect("a file for the history");
        let (orders, inbox) = channel();
        std::thread::spawn(move || write(&file, &inbox));
        Self { orders, began: Instant::now(), operations: AtomicU64::new(0) }
    }

    /// A number for an operation.
    pub fn operation(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::SeqCst)
    }

    /// Writes a line; returns when it is safe, if it must be.
    pub async fn note(&self, operation: u64, said: Said) {
        let at = u64::try_from(self.began.elapsed().as_millis()).unwrap();
        let (written, is_written) = oneshot::channel();
        let is_promise = said.is_promise();
        let order = Order { line: Line { at, operation, said }, written: is_promise.then_some(written) };
        self.orders.send(order).expect("the writer of the history");
        if is_promise {
            is_written.await.expect("the writer of the history");
        }
    }
}

/// Lines that come together share their way to the disk.
fn write(mut file: &File, inbox: &Receiver<Order>) {
    while let Ok(first) = inbox.recv() {
        let orders: Vec<Order> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let mut text = Vec::new();
        for order in &orders {
            serde_json::to_writer(&mut text, &order.line).expect("a line");
            text.push(b'\n');
        }
        file.write_all(&text).expect("a history");
        if orders.iter().any(|order| order.written.is_some()) {
            file.sync_data().expect("a history on the disk");
        }
        for written in orders.into_iter().filter_map(|order| order.written) {
            // Whoever waited may be gone.
            let _ = written.send(());
        }
    }
}

/// Reads a history again.
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).expect("a history");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of the history")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_noted_is_read_again_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let recorder = Recorder::begin(&path);
        let one = recorder.operation();
        recorder.note(one, Said::Submits { label: "a".to_owned(), key: None }).await;
        recorder.note(one, Said::Reads { run: "r".to_owned() }).await;
        recorder.note(one, Said::Accepted { label: "a".to_owned(), run: "r".to_owned() }).await;
        let said: Vec<Said> = read(&path).into_iter().map(|line| line.said).collect();
        assert_eq!(said.len(), 3);
        assert_eq!(said[1], Said::Reads { run: "r".to_owned() });
    }
}
