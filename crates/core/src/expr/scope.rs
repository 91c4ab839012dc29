//! What an expression can see.

use serde_json::Value as Json;

/// The data behind `$ctx` and `$env`.
pub trait Scope {
    /// The value of a root of `$ctx`: `params`, `results`, `loop`, a foreach variable, ...
    fn ctx(&self, root: &str) -> Option<&Json>;

    /// One member of a root. To be overridden where a root is large and not at hand as one value.
    fn member(&self, root: &str, key: &str) -> Option<&Json> {
        self.ctx(root)?.as_object()?.get(key)
    }

    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<&str>;
}
