//! Who may come in. The gateway reads what a request shows and asks; whoever keeps the keys answers.

use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use pyoco_core::ids::TenantId;
use pyoco_core::notice::Notice;
use pyoco_ports::StoreError;

use crate::error::Refusal;

/// The header of a key; `Authorization: Bearer` means the same.
const KEY: &str = "x-api-key";

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
}

/// Why somebody may not.
#[derive(Debug)]
pub enum NotAdmitted {
    /// They show nothing.
    NothingShown,
    /// What they show opens nothing.
    Wrong,
    /// Nobody can tell now.
    Unknown(StoreError),
}

/// Everybody may come in, and see everything.
pub(crate) struct Everybody;

#[async_trait]
impl Access for Everybody {
    async fn admit(&self, _secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        Ok(Admitted::default())
    }
}

/// What a request shows. Two secrets that differ are none: to choose would be to guess.
pub(crate) fn shown(headers: &HeaderMap) -> Option<&str> {
    let bearers = headers.get_all(header::AUTHORIZATION).iter().map(bearer);
    let keys = headers.get_all(KEY).iter().map(|value| value.to_str().unwrap_or_default().trim());
    let mut secrets = bearers.chain(keys).filter(|secret| !secret.is_empty());
    let first = secrets.next()?;
    // A secret that cannot be one is refused by whoever knows the keys.
    Some(if secrets.all(|other| other == first) { first } else { "two that differ" })
}

fn bearer(value: &HeaderValue) -> &str {
    let text = value.to_str().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => secret.trim(),
        Some(_) | None => "",
    }
}

impl From<NotAdmitted> for Refusal {
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::NothingShown => {
                Self::new(StatusCode::UNAUTHORIZED, "api key required").noticed(Notice::InvalidRequest)
            }
            NotAdmitted::Wrong => {
                Self::new(StatusCode::FORBIDDEN, "invalid api key").noticed(Notice::InvalidRequest)
            }
            NotAdmitted::Unknown(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_either_header_and_never_guessed() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
            shown(&pairs.collect()).map(str::to_owned)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("authorization", "Bearer k1")]).as_deref(), Some("k1"));
        assert_eq!(of(&[("authorization", "bearer  k1")]).as_deref(), Some("k1"));
        assert_eq!(of(&[("x-api-key", " k1 ")]).as_deref(), Some("k1"));
        assert_eq!(of(&[("x-api-key", "k1"), ("authorization", "Bearer k1")]).as_deref(), Some("k1"));
        assert_ne!(of(&[("x-api-key", "k1"), ("authorization", "Bearer k2")]).as_deref(), Some("k1"));
        for nothing in [("authorization", "Basic k1"), ("authorization", "k1"), ("x-api-key", "")] {
            assert_eq!(of(&[nothing]), None, "{nothing:?}");
        }
    }
}
