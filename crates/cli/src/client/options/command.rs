//! What every command to an execution can be given: its key and its thread, and the input of a new one.

use clap::Args;

/// How a command may be repeated, and what it belongs to.
#[derive(Debug, Args)]
pub(in crate::client) struct Sending {
    /// Sent as X-Idempotency-Key: repeated under the same key it is done once [default: a new one, shown
    /// on standard error]
    #[arg(long, value_name = "KEY")]
    pub(in crate::client) idempotency_key: Option<String>,
    /// Sent as X-Correlation-Id, and kept in the events
    #[arg(long, value_name = "ID")]
    pub(in crate::client) correlation_id: Option<String>,
}

/// Where the input of an execution comes from.
#[derive(Debug, Args)]
pub(in crate::client) struct Input {
    /// Input, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) input: Option<String>,
    /// File with the input, a JSON or YAML object
    #[arg(long, value_name = "FILE")]
    pub(in crate::client) input_file: Option<String>,
    /// One member of the input; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(in crate::client) param: Vec<String>,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Why {
    /// Why; kept in the events
    #[arg(long, value_name = "TEXT")]
    pub(in crate::client) reason: Option<String>,
}
