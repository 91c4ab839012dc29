//! Checking settings without starting anything: every problem at once, and every value with where it comes from.

use std::net::IpAddr;
use std::path::Path;

use clap::Args;
use pyoco_core::notice::Notice;
use pyoco_server::StartError;
use pyoco_server::config::{AuthMode, Program, Survey};
use serde_json::{Value, json};

use super::arguments::{StandaloneWorkerArguments, UpArguments};
use super::nats;
use crate::errors::Failure;
use crate::{output, table};

/// The arguments of `check-config`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `check-config`.
pub(super) fn settings(arguments: &CheckArguments) -> Result<(), Failure> {
    conclude(Survey::of_environment(), Program::Server, arguments.json)
}

/// `up --check-config`.
pub(super) fn up(arguments: &UpArguments) -> Result<(), Failure> {
    let mut survey = Survey::of_environment();
    arguments.note(&mut survey);
    arguments.apply(&mut survey.config);
    survey.mistakes.extend(reachable(arguments, &survey));
    survey.mistakes.extend(nats::mistake(arguments, &survey.config));
    survey.mistakes.extend(no_folder(arguments.worker.flows.as_deref()));
    conclude(survey, Program::Server, false)
}

/// `pyoco-worker --check-config`.
pub(super) fn worker(arguments: &StandaloneWorkerArguments) -> Result<(), Failure> {
    let mut survey = Survey::of_environment();
    arguments.note(&mut survey);
    arguments.apply(&mut survey.config);
    survey.mistakes.extend(no_folder(arguments.worker.flows.as_deref()));
    conclude(survey, Program::Worker, false)
}

/// What `up` refuses to listen on, as far as the name of the address tells.
fn reachable(arguments: &UpArguments, survey: &Survey) -> Option<String> {
    let address: IpAddr = arguments.host.parse().ok()?;
    let is_refused = survey.config.auth_mode == AuthMode::None
        && !address.to_canonical().is_loopback()
        && !arguments.allow_unauthenticated;
    is_refused.then(|| StartError::OpenToOthers((address, arguments.port).into()).to_string())
}

fn no_folder(flows: Option<&Path>) -> Option<String> {
    flows
        .filter(|flows| !flows.is_dir())
        .map(|flows| format!("--flows {}: there is no such folder", flows.display()))
}

fn conclude(mut survey: Survey, program: Program, as_json: bool) -> Result<(), Failure> {
    if survey.config.nats_url.is_some() {
        let missing = survey.missing_files();
        survey.mistakes.extend(missing);
    }
    if as_json {
        output::json(&as_value(&survey, program))?;
    } else {
        let rows: Vec<[String; 3]> = survey
            .read_by(program)
            .map(|shown| {
                let value = shown.value.clone().unwrap_or_else(|| "-".to_owned());
                [shown.variable.name.to_owned(), output::one_line(&value), shown.source.to_string()]
            })
            .collect();
        for line in table::lines(["setting", "value", "from"], &rows) {
            output::line(line.trim_end())?;
        }
        if let Some(file) = &survey.file {
            output::line(&format!(".env is {}", output::one_line(&file.display().to_string())))?;
        }
        for remark in &survey.remarks {
            output::aside(&format!("warning: {remark}"));
        }
    }
    if survey.mistakes.is_empty() {
        return Ok(());
    }
    if as_json {
        return Err(Failure::said(1));
    }
    let title = format!("[{program}][{}] the configuration is not valid", Notice::InvalidArguments.err_id());
    let said = |failure: Failure, mistake: &String| failure.note("mistake", mistake);
    Err(survey.mistakes.iter().fold(Failure::new(title), said))
}

fn as_value(survey: &Survey, program: Program) -> Value {
    let values: Vec<Value> = survey
        .read_by(program)
        .map(|shown| {
            json!({"name": shown.variable.name, "value": shown.value, "from": shown.source.to_string()})
        })
        .collect();
    json!({
        "valid": survey.mistakes.is_empty(),
        "mistakes": survey.mistakes,
        "warnings": survey.remarks,
        "env_file": survey.file,
        "settings": values,
    })
}
