//! Copies of every stream of ours as the server itself makes them, and streams made of copies. Where copies are kept, and whether
//! what is in them is sound, is not known here.
//!
//! A stream is copied after another one, so what they say differs by what happened in between. The order makes that harmless:
//!
//! - What tasks write, jobs and snapshots come before the records. So a log may lack what was written last, and never has lines that
//!   its execution knows nothing of; a job or a snapshot may be missing, which the sweeper and the auditor make good, and none
//!   tells of a record that is not there.
//! - Blobs and wheels come after all records that name them: a blob is stored before its name is, and a wheel before a run uses it.
//!   A wheel comes with all of its pieces or not at all: both are in one stream, and its description was stored last.
//! - What is known of removals and of who uses a blob comes last: whoever removes an execution says so first, and so does whoever
//!   uses a blob. Said twice is harmless, said never is not. So if a blob is missing that a record names, its execution was being
//!   removed, and has a tombstone here.
//!
//! Consumers are not copied. Whoever uses one makes it, and a job that somebody had in hand is delivered again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{ErrorKind, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connection::Connection;
use crate::error::{self, OpenError, Refusal};
use crate::message::Headers;
use crate::post::Haste;
use crate::{NatsStore, Settings, names};

const BACK_UP: &str = "back up";
const RESTORE: &str = "restore";
const LIST: &str = "list what has a log";
/// A server may take so long to put a large stream together. One that is gone is noticed sooner.
const PATIENCE: Duration = Duration::from_secs(300);
/// The size of a piece, if the server takes that much.
const PIECE: usize = 128 * 1024;
/// What the protocol needs beside a piece.
const ROOM: usize = 1024;

/// The copy of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamCopy {
    /// What the stream is called.
    pub name: String,
    /// How it was made, in the server's words.
    pub config: Value,
    /// What it held when the copy began, in the server's words.
    pub state: Value,
}

impl StreamCopy {
    /// What the file of the copy is called.
    pub fn file(&self) -> String {
        file_of(&self.name)
    }
}

fn file_of(stream: &str) -> String {
    format!("{stream}.snapshot")
}

/// Why streams were not copied, or none was made of a copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// NATS cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The server failed, or does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to copy.
    #[error("there is no stream of ours in NATS; check --nats-url and the names of streams and buckets")]
    Nothing,
    /// What is there already is never written over.
    #[error("NATS has {} already, and nothing that exists is written over; restore to an empty JetStream", .0.join(", "))]
    Exists(Vec<String>),
    /// Nobody would look for it under this name.
    #[error(
        "the backup has the stream {0}, which the settings do not name; give the names that it was made with (PYOCO_*)"
    )]
    NotNamed(String),
    /// A file cannot be written or read.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The streams of ours in the order in which they are copied.
pub(crate) fn ours(settings: &Settings) -> Vec<String> {
    vec![
        names::LOGS.to_owned(),
        settings.work_stream.clone(),
        names::bucket_stream(&settings.runs_bucket),
        names::bucket_stream(&settings.workers_bucket),
        settings.dlq_stream.clone(),
        names::AUDIT.to_owned(),
        names::bucket_stream(&settings.auth_bucket),
        names::GRAPHS.to_owned(),
        names::EVENTS.to_owned(),
        names::object_stream(names::BLOBS),
        names::bucket_stream(&settings.wheel_history_bucket),
        names::object_stream(&settings.wheels_bucket),
        names::RETENTION.to_owned(),
    ]
}

/// Copies every stream of ours into a folder, a file each. Nothing in NATS is changed.
pub async fn back_up(settings: &Settings, folder: &Path) -> Result<Vec<StreamCopy>, BackupError> {
    let connection = connect(settings).await?;
    let mut copies = Vec::new();
    for stream in ours(settings) {
        let path = folder.join(file_of(&stream));
        copies.extend(copy(&connection, &stream, &path).await?);
    }
    connection.close().await;
    if copies.is_empty() { Err(BackupError::Nothing) } else { Ok(copies) }
}

