//! Who may come in. The gateway reads what a request shows (`door`) and asks; whoever keeps the keys answers.

use async_trait::async_trait;
use axum::http::{HeaderValue, StatusCode, header};
use pyoco_core::access::Role;
use pyoco_core::ids::TenantId;
use pyoco_core::notice::Notice;
use pyoco_ports::StoreError;

use crate::error::Refusal;

/// Knows the keys.
#[async_trait]
pub trait Access: Send + Sync {
    /// Who shows this secret, or nothing.
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted>;
}

/// Somebody who may come in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Whose runs they may see and make; all when there is none.
    pub tenant: Option<TenantId>,
    /// The key they showed, by its name.
    pub key: Option<String>,
    /// How much it opens.
    pub role: Role,
}

/// Why somebody may not.
#[derive(Debug)]
pub enum NotAdmitted {
    /// They show nothing.
    NothingShown,
    /// What they show opens nothing.
    Wrong,
    /// What they show was guessed at too often of late; it is not even looked at.
    Throttled,
    /// Too many are being looked at now.
    Busy,
    /// Nobody can tell now.
    Unknown(StoreError),
}

/// After so many seconds another guess may be made.
const THROTTLED: HeaderValue = HeaderValue::from_static("60");

impl From<NotAdmitted> for Refusal {
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::NothingShown => Self::new(StatusCode::UNAUTHORIZED, "api key required")
                .noticed(Notice::KeyRequired)
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            NotAdmitted::Wrong => {
                Self::new(StatusCode::FORBIDDEN, "invalid api key").noticed(Notice::KeyInvalid)
            }
            NotAdmitted::Throttled => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "this api key was shown wrongly too often")
                    .noticed(Notice::KeyInvalid)
                    .with_header(header::RETRY_AFTER, THROTTLED)
            }
            NotAdmitted::Busy => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "too many api keys are being checked").for_now()
            }
            NotAdmitted::Unknown(error) => error.into(),
        }
    }
}
