//! What every command to an execution is sent with: the key under which it may be repeated, and the thread it belongs to.

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::answer::Answer;
use crate::error::Error;
use crate::transport::{Client, Outgoing, refuse};

/// How a command is sent. Sent again with the same key, it is carried out once and answered the same.
///
/// The key is known before anything is sent: after a broken connection the same options make a safe repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOptions {
    /// Sent as `X-Idempotency-Key`.
    pub idempotency_key: String,
    /// Sent as `X-Correlation-Id` and kept in the events; made up by the gateway when there is none.
    pub correlation_id: Option<String>,
}

impl CommandOptions {
    /// A command that was never sent before.
    pub fn new() -> Self {
        Self::under(Uuid::new_v4().to_string())
    }

    /// A command under a key of the caller's.
    pub fn under(key: impl Into<String>) -> Self {
        Self { idempotency_key: key.into(), correlation_id: None }
    }
}

impl Default for CommandOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// Sends a command.
    pub(crate) async fn command<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &impl Serialize,
        options: &CommandOptions,
    ) -> Result<Answer<T>, Error> {
        let outgoing = self.request(&Method::POST, segments)?;
        let mut outgoing = under_key(outgoing, Some(&options.idempotency_key))?;
        if let Some(thread) = &options.correlation_id {
            let value = header("the correlation id", thread)?;
            outgoing = outgoing.with(|call| call.header("X-Correlation-Id", value));
        }
        self.json(outgoing.with(|call| call.json(body))).await
    }
}

/// A request that may be repeated.
pub(crate) fn under_key(outgoing: Outgoing, key: Option<&str>) -> Result<Outgoing, Error> {
    let Some(key) = key else { return Ok(outgoing) };
    let value = header("the idempotency key", key)?;
    Ok(outgoing.with(|call| call.header("X-Idempotency-Key", value)))
}

fn header(what: &'static str, text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text).map_err(|_| refuse(what, "has characters that a header cannot carry"))
}
