//! Which wheels an execution runs with, as its log says. What a wheel is, and which ones a worker takes, stands in `pyoco-wheels`.

use serde::{Deserialize, Serialize};

/// One wheel that an execution runs with. The first claim says which; whoever goes on with it later uses the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedWheel {
    /// The name of its file.
    pub name: String,
    /// The version of its package.
    pub version: String,
    /// What its bytes hash to, in hexadecimal digits.
    pub sha256: String,
}
