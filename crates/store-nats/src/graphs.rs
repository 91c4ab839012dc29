//! Registered graphs: all versions of one stand at its subject, each stored only behind the version before it.
//!
//! Each names the message of the version before, so an older one is found by going back. What a process knows of the newest
//! versions it is told by a feed; without one it asks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, GraphFormat, GraphRecord, GraphSource, Graphs, StoreError};
use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::{NatsStore, blobs, names};

const PUT: &str = "put a graph";
const GET: &str = "get a graph";
const LIST: &str = "list graphs";

/// Which version of its graph a message is.
const VERSION: &str = "Pyoco-Version";
/// The message of the version before; 0 for the first.
const BEFORE: &str = "Pyoco-Before";
/// Where the text of a large one is.
const BLOB: &str = "Pyoco-Blob";
/// What the protocol and our headers need beside the body.
const ROOM: usize = 4 * 1024;
/// Each lost race means that somebody else put a version, so that ours is not the next; more than a few mean something else.
const ATTEMPTS: usize = 3;

/// A version as it stands in the stream. Without a text it deletes the graph.
#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<TenantId>,
    id: String,
    version: u64,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl From<&GraphRecord> for Body {
    fn from(graph: &GraphRecord) -> Self {
        let source = graph.source.as_ref();
        Self {
            tenant: graph.tenant.clone(),
            id: graph.id.clone(),
            version: graph.version,
            at: graph.at,
            by: graph.by.clone(),
            format: source.map(|source| source.format.as_str().to_owned()),
            text: source.map(|source| source.text.clone()),
        }
    }
}

impl Body {
    /// `None` if nobody of ours can have written it.
    fn record(self) -> Option<GraphRecord> {
        let source = match (self.format, self.text) {
            (None, None) => None,
            (Some(format), Some(text)) => Some(GraphSource { format: GraphFormat::named(&format)?, text }),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let Self { tenant, id, version, at, by, .. } = self;
        Some(GraphRecord { tenant, id, version, at, by, source })
    }
}

/// Whose it is, and its name.
type Key = (Option<TenantId>, String);

/// The newest versions as this process knows them. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownGraphs {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// With the number of the message.
    newest: Mutex<BTreeMap<Key, (u64, GraphRecord)>>,
    /// Somebody tells us of every version that anybody puts, and everything that was there was told.
    is_fed: AtomicBool,
}

impl KnownGraphs {
    /// The stream is another one than before: what is known says nothing.
    pub(crate) fn begin(&self) {
        self.inner.is_fed.store(false, Ordering::SeqCst);
        self.lock().clear();
    }

    /// From now on `heard` is told of every version; those that are there were told already.
    pub(crate) fn fed(&self) {
        self.inner.is_fed.store(true, Ordering::SeqCst);
    }

    /// A version was put. One that is older than the known one is ignored.
    pub(crate) fn heard(&self, sequence: u64, graph: GraphRecord) {
        let mut newest = self.lock();
        let key = (graph.tenant.clone(), graph.id.clone());
        if newest.get(&key).is_none_or(|(known, _)| *known < sequence) {
            newest.insert(key, (sequence, graph));
        }
    }

    fn is_fed(&self) -> bool {
        self.inner.is_fed.load(Ordering::SeqCst)
    }

    fn get(&self, tenant: Option<&TenantId>, id: &str) -> Option<GraphRecord> {
        self.lock().get(&(tenant.cloned(), id.to_owned())).map(|(_, graph)| graph.clone())
    }

