//! What a server of a cluster says to whoever wants to join: each one that is connected to says first who it is.

use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(3);
/// Such a line has some hundred bytes.
const LONGEST: u64 = 64 * 1024;

/// Where a server of a cluster is: `nats://host:cluster_port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl std::str::FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("{text:?} is no seed; nats://HOST:CLUSTER_PORT is wanted, e.g. nats://n1:6222");
        let rest =
            text.split_once("://").map_or(Some(text), |(scheme, rest)| (scheme == "nats").then_some(rest));
        let rest = rest.ok_or_else(refused)?.trim_end_matches('/');
        // Who may join is said by the credentials of the folder.
        if rest.contains('@') {
            return Err(
                "a seed is named without a password; copy credentials.env of that server instead".to_owned()
            );
        }
        let (host, port) = rest.rsplit_once(':').ok_or_else(refused)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(refused)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        if host.is_empty() || !host.bytes().all(is_good) {
            return Err(refused());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl Seed {
    /// `host:port`.
    pub fn address(&self) -> String {
        crate::conf::Listen { host: self.host.clone(), port: self.port }.address()
    }

    /// As a server is told it, with a user's name and password if there are some.
    pub fn route(&self, access: Option<(&str, &str)>) -> String {
        match access {
            Some((user, password)) => format!("nats://{user}:{password}@{}", self.address()),
            None => format!("nats://{}", self.address()),
        }
    }
}

/// Who is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Introduction {
    /// The server.
    pub server_name: String,
    /// Its cluster; only where servers come.
    pub cluster: Option<String>,
    /// Its version.
    pub version: String,
    /// Only clients are told which one they are.
    pub client_id: Option<u64>,
}

/// Asks who is at an address.
pub async fn introduction(address: &str) -> Result<Introduction, String> {
    let heard = async {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let mut line = String::new();
        let read = BufReader::new(stream.take(LONGEST)).read_line(&mut line).await;
        read.map_err(|error| error.to_string())?;
        let info = line.strip_prefix("INFO ").ok_or("it is no NATS server")?;
        serde_json::from_str(info).map_err(|error| error.to_string())
    };
    tokio::time::timeout(PATIENCE, heard).await.unwrap_or_else(|_| Err("it does not answer".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_host_and_the_port_of_a_cluster() {
        let seed: Seed = "nats://n1.example:6222".parse().unwrap();
        assert_eq!((seed.host.as_str(), seed.port), ("n1.example", 6222));
        assert_eq!(seed.route(Some(("route", "pw"))), "nats://route:pw@n1.example:6222");
        assert_eq!("[::1]:6222".parse::<Seed>().unwrap().address(), "[::1]:6222");
        for nonsense in [
            "",
            "n1",
            "nats://n1",
            "nats://n1:0",
            "http://n1:1",
            "nats://u:p@n1:6222",
            "nats://a b:1",
            "n\"1:1",
        ] {
            assert!(nonsense.parse::<Seed>().is_err(), "{nonsense}");
        }
    }
}
