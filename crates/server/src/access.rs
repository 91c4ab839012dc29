//! The gateway asks, the gate knows: API keys at the door of the HTTP surface.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_access::{Gate, Holder, NoRandomness, Pepper, Refused, Settings};
use pyoco_engine::Clock as _;
use pyoco_gateway::{Access, Admitted, NotAdmitted};
use pyoco_ports::KeyRecords;

use crate::SystemClock;

/// Asks everybody for a key.
#[derive(Debug)]
pub struct Doorkeeper(Gate);

impl Doorkeeper {
    /// Knows the keys of a store.
    pub fn new(records: Arc<dyn KeyRecords>, pepper: Option<Pepper>) -> Result<Self, NoRandomness> {
        Ok(Self(Gate::new(records, pepper, Arc::new(|| SystemClock.now()), &Settings::default())?))
    }
}

#[async_trait]
impl Access for Doorkeeper {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        match self.0.admit(secret).await {
            Ok(Holder { key_id, tenant, role }) => {
                Ok(Admitted { tenant: Some(tenant), key: Some(key_id.as_str().to_owned()), role })
            }
            Err(Refused::NothingShown) => Err(NotAdmitted::NothingShown),
            Err(Refused::Wrong) => Err(NotAdmitted::Wrong),
            Err(Refused::Throttled) => Err(NotAdmitted::Throttled),
            Err(Refused::Busy) => Err(NotAdmitted::Busy),
            Err(Refused::Unknown(error)) => Err(NotAdmitted::Unknown(error)),
        }
    }
}
