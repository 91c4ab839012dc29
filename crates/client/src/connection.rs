//! One connection of an event stream: opened within the limits, read within the limits. Not here: what replaces a lost one.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use crate::error::{Call, Error};
use crate::sse::{Decoder, Frame, TooLong};
use crate::transport::{Client, Outgoing, bad_answer, broken, open};

pub(crate) struct Connection {
    response: Response,
    decoder: Decoder,
    call: Call,
}

impl Connection {
    /// Sends a request that is answered with events.
    pub(crate) async fn open(client: &Client, outgoing: Outgoing) -> Result<Self, Error> {
        let outgoing = outgoing.with(|call| call.header("accept", "text/event-stream"));
        let call = outgoing.call.clone();
        let limits = client.limits();
        let response = match timeout(limits.request, open(outgoing)).await {
            Ok(response) => response?,
            Err(_) => return Err(Error::Timeout { call, limit: limits.request }),
        };
        let kind =
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if response.status() != StatusCode::NO_CONTENT && !kind.starts_with("text/event-stream") {
            return Err(bad_answer(&call, format!("the answer is no event stream but '{kind}'")));
        }
        Ok(Self { response, decoder: Decoder::new(limits.answer_bytes), call })
    }

    /// Whether the gateway says that everything was told already.
    pub(crate) fn has_nothing_to_tell(&self) -> bool {
        self.response.status() == StatusCode::NO_CONTENT
    }

    /// The next bytes; none when the gateway closed the stream in good order.
    pub(crate) async fn read(&mut self, silence: Duration) -> Result<Option<Bytes>, Error> {
        match timeout(silence, self.response.chunk()).await {
            Ok(part) => part.map_err(|error| broken(&self.call, &error)),
            Err(_) => Err(Error::Timeout { call: self.call.clone(), limit: silence }),
        }
    }

    /// Appends the events that these bytes complete.
    pub(crate) fn decode(&mut self, bytes: &[u8], found: &mut impl Extend<Frame>) -> Result<(), Error> {
        match self.decoder.push(bytes, found) {
            Ok(()) => Ok(()),
            Err(TooLong) => Err(bad_answer(&self.call, "an event is longer than allowed")),
        }
    }
}
