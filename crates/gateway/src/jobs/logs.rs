//! The log of a job. What is answered is `crate::logs`'s affair; here is how it is asked for.

use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use pyoco_api::LogPage;

use super::JobPath;
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, JobLogFollowed, JobLogRead, LogHeaders, LogQuery, ServerSentEvent, StreamQuery};
use crate::error::Denial;
use crate::logs::{self, Following, Log, View};
use crate::query::Query;
use crate::server::Hosting;

/// The log of a job, oldest line first: a page of it as JSON, or all of it as text (`Accept: text/plain`), of which a part can be asked
/// for with `Range`.
#[utoipa::path(get, operation_id = "getJobLog", tag = "jobs", path = "/jobs/{id}/logs", params(("id" = String, Path), LogQuery, LogHeaders), responses(
    (status = 200, description = "The lines.", content((LogPage = "application/json"), (String = "text/plain")),
        headers(("ETag" = String), ("Accept-Ranges" = String, description = "of the text: `bytes`, or `none` when only some lines are wanted"))),
    JobLogRead, Denied
))]
pub(crate) async fn get(
    State(app): State<App>,
    Viewer(caller): Viewer,
    JobPath(job): JobPath,
    query: Query,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Denial> {
    let log = Log { caller: &caller, execution: &job, view: View::Job };
    Ok(app.log(&log, &query, &method, &headers).await?)
}

/// The lines of a job as they are written. The `id` of each is its number; `event: status` says that nothing more will come.
#[utoipa::path(get, operation_id = "streamJobLog", tag = "jobs", path = "/jobs/{id}/logs/stream", params(("id" = String, Path), StreamQuery,
    ("Last-Event-ID" = Option<u64>, Header, description = "the number of the last line that was seen; it wins over the token")
), responses(
    (status = 200, description = "The lines (`logEntry`); the data of each are a `LogEntry`, those of the end (`status`) are a `Job`.", body = ServerSentEvent, content_type = "text/event-stream"),
    (status = 204, description = "Everything was told; there is nothing to come back for."), JobLogFollowed, Denied
))]
pub(crate) async fn stream(
    State(app): State<App>,
    Viewer(caller): Viewer,
    JobPath(job): JobPath,
    query: Query,
    hosting: Hosting,
    headers: HeaderMap,
) -> Result<Response, Denial> {
    let log = Log { caller: &caller, execution: &job, view: View::Job };
    let following = Following { query: &query, headers: &headers, closing: hosting.closing };
    Ok(logs::follow(app, log, following).await?)
}
