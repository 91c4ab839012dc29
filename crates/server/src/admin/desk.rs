//! What orders are carried out with: the parts of a process that has the store.

use std::sync::Arc;

use pyoco_access::Keys;
use pyoco_engine::Engine;
use pyoco_figures::Figures;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::storage::Storage;
use crate::{Config, backend};

/// Where an operator is attended to. Clones share one store.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(super) keys: Keys,
    pub(super) engine: Engine,
    pub(super) storage: Storage,
    pub(super) config: Arc<Config>,
    /// What takes long is given up when the process is to end.
    pub(super) stopping: CancellationToken,
    /// Whoever makes a backup has it.
    pub(super) backing_up: Arc<Mutex<()>>,
}

impl Desk {
    /// In a process that has a backend.
    pub(crate) fn new(
        config: Arc<Config>,
        storage: Storage,
        engine: Engine,
        stopping: CancellationToken,
    ) -> Self {
        let keys = Keys::new(storage.shared(), config.auth_pepper.clone());
        Self { keys, engine, storage, config, stopping, backing_up: Arc::default() }
    }

    /// On a store that was opened for one order.
    pub(super) fn alone(config: &Config, storage: Storage) -> Self {
        let engine = backend::engine_on(&storage, config, Figures::default());
        Self::new(Arc::new(config.clone()), storage, engine, CancellationToken::new())
    }

    /// Whether nobody could come in by a key.
    pub(crate) async fn has_no_keys(&self) -> bool {
        self.keys.list().await.is_ok_and(|keys| keys.is_empty())
    }
}
