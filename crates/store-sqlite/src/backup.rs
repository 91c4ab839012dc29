//! A copy of both files, and of those of wheels, while the store is at work. Where copies are kept, and how one is used again, is
//! not known here.
//!
//! Both are copied as they stood at one moment: the file of lines a moment earlier than the other. So a log may lack what was
//! written last, and never has lines that its execution knows nothing of. Whoever writes is not in the way of a copy, nor it in
//! theirs: only the write-ahead logs grow until all pages are copied. Then the copy is written anew without what was removed from the
//! store: pages that nobody uses still hold it. The files of the wheels that stand in the copy are copied last; until then none of
//! them is removed, whoever deletes a wheel meanwhile.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyoco_ports::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, Transaction, ffi};
use tokio::sync::oneshot;

use crate::schema::{self, Schema};
use crate::{SqliteStore, connection, error, open, wheels};

const OPERATION: &str = "back up";
/// So many pages are copied before it is asked whether to go on: 4 MiB.
const PAGES: i32 = 1024;
/// SQLite does so many of its steps before it is asked whether to go on: some milliseconds.
const STEPS: i32 = 100_000;

/// A file that was copied. It is whole and on the disk; its name is not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// What it is called, in a backup as in a store; one of a wheel with its folder.
    pub name: String,
    /// The schema of its tables, if it has some.
    pub schema: Option<i32>,
}

impl SqliteStore {
    /// Copies the files of the store into a folder that has none of them. `is_over` says when nobody wants it any more.
    pub async fn back_up(
        &self,
        folder: &Path,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Vec<Copied>, StoreError> {
        let is_over = Arc::new(is_over);
        let hold = self.shelf().hold().await;
        let copied = self.copy_all(folder, is_over).await;
        drop(hold);
        // What was deleted meanwhile has waited.
        self.tidy_up().await;
        copied
    }

    async fn copy_all(
        &self,
        folder: &Path,
        is_over: Arc<impl Fn() -> bool + Send + Sync + 'static>,
    ) -> Result<Vec<Copied>, StoreError> {
        let (pinned, first) = oneshot::channel();
        let copy = Copy { folder: folder.to_owned(), is_over: is_over.clone() };
        let logs = self.logs().read_apart(OPERATION, move |connection| {
            let read = pin(connection)?;
            // Nobody hears it when the other file cannot be read; then this copy is for nothing, and goes with its folder.
            let _ = pinned.send(());
            copy.of(read, &schema::LOGS)
        });
        let copy = Copy { folder: folder.to_owned(), is_over: is_over.clone() };
        let main = async {
            // When this fails the file of lines could not be read, which says more.
            let _ = first.await;
            let main = self.main().read_apart(OPERATION, move |connection| {
                let read = pin(connection)?;
                let named = wheels::named(&read)?;
                Ok((copy.of(read, &schema::MAIN)?, named))
            });
            main.await
        };
        let (logs, main) = tokio::join!(logs, main);
        let (logs, (main, named)) = (logs?, main?);
        let from = Arc::clone(self.shelf().folder());
        let files = wheels::files::copy(from, folder.to_owned(), named, move || is_over()).await?;
        let files = files.into_iter().map(|name| Copied { name, schema: None });
        Ok([logs, main].into_iter().chain(files).collect())
    }

    /// The hash of the wheel that a file of a backup is of; none if it is of none.
    pub fn wheel_in_backup(name: &str) -> Option<&str> {
        wheels::files::hash_of_copy(name)
    }

    /// The newest schema that this program can read of a file of a backup; none if stores have no such file.
    pub fn newest_schema(name: &str) -> Option<i32> {
        [&schema::MAIN, &schema::LOGS].iter().find(|schema| schema.file == name).map(|schema| schema.newest())
    }
}

/// Begins to read, and sees the file as it is now until the end.
fn pin(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    let read = connection.unchecked_transaction()?;
    read.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
    Ok(read)
}

struct Copy<F> {
    folder: PathBuf,
    is_over: Arc<F>,
}

impl<F: Fn() -> bool + Send + Sync + 'static> Copy<F> {
    fn of(&self, read: Transaction<'_>, schema: &Schema) -> rusqlite::Result<Copied> {
        let path = self.folder.join(schema.file);
        let pages = self.folder.join(format!("{}.pages", schema.file));
        for path in [&path, &pages] {
            open::private(OpenOptions::new().write(true).create_new(true)).open(path).map_err(refused)?;
        }
        let mut target = connection::target(&pages)?;
        self.pages(&read, &mut target)?;
        // From now on the write-ahead log need not wait.
        drop(read);
        connection::leave_alone(&target)?;
        self.give_up_in_time(&mut target)?;
        let text = path.to_str().ok_or_else(|| refused(std::io::ErrorKind::InvalidFilename.into()))?;
        target.execute("VACUUM INTO ?1", [text])?;
        close(target)?;
        fs::remove_file(&pages).map_err(refused)?;
        self.check(&path, schema)
    }

