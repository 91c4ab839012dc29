//! Values that are too large or too opaque for the log, named by what they hash to.

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::ExecutionId;

use crate::StoreError;

/// Bytes by fingerprint. Equal bytes are kept once, whoever uses them; they go with the last execution that does.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps bytes that an execution uses from now on. When it returns they MUST be durable: the record that names them is appended
    /// afterwards. `[blobs/put]` Putting the same bytes again MUST change nothing. `[blobs/same]`
    async fn put_blob(&self, execution: &ExecutionId, bytes: &[u8]) -> Result<Digest, StoreError>;

    /// An execution uses from now on what others have put there. `false` if it is not there any more. `[blobs/share]`
    async fn share_blob(&self, execution: &ExecutionId, digest: &Digest) -> Result<bool, StoreError>;

    /// The bytes, or nothing. MUST be exactly those that hash to the digest; anything else is `Corrupt`. `[blobs/get]`
    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;
}
