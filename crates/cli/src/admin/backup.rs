//! `backup` and `restore`: what becomes of them, as a sentence for people or as JSON.

use std::io::{self, IsTerminal as _};

use pyoco_server::Config;
use pyoco_server::admin::{self, Order};
use serde_json::Value;

use super::arguments::{Backup, Restore};
use super::{failed, ordered};
use crate::errors::Failure;
use crate::output::{self, cell, one_line};

pub(super) async fn make(config: &Config, backup: &Backup) -> Result<(), Failure> {
    // The server that may make it is in another folder.
    let path = std::path::absolute(&backup.out)
        .map_err(|error| Failure::file(&backup.out.to_string_lossy(), &error))?;
    let answer = ordered(config, Order::Backup { path }).await?;
    if backup.json || !io::stdout().is_terminal() {
        return output::json(&answer);
    }
    let (path, size) = (cell(answer.get("path")), size(&answer));
    output::line(&format!("{path} is a backup of everything ({size})"))
}

pub(super) async fn restore(config: &Config, restore: &Restore) -> Result<(), Failure> {
    let answer = admin::restore(config, &restore.from, !restore.no_check).await;
    let answer = answer.map_err(|error| failed(&error))?;
    if restore.json || !io::stdout().is_terminal() {
        return output::json(&answer);
    }
    let looked_at = match answer.get("checked").filter(|checked| !checked.is_null()) {
        Some(checked) => format!("{} executions were checked and are whole", cell(checked.get("executions"))),
        None => "nothing was checked".to_owned(),
    };
    let target = one_line(&cell(answer.get("restored")));
    let keys = match answer.get("keys").and_then(Value::as_u64) {
        Some(keys) => format!("; {keys} API keys open it"),
        None => String::new(),
    };
    output::line(&format!("{target} is restored ({}); {looked_at}{keys}", size(&answer)))
}

fn size(answer: &Value) -> String {
    let bytes = answer.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    indicatif::HumanBytes(bytes).to_string()
}
