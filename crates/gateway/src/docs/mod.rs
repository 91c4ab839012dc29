//! What the gateway says about itself: `/openapi.json`, and a page to browse it that needs no network.

mod access;
mod denials;
mod jobs;
mod logs;
mod refusals;
mod streams;
mod wheels;

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse, Response};
use pyoco_api::{Accepted, DenialBody, ErrorBody, FieldProblem, Job, JobNews, JobWish, LogEntry, WatchData};
use utoipa::OpenApi;
use utoipa_swagger_ui::Config;

use crate::door::Door;
use crate::error::Refusal;
use crate::routes::{self, Route};
use crate::{App, executions, graphs, health, metrics, runs, tags, waits, workers};

pub(crate) use denials::{
    Changing, CommandHeaders, Commanding, Denied, Found, GraphFound, Listed, ManyCommanding, Removing,
};
pub(crate) use jobs::{Adding, JobFound, JobHeaders, NotOpened, Removed, Submitting, Tokened};
pub(crate) use logs::{
    JobLogFollowed, JobLogRead, LogHeaders, LogQuery, RunLogFollowed, RunLogRead, StreamQuery,
};
pub(crate) use refusals::{Always, Bodied, Reading, Writing};
pub(crate) use streams::ServerSentEvent;
pub(crate) use wheels::{PartHeaders, WheelFile, WheelRead};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "pyoco-server (HTTP gateway)",
        description = "Submit flows, look at their runs, watch and cancel them; drive executions of registered graphs node by node; submit jobs, follow their logs and find them by their tags; upload wheels, from which workers install code."
    ),
    paths(
        health::health,
        metrics::metrics,
        runs::submit::submit,
        runs::submit_yaml::submit_yaml,
        runs::list::list,
        runs::changes::watch,
        runs::get::get,
        runs::tasks::tasks,
        runs::plan::plan,
        runs::explain::explain,
        runs::watch::watch,
        runs::cancel::cancel,
        runs::logs::get,
        runs::logs::stream,
        executions::create::create,
        executions::list::list,
        executions::get::get,
        executions::commands::start,
        executions::commands::cancel,
        executions::commands::archive,
        executions::retry::retry,
        executions::bulk::bulk,
        executions::events::events,
        executions::stream::stream,
        executions::nodes::start,
        executions::nodes::progress,
        executions::nodes::wait,
        executions::nodes::resume,
        executions::nodes::success,
        executions::nodes::fail,
        executions::nodes::cancel,
        graphs::list::list,
        graphs::put::put,
        graphs::get::get,
        graphs::delete::delete,
        waits::list,
        crate::jobs::create::create,
        crate::jobs::list::list,
        crate::jobs::get::get,
        crate::jobs::delete::delete,
        crate::jobs::logs::get,
        crate::jobs::logs::stream,
        crate::jobs::socket::open,
        tags::job::list,
        tags::job::add,
        tags::job::remove,
        tags::list::list,
        workers::list,
        workers::hide,
        crate::wheels::list::list,
        crate::wheels::upload::upload,
        crate::wheels::history::history,
        crate::wheels::download::download,
        crate::wheels::delete::delete,
        crate::audit::list::list,
    ),
    components(schemas(
        Accepted,
        DenialBody,
        ErrorBody,
        FieldProblem,
        Job,
        JobNews,
        JobWish,
        LogEntry,
        WatchData
    ))
)]
struct Description;

/// The page lives under several paths; its parts under one.
const PAGES: [&str; 2] = ["/docs", "/docs/"];
/// The original's other page. It is not among what everybody may see.
const OTHER_PAGE: &str = "/redoc";
const PARTS: &str = "/docs/";

/// The description as it is sent, written when somebody first asks: making it takes many times the memory that it has in the end, and most
/// gateways are never asked.
#[derive(Default)]
pub(crate) struct Described(OnceLock<Bytes>);

impl Described {
    /// Of a gateway whose keys, if it asks for any, come in this header.
    fn get(&self, header: &HeaderName, asks_for_keys: bool) -> Bytes {
        let write = || {
            let mut description = Description::openapi();
            env!("CARGO_PKG_VERSION").clone_into(&mut description.info.version);
            let routes: Vec<_> = routes::api().iter().flat_map(Route::lines).collect();
            access::describe(&mut description, &routes, header, asks_for_keys);
            // It has a JSON form, and writing to memory does not fail.
            serde_json::to_vec(&description).unwrap_or_default().into()
        };
        self.0.get_or_init(write).clone()
    }
}

