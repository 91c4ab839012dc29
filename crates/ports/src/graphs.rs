//! Registered graphs: flows with a name, in numbered versions that never change.

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;

use crate::StoreError;

/// The versions of every registered graph. An execution keeps what it was created with, so nothing that runs looks here.
#[async_trait]
pub trait Graphs: Send + Sync {
    /// Adds a version. MUST add it if its number is the one after the newest of its graph (1 for the first; a deletion is a version
    /// too), and MUST change nothing and say `false` if it is not, also when several try at once. `[graphs/put]`
    async fn put_graph(&self, graph: GraphRecord) -> Result<bool, StoreError>;

    /// One version, or the newest, which may be a deletion. MUST see every put that has returned, of whichever process.
    /// MUST NOT show a tenant's graph to another. `[graphs/get]`
    async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<GraphRecord>, StoreError>;

    /// The newest version as this process knows it, for those who cannot wait. MUST see every put of this process; what others
    /// have put MAY come a moment later. `[graphs/known]`
    async fn known_graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
    ) -> Result<Option<GraphRecord>, StoreError> {
        self.graph(tenant, id, None).await
    }

    /// The newest version of each graph that is not deleted, by id, behind one. MAY lag behind other processes. `[graphs/list]`
    async fn graphs(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GraphRecord>, StoreError>;
}

/// One version of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRecord {
    /// Whose it is.
    pub tenant: Option<TenantId>,
    /// Its name.
    pub id: String,
    /// Its number, from 1.
    pub version: u64,
    /// When it was put.
    pub at: Timestamp,
    /// Who put it.
    pub by: Option<String>,
    /// What it says; nothing if this version deletes the graph.
    pub source: Option<GraphSource>,
}

/// The text of a graph, as it was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphSource {
    /// How it is written.
    pub format: GraphFormat,
    /// The text.
    pub text: String,
}

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// The form of flow.yaml.
    Yaml,
    /// The same document as JSON.
    Json,
}

impl GraphFormat {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yaml => "yaml",
            Self::Json => "json",
        }
    }

    /// The format of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Yaml, Self::Json].into_iter().find(|format| format.as_str() == name)
    }
}
