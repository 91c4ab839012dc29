//! How something is shown: for people on a terminal, for programs elsewhere, unless it is said.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};

use super::ListForm;

/// Which part of a long list.
#[derive(Debug, Args)]
pub(in crate::client) struct Page {
    /// At most so many, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(in crate::client) limit: Option<i64>,
    /// Go on after this `nextCursor`
    #[arg(long)]
    pub(in crate::client) cursor: Option<String>,
}

/// The form of a list.
#[derive(Debug, Args)]
pub(in crate::client) struct RowsOutput {
    /// Form of the output [default: table on a terminal, lines elsewhere]
    #[arg(long, value_enum)]
    output: Option<RowsForm>,
    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::client) enum RowsForm {
    Json,
    Table,
    Lines,
}

impl RowsOutput {
    pub(in crate::client) fn form(&self) -> RowsForm {
        match self.output {
            Some(form) => form,
            None if self.json => RowsForm::Json,
            None if io::stdout().is_terminal() => RowsForm::Table,
            None => RowsForm::Lines,
        }
    }
}

/// The form of one thing.
#[derive(Debug, Args)]
pub(in crate::client) struct ViewOutput {
    /// Form of the output [default: table on a terminal, json elsewhere]
    #[arg(long, value_enum)]
    output: Option<ListForm>,
    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl ViewOutput {
    pub(in crate::client) fn form(&self) -> ListForm {
        match self.output {
            Some(form) => form,
            None if self.json || !io::stdout().is_terminal() => ListForm::Json,
            None => ListForm::Table,
        }
    }
}