/// Makes streams of copies in a folder, all or none, and only where there is none of ours.
pub async fn restore(settings: &Settings, copies: &[StreamCopy], folder: &Path) -> Result<(), BackupError> {
    let known = ours(settings);
    if let Some(copy) = copies.iter().find(|copy| !known.contains(&copy.name)) {
        return Err(BackupError::NotNamed(copy.name.clone()));
    }
    let connection = connect(settings).await?;
    let mut there = Vec::new();
    for stream in known {
        if connection.info(RESTORE, &stream, None).await?.is_some() {
            there.push(stream);
        }
    }
    if !there.is_empty() {
        return Err(BackupError::Exists(there));
    }
    let mut made = Vec::new();
    for copy in copies {
        // If no answer comes it may be there all the same.
        made.push(copy.name.clone());
        // What is made here stands on as many servers as everything that is made here.
        let replicas = Some(settings.replicas);
        if let Err(error) = make(&connection, replicas, copy, &folder.join(copy.file())).await {
            // The server has said no: if there is one of this name now, somebody else has made it.
            if is_refusal(&error) {
                made.pop();
            }
            remove(&connection, &made).await;
            return Err(error);
        }
    }
    // Records were copied before the place up to which they were looked through: it may be one that they do not have.
    if let Err(error) = connection.purge(RESTORE, names::RETENTION, names::LOOKED, None).await {
        tracing::warn!(%error, "new runs may be taken for such as were looked through");
    }
    connection.close().await;
    Ok(())
}

/// Removes the streams that a restore has made, and those that were made for them: what was restored is not to be used.
pub async fn take_back(settings: &Settings) -> Result<(), BackupError> {
    let connection = connect(settings).await?;
    remove(&connection, &ours(settings)).await;
    connection.close().await;
    Ok(())
}

/// Copies one stream of any name into a file; nothing if there is none.
pub async fn back_up_stream(
    settings: &Settings,
    stream: &str,
    path: &Path,
) -> Result<Option<StreamCopy>, BackupError> {
    named(stream)?;
    let connection = connect(settings).await?;
    let copied = copy(&connection, stream, path).await;
    connection.close().await;
    copied
}

/// Makes a stream of a copy, where there is none of its name, on as many servers as it stood or as `replicas` says.
pub async fn restore_stream(
    settings: &Settings,
    replicas: Option<usize>,
    copy: &StreamCopy,
    path: &Path,
) -> Result<(), BackupError> {
    named(&copy.name)?;
    let connection = connect(settings).await?;
    if connection.info(RESTORE, &copy.name, None).await?.is_some() {
        return Err(BackupError::Exists(vec![copy.name.clone()]));
    }
    let made = make(&connection, replicas, copy, path).await;
    if let Err(error) = &made
        && !is_refusal(error)
    {
        remove(&connection, std::slice::from_ref(&copy.name)).await;
    }
    connection.close().await;
    made
}

/// A name becomes part of a subject.
fn named(stream: &str) -> Result<(), BackupError> {
    if names::is_token(stream) {
        return Ok(());
    }
    Err(OpenError::Name { what: "a stream", name: stream.to_owned() }.into())
}

impl NatsStore {
    /// The executions that have a log and no snapshot, nor the mark that somebody has deleted one: no index shows them.
    pub async fn unseen(&self) -> Result<Vec<ExecutionId>, StoreError> {
        let named = |subjects: Option<Vec<String>>| {
            let last = |subject: &String| subject.rsplit_once('.').map(|(_, name)| name.to_owned());
            subjects.unwrap_or_default().iter().filter_map(last).collect::<Vec<_>>()
        };
        let bucket = &self.settings.runs_bucket;
        let (stream, subjects) = (names::bucket_stream(bucket), names::bucket_subjects(bucket));
        let seen = named(self.connection.subjects(LIST, &stream, &subjects).await?);
        let seen: std::collections::HashSet<String> = seen.into_iter().collect();
        let logged = named(self.connection.subjects(LIST, names::EVENTS, names::ALL_EVENTS).await?);
        let unseen = logged.iter().filter(|name| !seen.contains(*name));
        Ok(unseen.filter_map(|name| ExecutionId::new(name).ok()).collect())
    }
}

async fn connect(settings: &Settings) -> Result<Arc<Connection>, BackupError> {
    settings.check_names()?;
    Ok(Connection::open(&Settings { patience: PATIENCE, ..settings.clone() }).await?)
}

/// The size of pieces on a connection.
fn piece(connection: &Connection) -> usize {
    PIECE.min(connection.max_payload().saturating_sub(ROOM)).max(1)
}

