//! What API keys cost: a request with a key beside the same one without, and a client with a good key while somebody else tries bad ones.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Request;
use hyper::header::HeaderName;
use serde_json::Value;
use tokio::process::Command;

use super::run_id;
use crate::figures::{Figures, Metric};
use crate::http::{self, Address, Connection};
use crate::ours::Ours;
use crate::stats::{Figure, ms};
use crate::subject::{Stack, Subject as _};
use crate::{Failure, clock, flows};

const HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// Requests of each kind, in turn.
const REQUESTS: usize = 10_000;
/// Bad keys a second, and over how many connections.
pub(crate) const BAD_KEYS: u32 = 1_000;
const BAD_CONNECTIONS: usize = 8;
/// How long a client is looked at, with and without the bad keys, in turn.
const LOOK: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;

/// Starts two servers, one of which asks for keys.
pub(super) async fn measure(ours: &Ours<'_>, figures: &mut Figures) -> Result<(), Failure> {
    let open = ours.start(true).await?;
    let (data, _) = ours.fresh_store()?;
    let keyed = ours.start_with(data, &[("PYOCO_HTTP_AUTH_MODE", "api_key")]).await?;
    let key = create_key(ours.admin(), &keyed).await?;
    compare(open.address, keyed.address, &key, figures).await?;
    open.stop().await;
    withstand(keyed.address, &key, figures).await?;
    keyed.stop().await;
    Ok(())
}

async fn create_key(admin: &Path, stack: &Stack) -> Result<String, Failure> {
    let mut command = Command::new(admin);
    command.arg("--data-dir").arg(Ours::store_in(stack.data()));
    let made = command.args(["api-key", "create", "--tenant", "bench"]).output().await?;
    let shown: Value = serde_json::from_slice(&made.stdout)
        .map_err(|_| format!("no key was made: {}", String::from_utf8_lossy(&made.stderr)))?;
    Ok(shown.get("api_key").and_then(Value::as_str).ok_or("a key without a secret")?.to_owned())
}

/// The same request with and without a key, in turn, in ms.
async fn compare(open: Address, keyed: Address, key: &str, figures: &mut Figures) -> Result<(), Failure> {
    let mut ways = Vec::new();
    for (address, key) in [(open, None), (keyed, Some(key))] {
        let mut connection = Connection::open(address).await?;
        let submission = with_key(http::submit("common", flows::UNSERVED)?, key)?;
        let run = run_id(&connection.send(submission).await?.json()?)?;
        ways.push((connection, format!("/runs/{run}"), key, Vec::new()));
    }
    for _ in 0..REQUESTS {
        for (connection, path, key, samples) in &mut ways {
            let request = with_key(http::get(path)?, *key)?;
            let sent = clock::now();
            connection.send(request).await?.json()?;
            samples.push(ms(sent.elapsed()));
        }
    }
    for (_, _, key, samples) in ways {
        figures.keep(Metric::Request { is_keyed: key.is_some() }, Ok(Figure::of(samples, 0)));
    }
    Ok(())
}

/// A client that asks for one run again and again, alone and beside the bad keys, in turn, in ms.
async fn withstand(address: Address, key: &str, figures: &mut Figures) -> Result<(), Failure> {
    let mut connection = Connection::open(address).await?;
    let submission = with_key(http::submit("common", flows::UNSERVED)?, Some(key))?;
    let path = format!("/runs/{}", run_id(&connection.send(submission).await?.json()?)?);
    let (mut alone, mut beside, mut refused) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        look(&mut connection, &path, key, &mut alone).await?;
        let attack = Attack::start(address, key);
        look(&mut connection, &path, key, &mut beside).await?;
        refused += attack.stop().await?;
    }
    let tried = LOOK.as_secs() * ROUNDS as u64 * u64::from(BAD_KEYS);
    if refused * 100 < tried * 95 {
        return Err(format!("only {refused} of {tried} bad keys were tried").into());
    }
    figures.keep(Metric::BesideBadKeys { are_there: false }, Ok(Figure::of(alone, 0)));
    figures.keep(Metric::BesideBadKeys { are_there: true }, Ok(Figure::of(beside, 0)));
    Ok(())
}

