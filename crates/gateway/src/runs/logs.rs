//! The log of a run. What is answered is `crate::logs`'s affair; here is how it is asked for.

use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use pyoco_api::LogPage;

use super::RunId;
use crate::App;
use crate::caller::Caller;
use crate::docs::{
    Always, LogHeaders, LogQuery, Reading, RunLogFollowed, RunLogRead, ServerSentEvent, StreamQuery,
};
use crate::error::Refusal;
use crate::logs::{self, Following, Log, View};
use crate::query::Query;
use crate::server::Hosting;

/// The log of a run, oldest line first: a page of it as JSON, or all of it as text (`Accept: text/plain`), of which a part can be asked
/// for with `Range`.
#[utoipa::path(get, operation_id = "getRunLog", tag = "runs", path = "/runs/{run_id}/logs", params(("run_id" = String, Path), LogQuery, LogHeaders), responses(
    (status = 200, description = "The lines.", content((LogPage = "application/json"), (String = "text/plain")),
        headers(("ETag" = String), ("Accept-Ranges" = String, description = "of the text: `bytes`, or `none` when only some lines are wanted"))),
    RunLogRead, Reading, Always
))]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
    query: Query,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let log = Log { caller: &caller, execution: &run, view: View::Run };
    app.log(&log, &query, &method, &headers).await
}

/// The lines of a run as they are written. The `id` of each is its number; `event: status` says that nothing more will come.
#[utoipa::path(get, operation_id = "streamRunLog", tag = "runs", path = "/runs/{run_id}/logs/stream", params(("run_id" = String, Path), StreamQuery,
    ("Last-Event-ID" = Option<u64>, Header, description = "the number of the last line that was seen; it wins over the token")
), responses(
    (status = 200, description = "The lines (`logEntry`); the data of each are a `LogEntry`, those of the end (`status`) are `{run_id, status}`.", body = ServerSentEvent, content_type = "text/event-stream"),
    (status = 204, description = "Everything was told; there is nothing to come back for."), RunLogFollowed, Reading, Always
))]
pub(crate) async fn stream(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
    query: Query,
    hosting: Hosting,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let log = Log { caller: &caller, execution: &run, view: View::Run };
    let following = Following { query: &query, headers: &headers, closing: hosting.closing };
    logs::follow(app, log, following).await
}
