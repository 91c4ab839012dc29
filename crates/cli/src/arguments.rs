//! Arguments: clap reads them, and what it refuses is said in the contract's form, with exit code 1.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Parser};

use crate::errors::Failure;
use crate::output;

/// Reads the arguments of a program. `None` when help or the version was asked for and has been printed.
pub fn parse<T: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<T>, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let error = match T::try_parse_from(&arguments) {
        Ok(options) => return Ok(Some(options)),
        Err(error) => error,
    };
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let styled = error.render();
        output::text(&if output::has_colours() { styled.ansi().to_string() } else { styled.to_string() })?;
        return Ok(None);
    }
    let mut program = T::command();
    program.build();
    Err(refuse(meant(&program, &arguments), &error))
}

/// The subcommand that was meant, or the program itself.
fn meant(program: &Command, arguments: &[OsString]) -> Command {
    let named = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    named.fold(program, |command, name| command.find_subcommand(name).unwrap_or(command)).clone()
}

fn refuse(mut command: Command, error: &clap::Error) -> Failure {
    let usage = command.render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").split_whitespace().collect();
    let failure = Failure::arguments(reason(error)).usage(usage.join(" "));
    let suggestion =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| context(error, kind));
    match suggestion {
        Some(suggestion) => failure.hint(format!("did you mean {suggestion}?")),
        None => {
            failure.hint(format!("{} --help", command.get_bin_name().unwrap_or_else(|| command.get_name())))
        }
    }
}

/// What is wrong, in the words that users of the original know.
fn reason(error: &clap::Error) -> String {
    let argument = context(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
    let choices = context(error, ContextKind::ValidValue);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            format!("the following arguments are required: {argument}")
        }
        ErrorKind::UnknownArgument => format!("unrecognized arguments: {argument}"),
        ErrorKind::InvalidSubcommand => {
            let name = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("argument command: invalid choice: '{name}'")
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "the following arguments are required: command".to_owned()
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("argument {argument}: expected one argument"),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => match (choices, error_source(error)) {
            (Some(choices), _) => {
                format!("argument {argument}: invalid choice: '{value}' (choose from {choices})")
            }
            (None, Some(why)) => format!("argument {argument}: invalid value: '{value}' ({why})"),
            (None, None) => format!("argument {argument}: invalid value: '{value}'"),
        },
        ErrorKind::ArgumentConflict => match context(error, ContextKind::PriorArg) {
            Some(other) if other != argument => {
                format!("argument {argument}: not allowed with argument {other}")
            }
            Some(_) | None => format!("argument {argument}: given more than once"),
        },
        // The rest is rare, and clap's first line says it well.
        ErrorKind::NoEquals
        | ErrorKind::TooManyValues
        | ErrorKind::TooFewValues
        | ErrorKind::WrongNumberOfValues
        | ErrorKind::InvalidUtf8
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::Io
        | ErrorKind::Format
        | _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    }
}

fn error_source(error: &clap::Error) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(short(text)),
        ContextValue::Strings(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| short(text)).collect();
            Some(texts.join(", ")).filter(|text| !text.is_empty())
        }
        ContextValue::StyledStr(text) => Some(text.to_string()),
        ContextValue::StyledStrs(texts) => texts.first().map(ToString::to_string),
        ContextValue::Bool(_) | ContextValue::Number(_) | ContextValue::None => None,
        _ => None,
    }
}

/// `--limit <LIMIT>` is known as `--limit`, and `<RUN_ID>` or `<RUN_ID>...` as `run_id`.
fn short(argument: &str) -> String {
    let argument = argument.strip_suffix("...").unwrap_or(argument);
    if let Some(name) = argument.strip_prefix('<').and_then(|name| name.strip_suffix('>')) {
        return name.to_lowercase();
    }
    match argument.split_once(' ') {
        Some((name, _)) if name.starts_with("--") => name.to_owned(),
        Some(_) | None => argument.to_owned(),
    }
}
