//! Wheels: a row for each, and its bytes in a file. A wheel is there when its row is; the file comes first and goes last.
//!
//! - here: the role, and its statements
//! - `files`: how bytes become a file and are read again, and which files are removed
//! - `shelf`: who may remove files, and who hears of changes
//! - `history`: who changed the shelf

pub(crate) mod files;
mod history;
mod shelf;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    Durability, ErrorKind, NewWheel, ShelfListening, StoreError, WheelBytes, WheelEvent, WheelHistoryFilter,
    WheelRecord, Wheels,
};
use pyoco_wheels::{Refused, Sha256Digest, WheelName, may_upload};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error};

use files::{Reading, Writing};
pub(crate) use shelf::Shelf;

/// So much is gathered before it is written.
const GATHERED: usize = 1 << 20;

/// The columns of a wheel, in the order in which `decode` reads them.
macro_rules! columns {
    () => {
        "name, nuid, size_bytes, sha256, modified, tags"
    };
}

const ALL: &str = concat!("SELECT ", columns!(), " FROM wheels ORDER BY name");
const ONE: &str = concat!("SELECT ", columns!(), " FROM wheels WHERE name = ?1");
const INSERT: &str = concat!("INSERT INTO wheels (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6)");

fn terms(operation: &'static str) -> Terms {
    Terms { operation, durability: Durability::Full, wakes: None }
}

#[async_trait]
impl Wheels for SqliteStore {
    async fn wheels(&self) -> Result<Vec<WheelRecord>, StoreError> {
        self.read("list wheels", |connection| {
            let mut statement = connection.prepare_cached(ALL)?;
            let rows = statement.query_map((), decode)?;
            rows.filter_map(Result::transpose).collect()
        })
        .await
    }

    async fn wheel(&self, name: &WheelName) -> Result<Option<WheelRecord>, StoreError> {
        let name = name.clone();
        self.read("look for a wheel", move |connection| one(connection, &name)).await
    }

    async fn put_wheel(
        &self,
        wheel: NewWheel,
        bytes: &mut dyn WheelBytes,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        let writing = self.receive(&wheel, bytes).await?;
        // Whoever sent it may go away from here on: what has become a file must become a wheel, or go again.
        let store = self.clone();
        let placed = tokio::spawn(async move { store.place(wheel, writing).await });
        placed.await.unwrap_or_else(|error| Err(StoreError::new(ErrorKind::Internal, files::PUT, error)))
    }

    async fn read_wheel(
        &self,
        wheel: &WheelRecord,
        from: u64,
    ) -> Result<Option<Box<dyn WheelBytes>>, StoreError> {
        if !self.has(wheel).await? {
            return Ok(None);
        }
        match Reading::open(self.shelf().folder(), wheel, from).await {
            Ok(reading) => Ok(Some(Box::new(reading))),
            // Its file goes after its row: if the row is still there, it is not because somebody deleted it.
            Err(error) if self.has(wheel).await? => Err(error),
            Err(_) => Ok(None),
        }
    }

    async fn delete_wheel(
        &self,
        name: &WheelName,
        _at: Timestamp,
    ) -> Result<Option<WheelRecord>, StoreError> {
        let name = name.clone();
        // Before it is known: if nobody waits for the answer, the next one tidies up.
        self.shelf().mark_untidy();
        let deleted = self
            .write(terms("delete a wheel"), move |connection| {
                let found = one(connection, &name)?;
                connection.prepare_cached("DELETE FROM wheels WHERE name = ?1")?.execute([name.as_str()])?;
                Ok(found)
            })
            .await?;
        if deleted.is_some() {
            self.shelf().changed();
            // Somebody may have tidied up after the first mark and before the row was gone.
            self.shelf().mark_untidy();
        }
        self.tidy_up().await;
        Ok(deleted)
    }

    async fn listen_to_wheels(&self) -> Result<Box<dyn ShelfListening>, StoreError> {
        Ok(Box::new(self.shelf().listen()))
    }

    async fn note_wheel(&self, event: WheelEvent) -> Result<(), StoreError> {
        let ttl = self.shelf().history_ttl();
        let body = serde_json::to_string(&event)
            .map_err(|error| StoreError::new(ErrorKind::Internal, history::NOTE, error))?;
        self.write(terms(history::NOTE), move |connection| history::note(connection, &event, &body, ttl))
            .await
    }

    async fn wheel_history(
        &self,
        filter: &WheelHistoryFilter,
        now: Timestamp,
    ) -> Result<Vec<WheelEvent>, StoreError> {
        let (filter, ttl) = (filter.clone(), self.shelf().history_ttl());
        self.read("read the history of wheels", move |connection| {
            history::newest(connection, &filter, now, ttl)
        })
        .await
    }
}

