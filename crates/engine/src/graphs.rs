//! Registered graphs: flows under a name, in versions, checked before they are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyoco_core::command::Workflow;
use pyoco_core::digest::Digest;
use pyoco_core::ids::TenantId;
use pyoco_core::plan::Plan;
use pyoco_flow::{FlowError, Limits, Loaded};
use pyoco_ports::{GraphRecord, GraphSource, StoreError};

use crate::Engine;

/// So often a put is tried again because somebody else was faster.
const TRIES: u32 = 8;
/// So many names are remembered; then all are forgotten, which costs a look at each.
const KNOWN: usize = 4_096;

/// A graph to keep.
#[derive(Debug, Clone)]
pub struct GraphPut {
    /// Whose it is.
    pub tenant: Option<TenantId>,
    /// Its name.
    pub id: String,
    /// What it says.
    pub source: GraphSource,
    /// Who puts it.
    pub by: Option<String>,
    /// The version it is meant to follow (0: none); any when not said.
    pub expected: Option<u64>,
}

/// A version of a graph, and what it compiles to.
#[derive(Debug, Clone)]
pub struct Graph {
    /// As it was put.
    pub record: GraphRecord,
    /// The version of the flow format.
    pub flow_version: i64,
    /// What it runs. Tasks of version 1 are found by the worker that runs it, so its plan is too.
    pub plan: Option<Arc<Plan>>,
}

/// What came of a put.
#[derive(Debug, Clone)]
pub struct GraphKept {
    /// The newest version, which says what was put.
    pub graph: Graph,
    /// There was no such graph before.
    pub is_first: bool,
}

/// Why a graph was not kept, or not found.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// It is not a flow.
    #[error(transparent)]
    Invalid(#[from] FlowError),
    /// Its newest version is another one.
    #[error("the newest version is {newest}")]
    Changed {
        /// The newest version; 0 if there is none.
        newest: u64,
    },
    /// Others put versions again and again.
    #[error("the graph is changed by too many at once; try again")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a name stands for, as this process has seen it. Only used where nobody else can change it.
#[derive(Debug, Default)]
pub(crate) struct KnownGraphs(Mutex<HashMap<Name, Option<Arc<Graph>>>>);

type Name = (Option<TenantId>, String);

impl Engine {
    /// Keeps a version of a graph. The same text again is the same version.
    pub async fn put_graph(&self, put: GraphPut) -> Result<GraphKept, GraphError> {
        let (flow_version, plan) = compile(&put.id, &put.source)?;
        for _ in 0..TRIES {
            let newest = self.store.graph(put.tenant.as_ref(), &put.id, None).await?;
            let live = newest.as_ref().filter(|record| record.source.is_some());
            let seen = live.map_or(0, |record| record.version);
            if put.expected.is_some_and(|expected| expected != seen) {
                return Err(GraphError::Changed { newest: seen });
            }
            if let Some(record) = live.filter(|record| record.source.as_ref() == Some(&put.source)) {
                let graph = Graph { record: record.clone(), flow_version, plan };
                return Ok(GraphKept { graph, is_first: false });
            }
            let is_first = live.is_none();
            let record = GraphRecord {
                tenant: put.tenant.clone(),
                id: put.id.clone(),
                version: newest.map_or(1, |newest| newest.version + 1),
                at: self.clock.now(),
                by: put.by.clone(),
                source: Some(put.source.clone()),
            };
            let is_kept = self.store.put_graph(record.clone()).await?;
            self.graphs.forget(record.tenant.as_ref(), &record.id);
            if is_kept {
                return Ok(GraphKept { graph: Graph { record, flow_version, plan }, is_first });
            }
        }
        Err(GraphError::Busy)
    }

    /// A version of a graph, or the newest; `None` if there is none, or it is deleted.
    pub async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<Graph>, GraphError> {
        self.store.graph(tenant, id, version).await?.map(compiled).transpose().map(Option::flatten)
    }

    /// Deletes a graph: nothing new can be made of it. Says whether there was one.
    pub async fn delete_graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        by: Option<String>,
        expected: Option<u64>,
    ) -> Result<bool, GraphError> {
        for _ in 0..TRIES {
            let newest = self.store.graph(tenant, id, None).await?;
            let Some(live) = newest.filter(|record| record.source.is_some()) else { return Ok(false) };
            if expected.is_some_and(|expected| expected != live.version) {
                return Err(GraphError::Changed { newest: live.version });
            }
            let (version, at) = (live.version + 1, self.clock.now());
            let is_kept = self
                .store
                .put_graph(GraphRecord { version, at, by: by.clone(), source: None, ..live })
                .await?;
            self.graphs.forget(tenant, id);
            if is_kept {
                return Ok(true);
            }
        }
        Err(GraphError::Busy)
    }

    /// The graph of a name as this process knows it: for those who submit by name.
    pub(crate) async fn known_graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
    ) -> Result<Option<Arc<Graph>>, GraphError> {
        if self.store.is_exclusive()
            && let Some(known) = self.graphs.get(tenant, id)
        {
            return Ok(known);
        }
        let record = self.store.known_graph(tenant, id).await?;
        let graph = record.map(compiled).transpose()?.flatten().map(Arc::new);
        self.graphs.put(tenant, id, graph.clone());
        Ok(graph)
    }
}

impl Graph {
    /// The text, for workers that compile it themselves.
    pub(crate) fn workflow(&self) -> Option<Workflow> {
        let source = self.record.source.as_ref().filter(|_| self.plan.is_none())?;
        let sha256 = Digest::of_bytes(source.text.as_bytes()).to_string();
        Some(Workflow { text: source.text.as_str().into(), sha256 })
    }
}

impl KnownGraphs {
    fn get(&self, tenant: Option<&TenantId>, id: &str) -> Option<Option<Arc<Graph>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(tenant.cloned(), id.to_owned())).cloned()
    }

    fn put(&self, tenant: Option<&TenantId>, id: &str, graph: Option<Arc<Graph>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert((tenant.cloned(), id.to_owned()), graph);
    }

    fn forget(&self, tenant: Option<&TenantId>, id: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(tenant.cloned(), id.to_owned()));
    }
}

fn compiled(record: GraphRecord) -> Result<Option<Graph>, GraphError> {
    let Some(source) = &record.source else { return Ok(None) };
    let (flow_version, plan) = compile(&record.id, source)?;
    Ok(Some(Graph { record, flow_version, plan }))
}

/// JSON is YAML, so one reader serves both.
fn compile(id: &str, source: &GraphSource) -> Result<(i64, Option<Arc<Plan>>), FlowError> {
    let workflow = pyoco_flow::parse(source.text.as_bytes(), Limits::default())?;
    let plan = match workflow.version() {
        1 => None,
        _ => Some(Arc::new(workflow.compile(id, &Loaded::default())?)),
    };
    Ok((workflow.version(), plan))
}
