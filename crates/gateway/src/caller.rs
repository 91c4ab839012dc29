//! Who is calling. This is the only place that knows; every handler asks for a `Caller` before it does anything.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use pyoco_core::command::Issuer;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::TenantId;

use crate::App;
use crate::access::{self, Access, Admitted, NotAdmitted};
use crate::error::{Denial, Refusal};

/// Somebody at the API. Without API keys it is nobody in particular, who may see everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// Whose runs they may see and make; all when there is none.
    pub(crate) tenant: Option<TenantId>,
    /// The key they showed.
    pub(crate) key: Option<String>,
}

impl Caller {
    /// As the log names them.
    pub(crate) fn issuer(&self) -> Issuer {
        let id = self.key.as_ref().map(|key| format!("api_key:{key}"));
        Issuer::Caller(Actor { kind: ActorKind::User, id })
    }

    /// Whether a run of that tenant is theirs to see.
    pub(crate) fn may_see(&self, tenant: Option<&TenantId>) -> bool {
        self.tenant.is_none() || self.tenant.as_ref() == tenant
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let Admitted { tenant, key } = app.access.admit(access::shown(&parts.headers)).await?;
        Ok(Self { tenant, key })
    }
}

/// A caller who stays for longer than a request, and what they showed: it may cease to be good while they stay.
pub(crate) struct Guest {
    pub(crate) caller: Caller,
    secret: Option<String>,
}

impl Guest {
    pub(crate) fn new(caller: Caller, headers: &HeaderMap) -> Self {
        Self { caller, secret: access::shown(headers).map(str::to_owned) }
    }

    /// Whether what they showed still makes them who they are. As long as nobody can tell, it does.
    pub(crate) async fn may_stay(&self, access: &dyn Access) -> bool {
        match access.admit(self.secret.as_deref()).await {
            Ok(Admitted { tenant, key }) => {
                (tenant, key) == (self.caller.tenant.clone(), self.caller.key.clone())
            }
            Err(NotAdmitted::NothingShown | NotAdmitted::Wrong) => false,
            Err(NotAdmitted::Unknown(_)) => true,
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
