//! The audit trail: what every request that may change something leaves behind, whoever answers it. `list` shows it.
//!
//! An entry names who, what, from where and how it went. It never holds what a run was given, a body, a header or a secret.

pub(crate) mod list;

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::RequestExt as _;
use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use pyoco_api::{AuditEntry, AuditOutcome, Extra};
use pyoco_core::ids::{ExecutionId, TenantId};
use pyoco_wheels::WheelName;
use serde_json::Value;

use crate::App;
use crate::caller::Caller;
use crate::door::place;
use crate::routes::Action;
use crate::server::Hosting;
use crate::unhurried::to_its_end;

/// What a path names is kept up to so many characters.
const LONGEST: usize = 256;

/// A cancel over a WebSocket, which is no request of its own.
pub(crate) const SOCKET_CANCEL: Action = Action { name: "jobs.cancel", is_written_first: false };

/// What a handler tells about its request, as an extension of the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    made: Option<String>,
    details: Extra,
    each: Vec<(Action, String)>,
}

impl Told {
    /// What came with an answer.
    pub(crate) fn of(response: &Response) -> Self {
        response.extensions().get::<Self>().cloned().unwrap_or_default()
    }

    /// An execution was made.
    pub(crate) fn made(execution: &ExecutionId) -> Self {
        Self { made: Some(execution.to_string()), ..Self::default() }
    }

    /// A wheel is what it is about.
    pub(crate) fn wheel(name: &WheelName) -> Self {
        Self { made: Some(name.to_string()), ..Self::default() }
    }

    /// Somebody said why.
    pub(crate) fn because(reason: Option<String>) -> Self {
        let told = Self::default();
        match reason {
            Some(reason) => told.with("reason", reason),
            None => told,
        }
    }

    /// Something else that is worth knowing.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// It was done to each of these, too.
    #[must_use]
    pub(crate) fn each(mut self, name: &'static str, targets: impl IntoIterator<Item = String>) -> Self {
        let action = Action { name, is_written_first: false };
        self.each.extend(targets.into_iter().map(|target| (action, target)));
        self
    }
}

/// Something that somebody has begun to do. However it ends, it leaves an entry.
pub(crate) struct Deed {
    app: App,
    action: Action,
    /// Until it is noted.
    entry: Option<AuditEntry>,
}

impl Deed {
    /// What a request is about to do, if it may change anything. Its caller is known.
    pub(crate) async fn begun(app: &App, request: &mut Request, thread: Option<&str>) -> Option<Self> {
        let action = app.actions.of(place(request), request.method())?;
        let mut deed = {
            let extensions = request.extensions();
            Self::of(app, action, extensions.get(), source(extensions))
        };
        let entry = deed.entry.as_mut()?;
        entry.correlation_id = thread.map(str::to_owned);
        if let Ok(named) = request.extract_parts::<RawPathParams>().await {
            let mut named = named.iter().map(|(name, text)| (name, shortened(text)));
            entry.target = named.next().map(|(_, text)| text);
            entry.details.extend(named.map(|(name, text)| (name.to_owned(), text.into())));
        }
        Some(deed)
    }

    /// What a caller is about to do.
    pub(crate) fn of(app: &App, action: Action, caller: Option<&Caller>, source: Option<SocketAddr>) -> Self {
        let entry = entry(app, action.name, caller, source);
        Self { app: app.clone(), action, entry: Some(entry) }
    }

    /// What it is about.
    #[must_use]
    pub(crate) fn about(mut self, target: &ExecutionId) -> Self {
        if let Some(entry) = &mut self.entry {
            entry.target = Some(target.to_string());
        }
        self
    }

    /// It was answered so.
    pub(crate) async fn ended(mut self, status: StatusCode, told: Told) {
        let Some(mut entry) = self.entry.take() else { return };
        let Told { made, details, each } = told;
        entry.status = Some(status.as_u16());
        entry.outcome = outcome(status);
        entry.details.extend(details);
        // What is made is what a submission is about; of a retry it is what came of it.
        match (&entry.target, made) {
            (None, made) => entry.target = made,
            (Some(_), Some(made)) => {
                entry.details.insert("made".to_owned(), made.into());
            }
            (Some(_), None) => {}
        }
        let trail = self.app.engine.trail().clone();
        for (action, target) in each {
            let details = Extra::from_iter([("bulk".to_owned(), Value::from(entry.id.as_str()))]);
            let (id, action) = (trail.entry_id(entry.at), action.name.to_owned());
            trail.note(stored(AuditEntry { id, action, target: Some(target), details, ..entry.clone() }));
        }
        if !(self.action.is_written_first && entry.outcome == AuditOutcome::Ok) {
            return trail.note(stored(entry));
        }
        // To its end, also if the caller goes away now. One that cannot be written is written later; the change cannot be taken back.
        let written = to_its_end(async move { trail.write(stored(entry)).await }).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(action = self.action.name, "a change is not in the audit trail yet: {error}");
        }
    }
}

