//! `pyoco-client`: one request to a gateway, or a watch, and what comes back on standard output.

mod audit;
mod bulk;
mod command;
mod events;
mod exec;
mod failure;
mod graph;
mod job;
mod line;
mod listing;
mod logs;
mod node;
mod options;
mod params;
mod progress;
mod rows;
mod waits;
mod watch;
mod wheels;

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
        Command::Cancel(options) => bulk::cancel(&client, *options).await,
        Command::Retry(options) => bulk::retry(&client, *options).await,
        Command::Workers(options) => listing::workers(&client, options).await,
        Command::Metrics => output::text(&client.get_metrics().await?),
        Command::Exec(command) => exec::run(&client, command).await,
        Command::Node(command) => node::run(&client, command).await,
        Command::Graph(command) => graph::run(&client, command).await,
        Command::Waits(options) => waits::list(&client, options).await,
        Command::Audit(options) => audit::list(&client, options).await,
        Command::Logs(options) => logs::logs(&client, options).await,
        Command::Job(command) => job::run(&client, command).await,
        Command::Tags(options) => job::labels(&client, options).await,
        Command::Wheels(options) => wheels::list(&client, &options).await,
        Command::WheelUpload(options) => wheels::upload(&client, options).await,
        Command::WheelHistory(options) => wheels::history(&client, options).await,
        Command::WheelDelete(options) => output::json(client.delete_wheel(&options.name).await?.json()),
        Command::WheelDownload(options) => wheels::download(&client, options).await,
    }
}

async fn submit(client: &Client, options: Submit) -> Result<(), Failure> {
    let params = params::of_run(&options)?;
    let tags = labels(options.tags.as_deref());
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
    let workflow = utf8(path, workflow)?;
    let (flow_name, tag) = (&options.flow_name, &options.tag);
    let submitted = match &options.repeat.idempotency_key {
        Some(key) => client.submit_run_yaml_with_key(workflow, flow_name, tag, key).await?,
        None => client.submit_run_yaml(workflow, flow_name, tag).await?,
    };
    output::json(submitted.json())
}

/// Labels that are separated by commas.
fn labels(text: Option<&str>) -> Vec<String> {
    let labels = text.unwrap_or_default().split(',').map(str::trim);
    labels.filter(|label| !label.is_empty()).map(str::to_owned).collect()
}

fn utf8(path: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let reason = format!("{path}: byte {} is not UTF-8", error.utf8_error().valid_up_to());
        Failure::arguments(reason).hint("save the file as UTF-8")
    })
}
