//! Registered graphs in memory.

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_ports::{GraphRecord, Graphs, StoreError};

use crate::MemoryStore;

#[async_trait]
impl Graphs for MemoryStore {
    async fn put_graph(&self, graph: GraphRecord) -> Result<bool, StoreError> {
        let mut inner = self.inner();
        let versions = inner.graphs.entry((graph.tenant.clone(), graph.id.clone())).or_default();
        let is_next = graph.version == versions.len() as u64 + 1;
        if is_next {
            versions.push(graph);
        }
        Ok(is_next)
    }

    async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<GraphRecord>, StoreError> {
        let inner = self.inner();
        let versions = inner.graphs.get(&(tenant.cloned(), id.to_owned()));
        let found = versions.and_then(|versions| match version {
            None => versions.last(),
            Some(version) => versions.iter().find(|graph| graph.version == version),
        });
        Ok(found.cloned())
    }

    async fn graphs(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GraphRecord>, StoreError> {
        let inner = self.inner();
        let is_wanted = |graph: &&GraphRecord| {
            graph.tenant.as_ref() == tenant
                && graph.source.is_some()
                && after.is_none_or(|after| graph.id.as_str() > after)
        };
        let newest = inner.graphs.values().filter_map(|versions| versions.last());
        Ok(newest.filter(is_wanted).take(limit).cloned().collect())
    }
}
