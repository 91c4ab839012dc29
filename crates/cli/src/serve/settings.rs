//! `pyoco-server config`: explains every setting, from the table that also reads them.

use clap::Args;
use pyoco_server::config::table::{TABLE, variable};
use pyoco_server::config::{Unknown, Variable, markdown};
use serde_json::{Value, json};

use crate::errors::Failure;
use crate::output;

/// The arguments of `config`.
#[derive(Debug, Args)]
pub struct SettingsArguments {
    /// Only this setting
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The reference as Markdown
    #[arg(long, conflicts_with_all = ["name", "json"])]
    pub markdown: bool,
    /// One line of JSON for each setting
    #[arg(long)]
    pub json: bool,
}

pub(super) fn explain(arguments: &SettingsArguments) -> Result<(), Failure> {
    if arguments.markdown {
        return output::text(&markdown());
    }
    let rows: Vec<&Variable> = match &arguments.name {
        Some(name) => vec![variable(name).ok_or_else(|| unknown(name))?],
        None => TABLE.iter().collect(),
    };
    for row in rows {
        if arguments.json { output::json(&as_value(row))? } else { output::line(&as_text(row))? }
    }
    Ok(())
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::arguments(format!("there is no setting {name}"));
    match Unknown::of(name).and_then(|unknown| unknown.nearest) {
        Some(nearest) => failure.hint(format!("did you mean {nearest}?")),
        None => failure.hint("pyoco-server config"),
    }
}

fn as_text(row: &Variable) -> String {
    let default = if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
    format!("{}{default}\n    {}; {}", row.name, row.help, row.kind)
}

fn as_value(row: &Variable) -> Value {
    let readers: Vec<String> = row.readers.iter().map(ToString::to_string).collect();
    json!({
        "name": row.name,
        "group": row.group.to_string(),
        "default": Some(row.default).filter(|default| !default.is_empty()),
        "wanted": row.kind.to_string(),
        "help": row.help,
        "read_by": readers,
        "secret": row.is_secret(),
    })
}
