//! What is on the shelf, as its leader has it.

use std::sync::Arc;

use pyoco_ports::{ErrorKind, StoreError, WheelRecord};
use pyoco_wheels::{Refused, WheelName, may_upload};

use super::object;
use crate::Settings;
use crate::connection::Connection;
use crate::error;
use crate::message::Stored;
use crate::names;

/// The bucket of wheels, and that of their history.
pub(crate) struct Shelf {
    pub(super) connection: Arc<Connection>,
    pub(super) settings: Arc<Settings>,
    pub(super) stream: String,
    /// Many messages may be read with one request.
    pub(super) is_direct: bool,
}

/// What was described at one moment, or after it.
pub(super) struct Descriptions {
    /// There is a bucket.
    pub(super) is_made: bool,
    /// The last description of the moment; 0 if there was none. Behind it nothing was missed.
    pub(super) last: u64,
    /// All objects, wheels or not, deleted or not.
    pub(super) objects: Vec<Stored>,
    records: Vec<WheelRecord>,
}

impl Descriptions {
    /// The wheels in the order of their names.
    pub(super) fn into_records(self) -> Vec<WheelRecord> {
        self.records
    }

    /// The wheel of one upload.
    pub(super) fn upload(&self, nuid: &str) -> Option<&WheelRecord> {
        self.records.iter().find(|record| record.nuid == nuid)
    }

    /// Whether a wheel may come beside these.
    pub(super) fn may_upload(&self, name: &WheelName) -> Result<(), Refused> {
        may_upload(self.records.iter().map(|record| &record.name), name)
    }
}

impl Shelf {
    pub(crate) fn new(connection: &Arc<Connection>, settings: &Arc<Settings>, is_direct: bool) -> Self {
        Self {
            connection: Arc::clone(connection),
            settings: Arc::clone(settings),
            stream: names::object_stream(&settings.wheels_bucket),
            is_direct,
        }
    }

    /// Everything that is described: two requests, however much it is, where the bucket allows it and all fits.
    pub(super) async fn look(&self, operation: &'static str) -> Result<Descriptions, StoreError> {
        let all = self.settings.all_wheels();
        let last = match self.connection.last(operation, &self.stream, &all).await {
            // Somebody has removed the bucket; whoever writes next makes it again.
            Err(error) if error::is_missing(&error) => return Ok(self.described(false, 0, Vec::new())),
            last => last?.map_or(0, |last| last.sequence),
        };
        if last == 0 {
            return Ok(self.described(true, 0, Vec::new()));
        }
        if self.is_direct {
            match self.connection.lasts(operation, &self.stream, &all).await {
                // Whoever answered may lag behind the leader, but not here.
                Ok(Some(objects)) if objects.iter().any(|object| object.sequence >= last) => {
                    return Ok(self.described(true, last, objects));
                }
                // It does, or there are too many for one answer.
                Ok(_) => {}
                // Nobody: the bucket was made anew, without direct reads, or only its leader is left.
                Err(error) if error.kind == ErrorKind::Unavailable && self.connection.is_connected() => {}
                Err(error) => return Err(error),
            }
        }
        let subjects = self.connection.subjects(operation, &self.stream, &all).await?.unwrap_or_default();
        let objects = self.connection.last_of_each(operation, &self.stream, subjects).await?;
        Ok(self.described(true, last, objects))
    }

    fn described(&self, is_made: bool, last: u64, objects: Vec<Stored>) -> Descriptions {
        let mut records: Vec<WheelRecord> =
            objects.iter().filter_map(|stored| object::record(&self.settings, stored)).collect();
        records.sort_by(|a, b| a.name.cmp(&b.name));
        Descriptions { is_made, last, objects, records }
    }

    /// One wheel.
    pub(super) async fn wheel(
        &self,
        operation: &'static str,
        name: &WheelName,
    ) -> Result<Option<WheelRecord>, StoreError> {
        let last = self.description(operation, name).await?;
        Ok(last.and_then(|last| object::record(&self.settings, &last)))
    }

    /// What stands at the name of a wheel.
    pub(super) async fn description(
        &self,
        operation: &'static str,
        name: &WheelName,
    ) -> Result<Option<Stored>, StoreError> {
        let subject = self.settings.wheel(name.as_str());
        match self.connection.last(operation, &self.stream, &subject).await {
            Err(error) if error::is_missing(&error) => Ok(None),
            found => found,
        }
    }

    /// Removes the pieces of an upload that nobody will read. What stays is swept up later: it costs room and nothing else.
    pub(super) async fn forget_pieces(&self, operation: &'static str, nuid: &str) {
        let subject = self.settings.wheel_chunks(nuid);
        if let Err(error) = self.connection.purge(operation, &self.stream, &subject, None).await {
            tracing::warn!(%error, nuid, "pieces of a wheel stay behind for a day");
        }
    }
}
