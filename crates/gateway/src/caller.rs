//! Who is calling. The door finds out, once a request; every handler asks here before it does anything.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use pyoco_api::AuditActor;
use pyoco_core::access::Role;
use pyoco_core::command::Issuer;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::TenantId;
use pyoco_core::notice::Notice;
use pyoco_figures::{Open, Stream};

use crate::App;
use crate::access::{Admitted, NotAdmitted};
use crate::door::Door;
use crate::error::{Denial, Refusal};

/// Somebody at the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Whose runs they may see and make; all when there is none.
    pub(crate) tenant: Option<TenantId>,
    /// The key they showed.
    pub(crate) key: Option<String>,
    role: Role,
}

impl From<Admitted> for Caller {
    fn from(Admitted { tenant, key, role }: Admitted) -> Self {
        Self { tenant, key, role }
    }
}

impl Caller {
    /// Nobody in particular, where no keys are asked for: they may see and do everything.
    pub(crate) const fn anybody() -> Self {
        Self { tenant: None, key: None, role: Role::Admin }
    }

    /// As the audit trail names them; nobody where no keys are asked for.
    pub(crate) fn actor(&self) -> Option<AuditActor> {
        self.key.clone().map(|key_id| AuditActor { key_id, role: self.role })
    }

    /// As the log names them.
    pub(crate) fn issuer(&self) -> Issuer {
        let id = self.key.as_ref().map(|key| format!("api_key:{key}"));
        Issuer::Caller(Actor { kind: ActorKind::User, id })
    }

    /// Whether a run of that tenant is theirs to see.
    pub(crate) fn may_see(&self, tenant: Option<&TenantId>) -> bool {
        self.tenant.is_none() || self.tenant.as_ref() == tenant
    }

    /// 403 for whoever may not do so much.
    pub(crate) fn must_have(&self, needed: Role) -> Result<(), Refusal> {
        if self.role >= needed {
            return Ok(());
        }
        let detail = format!("the role {needed} is needed; this key has the role {}", self.role);
        Err(Refusal::new(StatusCode::FORBIDDEN, detail).noticed(Notice::KeyInvalid))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Refusal> {
        // A handler that asks on a route that is for everybody finds nobody, and does nothing.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "nobody knows who is calling"))
    }
}

/// A caller who stays for longer than a request, and what they showed: it may cease to be good while they stay.
pub(crate) struct Guest {
    pub(crate) caller: Caller,
    secret: Option<String>,
    app: App,
}

impl Guest {
    pub(crate) fn new(caller: Caller, headers: &HeaderMap, app: App) -> Self {
        let secret = match &app.door {
            Door::Open => None,
            // Whoever showed two was not let in.
            Door::Closed(lock) => lock.shown(headers).ok().flatten().map(str::to_owned),
        };
        Self { caller, secret, app }
    }

    /// Whether what they showed still makes them who they are. As long as nobody can tell, it does.
    pub(crate) async fn may_stay(&self) -> bool {
        let Door::Closed(lock) = &self.app.door else { return true };
        match lock.admit(self.secret.as_deref()).await {
            Ok(admitted) => Caller::from(admitted) == self.caller,
            Err(NotAdmitted::NothingShown | NotAdmitted::Wrong) => false,
            Err(NotAdmitted::Throttled | NotAdmitted::Busy | NotAdmitted::Unknown(_)) => true,
        }
    }

    /// They are counted among those who follow something, until this is dropped.
    pub(crate) fn stays(&self, stream: Stream) -> Open {
        self.app.engine.figures().open(stream)
    }

    /// Returns when they may not stay any longer.
    pub(crate) async fn outstays(self) {
        if matches!(self.app.door, Door::Open) {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.app.settings.key_recheck).await;
            if !self.may_stay().await {
                tracing::debug!(key = self.caller.key, "a stream ends: its api key is no longer good");
                return;
            }
        }
    }
}

/// The same somebody at a surface with codes, where they are refused in its words.
#[derive(Debug)]
pub(crate) struct Viewer(pub(crate) Caller);

impl FromRequestParts<App> for Viewer {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        Ok(Self(Caller::from_request_parts(parts, app).await?))
    }
}
