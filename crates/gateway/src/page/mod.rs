//! The dashboard: the page at `/` and its files under `/static/`. They are for everybody; what they show comes from the API, which asks
//! for keys where keys are asked for. The files come from outside (`DashboardSettings`); without them there is no page.

mod document;
mod encoding;

use std::collections::HashMap;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::App;
use crate::error::Refusal;
use crate::routes::Route;
use crate::settings::Settings;
use document::Document;

/// The page itself.
const INDEX: &str = "index.html";
/// The folder of everything else.
const FILES: &str = "static/";

/// A built file of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFile {
    /// Its place in the built folder: `index.html`, or `static/…`.
    pub name: &'static str,
    /// What is in it.
    pub plain: &'static [u8],
    /// The same, compressed with brotli.
    pub brotli: Option<&'static [u8]>,
    /// The same, compressed with gzip.
    pub gzip: Option<&'static [u8]>,
}

/// The dashboard, ready to be served.
pub(crate) struct Page {
    index: Option<Document>,
    /// By their names behind `/static/`. Nothing else is looked up, so no path leads anywhere else.
    files: HashMap<&'static str, Document>,
}

impl Page {
    /// Of the built files, with what the page has to know written into it.
    pub(crate) fn new(settings: &Settings) -> Self {
        let files = &settings.dashboard.files;
        let index = files.iter().find(|file| file.name == INDEX);
        let named = files.iter().filter_map(|file| Some((file.name.strip_prefix(FILES)?, file)));
        Self {
            index: index.map(|index| Document::written(INDEX, told(index, settings))),
            files: named.map(|(name, file)| (name, Document::of(file))).collect(),
        }
    }
}

/// The page with its placeholders filled in.
fn told(index: &PageFile, settings: &Settings) -> String {
    let dashboard = &settings.dashboard;
    // Of all the characters that HTML has a use for, the name of a header may have this one.
    let header = settings.api_key_header.as_str().replace('&', "&amp;");
    String::from_utf8_lossy(index.plain)
        .replace("__PYOCO_LANG__", dashboard.language.as_str())
        .replace("__PYOCO_ACTIONS__", if dashboard.has_actions { "1" } else { "0" })
        .replace("__PYOCO_API_KEY_HEADER__", &header)
}

/// Where it is.
pub(crate) fn routes() -> [Route; 2] {
    [Route::at("/").get(index).public(), Route::at("/static/{*path}").get(file).public()]
}

async fn index(State(app): State<App>, headers: HeaderMap) -> Result<Response, Refusal> {
    match &app.page.index {
        Some(index) => Ok(index.answer(&headers)),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "dashboard not found")),
    }
}

async fn file(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    // A name that is no text is the name of nothing.
    let name = path.map_err(|_| Refusal::path_not_found())?.0;
    let file = app.page.files.get(name.as_str()).ok_or_else(Refusal::path_not_found)?;
    Ok(file.answer(&headers))
}
