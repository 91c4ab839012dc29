//! The same command for many executions.

use pyoco_api::{BulkReport, BulkRequest};

use crate::answer::Answer;
use crate::command::CommandOptions;
use crate::error::Error;
use crate::transport::Client;

impl Client {
    /// Cancels or retries a page of the executions that a filter finds. What became of each stands in the answer, and where to go
    /// on: until `next_cursor` is nothing, send the same request with it as its cursor, under the same options.
    pub async fn bulk(
        &self,
        request: &BulkRequest,
        options: &CommandOptions,
    ) -> Result<Answer<BulkReport>, Error> {
        self.command(&["executions", "bulk"], request, options).await
    }
}
