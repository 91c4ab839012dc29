//! The HTTP gateway: requests become questions to the engine, and what it says becomes answers in the contract's words.
//!
//! One folder or file a surface (`runs`, `jobs`, `tags`, `executions`, `graphs`, `waits`, `workers`, `wheels`, `audit`, `metrics`, `health`, `docs`, `page`);
//! `logs` is what `runs` and `jobs` share, `range` and `conditions` are the rules of HTTP about what is read in parts. What a request may look like is checked in
//! `validation` and `body`, before anything is asked. Who may come in at all is seen to at the `door`; what there is stands in
//! `routes`; what went wrong is told by `error`, in one place. Nothing is decided
//! here: `pyoco_core::decide` does that.

mod access;
mod audit;
mod body;
mod caller;
mod conditions;
mod docs;
mod door;
mod error;
mod executions;
mod fields;
mod graphs;
mod guard;
mod health;
mod idempotency;
mod jobs;
mod logs;
mod metrics;
mod opaque;
mod pace;
mod page;
mod query;
mod range;
mod routes;
mod runs;
mod server;
mod settings;
mod sse;
mod tags;
mod trace;
mod unhurried;
mod validation;
mod waits;
mod wheels;
mod workers;

use std::sync::Arc;

pub use axum::Router;
pub use axum::http::HeaderName;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use pyoco_engine::{Clock, Engine};
use tokio::sync::Semaphore;

pub use access::{Access, Admitted, NotAdmitted};
pub use audit::stored as stored_audit_entry;
pub use metrics::worker_router;
pub use page::PageFile;
pub use routes::RouteInfo;
pub use server::{ServerLimits, serve};
pub use settings::{DashboardSettings, Language, Settings, WheelSettings};

use docs::Described;
use door::Door;
use error::Refusal;
use page::Page;
use routes::{Actions, Route};
use runs::checked::Checked;
use runs::latest::Latest;

/// The gateway of one process.
#[derive(Clone)]
pub struct Gateway {
    shared: App,
}

/// What every handler sees.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) door: Door,
    pub(crate) actions: Actions,
    pub(crate) page: Page,
    pub(crate) described: Described,
    /// Flows that need not be read again.
    pub(crate) checked: Checked,
    /// What all who watch a run are sent.
    pub(crate) latest: Latest,
    /// One permit for each open watch.
    pub(crate) watches: Arc<Semaphore>,
    /// One permit for each wheel that is being uploaded.
    pub(crate) uploads: Arc<Semaphore>,
}

pub(crate) type App = Arc<Shared>;

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gateway")
    }
}

impl Gateway {
    /// A gateway to an engine, for everybody.
    pub fn new(engine: Engine, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self::behind(Door::Open, engine, clock, settings)
    }

    /// A gateway to an engine, for those who are admitted.
    pub fn with_access(
        engine: Engine,
        clock: Arc<dyn Clock>,
        settings: Settings,
        access: Arc<dyn Access>,
    ) -> Self {
        let door = Door::closed(access, settings.api_key_header.clone(), engine.figures().clone());
        Self::behind(door, engine, clock, settings)
    }

    fn behind(door: Door, engine: Engine, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let watches = Arc::new(Semaphore::new(settings.max_watches));
        let uploads = Arc::new(Semaphore::new(wheels::MOST_UPLOADS));
        let (actions, page, checked) = (Actions::of_all(), Page::new(&settings), Checked::default());
        let (latest, described) = (Latest::default(), Described::default());
        let shared = Shared {
            engine,
            clock,
            settings,
            door,
            actions,
            page,
            described,
            checked,
            latest,
            watches,
            uploads,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Every kind of request there is, and who may send it.
    pub fn routes() -> Vec<RouteInfo> {
        routes::table()
    }

    /// What answers requests.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for Route { path, methods, .. } in routes::api() {
            // As the original: the same path with a slash at its end leads here.
            router = router.route(&format!("{path}/"), any(without_slash)).route(path, methods);
        }
        for Route { path, methods, .. } in page::routes().into_iter().chain(docs::routes()) {
            router = router.route(path, methods);
        }
        router
            .fallback(|| async { Refusal::path_not_found() })
            .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
            // Around everything, also what does not exist.
            .layer(axum::middleware::from_fn_with_state(self.shared.clone(), guard::guard))
            .with_state(self.shared.clone())
    }
}

/// 307 to the path without the slash at its end.
async fn without_slash(uri: Uri) -> Response {
    let path = uri.path().trim_end_matches('/');
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    axum::response::Redirect::temporary(&target).into_response()
}
