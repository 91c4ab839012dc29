//! `pyoco-server-admin`: one order, and what comes of it on standard output.

mod arguments;
mod backup;
mod dlq;
mod expiry;
mod listing;
mod prune;

use std::ffi::OsString;
use std::process::ExitCode;

use pyoco_core::ids::{KeyId, TenantId};
use pyoco_server::Config;
use pyoco_server::admin::{AdminError, Order, carry_out};
use serde_json::{Value, json};

use self::arguments::{Command, Create, KeyCommand, Options, Which};
use crate::errors::{Failure, conclude};
use crate::{arguments as parsing, foreground, output};

/// No such key, or arguments that make no sense: as the original.
const UNKNOWN: u8 = 2;

/// The whole program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    conclude(match parsing::parse::<Options>(arguments) {
        Ok(Some(options)) => foreground::run(run(options)),
        Ok(None) => Ok(()),
        Err(failure) => Err(failure.exiting(UNKNOWN)),
    })
}

async fn run(options: Options) -> Result<(), Failure> {
    let mut config = Config::from_env().map_err(|error| Failure::arguments(error.to_string()))?;
    options.place.apply(&mut config);
    match options.command {
        Command::ApiKey(command) => look_after_keys(&config, command).await,
        Command::Backup(backup) => backup::make(&config, &backup).await,
        Command::Restore(restore) => backup::restore(&config, &restore).await,
        Command::Dlq(command) => dlq::run(&config, command).await,
        Command::Prune(options) => prune::run(&config, &options).await,
    }
}

async fn look_after_keys(config: &Config, command: KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::Create(create) => show_secret(&ordered(config, order(create)?).await?),
        KeyCommand::List(list) => listing::show(&ordered(config, Order::ListKeys).await?, &list),
        KeyCommand::Revoke(which) => {
            let key_id = key_id(&which)?;
            output::json(&ordered(config, Order::RevokeKey { key_id }).await?)
        }
        KeyCommand::Rotate(which) => {
            let key_id = key_id(&which)?;
            show_secret(&ordered(config, Order::RotateKey { key_id }).await?)
        }
    }
}

fn order(create: Create) -> Result<Order, Failure> {
    let tenant = TenantId::new(&create.tenant)
        .map_err(|error| Failure::arguments(format!("argument --tenant: {error}")))?;
    Ok(Order::CreateKey { tenant, role: create.role, expires_at: create.expires, name: create.name })
}

/// A key whose name cannot be one does not exist.
fn key_id(which: &Which) -> Result<KeyId, Failure> {
    KeyId::new(&which.key_id).or_else(|_| Err(not_found(&which.key_id)?))
}

async fn ordered(config: &Config, order: Order) -> Result<Value, Failure> {
    match carry_out(config, order).await {
        Ok(answer) => Ok(answer),
        Err(AdminError::NotFound { key_id }) => Err(not_found(key_id.as_str())?),
        Err(AdminError::NoLetter { key }) => {
            output::json(&json!({"error": "not_found", "key": key}))?;
            Err(Failure::said(UNKNOWN))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &AdminError) -> Failure {
    let notice = pyoco_core::notice::Notice::InvalidArguments;
    Failure::new(format!("[pyoco-server-admin][{}] {error}", notice.err_id()))
}

/// Said on standard output, as the original does.
fn not_found(key_id: &str) -> Result<Failure, Failure> {
    output::json(&json!({"error": "not_found", "key_id": key_id}))?;
    Ok(Failure::said(UNKNOWN))
}

fn show_secret(answer: &Value) -> Result<(), Failure> {
    output::json(answer)?;
    if output::can_show_progress() {
        output::aside("keep the api_key: it is not stored and cannot be shown again");
    }
    Ok(())
}
