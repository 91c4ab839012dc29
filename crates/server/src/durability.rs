//! What an answer is worth when the power fails: whether the servers of NATS sync before they answer. Only their monitoring port
//! tells, so an operator has to say where that is.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::StartError;
use crate::config::{Durability, NatsAccess};

const PATIENCE: Duration = Duration::from_secs(3);
/// Such an answer has some ten kilobytes.
const LONGEST: u64 = 1024 * 1024;
const ADVICE: &str = "set `sync_interval: always` in the jetstream block of every nats-server";

/// Looks at how the servers are set up. What is missing is a warning, or an error if the operator is strict.
pub(crate) async fn check(access: &NatsAccess) -> Result<(), StartError> {
    let Some(missing) = missing(access).await else { return Ok(()) };
    match access.durability {
        Durability::Strict => Err(StartError::NotDurable(missing)),
        Durability::Relaxed => {
            tracing::warn!("an accepted run may be lost if all servers lose power at once: {missing}");
            Ok(())
        }
    }
}

/// Why an answer may be lost when the power fails; nothing when it may not.
pub(crate) async fn missing(access: &NatsAccess) -> Option<String> {
    Some(match &access.monitor {
        None => "PYOCO_NATS_MONITOR_URL does not say where a server tells how it is set up".to_owned(),
        Some(url) => match tokio::time::timeout(PATIENCE, syncs_always(url)).await {
            Ok(Ok(true)) => return None,
            Ok(Ok(false)) => {
                format!("the server at PYOCO_NATS_MONITOR_URL does not sync before it answers; {ADVICE}")
            }
            Ok(Err(reason)) => format!("the server at PYOCO_NATS_MONITOR_URL could not be asked: {reason}"),
            Err(_) => "the server at PYOCO_NATS_MONITOR_URL does not answer".to_owned(),
        },
    })
}

async fn syncs_always(url: &str) -> Result<bool, String> {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    if host.contains('/') {
        return Err("http://HOST:PORT is wanted".to_owned());
    }
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(host).await.map_err(text)?;
    let request = format!("GET /varz HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await.map_err(text)?;
    let answer = String::from_utf8_lossy(&answer);
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("that was no HTTP answer")?;
    let varz: serde_json::Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let setup = varz.pointer("/jetstream/config").ok_or("it runs without JetStream")?;
    Ok(setup.get("sync_always").and_then(serde_json::Value::as_bool).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use pyoco_testing_nats::{NatsServer, Options};

    use super::*;
    use crate::Config;

    /// What an operator who is strict is told about a server that tells about itself there.
    async fn strict(monitor: Option<String>) -> Result<(), StartError> {
        let access = NatsAccess { monitor, durability: Durability::Strict, ..Config::new().nats_access };
        check(&access).await
    }

    #[tokio::test]
    async fn whoever_is_strict_gets_a_server_that_syncs_or_none() {
        let lax = NatsServer::start(&Options::default());
        let strict_server = NatsServer::start(&Options { sync_always: true, ..Options::default() });
        strict(Some(strict_server.monitor_url())).await.unwrap();
        let refused = strict(Some(lax.monitor_url())).await.unwrap_err().to_string();
        assert!(refused.contains("sync_interval: always"), "{refused}");
        let unsaid = strict(None).await.unwrap_err().to_string();
        assert!(unsaid.contains("PYOCO_NATS_MONITOR_URL"), "{unsaid}");
        let nobody = strict(Some("http://127.0.0.1:1".to_owned())).await.unwrap_err().to_string();
        assert!(nobody.contains("could not be asked"), "{nobody}");
    }

    #[tokio::test]
    async fn whoever_is_not_strict_is_only_warned() {
        let lax = NatsServer::start(&Options::default());
        for monitor in [None, Some(lax.monitor_url())] {
            check(&NatsAccess { monitor, ..Config::new().nats_access }).await.unwrap();
        }
    }
}