impl SqliteStore {
    /// Writes what is sent into a file that nobody knows yet, and looks whether it is what was announced.
    async fn receive(&self, wheel: &NewWheel, bytes: &mut dyn WheelBytes) -> Result<Writing, StoreError> {
        let mut writing = Writing::begin(self.shelf().folder().to_owned()).await?;
        let (mut gathered, mut received) = (Vec::new(), 0_u64);
        while let Some(piece) = bytes.next().await? {
            received = received.saturating_add(piece.len() as u64);
            if received > wheel.size_bytes {
                return Err(files::not_announced(format!(
                    "more than the {} bytes that were announced came",
                    wheel.size_bytes
                )));
            }
            if gathered.is_empty() {
                gathered = piece;
            } else {
                gathered.extend(piece);
            }
            if gathered.len() >= GATHERED {
                writing = writing.add(std::mem::take(&mut gathered)).await?;
            }
            pyoco_faults::at("upload.mid_chunk", files::PUT)?;
        }
        writing.add(gathered).await?.finish(wheel.size_bytes, &wheel.sha256).await
    }

    /// Gives a file its name and then its row, unless the rule is against it.
    async fn place(
        &self,
        wheel: NewWheel,
        writing: Writing,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        let hold = self.shelf().hold().await;
        let placed = async {
            writing.place(&wheel.sha256).await?;
            pyoco_faults::at("upload.after_object", files::PUT)?;
            let inserted =
                self.write(terms(files::PUT), move |connection| insert(connection, &wheel)).await?;
            pyoco_faults::at("upload.after_record", files::PUT)?;
            Ok(inserted)
        };
        let placed = placed.await;
        drop(hold);
        match &placed {
            Ok(Ok(_)) => self.shelf().changed(),
            // The file may be there without a row.
            Ok(Err(_)) | Err(_) => self.shelf().mark_untidy(),
        }
        self.tidy_up().await;
        placed
    }

    /// Whether this very upload is there.
    async fn has(&self, wheel: &WheelRecord) -> Result<bool, StoreError> {
        let found = self.wheel(&wheel.name).await?;
        Ok(found.is_some_and(|found| found.nuid == wheel.nuid && found.sha256 == wheel.sha256))
    }

    /// Removes the files that no wheel names, if there may be some and nobody is about to need one. Whoever is, does it later.
    pub(crate) async fn tidy_up(&self) {
        let Some(alone) = self.shelf().alone_if_untidy() else { return };
        // The writer is asked: it has seen the row of everybody who held a file before.
        let rows = self.write(
            Terms { operation: "list the files of wheels", durability: Durability::Process, wakes: None },
            named,
        );
        let swept = match rows.await {
            Ok(named) => files::sweep(Arc::clone(&alone.folder), named).await,
            Err(error) => Err(error),
        };
        if let Err(error) = swept {
            self.shelf().mark_untidy();
            tracing::warn!(%error, "files of wheels that are not needed any more could not be removed; the next start tries again");
        }
    }
}

/// The hashes that wheels name.
pub(crate) fn named(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut statement = connection.prepare_cached("SELECT sha256 FROM wheels")?;
    let rows = statement.query_map((), |row| row.get(0))?;
    rows.collect()
}

fn one(connection: &Connection, name: &WheelName) -> rusqlite::Result<Option<WheelRecord>> {
    let found = connection.prepare_cached(ONE)?.query_row([name.as_str()], decode).optional()?;
    Ok(found.flatten())
}

fn insert(connection: &Connection, wheel: &NewWheel) -> rusqlite::Result<Result<WheelRecord, Refused>> {
    let mut statement = connection.prepare_cached("SELECT name FROM wheels")?;
    let names = statement.query_map((), |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    let known: Vec<WheelName> = names.iter().filter_map(|name| WheelName::parse(name).ok()).collect();
    if let Err(refused) = may_upload(&known, &wheel.name) {
        return Ok(Err(refused));
    }
    let record = WheelRecord {
        name: wheel.name.clone(),
        nuid: uuid::Uuid::new_v4().simple().to_string(),
        size_bytes: wheel.size_bytes,
        sha256: wheel.sha256.clone(),
        modified: wheel.at,
        tags: wheel.tags.clone(),
    };
    let tags = serde_json::to_string(&record.tags)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let values = (
        record.name.as_str(),
        &record.nuid,
        record.size_bytes,
        record.sha256.as_str(),
        record.modified.as_micros(),
        tags,
    );
    connection.prepare_cached(INSERT)?.execute(values)?;
    Ok(Ok(record))
}

/// Nothing if its name is none of a wheel.
fn decode(row: &Row<'_>) -> rusqlite::Result<Option<WheelRecord>> {
    let Ok(name) = WheelName::parse(&row.get::<_, String>(0)?) else { return Ok(None) };
    let sha256 = Sha256Digest::parse(&row.get::<_, String>(3)?);
    let tags = serde_json::from_str(&row.get::<_, String>(5)?);
    Ok(Some(WheelRecord {
        name,
        nuid: row.get(1)?,
        size_bytes: row.get(2)?,
        sha256: sha256.map_err(|why| error::unreadable(3, why))?,
        modified: Timestamp::from_micros(row.get(4)?),
        tags: tags.map_err(|why| error::unreadable(5, why))?,
    }))
}
