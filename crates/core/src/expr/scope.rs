//! What an expression can see.

use serde_json::Value as Json;

/// The data behind `$ctx` and `$env`.
pub trait Scope {
    /// The value of a root of `$ctx`: `params`, `results`, `loop`, a foreach variable, ...
    fn ctx(&self, root: &str) -> Option<&Json>;

    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<&str>;
}
