//! Asking servers about themselves: over HTTP where each one tells, or over the system account, where all of them answer at once.

use std::net::IpAddr;
use std::time::Duration;

use pyoco_core::time::Timestamp;
use pyoco_store_nats::{OpenError, Settings, servers};
use serde_json::{Value, json};

use crate::facts::Server;

const PATIENCE: Duration = Duration::from_secs(3);
/// Such an answer has some ten kilobytes, more with many connections.
const LONGEST: usize = 8 << 20;

/// A client of the monitoring ports.
#[derive(Debug, Clone)]
pub struct Monitor(reqwest::Client);

/// A server that did not tell.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Silent {
    /// Where it was asked.
    pub url: String,
    /// What happened.
    pub why: String,
}

impl Monitor {
    /// A client.
    pub fn new() -> Result<Self, String> {
        let client = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
        client.build().map(Self).map_err(|error| error.to_string())
    }

    /// Asks a server at `http://host:port`. `clock` is ours.
    pub async fn ask(&self, url: &str, clock: impl Fn() -> Timestamp) -> Result<Server, Silent> {
        let silent = |why: String| Silent { url: url.to_owned(), why };
        let base = url.trim_end_matches('/');
        let before = clock();
        let varz = self.get(&format!("{base}/varz")).await.map_err(silent)?;
        let after = clock();
        let mut server = Server::read(&varz, middle(before, after))
            .ok_or_else(|| silent("that is no nats-server".to_owned()))?;
        server.url = Some(base.to_owned());
        if is_here(base) {
            server.look_at_disk();
        }
        let routes = self.get(&format!("{base}/routez")).await.map_err(silent)?;
        server.knows = named(&routes);
        Ok(server)
    }

    /// Whether JetStream can be used at a server, and why not.
    pub async fn is_healthy(&self, url: &str) -> Result<(), String> {
        let base = url.trim_end_matches('/');
        let answer = self.0.get(format!("{base}/healthz")).send().await.map_err(|error| reason(&error))?;
        if answer.status().is_success() {
            return Ok(());
        }
        let told: Value = answer.json().await.unwrap_or_default();
        Err(told.get("error").and_then(Value::as_str).unwrap_or("it is not healthy").to_owned())
    }

    async fn get(&self, url: &str) -> Result<Value, String> {
        let mut answer = self.0.get(url).send().await.map_err(|error| reason(&error))?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status()));
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| reason(&error))? {
            if body.len().saturating_add(piece.len()) > LONGEST {
                return Err("its answer is too long".to_owned());
            }
            body.extend_from_slice(&piece);
        }
        serde_json::from_slice(&body).map_err(|_| "that is no nats-server".to_owned())
    }
}

/// Asks all servers over the system account.
pub async fn ask_all(settings: &Settings, clock: impl Fn() -> Timestamp) -> Result<Vec<Server>, OpenError> {
    let before = clock();
    let told = servers::ask_servers(settings, "VARZ", &json!({})).await?;
    let mut servers: Vec<Server> =
        told.iter().filter_map(|one| Server::read(one.get("data")?, before)).collect();
    let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    for server in &mut servers {
        server.knows = names.iter().filter(|name| **name != server.name).cloned().collect();
    }
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(servers)
}

/// The servers that a server is connected with.
fn named(routes: &Value) -> Vec<String> {
    let routes = routes.get("routes").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = routes
        .filter_map(|route| route.get("remote_name").and_then(Value::as_str))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Whether an address is one of this machine alone.
fn is_here(url: &str) -> bool {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| is_loopback(host.trim_matches(['[', ']'])))
}

pub(crate) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn middle(before: Timestamp, after: Timestamp) -> Timestamp {
    let half = after.as_micros().saturating_sub(before.as_micros()) / 2;
    Timestamp::from_micros(before.as_micros().saturating_add(half))
}

/// The innermost reason: the outer ones repeat the address.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() { "it does not answer".to_owned() } else { cause.to_string() }
}
