//! The shelf of a store: where its files are, who may remove some, and who hears of changes.
//!
//! Files that no row names are removed by whoever is alone with them. An upload holds the shelf from before its file has its name
//! until it has its row, and a backup until it has copied the files of its rows. Nobody waits to be alone: whoever lets the shelf go
//! looks whether there is something to remove.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_ports::ShelfListening;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};

use super::files;

/// See above.
pub(crate) struct Shelf {
    folder: Arc<Path>,
    /// Shared by those who hold files, of one who removes some.
    holders: Arc<RwLock<()>>,
    /// Whether there may be files that no row names.
    is_untidy: AtomicBool,
    news: watch::Sender<News>,
    history_ttl: Duration,
}

#[derive(Debug, Default)]
struct News {
    changes: u64,
    is_closed: bool,
}

/// Nobody removes a file while this is there.
pub(crate) type Hold = OwnedRwLockReadGuard<()>;

/// Nobody holds a file while this is there.
pub(crate) struct Alone {
    pub(crate) folder: Arc<Path>,
    _guard: OwnedRwLockWriteGuard<()>,
}

impl Shelf {
    /// The shelf of a store in a folder.
    pub(crate) fn new(store: &Path, history_ttl: Duration) -> Self {
        let folder: PathBuf = store.join(files::FOLDER);
        Self {
            folder: folder.into(),
            holders: Arc::new(RwLock::new(())),
            is_untidy: AtomicBool::new(false),
            news: watch::Sender::default(),
            history_ttl,
        }
    }

    pub(crate) fn folder(&self) -> &Arc<Path> {
        &self.folder
    }

    pub(crate) const fn history_ttl(&self) -> Duration {
        self.history_ttl
    }

    /// Keeps every file that is there. Waits only for one who is removing some.
    pub(crate) async fn hold(&self) -> Hold {
        Arc::clone(&self.holders).read_owned().await
    }

    /// There may be files that no row names.
    pub(crate) fn mark_untidy(&self) {
        self.is_untidy.store(true, Ordering::SeqCst);
    }

    /// For whoever is to remove files; nothing if there are none, or if somebody holds the shelf, who then does it.
    pub(crate) fn alone_if_untidy(&self) -> Option<Alone> {
        if !self.is_untidy.load(Ordering::SeqCst) {
            return None;
        }
        let guard = Arc::clone(&self.holders).try_write_owned().ok()?;
        self.is_untidy.store(false, Ordering::SeqCst);
        Some(Alone { folder: Arc::clone(&self.folder), _guard: guard })
    }

    /// Tells those who listen.
    pub(crate) fn changed(&self) {
        self.news.send_modify(|news| news.changes = news.changes.wrapping_add(1));
    }

    /// Tells those who listen that nothing comes any more.
    pub(crate) fn close(&self) {
        self.news.send_modify(|news| news.is_closed = true);
    }

    pub(crate) fn listen(&self) -> Ear {
        Ear(self.news.subscribe())
    }
}

/// Hears of changes.
pub(crate) struct Ear(watch::Receiver<News>);

#[async_trait]
impl ShelfListening for Ear {
    async fn changed(&mut self) -> bool {
        if self.0.borrow().is_closed {
            return false;
        }
        self.0.changed().await.is_ok() && !self.0.borrow_and_update().is_closed
    }
}
