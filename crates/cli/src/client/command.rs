//! How a command to an execution is sent, and what is said about it: its key before, its answer after.

use pyoco_client::api::Accepted;
use pyoco_client::{Answer, CommandOptions, Error};

use super::options::command::Sending;
use crate::errors::Failure;
use crate::output;

/// The key that was given, or a new one, which is shown before anything is sent: whoever lost the answer can repeat the command.
pub(super) fn options(sending: Sending) -> CommandOptions {
    let options = match sending.idempotency_key {
        Some(key) => CommandOptions::under(key),
        None => {
            let options = CommandOptions::new();
            output::aside(&format!("idempotency-key: {}", options.idempotency_key));
            options
        }
    };
    CommandOptions { correlation_id: sending.correlation_id, ..options }
}

pub(super) fn show(answer: Result<Answer<Accepted>, Error>) -> Result<(), Failure> {
    output::json(answer?.json())
}
