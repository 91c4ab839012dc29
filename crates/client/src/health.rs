//! Whether the gateway answers.

use pyoco_api::Health;
use reqwest::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::transport::Client;

impl Client {
    /// Asks the gateway whether it is there. It needs no key, and the store is not asked.
    pub async fn get_health(&self) -> Result<Answer<Health>, Error> {
        let outgoing = self.request(&Method::GET, &["health"])?;
        self.json(outgoing).await
    }
}
