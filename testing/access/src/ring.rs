//! Real keys of Ann, her colleagues and Bob, checked by what a server has at its door.

use std::sync::Arc;

use pyoco_access::{Keys, NewKey};
use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_gateway::Access;
use pyoco_server::{Clock as _, Doorkeeper, SystemClock};
use pyoco_testing_executions::Site;
use tokio::sync::OnceCell;

/// Whose they are, and how much they open.
const HOLDERS: [(&str, &str, Role); 5] = [
    ("ann", "anns-team", Role::Submit),
    ("ann-reads", "anns-team", Role::Read),
    ("ann-rules", "anns-team", Role::Admin),
    ("bob", "bobs-team", Role::Submit),
    ("bob-rules", "bobs-team", Role::Admin),
];

/// A key as it was made.
#[derive(Debug, Clone)]
struct Made {
    holder: &'static str,
    secret: String,
    id: KeyId,
    record: Vec<u8>,
}

/// Slow to make, so made once for all stores.
static MADE: OnceCell<Vec<Made>> = OnceCell::const_new();

/// The keys of one store, and who asks for them.
#[derive(Debug, Clone)]
pub struct Ring {
    door: Arc<Doorkeeper>,
    made: &'static [Made],
}

impl Ring {
    /// Puts the keys into the store of a site.
    pub async fn at(site: &Site) -> Self {
        let store = site.engine.store();
        let made = MADE.get_or_init(|| make(site)).await;
        for key in made {
            // It is there already where it was made.
            store.put_key(&key.id, key.record.clone(), None).await.unwrap();
        }
        let door = Arc::new(Doorkeeper::new(store.clone(), None).unwrap());
        Self { door, made }
    }

    /// Who asks for a key.
    pub fn door(&self) -> Arc<dyn Access> {
        self.door.clone()
    }

    /// The key of somebody.
    pub fn of(&self, holder: &str) -> &str {
        &self.made.iter().find(|key| key.holder == holder).unwrap().secret
    }
}

async fn make(site: &Site) -> Vec<Made> {
    let store = site.engine.store();
    let keys = Keys::new(store.clone(), None);
    let mut made = Vec::new();
    for (holder, tenant, role) in HOLDERS {
        let tenant = TenantId::new(tenant).unwrap();
        let new = NewKey { tenant, role, expires_at: None, name: Some(holder.to_owned()) };
        let created = keys.create(new, SystemClock.now()).await.unwrap();
        let (id, secret) = (created.record.key_id.clone(), created.key.reveal().to_string());
        let record = store.key(&id).await.unwrap().unwrap().record;
        made.push(Made { holder, secret, id, record });
    }
    made
}
