//! The door: every request passes it, once, before anything else looks at it. Whoever may come in is known from here on as a
//! `Caller`; whoever may not gets no further.
//!
//! Closed unless the table of routes says otherwise. Which keys are good is `Access`' affair.

use std::sync::Arc;

use axum::extract::{MatchedPath, NestedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pyoco_core::access::Role;
use pyoco_core::notice::Notice;
use pyoco_figures::Figures;

use crate::access::{Access, Admitted, NotAdmitted};
use crate::caller::Caller;
use crate::error::Refusal;
use crate::routes::Needs;

/// No key is longer; what is longer is not even looked up.
const LONGEST: usize = 512;

/// Who may come in.
pub(crate) enum Door {
    /// Everybody, and they may do everything.
    Open,
    /// Holders of a key.
    Closed(Lock),
}

/// What is asked at a closed door.
pub(crate) struct Lock {
    access: Arc<dyn Access>,
    /// The header of a key; `Authorization: Bearer` means the same.
    header: HeaderName,
    needs: Needs,
    figures: Figures,
}

impl Door {
    /// For those who are admitted.
    pub(crate) fn closed(access: Arc<dyn Access>, header: HeaderName, figures: Figures) -> Self {
        Self::Closed(Lock { access, header, needs: Needs::of_all(), figures })
    }

    /// Lets a request in, with the name of its caller, or not.
    pub(crate) async fn pass(&self, request: &mut Request) -> Result<(), Refusal> {
        let caller = match self {
            Self::Open => Caller::anybody(),
            Self::Closed(lock) => match lock.needs.of(place(request), request.method()) {
                None => return Ok(()),
                Some(role) => lock.caller(request.headers(), role).await?,
            },
        };
        request.extensions_mut().insert(caller);
        Ok(())
    }
}

impl Lock {
    async fn caller(&self, headers: &HeaderMap, role: Role) -> Result<Caller, Refusal> {
        let shown = self.shown(headers).inspect_err(|_| self.figures.authenticated("wrong"))?;
        let admitted = self.admit(shown).await;
        self.figures.authenticated(match &admitted {
            Ok(_) => "ok",
            Err(NotAdmitted::NothingShown) => "nothing_shown",
            Err(NotAdmitted::Wrong) => "wrong",
            Err(NotAdmitted::Throttled) => "throttled",
            Err(NotAdmitted::Busy) => "busy",
            Err(NotAdmitted::Unknown(_)) => "unknown",
        });
        let caller = Caller::from(admitted?);
        caller.must_have(role)?;
        Ok(caller)
    }

    /// Who shows this.
    pub(crate) async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        if secret.is_some_and(|secret| secret.len() > LONGEST) {
            return Err(NotAdmitted::Wrong);
        }
        self.access.admit(secret).await
    }

    /// The one secret that a request shows, if it shows any. Of two, even of equal ones, none is taken: another reader on the way
    /// may have taken the other.
    pub(crate) fn shown<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>, Refusal> {
        let bearers = headers.get_all(header::AUTHORIZATION).iter().filter_map(bearer);
        let keys = headers.get_all(&self.header).iter();
        // With the key itself in `Authorization` there is only one header to look at.
        let keys = keys.filter(|value| self.header != header::AUTHORIZATION || bearer(value).is_none());
        let keys = keys.map(HeaderValue::as_bytes);
        let mut secrets = bearers.chain(keys).map(<[u8]>::trim_ascii).filter(|secret| !secret.is_empty());
        let Some(first) = secrets.next() else { return Ok(None) };
        if secrets.next().is_some() {
            let detail = format!("two credentials: send one key, once, in {} or Authorization", self.header);
            return Err(Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest));
        }
        match std::str::from_utf8(first) {
            Ok(secret) => Ok(Some(secret)),
            // No key has such bytes.
            Err(_) => Err(NotAdmitted::Wrong.into()),
        }
    }
}

/// What follows the word `Bearer`, in any case; nothing if another one stands there.
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, secret) = value.as_bytes().trim_ascii().split_at_checked(6)?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && secret.first().is_none_or(|next| *next == b' ');
    is_bearer.then_some(secret)
}

/// The path of the table that a request was matched to, also where the router is part of another one.
pub(crate) fn place(request: &Request) -> Option<&str> {
    let matched = request.extensions().get::<MatchedPath>()?.as_str();
    let nested = request.extensions().get::<NestedPath>().map_or("", |nested| nested.as_str());
    let place = matched.strip_prefix(nested.trim_end_matches('/'))?;
    Some(if place.is_empty() { "/" } else { place })
}