async fn look(
    connection: &mut Connection,
    path: &str,
    key: &str,
    samples: &mut Vec<f64>,
) -> Result<(), Failure> {
    let end = clock::now() + LOOK;
    while clock::now() < end {
        let request = with_key(http::get(path)?, Some(key))?;
        let sent = clock::now();
        connection.send(request).await?.json()?;
        samples.push(ms(sent.elapsed()));
    }
    Ok(())
}

/// Somebody who tries bad keys at a fixed rate, on a thread of its own so that the client is not delayed by the bench itself, and with
/// as little of a client as there can be: in earnest it would sit on a machine of its own.
struct Attack {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<std::io::Result<u64>>,
}

impl Attack {
    fn start(address: Address, key: &str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (key, told) = (key.to_owned(), is_over.clone());
        Self { is_over, thread: std::thread::spawn(move || attack(address, &key, &told)) }
    }

    /// How many bad keys were refused.
    async fn stop(self) -> Result<u64, Failure> {
        self.is_over.store(true, Ordering::SeqCst);
        let ended = tokio::task::spawn_blocking(|| self.thread.join()).await?;
        Ok(ended.map_err(|_| "the thread of the bad keys is lost")??)
    }
}

/// One request after the other, evenly, over each connection in turn.
#[allow(clippy::disallowed_methods, reason = "a bench waits by the clock")]
fn attack(address: Address, key: &str, is_over: &AtomicBool) -> std::io::Result<u64> {
    let mut connections = (0..BAD_CONNECTIONS)
        .map(|_| {
            let connection = TcpStream::connect(address)?;
            connection.set_nodelay(true)?;
            Ok(BufReader::new(connection))
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    let (turn, mut due, mut refused) = (Duration::from_secs(1) / BAD_KEYS, clock::now(), 0);
    while !is_over.load(Ordering::SeqCst) {
        due += turn;
        std::thread::sleep(due.saturating_duration_since(clock::now()));
        let place = usize::try_from(refused).unwrap_or(0) % connections.len();
        if let Some(connection) = connections.get_mut(place) {
            try_key(connection, &bad(key, refused))?;
        }
        refused += 1;
    }
    Ok(refused)
}

/// Shows a key, which must be refused.
fn try_key(connection: &mut BufReader<TcpStream>, key: &str) -> std::io::Result<()> {
    let request = format!("GET /runs HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n\r\n");
    connection.get_mut().write_all(request.as_bytes())?;
    let (mut line, mut length) = (String::new(), 0);
    connection.read_line(&mut line)?;
    if ![" 403 ", " 429 "].iter().any(|status| line.contains(status)) {
        return Err(std::io::Error::other(format!("a bad key was answered {}", line.trim_end())));
    }
    while line.trim_end() != "" {
        line.clear();
        connection.read_line(&mut line)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    connection.read_exact(&mut vec![0; length])
}

/// Every one is another: half of them name a key that there is, with a wrong secret.
fn bad(key: &str, number: u64) -> String {
    match key.split_once('.') {
        Some((id, secret)) if number.is_multiple_of(2) => {
            let kept = secret.get(..secret.len().saturating_sub(12)).unwrap_or_default();
            format!("{id}.{kept}{number:012}")
        }
        Some((_, secret)) => format!("pyoco_{number:024x}.{secret}"),
        None => format!("{number}"),
    }
}

fn with_key(mut request: Request<String>, key: Option<&str>) -> Result<Request<String>, Failure> {
    if let Some(key) = key {
        request.headers_mut().insert(HEADER, key.parse()?);
    }
    Ok(request)
}
