//! The HTTP gateway: requests become questions to the engine, and what it says becomes answers in the contract's words.
//!
//! One folder or file a surface (`runs`, `jobs`, `tags`, `executions`, `graphs`, `waits`, `workers`, `metrics`, `health`, `docs`);
//! `logs` is what `runs` and `jobs` share. What a request may look like is checked in
//! `validation` and `body`, before anything is asked; what went wrong is told by `error`, in one place. Nothing is decided
//! here: `pyoco_core::decide` does that.

mod access;
mod body;
mod caller;
mod docs;
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
mod query;
mod runs;
mod server;
mod settings;
mod sse;
mod tags;
mod unhurried;
mod validation;
mod waits;
mod workers;

use std::sync::Arc;

pub use axum::Router;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, patch, post};
use pyoco_engine::{Clock, Engine};
use tokio::sync::Semaphore;

pub use access::{Access, Admitted, NotAdmitted};
pub use server::{ServerLimits, serve};
pub use settings::Settings;

use error::Refusal;

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
    pub(crate) access: Arc<dyn Access>,
    /// One permit for each open watch.
    pub(crate) watches: Arc<Semaphore>,
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
        Self::with_access(engine, clock, settings, Arc::new(access::Everybody))
    }

    /// A gateway to an engine, for those who are admitted.
    pub fn with_access(
        engine: Engine,
        clock: Arc<dyn Clock>,
        settings: Settings,
        access: Arc<dyn Access>,
    ) -> Self {
        let watches = Arc::new(Semaphore::new(settings.max_watches));
        Self { shared: Arc::new(Shared { engine, clock, settings, access, watches }) }
    }

    /// Its routes.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for (path, methods) in routes() {
            // As the original: the same path with a slash at its end leads here.
            router = router.route(&format!("{path}/"), any(without_slash)).route(path, methods);
        }
        router
            .merge(docs::routes())
            .fallback(|| async { Refusal::path_not_found() })
            .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
            .layer(axum::middleware::from_fn(guard::guard))
            .with_state(self.shared.clone())
    }
}

fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/health", get(health::health)),
        ("/metrics", get(metrics::metrics)),
        ("/runs", get(runs::list::list).post(runs::submit::submit)),
        ("/runs/yaml", post(runs::submit_yaml::submit_yaml).get(runs::get::get_named_yaml)),
        ("/runs/{run_id}", get(runs::get::get)),
        ("/runs/{run_id}/tasks", get(runs::tasks::tasks)),
        ("/runs/{run_id}/watch", get(runs::watch::watch)),
        ("/runs/{run_id}/cancel", post(runs::cancel::cancel)),
        ("/runs/{run_id}/logs", get(runs::logs::get)),
        ("/runs/{run_id}/logs/stream", get(runs::logs::stream)),
        ("/jobs", get(jobs::list::list).post(jobs::create::create)),
        ("/jobs/{id}", get(jobs::get::get).delete(jobs::delete::delete)),
        ("/jobs/{id}/logs", get(jobs::logs::get)),
        ("/jobs/{id}/logs/stream", get(jobs::logs::stream)),
        ("/jobs/{id}/ws", get(jobs::socket::open)),
        ("/jobs/{id}/tags", get(tags::job::list).post(tags::job::add)),
        ("/jobs/{id}/tags/{tag}", delete(tags::job::remove)),
        ("/tags", get(tags::list::list)),
        ("/executions", get(executions::list::list).post(executions::create::create)),
        ("/executions/{executionId}", get(executions::get::get)),
        ("/executions/{executionId}/start", post(executions::commands::start)),
        ("/executions/{executionId}/cancel", post(executions::commands::cancel)),
        ("/executions/{executionId}/archive", post(executions::commands::archive)),
        ("/executions/{executionId}/retry", post(executions::retry::retry)),
        ("/executions/{executionId}/events", get(executions::events::events)),
        ("/executions/{executionId}/events/stream", get(executions::stream::stream)),
        ("/executions/{executionId}/nodes/{nodeId}/start", post(executions::nodes::start)),
        ("/executions/{executionId}/nodes/{nodeId}/progress", post(executions::nodes::progress)),
        ("/executions/{executionId}/nodes/{nodeId}/wait", post(executions::nodes::wait)),
        ("/executions/{executionId}/nodes/{nodeId}/resume", post(executions::nodes::resume)),
        ("/executions/{executionId}/nodes/{nodeId}/success", post(executions::nodes::success)),
        ("/executions/{executionId}/nodes/{nodeId}/fail", post(executions::nodes::fail)),
        ("/executions/{executionId}/nodes/{nodeId}/cancel", post(executions::nodes::cancel)),
        ("/graphs", get(graphs::list::list)),
        ("/graphs/{graphId}", get(graphs::get::get).put(graphs::put::put).delete(graphs::delete::delete)),
        ("/waits", get(waits::list)),
        ("/workers", get(workers::list)),
        ("/workers/{worker_id}", patch(workers::hide)),
    ]
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
