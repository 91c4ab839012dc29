//! What the holder of an API key may do. Who they are, and how a key is checked, is `pyoco-access`' business.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much a key opens; each includes the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look.
    Read,
    /// Submit, cancel, retry, label: what every key of the contract may do.
    #[default]
    Submit,
    /// See who did what, and run the place.
    Admin,
}

impl Role {
    /// All of them, the smallest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Submit, Self::Admin];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a role is read, submit or admin")]
pub struct NoRole;

impl FromStr for Role {
    type Err = NoRole;

    fn from_str(name: &str) -> Result<Self, NoRole> {
        Self::ALL.into_iter().find(|role| role.name() == name).ok_or(NoRole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_the_one_before_it_and_is_found_by_its_name() {
        assert!(Role::Read < Role::Submit && Role::Submit < Role::Admin);
        assert!(Role::ALL.into_iter().all(|role| role.name().parse() == Ok(role)));
        assert_eq!("root".parse::<Role>(), Err(NoRole));
        assert_eq!(serde_json::to_string(&Role::default()).unwrap(), "\"submit\"");
    }
}
