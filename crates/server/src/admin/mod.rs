//! Looking after API keys: what may be ordered (`order`), and the ways there. A server that has an embedded store takes orders at a
//! socket in its folder (`socket`); when there is none, or the store is in NATS, they are carried out on the store itself.

mod order;
mod socket;

use pyoco_access::Keys;
use pyoco_engine::Clock as _;
use pyoco_store_sqlite::{OpenError, SqliteStore};
use serde_json::Value;

pub use order::{AdminError, Order, perform};
pub(crate) use socket::AdminSocket;

use crate::storage::{Role, Storage};
use crate::{Config, StartError, SystemClock};

/// Has an order carried out where the configuration says: never by two at once.
pub async fn carry_out(config: &Config, order: Order) -> Result<Value, AdminError> {
    if config.nats_url.is_some() {
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
    let storage = Storage::open(config, &Role::Admin).await?;
    let keys = Keys::new(storage.shared(), config.auth_pepper.clone());
    let done = perform(&keys, order, SystemClock.now()).await;
    // What was done is on disk: an end that is not in good order takes nothing back, and the answer holds a secret that nobody else has.
    let _ = storage.close().await;
    done
}
