//! All that the settings of a process say: the configuration, every mistake, and every value with where it comes from.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::settings::{Settings, Source, flag};
use super::table::{self, TABLE};
use super::variable::{Program, Variable};
use super::{Config, dotenv, environment};

/// What the settings say.
#[derive(Debug, Clone)]
pub struct Survey {
    /// As far as it can be read. With mistakes nothing may be started on it.
    pub config: Config,
    /// What makes no sense, each with the setting's name and what to write instead.
    pub mistakes: Vec<String>,
    /// The `.env` file, if one was read.
    pub file: Option<PathBuf>,
    /// What is odd, and no mistake.
    pub remarks: Vec<String>,
    /// Every setting of the table, in its order.
    pub values: Vec<Shown>,
}

/// A setting as a person may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Which.
    pub variable: &'static Variable,
    /// Its value, with secrets hidden; nothing when there is none.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: Source,
}

impl Survey {
    /// Of the environment of the process.
    pub fn of_environment() -> Self {
        Self::of(environment())
    }

    /// Of the given variables and the `.env` file that they name.
    pub fn of(env: HashMap<String, String>) -> Self {
        let named = env.get("PYOCO_ENV_FILE").map(|path| path.trim().to_owned());
        let loads = env.get("PYOCO_LOAD_DOTENV").and_then(|text| flag(text.trim())).unwrap_or(true);
        let path = match named.as_deref() {
            Some("") => None,
            Some(path) => Some(expand(path, env.get("HOME"))),
            None => table::variable("PYOCO_ENV_FILE").map(|row| PathBuf::from(row.default)),
        };
        let mut remarks = Vec::new();
        let read = path.filter(|_| loads).and_then(|path| match std::fs::read_to_string(&path) {
            Ok(text) => Some((path, text)),
            Err(error) => {
                if named.is_some() {
                    remarks.push(format!(
                        "PYOCO_ENV_FILE names {}, which cannot be read: {error}",
                        path.display()
                    ));
                }
                None
            }
        });
        let (file, text) = read.unzip();
        let values = text.map(|text| dotenv::parse(&text)).unwrap_or_default();
        let mut settings = Settings::new(env, values);
        let config = Config::read(&mut settings);
        remarks.extend(config.unknown.iter().map(ToString::to_string));
        let values = TABLE.iter().map(|variable| shown(variable, &settings)).collect();
        Self { config, mistakes: settings.mistakes, file, remarks, values }
    }

    /// Notes what the command line says instead.
    pub fn flag(&mut self, name: &str, value: Option<String>) {
        let Some(value) = value else { return };
        if let Some(shown) = self.values.iter_mut().find(|shown| shown.variable.name == name) {
            shown.value = Some(shown.variable.shown(&value));
            shown.source = Source::Flag;
        }
    }

    /// Notes what counts when nobody has said anything.
    pub fn assume(&mut self, name: &str, value: &str) {
        let is_open = |shown: &&mut Shown| shown.variable.name == name && shown.source == Source::Default;
        for shown in self.values.iter_mut().filter(is_open) {
            shown.value = Some(value.to_owned());
        }
    }

    /// Notes that the command line has no use for a setting.
    pub fn leave_out(&mut self, name: &str) {
        self.values.retain(|shown| shown.variable.name != name);
    }

    /// Files that settings name and that cannot be read. It matters only where NATS is used.
    pub fn missing_files(&self) -> Vec<String> {
        let access = &self.config.nats_access;
        let named = [
            ("PYOCO_NATS_CREDS", &access.credentials),
            ("PYOCO_NATS_TLS_CA", &access.tls_ca),
            ("PYOCO_NATS_TLS_CERT", &access.tls_cert),
            ("PYOCO_NATS_TLS_KEY", &access.tls_key),
        ];
        let unreadable = named.into_iter().filter_map(|(name, path)| {
            let path = path.as_ref()?;
            let error = std::fs::File::open(path).err()?;
            Some(format!("{name} names {}, which cannot be read: {error}", path.display()))
        });
        unreadable.collect()
    }

    /// The values that a program reads.
    pub fn read_by(&self, program: Program) -> impl Iterator<Item = &Shown> {
        self.values.iter().filter(move |shown| shown.variable.is_read_by(program))
    }
}

fn shown(variable: &'static Variable, settings: &Settings) -> Shown {
    match settings.found(variable.name) {
        Some((value, source)) => {
            let value = value.trim();
            // What is not of its kind may be a secret in the wrong place.
            let shown =
                if variable.kind.accepts(value) { variable.shown(value) } else { "(not valid)".to_owned() };
            Shown { variable, value: Some(shown), source }
        }
        None => {
            let default = Some(variable.default).filter(|default| !default.is_empty());
            Shown { variable, value: default.map(str::to_owned), source: Source::Default }
        }
    }
}

fn expand(path: &str, home: Option<&String>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        (Some(_) | None, _) => PathBuf::from(path),
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "flag",
            Self::Environment => "env",
            Self::File => ".env",
            Self::Default => "default",
        })
    }
}
