//! What can be asked about wheels.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ListOutput;

#[derive(Debug, Args)]
pub(in crate::client) struct Wheels {
    #[command(flatten)]
    pub(in crate::client) output: ListOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct WheelUpload {
    /// The wheel; the name of the file is its name
    #[arg(long, value_name = "FILE")]
    pub(in crate::client) wheel_file: PathBuf,
    /// The workers it is for, separated by commas [default: all]
    #[arg(long)]
    pub(in crate::client) tags: Option<String>,
    /// An older version may be replaced; stands in the history [default]
    #[arg(long, overrides_with = "no_replace")]
    replace: bool,
    /// The opposite of --replace
    #[arg(long, overrides_with = "replace")]
    no_replace: bool,
    /// What to do about a wheel that has flaws
    #[arg(long, value_enum, default_value_t = Preflight::Strict)]
    pub(in crate::client) preflight: Preflight,
    /// Only warn of a wheel without entry points
    #[arg(long)]
    pub(in crate::client) allow_no_entry_points: bool,
    /// Only warn of a wheel that does not say what it is for
    #[arg(long)]
    pub(in crate::client) allow_missing_usage_doc: bool,
}

impl WheelUpload {
    pub(in crate::client) const fn replace(&self) -> bool {
        !self.no_replace
    }
}

/// How a wheel is looked at before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::client) enum Preflight {
    /// Do not send it
    Strict,
    /// Say so, and send it
    Warn,
    /// Do not look
    Off,
}

#[derive(Debug, Args)]
pub(in crate::client) struct WheelHistory {
    /// At most so many, 1 to 500
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
    pub(in crate::client) limit: i64,
    /// Only of this wheel
    #[arg(long, value_name = "NAME")]
    pub(in crate::client) wheel_name: Option<String>,
    /// Only of this kind
    #[arg(long, value_parser = ["upload", "delete"])]
    pub(in crate::client) action: Option<String>,
    #[command(flatten)]
    pub(in crate::client) output: ListOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct WheelDelete {
    /// The wheel
    #[arg(long)]
    pub(in crate::client) name: String,
}

#[derive(Debug, Args)]
pub(in crate::client) struct WheelDownload {
    /// The wheel
    #[arg(long)]
    pub(in crate::client) name: String,
    /// The file, or the folder for it [default: its own name, here]
    #[arg(long, value_name = "PATH")]
    pub(in crate::client) output: Option<PathBuf>,
}
