//! Wheels: look at what is there and at its history, delete one. `upload` sends a file, `download` fetches one; neither is ever held
//! as a whole.

mod download;
mod upload;

use pyoco_api::{WheelArtifact, WheelDeleted, WheelHistoryEvent};
use reqwest::Method;

use crate::answer::Answer;
use crate::error::Error;
use crate::executions::filled;
use crate::transport::Client;

pub use upload::WheelFile;

/// Which events of the history are shown. Empty texts count as not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WheelHistoryFilter {
    /// Only of this wheel.
    pub wheel_name: Option<String>,
    /// `upload` or `delete`.
    pub action: Option<String>,
    /// At most so many; the gateway's default when there is none.
    pub limit: Option<i64>,
}

impl Client {
    /// Lists the wheels, in the order of their names.
    pub async fn list_wheels(&self) -> Result<Answer<Vec<WheelArtifact>>, Error> {
        self.json(self.request(&Method::GET, &["wheels"])?).await
    }

    /// Lists uploads and deletions, newest first.
    pub async fn list_wheel_history(
        &self,
        filter: &WheelHistoryFilter,
    ) -> Result<Answer<Vec<WheelHistoryEvent>>, Error> {
        let WheelHistoryFilter { wheel_name, action, limit } = filter;
        let mut query: Vec<(&str, String)> = limit.iter().map(|limit| ("limit", limit.to_string())).collect();
        query.extend(filled([("wheel_name", wheel_name), ("action", action)]));
        let outgoing = self.request(&Method::GET, &["wheels", "history"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Deletes a wheel. Runs that have begun with it keep it.
    pub async fn delete_wheel(&self, name: &str) -> Result<Answer<WheelDeleted>, Error> {
        self.json(self.request(&Method::DELETE, &["wheels", name])?).await
    }
}
