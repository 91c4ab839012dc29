//! What API keys cost: a request with a key beside the same one without, and a client with a good key while somebody else tries bad ones.

use std::fmt;
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
/// Requests a second of whoever is beside the client, and over how many connections.
const RATE: u32 = 1_000;
const CONNECTIONS: usize = 8;
/// How long a client is looked at, in each company in turn.
const LOOK: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;

/// Who else sends requests while a client is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Company {
    Nobody,
    /// Somebody who may: what any other requests cost the client on the same cores.
    Health,
    /// Somebody who tries keys.
    BadKeys,
}

impl Company {
    const ALL: [Self; 3] = [Self::Nobody, Self::Health, Self::BadKeys];
}

impl fmt::Display for Company {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => write!(f, "alone"),
            Self::Health => write!(f, "beside {RATE} GET /health a second"),
            Self::BadKeys => write!(f, "beside {RATE} bad keys a second"),
        }
    }
}

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

/// A client that asks for one run again and again, in each company in turn, in ms.
async fn withstand(address: Address, key: &str, figures: &mut Figures) -> Result<(), Failure> {
    let mut connection = Connection::open(address).await?;
    let submission = with_key(http::submit("common", flows::UNSERVED)?, Some(key))?;
    let path = format!("/runs/{}", run_id(&connection.send(submission).await?.json()?)?);
    let mut looks = Company::ALL.map(|company| (company, Vec::new(), 0));
    for _ in 0..ROUNDS {
        for (company, samples, answered) in &mut looks {
            let others = Others::start(address, key, *company);
            look(&mut connection, &path, key, samples).await?;
            *answered += others.stop().await?;
        }
    }
    let wanted = LOOK.as_secs() * ROUNDS as u64 * u64::from(RATE);
    for (company, samples, answered) in looks {
        if company != Company::Nobody && answered * 100 < wanted * 95 {
            return Err(format!("{company}: only {answered} of {wanted} were sent").into());
        }
        figures.keep(Metric::Beside { company }, Ok(Figure::of(samples, 0)));
    }
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

/// Somebody who sends requests at a fixed rate, on a thread of its own so that the client is not delayed by the bench itself, and with
/// as little of a client as there can be: in earnest it would sit on a machine of its own.
struct Others {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<std::io::Result<u64>>,
}

impl Others {
    fn start(address: Address, key: &str, company: Company) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (key, told) = (key.to_owned(), is_over.clone());
        let thread = std::thread::spawn(move || match company {
            Company::Nobody => Ok(0),
            Company::Health => {
                send_evenly(address, &told, |_| (format!("GET /health {PLAIN}\r\n"), &[" 200 "]))
            }
            Company::BadKeys => send_evenly(address, &told, |number| {
                let key = bad(&key, number);
                (format!("GET /runs {PLAIN}x-api-key: {key}\r\n\r\n"), &[" 403 ", " 429 "])
            }),
        });
        Self { is_over, thread }
    }

    /// How many requests were answered as they should be.
    async fn stop(self) -> Result<u64, Failure> {
        self.is_over.store(true, Ordering::SeqCst);
        let ended = tokio::task::spawn_blocking(|| self.thread.join()).await?;
        Ok(ended.map_err(|_| "the thread of the others is lost")??)
    }
}

/// What every request goes on with, behind its path.
const PLAIN: &str = "HTTP/1.1\r\nhost: bench\r\n";

/// One request after the other, evenly, over each connection in turn.
#[allow(clippy::disallowed_methods, reason = "a bench waits by the clock")]
fn send_evenly(
    address: Address,
    is_over: &AtomicBool,
    request: impl Fn(u64) -> (String, &'static [&'static str]),
) -> std::io::Result<u64> {
    let mut connections = (0..CONNECTIONS)
        .map(|_| {
            let connection = TcpStream::connect(address)?;
            connection.set_nodelay(true)?;
            Ok(BufReader::new(connection))
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    let (turn, mut due, mut answered) = (Duration::from_secs(1) / RATE, clock::now(), 0);
    while !is_over.load(Ordering::SeqCst) {
        due += turn;
        std::thread::sleep(due.saturating_duration_since(clock::now()));
        let place = usize::try_from(answered).unwrap_or(0) % connections.len();
        if let Some(connection) = connections.get_mut(place) {
            let (text, wanted) = request(answered);
            send(connection, &text, wanted)?;
        }
        answered += 1;
    }
    Ok(answered)
}

/// Sends a request, which must be answered by one of these.
fn send(connection: &mut BufReader<TcpStream>, request: &str, wanted: &[&str]) -> std::io::Result<()> {
    connection.get_mut().write_all(request.as_bytes())?;
    let (mut line, mut length) = (String::new(), 0);
    connection.read_line(&mut line)?;
    if !wanted.iter().any(|status| line.contains(status)) {
        return Err(std::io::Error::other(format!("{request:?} was answered {}", line.trim_end())));
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