impl Drop for Deed {
    /// The caller went away, or a handler broke.
    fn drop(&mut self) {
        let Some(mut entry) = self.entry.take() else { return };
        if std::thread::panicking() {
            entry.status = Some(StatusCode::INTERNAL_SERVER_ERROR.as_u16());
            entry.outcome = AuditOutcome::Failed;
        }
        self.app.engine.trail().note(stored(entry));
    }
}

/// Somebody was not let in. That may happen thousands of times a second, so it is counted, and the last one named.
pub(crate) fn refused(app: &App, source: Option<SocketAddr>, status: StatusCode) {
    app.engine.trail().count(|count| {
        let details = Extra::from_iter([("count".to_owned(), count.into())]);
        let (outcome, status) = (outcome(status), Some(status.as_u16()));
        stored(AuditEntry { status, outcome, details, ..entry(app, "door.refused", None, source) })
    });
}

/// Where a request comes from: the other side of its connection. Headers may say anything.
pub(crate) fn source(extensions: &Extensions) -> Option<SocketAddr> {
    let hosted = extensions.get::<Hosting>().and_then(|hosting| hosting.peer);
    hosted.or_else(|| extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0))
}

/// The same, for handlers.
pub(crate) struct Source(pub(crate) Option<SocketAddr>);

impl FromRequestParts<App> for Source {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        Ok(Self(source(&parts.extensions)))
    }
}

/// An entry of which nobody knows yet how it ends.
fn entry(app: &App, action: &str, caller: Option<&Caller>, source: Option<SocketAddr>) -> AuditEntry {
    let at = app.clock.now();
    AuditEntry {
        id: app.engine.trail().entry_id(at),
        at,
        action: action.to_owned(),
        actor: caller.and_then(Caller::actor),
        tenant: caller.and_then(|caller| caller.tenant.as_ref()).map(|tenant| tenant.as_str().to_owned()),
        source: source.map(|source| source.to_string()),
        correlation_id: None,
        target: None,
        status: None,
        outcome: AuditOutcome::Unknown,
        details: Extra::new(),
        extra: Extra::new(),
    }
}

fn outcome(status: StatusCode) -> AuditOutcome {
    match status {
        status if status.is_server_error() => AuditOutcome::Failed,
        status if status.is_client_error() => AuditOutcome::Refused,
        _ => AuditOutcome::Ok,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// An entry as a store keeps it.
pub fn stored(entry: AuditEntry) -> pyoco_ports::AuditEntry {
    // Room for most, taken once. Texts, numbers and instants always have a JSON form.
    let mut body = Vec::with_capacity(512);
    let _ = serde_json::to_writer(&mut body, &entry);
    pyoco_ports::AuditEntry {
        body,
        tenant: entry.tenant.and_then(|tenant| TenantId::new(&tenant).ok()),
        id: entry.id,
        at: entry.at,
        action: entry.action,
        target: entry.target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_told_from_what_failed() {
        for (status, wanted) in [
            (200, AuditOutcome::Ok),
            (204, AuditOutcome::Ok),
            (307, AuditOutcome::Ok),
            (404, AuditOutcome::Refused),
            (429, AuditOutcome::Refused),
            (500, AuditOutcome::Failed),
            (507, AuditOutcome::Failed),
        ] {
            assert_eq!(outcome(StatusCode::from_u16(status).unwrap()), wanted, "{status}");
        }
    }

    #[test]
    fn the_other_side_is_who_it_is_whatever_its_headers_say() {
        let mut extensions = Extensions::new();
        assert_eq!(source(&extensions), None);
        let (near, far) = (SocketAddr::from(([127, 0, 0, 1], 7)), SocketAddr::from(([192, 0, 2, 7], 8)));
        extensions.insert(ConnectInfo(far));
        assert_eq!(source(&extensions), Some(far));
        let mut hosting = Hosting::default();
        hosting.peer.replace(near);
        extensions.insert(hosting);
        assert_eq!(source(&extensions), Some(near));
    }
}
