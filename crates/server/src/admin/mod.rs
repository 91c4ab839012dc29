//! Looking after a server: what may be ordered (`order`), with what it is carried out (`desk`), and the ways there. A server that
//! has an embedded store takes orders at a socket in its folder (`socket`); when there is none, or the store is in NATS, they are
//! carried out on the store itself.
//!
//! - `backup` copies a store, `restore` makes one of a copy, `manifest` says what is in a copy
//! - `letters` looks after dead letters, `prune` removes runs that ended long ago
//! - `trail` writes down who did what

mod backup;
mod desk;
mod letters;
mod manifest;
mod order;
mod prune;
mod restore;
mod socket;
mod trail;

use pyoco_figures::Figures;
use pyoco_store_sqlite::{OpenError, SqliteStore};
use serde_json::Value;

pub(crate) use desk::Desk;
pub use letters::Which;
pub use order::{AdminError, Order};
pub use prune::{Pruned, prune};
pub use restore::restore;
pub(crate) use socket::AdminSocket;

use crate::storage::{Role, Storage};
use crate::{Config, StartError};

/// Has an order carried out where the configuration says: never by two at once.
pub async fn carry_out(config: &Config, order: Order) -> Result<Value, AdminError> {
    if config.nats_url.is_some() {
        // To open the store would make what is missing, and a copy of nothing helps nobody.
        if let Order::Backup { path } = &order {
            return backup::make_of_nats(config, path).await;
        }
        return on_store(config, order).await;
    }
    let socket = socket::path(&config.data_dir);
    if let Some(answer) = socket::ask(&socket, &order).await? {
        return Ok(answer);
    }
    let makes_store = matches!(order, Order::CreateKey { .. });
    if !makes_store && !SqliteStore::is_in(&config.data_dir) {
        return Err(AdminError::NoStore { folder: config.data_dir.clone() });
    }
    match on_store(config, order.clone()).await {
        // A server may have come up in between.
        Err(AdminError::Start(StartError::Store(OpenError::Locked { folder }))) => {
            socket::ask(&socket, &order).await?.ok_or(AdminError::InUse { folder })
        }
        done => done,
    }
}

async fn on_store(config: &Config, order: Order) -> Result<Value, AdminError> {
    let storage = Storage::open(config, &Role::Admin, &Figures::default()).await?;
    let desk = Desk::alone(config, storage.clone());
    let done = order::perform(&desk, order).await;
    tokio::join!(desk.engine.lines().flush(), desk.engine.trail().flush());
    // What was done is on disk: an end that is not in good order takes nothing back, and the answer holds a secret that nobody else has.
    let _ = storage.close().await;
    done
}