    fn check(&self, path: &Path, schema: &Schema) -> rusqlite::Result<Copied> {
        let mut copy = connection::target(path)?;
        self.give_up_in_time(&mut copy)?;
        let said: String = copy.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
        if said != "ok" {
            return Err(error::unreadable(0, format!("{} is damaged: {said}", schema.file)));
        }
        let version = connection::user_version(&copy)?;
        let copied = Copied { name: schema.file.to_owned(), schema: Some(version) };
        close(copy)?;
        File::open(path).and_then(|file| file.sync_all()).map_err(refused)?;
        Ok(copied)
    }

    /// One statement may take as long as all pages.
    fn give_up_in_time(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let is_over = self.is_over.clone();
        connection.progress_handler(STEPS, Some(move || is_over()))
    }

    fn pages(&self, from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
        let backup = Backup::new(from, to)?;
        loop {
            if (self.is_over)() {
                let why = "the process that makes it is about to end".to_owned();
                return Err(rusqlite::Error::SqliteFailure(
                    ffi::Error::new(ffi::SQLITE_INTERRUPT),
                    Some(why),
                ));
            }
            match backup.step(PAGES)? {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                // Nobody else knows the copy, and what is read stands still: somebody holds the disk itself.
                StepResult::Busy | StepResult::Locked | _ => {
                    return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None));
                }
            }
        }
    }
}

fn close(connection: Connection) -> rusqlite::Result<()> {
    connection.close().map_err(|(_, error)| error)
}