async fn described(State(app): State<App>) -> Response {
    let asks_for_keys = matches!(app.door, Door::Closed(_));
    let described = app.described.get(&app.settings.api_key_header, asks_for_keys);
    ([(header::CONTENT_TYPE, "application/json")], described).into_response()
}

/// Where it is shown.
pub(crate) fn routes() -> Vec<Route> {
    let config = Arc::new(Config::from("/openapi.json"));
    let parts = config.clone();
    let part = move |Path(path): Path<String>| async move { part(&path, parts) };
    let page_at = |path| {
        let config = config.clone();
        Route::at(path).get(|| async move { page(config) })
    };
    let mut routes = vec![
        Route::at("/openapi.json").get(described).public(),
        Route::at("/docs/{*path}").get(part).public(),
        page_at(OTHER_PAGE),
    ];
    routes.extend(PAGES.map(|path| page_at(path).public()));
    routes
}

/// The page itself. It names its parts relative to itself, so it is told where they are.
fn page(config: Arc<Config<'static>>) -> Result<Html<String>, Refusal> {
    let Ok(Some(file)) = utoipa_swagger_ui::serve("", config) else { return Err(Refusal::path_not_found()) };
    let text = String::from_utf8_lossy(&file.bytes);
    Ok(Html(text.replacen("<head>", &format!("<head><base href=\"{PARTS}\">"), 1)))
}

fn part(path: &str, config: Arc<Config<'static>>) -> Result<Response, Refusal> {
    match utoipa_swagger_ui::serve(path, config) {
        Ok(Some(file)) => {
            Ok(([(header::CONTENT_TYPE, file.content_type)], file.bytes.into_owned()).into_response())
        }
        Ok(None) | Err(_) => Err(Refusal::path_not_found()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use pyoco_core::ids::{EventId, ExecutionId};
    use pyoco_core::time::Timestamp;
    use pyoco_engine::{Clock, Engine, Ids};
    use pyoco_store_memory::MemoryStore;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{Gateway, Settings};

    /// Nothing is run here, so nobody asks for a name.
    struct World;

    impl Clock for World {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(0)
        }
    }

    impl Ids for World {
        fn event(&self) -> EventId {
            panic!("an event")
        }

        fn execution(&self) -> ExecutionId {
            panic!("an execution")
        }
    }

    /// A router says itself which methods a path has: it names them when it is asked for another.
    async fn methods(router: Router, path: &str) -> Vec<String> {
        let names = [
            "{run_id}",
            "{worker_id}",
            "{executionId}",
            "{nodeId}",
            "{graphId}",
            "{id}",
            "{tag}",
            "{wheel_name}",
        ];
        let path = names.iter().fold(path.to_owned(), |path, name| path.replace(name, "x"));
        let request = Request::builder().method("TRACE").uri(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        let allowed = response.headers()[header::ALLOW].to_str().unwrap();
        allowed.split(',').map(str::to_ascii_lowercase).filter(|method| method != "head").collect()
    }

    #[tokio::test]
    async fn every_route_is_described_and_nothing_else_is() {
        let engine =
            Engine::new(Arc::new(MemoryStore::new()), Arc::new(World), Arc::new(World), Default::default());
        let router = Gateway::new(engine, Arc::new(World), Settings::default()).router();
        let mut served = BTreeSet::new();
        for Route { path, .. } in routes::api() {
            let methods = methods(router.clone(), path).await;
            served.extend(methods.into_iter().map(|method| (path.to_owned(), method)));
        }
        // To look there is to look for a run of that name, and that is described.
        assert!(served.remove(&("/runs/yaml".to_owned(), "get".to_owned())));
        let description = serde_json::to_value(Description::openapi()).unwrap();
        let mut described = BTreeSet::new();
        for (path, operations) in description["paths"].as_object().unwrap() {
            let methods = operations.as_object().unwrap().keys();
            described.extend(methods.map(|method| (path.clone(), method.clone())));
        }
        assert_eq!(described, served);
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let description = serde_json::to_value(Description::openapi()).unwrap();
        let paths = description["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|path| path.as_object().unwrap().values());
        let mut names = BTreeSet::new();
        for operation in operations {
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
        }
    }
}
