//! `pyoco-server doctor`: what it found, for people or as JSON.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use pyoco_client::Client;
use pyoco_server::config::Survey;
use pyoco_server::doctor::{self, Depth, Finding, Severity};
use serde_json::json;

use crate::errors::Failure;
use crate::output;

/// The arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The folder of the embedded store [default: ./.pyoco] [env: PYOCO_DATA_DIR]
    #[arg(long, value_name = "DIR", conflicts_with = "nats_url")]
    pub data_dir: Option<PathBuf>,
    /// Where NATS is, several servers separated by commas [env: PYOCO_NATS_URL]
    #[arg(long, value_name = "URL")]
    pub nats_url: Option<String>,
    /// The Python that runs tasks [default: python3] [env: PYOCO_PYTHON]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// A gateway to knock at as somebody without a key
    #[arg(long, value_name = "URL", env = "PYOCO_SERVER_URL")]
    pub url: Option<String>,
    /// Look at every run, however long it takes, and check the files thoroughly
    #[arg(long)]
    pub deep: bool,
    /// JSON instead of lines for people
    #[arg(long)]
    pub json: bool,
}

impl DoctorArguments {
    /// Whoever names a folder does not mean NATS.
    fn apply(&self, survey: &mut Survey) {
        if let Some(folder) = &self.data_dir {
            survey.config.data_dir.clone_from(folder);
            survey.config.nats_url = None;
        }
        if let Some(url) = self.nats_url.as_ref().filter(|url| !url.is_empty()) {
            survey.config.nats_url = Some(url.clone());
        }
        if let Some(python) = &self.python {
            survey.config.python.clone_from(python);
        }
    }
}

pub(super) async fn examine(arguments: DoctorArguments) -> Result<(), Failure> {
    let mut survey = Survey::of_environment();
    arguments.apply(&mut survey);
    let mut findings = doctor::examine(&survey, Depth { is_deep: arguments.deep }).await;
    if let Some(url) = arguments.url.as_deref().filter(|url| !url.is_empty()) {
        findings.push(knock(url).await);
    }
    let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
    if arguments.json {
        output::json(&json!({"worst": worst, "findings": findings}))?;
    } else {
        for finding in &findings {
            output::line(&output::one_line(&format!(
                "{:<6} {:<14} {}",
                finding.severity.to_string(),
                finding.about,
                finding.seen
            )))?;
            if let Some(advice) = finding.advice.as_ref().filter(|_| finding.severity > Severity::Ok) {
                output::line(&output::one_line(&format!("{:<21} → {advice}", "")))?;
            }
        }
    }
    if worst == Severity::Error { Err(Failure::said(1)) } else { Ok(()) }
}

/// Whether a gateway lets in somebody without a key whom others could be.
async fn knock(url: &str) -> Finding {
    const ABOUT: &str = "access";
    let shown = pyoco_server::config::without_secrets(url);
    let client = match Client::new(url) {
        Ok(client) => client,
        Err(error) => return Finding::warn(ABOUT, error.to_string()),
    };
    if let Err(error) = client.get_health().await {
        return Finding::warn(ABOUT, format!("{shown} does not answer: {error}"))
            .advice("start the server, or check --url");
    }
    match client.get_metrics().await {
        Ok(_) if is_loopback(url) => {
            Finding::ok(ABOUT, format!("{shown} asks for no key, and only this machine reaches it there"))
        }
        Ok(_) => Finding::warn(
            ABOUT,
            format!("{shown} asks for no key: everybody who reaches it may run code there"),
        )
        .advice("set PYOCO_HTTP_AUTH_MODE=api_key, or make sure that something else keeps others out"),
        Err(error) if matches!(error.status(), Some(401 | 403)) => {
            Finding::ok(ABOUT, format!("{shown} asks for a key"))
        }
        Err(error) => Finding::warn(ABOUT, format!("{shown} cannot tell how it does: {error}")),
    }
}

fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_alone_is_recognised() {
        for url in [
            "http://127.0.0.1:8000",
            "http://localhost",
            "http://[::1]:80/x",
            "http://LOCALHOST:1",
            "http://u@127.1.2.3",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://10.0.0.1:8000",
            "http://gateway",
            "http://[2001:db8::1]:80",
            "http://0.0.0.0",
            "http://127.0.0.1@evil",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