fn refused(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use pyoco_core::ids::{ExecutionId, Version};
    use pyoco_ports::{Append, DeadLetters as _, EventLog, LogLine, LogStream, LogTerms, TaskLogs as _};

    use super::*;
    use crate::{Check, Options};

    fn open(folder: &Path) -> SqliteStore {
        SqliteStore::open(folder, Options { check: Check::Always, ..Options::default() }).unwrap()
    }

    fn id() -> ExecutionId {
        ExecutionId::new("e").unwrap()
    }

    async fn append(store: &SqliteStore, version: u64, bytes: usize) {
        store.append(Append::new(id(), Version(version), vec![7; bytes])).await.unwrap();
    }

    async fn records(store: &SqliteStore) -> usize {
        EventLog::read(store, &id(), Version(0)).await.unwrap().len()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn line() -> LogLine {
        LogLine {
            node: None,
            attempt: pyoco_core::ids::Attempt(1),
            stream: LogStream::Stdout,
            at: pyoco_core::time::Timestamp::from_micros(7),
            text: "said".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_copy_is_a_store_with_all_that_was_written_before() {
        let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = open(home.path());
        append(&store, 0, 100).await;
        let terms = LogTerms { max_bytes: 1_000, closes: false };
        store.write_lines(&id(), vec![line()], terms).await.unwrap();
        let copied = store.back_up(away.path(), || false).await.unwrap();
        let wanted = ["pyoco-logs.db", "pyoco.db"];
        assert_eq!(copied.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), wanted);
        for file in &copied {
            assert_eq!(SqliteStore::newest_schema(&file.name), file.schema);
        }
        // Nothing stands beside the files that belongs to them.
        assert_eq!(names(away.path()), wanted);
        append(&store, 1, 100).await;
        let copy = open(away.path());
        assert_eq!(records(&copy).await, 1);
        assert_eq!(copy.read_lines(&id(), 0, 9).await.unwrap().len(), 1);
        append(&copy, 1, 100).await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_its_owner_may_read_a_copy() {
        use std::os::unix::fs::PermissionsExt as _;
        let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in open(home.path()).back_up(away.path(), || false).await.unwrap() {
            let mode = std::fs::metadata(away.path().join(&file.name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.name);
        }
    }

    #[tokio::test]
    async fn whoever_writes_goes_on_while_a_copy_is_made_and_is_not_in_it() {
        let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = open(home.path());
        for version in 0..20 {
            append(&store, version, 1_000_000).await;
        }
        // Both copies are held before their first step while others write.
        let (held, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (holding, going) = (held.clone(), go.clone());
        let is_over = move || {
            holding.fetch_add(1, Ordering::SeqCst);
            while !going.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            false
        };
        let (copying, folder) = (store.clone(), away.path().to_owned());
        let copy = tokio::spawn(async move { copying.back_up(&folder, is_over).await });
        while held.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        // Both are pinned: what is written from now on is in no copy, but must be written. And others can read, all at once.
        for version in 20..30 {
            append(&store, version, 1_000_000).await;
        }
        // A read that waits until there are as many as may read at all.
        let (all, reading) = (Arc::new(std::sync::Barrier::new(4)), store.clone());
        let reads = (0..4).map(|_| {
            let all = all.clone();
            reading.read("test", move |_| Ok(all.wait().is_leader()))
        });
        let leaders = futures_util::future::try_join_all(reads).await.unwrap();
        assert_eq!(leaders.into_iter().filter(|is_leader| *is_leader).count(), 1);
        go.store(true, Ordering::SeqCst);
        copy.await.unwrap().unwrap();
        assert_eq!(records(&open(away.path())).await, 20);
        assert_eq!(records(&store).await, 30);
    }

    #[tokio::test]
    async fn what_was_removed_is_not_in_a_copy() {
        const SECRET: &[u8] = b"nobody may read this any more";
        let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = open(home.path());
        let letter = |key: &str, body: Vec<u8>| {
            let at = pyoco_core::time::Timestamp::from_micros(7);
            pyoco_ports::DeadLetterRecord { key: key.to_owned(), tag: "t".to_owned(), at, body }
        };
        store.publish(letter("kept", b"this stays".to_vec())).await.unwrap();
        store.publish(letter("removed", SECRET.repeat(10_000))).await.unwrap();
        assert!(store.remove_letter("removed").await.unwrap());
        store.back_up(away.path(), || false).await.unwrap();
        store.close().await.unwrap();
        let holds = |folder: &Path, text: &[u8]| {
            let bytes = std::fs::read(folder.join("pyoco.db")).unwrap();
            bytes.windows(text.len()).any(|part| part == text)
        };
        assert!(holds(home.path(), SECRET), "free pages are as they were");
        assert!(holds(away.path(), b"this stays") && !holds(away.path(), SECRET));
        // It is still a file that can shrink, and goes on with the same numbers.
        let copy = open(away.path());
        let auto_vacuum = copy.read("test", |connection| {
            connection.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0))
        });
        assert_eq!(auto_vacuum.await.unwrap(), 2);
        assert_eq!(copy.count_letters().await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_copy_that_nobody_wants_any_more_ends() {
        let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = open(home.path());
        assert!(store.back_up(away.path(), || true).await.is_err());
        append(&store, 0, 1).await;
        store.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_there_is_not_touched() {
        let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(away.path().join("pyoco.db"), b"mine").unwrap();
        assert!(open(home.path()).back_up(away.path(), || false).await.is_err());
        assert_eq!(std::fs::read(away.path().join("pyoco.db")).unwrap(), b"mine");
    }
}
