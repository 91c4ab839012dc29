//! How tests give orders and knock at doors.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::Value;

use crate::support::{PATIENCE, Running, Site};

/// A place where the server asks for keys.
pub(crate) fn locked() -> Site {
    Site::new().env("PYOCO_HTTP_AUTH_MODE", "api_key").argument("--no-worker")
}

/// The tool, on the store of a site.
pub(crate) fn tool(site: &Site, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"));
    command.arg("--data-dir").arg(site.path("data")).args(arguments);
    command.env_remove("PYOCO_NATS_URL").envs(&site.env).current_dir(site.path("flows"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Gives an order that is carried out.
#[track_caller]
pub(crate) fn ordered(site: &Site, arguments: &[&str]) -> Value {
    let output = tool(site, arguments).output().unwrap();
    let (answer, said) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {answer} {said}");
    serde_json::from_str(&answer).expect(&answer)
}

/// Gives an order that fails with this exit code, and gives both outputs.
#[track_caller]
pub(crate) fn refused(site: &Site, arguments: &[&str], code: i32) -> (String, String) {
    let output = tool(site, arguments).output().unwrap();
    let (answer, said) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {answer} {said}");
    (answer, said)
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A key that an operator was given.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) text: String,
}

impl Key {
    pub(crate) fn of(answer: &Value) -> Self {
        let member = |name: &str| answer[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        Self { id: member("key_id"), text: member("api_key") }
    }

    #[track_caller]
    pub(crate) fn create(site: &Site, more: &[&str]) -> Self {
        let arguments: Vec<&str> =
            ["api-key", "create", "--tenant", "team-a"].iter().chain(more).copied().collect();
        Self::of(&ordered(site, &arguments))
    }

    /// The same key with another secret.
    pub(crate) fn forged(&self) -> String {
        format!("pyoco_{}.{}", self.id, "A".repeat(43))
    }
}

/// What the server says to somebody who shows this and wants to see runs.
pub(crate) async fn knock(running: &Running, key: Option<&str>) -> StatusCode {
    let request = reqwest::Client::new().get(format!("{}/runs", running.url));
    let request = match key {
        Some(key) => request.header("X-API-Key", key),
        None => request,
    };
    request.send().await.unwrap().status()
}

/// How long it takes until a key is refused.
pub(crate) async fn until_refused(running: &Running, key: &str) -> Duration {
    let since = Instant::now();
    loop {
        match knock(running, Some(key)).await {
            StatusCode::FORBIDDEN => return since.elapsed(),
            status => assert_eq!(status, StatusCode::OK),
        }
        assert!(since.elapsed() < PATIENCE, "it is never refused");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