/// Copies a stream; nothing if there is none.
async fn copy(connection: &Connection, stream: &str, path: &Path) -> Result<Option<StreamCopy>, BackupError> {
    #[derive(Deserialize)]
    struct Begun {
        config: Value,
        state: Value,
    }
    let inbox = connection.inbox();
    let mut line = connection.line();
    let lost = line.borrow_and_update().lost;
    let mut pieces = connection.subscribe(BACK_UP, &inbox).await?;
    let wanted = json!({"deliver_subject": inbox, "no_consumers": true, "chunk_size": piece(connection)});
    let begun = match connection.api::<Begun>(BACK_UP, &format!("STREAM.SNAPSHOT.{stream}"), &wanted).await {
        Ok(begun) => begun,
        Err(error) if error.is(Refusal::NO_STREAM) => return Ok(None),
        Err(error) => return Err(error.into_store(BACK_UP).into()),
    };
    let copy = StreamCopy { name: stream.to_owned(), config: begun.config, state: begun.state };
    let refused = |source| BackupError::File { path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path).await.map_err(refused)?;
    loop {
        let piece = tokio::select! {
            biased;
            // First: what comes after a loss, also the last piece, follows upon pieces that never came.
            _ = line.wait_for(|line| line.lost != lost) => {
                let why = "the connection to NATS was lost";
                return Err(StoreError::new(ErrorKind::Unavailable, BACK_UP, why).into());
            }
            piece = tokio::time::timeout(PATIENCE, pieces.next()) => piece,
        };
        let piece = match piece {
            Ok(Some(piece)) => piece,
            Ok(None) => return Err(StoreError::plain(ErrorKind::Closed, BACK_UP).into()),
            Err(_) => return Err(StoreError::plain(ErrorKind::Timeout, BACK_UP).into()),
        };
        if piece.payload.is_empty() {
            ended(&piece)?;
            break;
        }
        file.write_all(&piece.payload).await.map_err(refused)?;
        // The server sends only so much that nobody has said to have.
        if let Some(reply) = &piece.reply {
            connection.send(Haste::Now, BACK_UP, reply, None, Bytes::new())?;
        }
    }
    file.sync_all().await.map_err(refused)?;
    Ok(Some(copy))
}

/// The last piece has nothing in it but, perhaps, why it is the last.
fn ended(piece: &async_nats::Message) -> Result<(), StoreError> {
    match piece.status.map(|status| status.as_u16()) {
        None | Some(200..300) => Ok(()),
        Some(status) => {
            let why = format!("{status} {}", piece.description.as_deref().unwrap_or_default());
            Err(StoreError::new(ErrorKind::Unavailable, BACK_UP, why))
        }
    }
}

/// Makes a stream of a copy.
async fn make(
    connection: &Connection,
    replicas: Option<usize>,
    copy: &StreamCopy,
    path: &Path,
) -> Result<(), BackupError> {
    #[derive(Deserialize)]
    struct Begun {
        deliver_subject: String,
    }
    #[derive(Deserialize)]
    struct Done {
        error: Option<Refusal>,
    }
    let mut config = copy.config.clone();
    if let (Some(members), Some(replicas)) = (config.as_object_mut(), replicas) {
        members.insert("num_replicas".to_owned(), json!(replicas));
    }
    let wanted = json!({"config": config, "state": copy.state});
    let begun = connection.api::<Begun>(RESTORE, &format!("STREAM.RESTORE.{}", copy.name), &wanted).await;
    let subject = begun.map_err(|error| error.into_store(RESTORE))?.deliver_subject;
    let refused = |source| BackupError::File { path: path.to_owned(), source };
    let mut file = File::open(path).await.map_err(refused)?;
    let size = u64::try_from(piece(connection)).unwrap_or(u64::MAX);
    loop {
        let mut piece = Vec::new();
        (&mut file).take(size).read_to_end(&mut piece).await.map_err(refused)?;
        let is_last = piece.is_empty();
        let answer = connection.request(RESTORE, &subject, Headers::new(), piece.into()).await?;
        // A piece that was taken is answered with nothing, one that was not and the end with why.
        if !answer.payload.is_empty() {
            let done: Done =
                serde_json::from_slice(&answer.payload).map_err(|error| error::internal(RESTORE, error))?;
            if let Some(refusal) = done.error {
                return Err(refusal.into_store(RESTORE).into());
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Whether the server understood and said no.
fn is_refusal(error: &BackupError) -> bool {
    let BackupError::Store(error) = error else { return false };
    error.source.as_ref().is_some_and(|source| source.is::<Refusal>())
}

/// Removes streams that were just made. What stays is said: somebody has to remove it.
async fn remove(connection: &Connection, streams: &[String]) {
    for stream in streams {
        let removed =
            connection.api::<Value>(RESTORE, &format!("STREAM.DELETE.{stream}"), &Value::Null).await;
        if let Err(error) = removed
            && !error.is(Refusal::NO_STREAM)
        {
            tracing::warn!(stream, %error, "it was made of a backup, is not to be used, and could not be removed");
        }
    }
}
