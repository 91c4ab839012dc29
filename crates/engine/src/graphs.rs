//! Registered graphs: flows under a name, in versions, checked before they are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyoco_core::command::Workflow;
use pyoco_core::digest::Digest;
use pyoco_core::ids::TenantId;
use pyoco_core::plan::Plan;
use pyoco_flow::{FlowError, Limits, Loaded};
use pyoco_ports::{ErrorKind, GraphRecord, GraphSource, StoreError};

use crate::Engine;

/// So often a put is tried again because somebody else was faster.
const TRIES: u32 = 8;
/// So many names are remembered; then all are forgotten, which costs a look at each.
const KNOWN: usize = 4_096;
/// The longest name of a graph, in bytes: 256 characters.
const LONGEST_NAME: usize = 1_024;

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
    /// The text, for workers that compile it themselves.
    pub(crate) workflow: Option<Workflow>,
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

/// What names stand for, as this process has seen it.
#[derive(Debug, Default)]
pub(crate) struct KnownGraphs(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Rises when something changes, so that what was read before the change is not taken for what is there after it.
    changes: u64,
    /// The newest version of each name, if there is one. Only where nobody else can change it.
    heads: HashMap<Name, Option<Arc<Graph>>>,
    /// What was compiled last of each name. A version never changes.
    compiled: HashMap<Name, Arc<Graph>>,
}

type Name = (Option<TenantId>, String);

impl Engine {
    /// Keeps a version of a graph. The same text again is the same version.
    pub async fn put_graph(&self, put: GraphPut) -> Result<GraphKept, GraphError> {
        let compiled = compile(put.id.clone(), put.source.clone()).await?;
        let graph = |record| compiled.clone().of(record);
        for _ in 0..TRIES {
            let newest = self.store.graph(put.tenant.as_ref(), &put.id, None).await?;
            let live = newest.as_ref().filter(|record| record.source.is_some());
            let seen = live.map_or(0, |record| record.version);
            if put.expected.is_some_and(|expected| expected != seen) {
                return Err(GraphError::Changed { newest: seen });
            }
            if let Some(record) = live.filter(|record| record.source.as_ref() == Some(&put.source)) {
                return Ok(GraphKept { graph: graph(record.clone()), is_first: false });
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
            if self.keep_version(record.clone()).await? {
                return Ok(GraphKept { graph: graph(record), is_first });
            }
        }
        Err(GraphError::Busy)
    }

    /// Puts a version, and forgets what was known: also when nobody knows whether it was kept.
    async fn keep_version(&self, record: GraphRecord) -> Result<bool, StoreError> {
        let name = (record.tenant.clone(), record.id.clone());
        let kept = self.store.put_graph(record).await;
        self.graphs.forget(&name);
        kept
    }

    /// A version of a graph, or the newest; `None` if there is none, or the graph is deleted.
    pub async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<Arc<Graph>>, GraphError> {
        let newest = self.store.graph(tenant, id, None).await?;
        let Some(newest) = newest.filter(|newest| newest.source.is_some()) else { return Ok(None) };
        match version {
            Some(version) if version != newest.version => {
                let older = self.store.graph(tenant, id, Some(version)).await?;
                self.compiled(older).await
            }
            Some(_) | None => self.compiled(Some(newest)).await,
        }
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
            if self.keep_version(GraphRecord { version, at, by: by.clone(), source: None, ..live }).await? {
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
        // No graph has a longer name, and names that nobody has are remembered too.
        if id.len() > LONGEST_NAME {
            return Ok(None);
        }
        let name = (tenant.cloned(), id.to_owned());
        let is_alone = self.store.is_exclusive();
        if is_alone && let Some(known) = self.graphs.head(&name) {
            return Ok(known);
        }
        let before = self.graphs.changes();
        let record = self.store.known_graph(tenant, id).await?;
        let graph = self.compiled(record).await?;
        if is_alone {
            self.graphs.put_head(name, graph.clone(), before);
        }
        Ok(graph)
    }

    /// What a version compiles to; a deletion to nothing.
    async fn compiled(&self, record: Option<GraphRecord>) -> Result<Option<Arc<Graph>>, GraphError> {
        let Some((record, source)) = record.and_then(|record| Some((record.clone(), record.source?))) else {
            return Ok(None);
        };
        let name = (record.tenant.clone(), record.id.clone());
        if let Some(graph) = self.graphs.compiled(&name).filter(|graph| graph.record == record) {
            return Ok(Some(graph));
        }
        let graph = Arc::new(compile(record.id.clone(), source).await?.of(record));
        self.graphs.put_compiled(name, graph.clone());
        Ok(Some(graph))
    }
}

impl KnownGraphs {
    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing in here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> u64 {
        self.lock().changes
    }

    fn head(&self, name: &Name) -> Option<Option<Arc<Graph>>> {
        self.lock().heads.get(name).cloned()
    }

    /// Remembers what was read when there had been so many changes, if none came since.
    fn put_head(&self, name: Name, graph: Option<Arc<Graph>>, before: u64) {
        let mut known = self.lock();
        if known.changes == before {
            make_room(&mut known.heads);
            known.heads.insert(name, graph);
        }
    }

    fn compiled(&self, name: &Name) -> Option<Arc<Graph>> {
        self.lock().compiled.get(name).cloned()
    }

    fn put_compiled(&self, name: Name, graph: Arc<Graph>) {
        let mut known = self.lock();
        make_room(&mut known.compiled);
        known.compiled.insert(name, graph);
    }

    fn forget(&self, name: &Name) {
        let mut known = self.lock();
        known.changes += 1;
        known.heads.remove(name);
    }
}

fn make_room<T>(names: &mut HashMap<Name, T>) {
    if names.len() >= KNOWN {
        names.clear();
    }
}

/// What a text compiles to.
#[derive(Clone)]
struct Compiled {
    flow_version: i64,
    plan: Option<Arc<Plan>>,
    workflow: Option<Workflow>,
}

impl Compiled {
    fn of(self, record: GraphRecord) -> Graph {
        let Self { flow_version, plan, workflow } = self;
        Graph { record, flow_version, plan, workflow }
    }
}

/// JSON is YAML, so one reader serves both. A long text takes a while: not on a thread that others wait for.
async fn compile(id: String, source: GraphSource) -> Result<Compiled, GraphError> {
    let compiled = tokio::task::spawn_blocking(move || -> Result<Compiled, FlowError> {
        let workflow = pyoco_flow::parse(source.text.as_bytes(), Limits::default())?;
        let flow_version = workflow.version();
        if flow_version == 1 {
            let sha256 = Digest::of_bytes(source.text.as_bytes()).to_string();
            let workflow = Some(Workflow { text: source.text.into(), sha256 });
            return Ok(Compiled { flow_version, plan: None, workflow });
        }
        let plan = Some(Arc::new(workflow.compile(&id, &Loaded::default())?));
        Ok(Compiled { flow_version, plan, workflow: None })
    });
    let compiled = compiled.await.map_err(|_| StoreError::plain(ErrorKind::Closed, "compile"))?;
    Ok(compiled?)
}
