//! `pyoco-client`: one request to a gateway, or a watch, and what comes back on standard output.

mod failure;
mod listing;
mod options;
mod params;
mod progress;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use pyoco_client::Client;
use pyoco_client::api::SubmitRequest;

use self::options::{Command, Options, Submit, SubmitYaml};
use crate::errors::{Failure, conclude};
use crate::{arguments, foreground, output};

/// No gateway takes a flow.yaml of more.
const MOST_WORKFLOW_BYTES: usize = 16 << 20;

/// The whole program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    conclude(match arguments::parse::<Options>(arguments) {
        Ok(Some(options)) => foreground::run(run(options)),
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    })
}

async fn run(options: Options) -> Result<(), Failure> {
    let builder = Client::builder(options.server.url()).api_key_header(&options.server.api_key_header);
    let client = match options.server.key() {
        Some(key) => builder.api_key(key).build()?,
        None => builder.build()?,
    };
    match options.command {
        Command::Submit(options) => submit(&client, options).await,
        Command::SubmitYaml(options) => submit_yaml(&client, &options).await,
        Command::Get(options) if options.records => {
            output::json(client.get_run_with_records(&options.run_id).await?.json())
        }
        Command::Get(options) => output::json(client.get_run(&options.run_id).await?.json()),
        Command::Tasks(options) => output::json(client.get_tasks(&options.run_id).await?.json()),
        Command::List(options) => listing::list(&client, options).await,
        Command::ListVnext(options) => listing::list_vnext(&client, options).await,
        Command::Watch(options) => watch::watch(&client, &options).await,
        Command::Cancel(options) => watch::cancel(&client, &options).await,
        Command::Workers(options) => listing::workers(&client, options).await,
        Command::Metrics => output::text(&client.get_metrics().await?),
    }
}

async fn submit(client: &Client, options: Submit) -> Result<(), Failure> {
    let params = params::gather(&options)?;
    let tags = options.tags.unwrap_or_default();
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    let request = SubmitRequest { flow_name: options.flow_name, params, tag: options.tag, tags };
    let submitted = match options.repeat.idempotency_key {
        Some(key) => client.submit_run_with_key(&request, &key).await?,
        None => client.submit_run(&request).await?,
    };
    output::json(submitted.json())
}

async fn submit_yaml(client: &Client, options: &SubmitYaml) -> Result<(), Failure> {
    let path = &options.workflow_file;
    let workflow =
        params::read_file(path, MOST_WORKFLOW_BYTES).map_err(|error| Failure::file(path, &error))?;
    if let Err(error) = std::str::from_utf8(&workflow) {
        let reason = format!("{path}: byte {} is not UTF-8", error.valid_up_to());
        return Err(Failure::arguments(reason).hint("save the file as UTF-8"));
    }
    let (flow_name, tag) = (&options.flow_name, &options.tag);
    let submitted = match &options.repeat.idempotency_key {
        Some(key) => client.submit_run_yaml_with_key(workflow, flow_name, tag, key).await?,
        None => client.submit_run_yaml(workflow, flow_name, tag).await?,
    };
    output::json(submitted.json())
}