    /// Those that are not deleted, by id, behind one.
    fn list(&self, tenant: Option<&TenantId>, after: Option<&str>, limit: usize) -> Vec<GraphRecord> {
        let newest = self.lock();
        let first = (tenant.cloned(), after.unwrap_or_default().to_owned());
        let graphs = newest.range(first..).map(|(_, (_, graph))| graph);
        graphs
            .take_while(|graph| graph.tenant.as_ref() == tenant)
            .filter(|graph| graph.source.is_some() && after.is_none_or(|after| graph.id.as_str() > after))
            .take(limit)
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, (u64, GraphRecord)>> {
        // Each change is one step; a panic leaves nothing half done.
        self.inner.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Graphs for NatsStore {
    async fn put_graph(&self, graph: GraphRecord) -> Result<bool, StoreError> {
        let subject = names::graph(graph.tenant.as_ref(), &graph.id);
        let mut envelope = None;
        for _ in 0..ATTEMPTS {
            let newest = self.connection.last(PUT, names::GRAPHS, &subject).await?;
            let (version, sequence) = match &newest {
                Some(newest) => (version(PUT, newest)?, newest.sequence),
                None => (0, 0),
            };
            if version.checked_add(1) != Some(graph.version) {
                return Ok(false);
            }
            let (headers, body) = match envelope.take() {
                Some(envelope) => envelope,
                None => self.envelope_of(&graph).await?,
            };
            let put = headers.clone().number(BEFORE, sequence).after(sequence);
            match self.connection.publish(PUT, names::GRAPHS, &subject, put, body.clone()).await {
                Ok(published) => {
                    self.graphs.heard(published.sequence, graph);
                    return Ok(true);
                }
                // Somebody was faster, or a cluster is still at work on a neighbour. Look.
                Err(PublishError::WrongLastSequence) => envelope = Some((headers, body)),
                Err(error) => return Err(error.into_store(PUT)),
            }
        }
        Err(StoreError::new(ErrorKind::Unavailable, PUT, "the stream takes no version behind its last one"))
    }

    async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<GraphRecord>, StoreError> {
        let subject = names::graph(tenant, id);
        let newest = self.connection.last(GET, names::GRAPHS, &subject).await?;
        let found = match (newest, version) {
            (None, _) => None,
            (Some(newest), None) => Some(newest),
            (Some(newest), Some(wanted)) => self.go_back(newest, wanted).await?,
        };
        match found {
            Some(found) => read(&self.connection, self.resources.is_blobs_direct, &found).await.map(Some),
            None => Ok(None),
        }
    }

    async fn known_graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
    ) -> Result<Option<GraphRecord>, StoreError> {
        if self.graphs.is_fed() {
            return Ok(self.graphs.get(tenant, id));
        }
        self.graph(tenant, id, None).await
    }

    async fn graphs(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GraphRecord>, StoreError> {
        if self.graphs.is_fed() {
            return Ok(self.graphs.list(tenant, after, limit));
        }
        // Nobody tells us: a process without an index, or one that has just begun to hear.
        let all = names::graphs_of(tenant);
        let info = self.connection.info(LIST, names::GRAPHS, Some(&all)).await?;
        let found = KnownGraphs::default();
        for subject in info.and_then(|info| info.state.subjects).unwrap_or_default().into_keys() {
            if let Some(stored) = self.connection.last(LIST, names::GRAPHS, &subject).await? {
                let graph = read(&self.connection, self.resources.is_blobs_direct, &stored).await?;
                found.heard(stored.sequence, graph);
            }
        }
        Ok(found.list(tenant, after, limit))
    }
}

impl NatsStore {
    /// Headers and body of a version. A large one is stored as a blob first: if we die here nobody knows of it, and nobody needs it.
    async fn envelope_of(&self, graph: &GraphRecord) -> Result<(Headers, Bytes), StoreError> {
        let headers = Headers::new().number(VERSION, graph.version);
        let body = serde_json::to_vec(&Body::from(graph)).map_err(|error| error::internal(PUT, error))?;
        if body.len() <= self.connection.max_payload().saturating_sub(ROOM) {
            return Ok((headers, body.into()));
        }
        let digest = self.put_used_blob(names::GRAPHS_USE, &body).await?;
        Ok((headers.digest(BLOB, &digest), Bytes::new()))
    }

    /// From the newest version back to the wanted one; `None` if there is none of that number.
    async fn go_back(&self, newest: Stored, wanted: u64) -> Result<Option<Stored>, StoreError> {
        let mut found = newest;
        loop {
            let number = version(GET, &found)?;
            if number <= wanted || number == 1 {
                return Ok((number == wanted).then_some(found));
            }
            let before = match found.headers.get_number(BEFORE) {
                Some(before) => self.connection.at(GET, names::GRAPHS, before).await?,
                None => None,
            };
            found = match before {
                Some(before)
                    if before.subject == found.subject
                        && number.checked_sub(1) == Some(version(GET, &before)?) =>
                {
                    before
                }
                Some(_) | None => {
                    let why = format!("version {} at {} is missing", number - 1, found.subject);
                    return Err(error::corrupt(GET, why));
                }
            };
        }
    }
}

fn version(operation: &'static str, message: &Stored) -> Result<u64, StoreError> {
    message.headers.get_number(VERSION).filter(|number| *number > 0).ok_or_else(|| {
        error::corrupt(
            operation,
            format!("message {} at {} has no version", message.sequence, message.subject),
        )
    })
}

/// The version that a message is.
pub(crate) async fn read(
    connection: &Connection,
    is_blobs_direct: bool,
    message: &Stored,
) -> Result<GraphRecord, StoreError> {
    let unreadable =
        || error::corrupt(GET, format!("message {} at {} is no graph", message.sequence, message.subject));
    let body = match message.headers.get(BLOB) {
        None => message.payload.clone(),
        Some(name) => {
            let digest = Digest::deserialize(serde_json::Value::from(name)).map_err(|_| unreadable())?;
            let blob = blobs::read(connection, is_blobs_direct, &digest).await?;
            blob.ok_or_else(unreadable)?.into()
        }
    };
    let graph = serde_json::from_slice::<Body>(&body).ok().and_then(Body::record).ok_or_else(unreadable)?;
    let stands_at_its_subject = names::graph(graph.tenant.as_ref(), &graph.id) == message.subject;
    if !stands_at_its_subject || graph.version != version(GET, message)? {
        return Err(unreadable());
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(tenant: Option<&str>, id: &str, version: u64, text: Option<&str>) -> GraphRecord {
        GraphRecord {
            tenant: tenant.map(|tenant| TenantId::new(tenant).unwrap()),
            id: id.to_owned(),
            version,
            at: Timestamp::from_micros(7),
            by: None,
            source: text.map(|text| GraphSource { format: GraphFormat::Json, text: text.to_owned() }),
        }
    }

    #[test]
    fn what_is_heard_late_changes_nothing() {
        let known = KnownGraphs::default();
        known.heard(5, graph(None, "g", 2, Some("two")));
        known.heard(3, graph(None, "g", 1, Some("one")));
        assert_eq!(known.get(None, "g"), Some(graph(None, "g", 2, Some("two"))));
        // Of another stream, whose numbers begin again.
        known.begin();
        known.heard(1, graph(None, "g", 1, Some("one")));
        assert_eq!(known.get(None, "g"), Some(graph(None, "g", 1, Some("one"))));
    }

    #[test]
    fn the_list_of_one_owner_ends_where_the_next_begins() {
        let known = KnownGraphs::default();
        let all = [graph(None, "a", 1, Some("")), graph(None, "b", 2, None), graph(None, "c", 1, Some(""))];
        for (sequence, graph) in (1..).zip(all.iter().chain(&[graph(Some("t"), "b", 1, Some(""))])) {
            known.heard(sequence, graph.clone());
        }
        let ids = |tenant: Option<&str>, after, limit| {
            let tenant = tenant.map(|tenant| TenantId::new(tenant).unwrap());
            let found = known.list(tenant.as_ref(), after, limit);
            found.into_iter().map(|graph| graph.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(None, None, 9), ["a", "c"]);
        assert_eq!(ids(None, Some("a"), 9), ["c"]);
        assert_eq!(ids(None, None, 1), ["a"]);
        assert_eq!(ids(Some("t"), None, 9), ["b"]);
        assert_eq!(ids(Some("u"), None, 9), Vec::<String>::new());
    }

    #[test]
    fn a_body_that_is_half_a_source_is_nothing() {
        let body = |format: Option<&str>, text: Option<&str>| Body {
            format: format.map(str::to_owned),
            text: text.map(str::to_owned),
            ..Body::from(&graph(None, "g", 1, None))
        };
        assert!(body(None, None).record().is_some() && body(Some("json"), Some("{}")).record().is_some());
        for (format, text) in [(Some("json"), None), (None, Some("{}")), (Some("xml"), Some("<a/>"))] {
            assert_eq!(body(format, text).record(), None, "{format:?} {text:?}");
        }
    }
}
