//! Values that are too large or too opaque for the log, named by what they hash to.

use async_trait::async_trait;
use pyoco_core::digest::Digest;

use crate::StoreError;

/// Bytes by fingerprint.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps bytes. When it returns they MUST be durable: the record that names them is appended afterwards. `[blobs/put]`
    /// Putting the same bytes again MUST change nothing. `[blobs/same]`
    async fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError>;

    /// The bytes, or nothing. MUST be exactly those that hash to the digest; anything else is `Corrupt`. `[blobs/get]`
    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;
}
