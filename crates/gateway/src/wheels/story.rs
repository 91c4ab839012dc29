//! Who changed the shelf: an event for the history. It never keeps a change from being made, or from being answered.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use pyoco_ports::{WheelAction, WheelActor, WheelEvent, WheelRecord, WheelSource};
use uuid::Uuid;

use crate::caller::Caller;
use crate::{App, Shared, audit};

/// So much of a header is kept.
const LONGEST: usize = 256;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Where a request comes from, as the history tells it.
pub(crate) struct Origin(WheelSource);

impl FromRequestParts<App> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        let headers = &parts.headers;
        Ok(Self(WheelSource {
            remote_addr: audit::source(&parts.extensions).map(|peer| peer.ip().to_string()),
            x_forwarded_for: said(headers, &FORWARDED_FOR),
            x_real_ip: said(headers, &REAL_IP),
            user_agent: said(headers, &header::USER_AGENT),
            host: said(headers, &header::HOST),
            scheme: Some("http".to_owned()),
        }))
    }
}

fn said(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let text = String::from_utf8_lossy(headers.get(name)?.as_bytes());
    Some(text.chars().take(LONGEST).collect())
}

impl Shared {
    /// Writes down what was done to a wheel.
    pub(super) async fn tell_story(
        &self,
        action: WheelAction,
        record: &WheelRecord,
        replace: Option<bool>,
        caller: &Caller,
        origin: Origin,
    ) {
        let event = WheelEvent {
            event_id: Uuid::new_v4().simple().to_string(),
            occurred_at: self.clock.now().as_unix_seconds(),
            action,
            wheel_name: record.name.to_string(),
            tags: record.tags.clone(),
            size_bytes: Some(record.size_bytes),
            sha256_hex: Some(record.sha256.to_string()),
            replace,
            actor: WheelActor {
                tenant_id: caller.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
                api_key_id: caller.key.clone(),
            },
            source: origin.0,
        };
        if let Err(error) = self.engine.store().note_wheel(event).await {
            tracing::warn!(wheel_name = %record.name, reason = %error, "a change of the wheels is not in their history");
        }
    }
}
