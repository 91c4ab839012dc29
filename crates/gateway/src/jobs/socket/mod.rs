//! The WebSocket of a job: its state, its progress and its log as they happen, and a way to cancel it.
//!
//! Here is who gets one. `session` is what is said over it, `line` how it is sent and what ends it, `wishes` what a client may say.

mod line;
mod origin;
mod progress;
mod session;
mod wishes;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use pyoco_core::notice::Notice;
use pyoco_figures::Stream;

use super::JobPath;
use crate::App;
use crate::audit::Source;
use crate::caller::{Guest, Viewer};
use crate::docs::{Denied, NotOpened};
use crate::error::{Denial, Refusal};
use crate::logs;
use crate::query::Query;
use crate::server::Hosting;

use session::Session;

/// The longest frame and the longest message of a client.
const LONGEST: usize = 64 << 10;
/// So much is written at once, and so much may wait to be written.
const WRITTEN_AT_ONCE: usize = 64 << 10;
const MOST_UNWRITTEN: usize = 1 << 20;

/// Follows a job over a WebSocket. Each message of the server is a `JobNews`, each message of the client a `JobWish`. After the last
/// `status` the server closes with 1000.
#[utoipa::path(get, operation_id = "openJobSocket", tag = "jobs", path = "/jobs/{id}/ws", params(
    ("id" = String, Path), ("sinceToken" = Option<String>, Query, description = "only lines behind this token"),
    ("Origin" = Option<String>, Header, description = "of a browser: it must be of the same host")
), responses((status = 101, description = "The socket is open."), NotOpened, Denied))]
pub(crate) async fn open(
    State(app): State<App>,
    Viewer(caller): Viewer,
    JobPath(job): JobPath,
    query: Query,
    (hosting, source): (Hosting, Source),
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Denial> {
    origin::must_be_ours(&headers)?;
    let after = logs::since(&query, &job)?.unwrap_or(0);
    app.job(&caller, &job, |_| ()).await?;
    logs::must_have(&app.engine, &job, after).await?;
    let upgrade = upgrade.map_err(no_socket)?;
    let Ok(permit) = app.watches.clone().try_acquire_owned() else {
        return Err(Refusal::too_many_watches(job.as_str()).into());
    };
    let watcher = app.engine.watch(&job);
    let follower = app.engine.follow_log(&job, after).await?;
    let kept = hosting.keep();
    let guest = Guest::new(caller, &headers, app.clone());
    let open = guest.stays(Stream::Socket);
    let (closing, source) = (hosting.closing, source.0);
    let session = Session::new(app, guest, source, job, follower, watcher, closing);
    let upgrade = upgrade
        .max_frame_size(LONGEST)
        .max_message_size(LONGEST)
        .write_buffer_size(WRITTEN_AT_ONCE)
        .max_write_buffer_size(MOST_UNWRITTEN)
        .on_failed_upgrade(|error: axum::Error| {
            tracing::debug!(reason = %error, "a connection did not become a WebSocket");
        });
    Ok(upgrade.on_upgrade(move |socket| async move {
        session.run(socket).await;
        drop((kept, permit, open));
    }))
}

/// Why a request is not one for a WebSocket.
fn no_socket(rejection: WebSocketUpgradeRejection) -> Refusal {
    let detail = rejection.to_string();
    let status = rejection.into_response().status();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let refusal = Refusal::new(status, detail).noticed(Notice::InvalidRequest);
        return refusal.with_header(header::ALLOW, HeaderValue::from_static("GET"));
    }
    Refusal::new(StatusCode::UPGRADE_REQUIRED, detail)
        .noticed(Notice::InvalidRequest)
        .with_header(header::UPGRADE, HeaderValue::from_static("websocket"))
        .with_header(header::CONNECTION, HeaderValue::from_static("upgrade"))
        .with_header(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))
}
