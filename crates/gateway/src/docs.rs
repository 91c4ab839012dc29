//! What the gateway says about itself: `/openapi.json`, and a page to browse it that needs no network.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi;
use utoipa_swagger_ui::Config;

use crate::error::Refusal;
use crate::{App, health, metrics, runs, workers};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "pyoco-server (HTTP gateway)",
        description = "Submit flows, look at their runs, watch and cancel them."
    ),
    paths(
        health::health,
        metrics::metrics,
        runs::submit::submit,
        runs::submit_yaml::submit_yaml,
        runs::list::list,
        runs::get::get,
        runs::tasks::tasks,
        runs::watch::watch,
        runs::cancel::cancel,
        workers::list,
        workers::hide,
    )
)]
struct Description;

/// The page lives under several paths; its parts under one.
const PAGES: [&str; 3] = ["/docs", "/docs/", "/redoc"];
const PARTS: &str = "/docs/";

pub(crate) fn routes() -> Router<App> {
    let mut description = Description::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut description.info.version);
    let config = Arc::new(Config::from("/openapi.json"));
    let parts = config.clone();
    let part = move |Path(path): Path<String>| async move { part(&path, parts) };
    let described = Json(description);
    let mut routes = Router::new()
        .route("/openapi.json", get(|| async move { described }))
        .route(&format!("{PARTS}{{*path}}"), get(part));
    for path in PAGES {
        let config = config.clone();
        routes = routes.route(path, get(|| async move { page(config) }));
    }
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
