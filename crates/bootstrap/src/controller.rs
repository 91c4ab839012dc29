//! The controller: takes servers out of the cluster for machines that do not have the system account. It remembers what it was asked,
//! so that whoever asks again is answered as before, also after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pyoco_core::time::Timestamp;
use pyoco_store_nats::cluster::StreamSeen;
use pyoco_store_nats::servers::{self, Overview, Placed};
use pyoco_store_nats::{OpenError, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{folder, leaving};

/// An order has some hundred bytes.
const LONGEST: usize = 64 * 1024;
/// Nobody needs longer to say what they want.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many connections at once.
const CONNECTIONS: usize = 64;
/// A system that has no room for another connection has some a moment later.
const REST: Duration = Duration::from_millis(100);
/// The file of what was asked.
const STATE: &str = "controller_state.json";

/// What the controller does to a cluster. Over the system account, or in a test.
pub trait Cluster: Send + Sync + 'static {
    /// Every stream of every account, and who did not tell.
    fn look(&self) -> impl Future<Output = Result<Overview, OpenError>> + Send;
    /// Takes a server out. One that is not in it is out already.
    fn remove(&self, server: &str) -> impl Future<Output = Result<(), OpenError>> + Send;
}

impl Cluster for Settings {
    async fn look(&self) -> Result<Overview, OpenError> {
        servers::overview(self).await
    }

    async fn remove(&self, server: &str) -> Result<(), OpenError> {
        servers::remove_server(self, server).await.map(|_| ())
    }
}

/// What was asked, as the file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    #[serde(default)]
    requests: BTreeMap<String, Asked>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    request_id: String,
    server_name: String,
    #[serde(default)]
    nats_url: Option<String>,
    timestamp: Value,
    /// Whether it was done; a file of the original does not say.
    #[serde(default)]
    removed: bool,
}

#[derive(Debug, Deserialize)]
struct Order {
    request_id: String,
    server_name: String,
    nats_url: Option<String>,
}

/// A controller.
#[derive(Debug)]
pub struct Controller<C> {
    cluster: C,
    file: PathBuf,
    state: Mutex<State>,
    clock: fn() -> Timestamp,
}

impl<C: Cluster> Controller<C> {
    /// A controller that keeps what it was asked in a folder.
    pub fn open(cluster: C, folder: &Path, clock: fn() -> Timestamp) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(STATE);
        let state = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", file.display()))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(error),
        };
        Ok(Self { cluster, file, state: Mutex::new(state), clock })
    }

    /// Answers until it is told to stop.
    pub async fn serve(self, listener: TcpListener, stopping: CancellationToken) {
        let (this, room) = (Arc::new(self), Arc::new(Semaphore::new(CONNECTIONS)));
        loop {
            let accepted = tokio::select! {
                () = stopping.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let Ok(place) = room.clone().try_acquire_owned() else { continue };
            let this = this.clone();
            tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let this = this.clone();
                    async move { Ok::<_, Infallible>(this.answer(request).await) }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
                // Whoever goes away needs no answer.
                let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                drop(place);
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => (StatusCode::OK, json!({"status": "ok"})),
            (&Method::GET, "/v1/replicas") => {
                let server = request.uri().query().and_then(|query| query.strip_prefix("server="));
                self.replicas(server.unwrap_or_default()).await
            }
            (&Method::POST, "/v1/leave") => {
                let body = Limited::new(request.into_body(), LONGEST).collect();
                match tokio::time::timeout(PATIENCE, body).await {
                    Ok(Ok(body)) => self.leave(&body.to_bytes()).await,
                    Ok(Err(_)) | Err(_) => invalid(),
                }
            }
            (_, _) => (StatusCode::NOT_FOUND, json!({"error": "not_found"})),
        };
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
        response
    }

    /// Which streams still count on a server, or lack a copy since it is gone.
    async fn replicas(&self, server: &str) -> (StatusCode, Value) {
        match self.known(server).await {
            Err(why) => unavailable(&why),
            Ok(streams) => {
                let held = names(&streams, |one| holders(&one.stream).contains(server));
                let lacking = names(&streams, |one| {
                    one.stream.is_clustered && holders(&one.stream).len() < one.stream.replicas
                });
                (StatusCode::OK, json!({"held": held, "lacking": lacking}))
            }
        }
    }

    /// All streams, if everybody told that has to before a server may go.
    async fn known(&self, leaving: &str) -> Result<Vec<Placed>, String> {
        let seen = self.cluster.look().await.map_err(|error| error.to_string())?;
        match unknown(&seen, leaving) {
            Some(why) => Err(why),
            None => Ok(seen.streams),
        }
    }

    async fn leave(&self, body: &[u8]) -> (StatusCode, Value) {
        let is_good = |text: &str| !text.is_empty() && text.len() <= 256 && !text.contains(char::is_control);
        let order: Order = match serde_json::from_slice(body) {
            Ok(order) => order,
            Err(_) => return invalid(),
        };
        if !is_good(&order.request_id) || !is_good(&order.server_name) {
            return invalid();
        }
        // One after the other: what one does changes what the next may.
        let mut state = self.state.lock().await;
        let answer =
            |result: &str| (StatusCode::OK, json!({"request_id": order.request_id, "result": result}));
        match state.requests.get(&order.request_id) {
            Some(asked) if asked.server_name != order.server_name => return invalid(),
            Some(asked) if asked.removed => return answer("already_done"),
            Some(_) | None => {}
        }
        match self.known(&order.server_name).await {
            Err(why) => return unavailable(&why),
            Ok(streams) => {
                let lost = names(&streams, |one| is_lost_with(&one.stream, &order.server_name));
                if !lost.is_empty() {
                    return (StatusCode::CONFLICT, json!({"error": "would_lose_streams", "streams": lost}));
                }
            }
        }
        let mut asked = Asked {
            request_id: order.request_id.clone(),
            server_name: order.server_name.clone(),
            nats_url: order.nats_url.as_deref().map(leaving::without_user),
            timestamp: json!((self.clock)().as_unix_seconds()),
            removed: false,
        };
        // Written before it is done: after a crash it is done again, which changes nothing.
        if let Err(error) = self.note(&mut state, asked.clone()) {
            return unavailable(&error.to_string());
        }
        if let Err(error) = self.cluster.remove(&order.server_name).await {
            return unavailable(&error.to_string());
        }
        asked.removed = true;
        if let Err(error) = self.note(&mut state, asked) {
            return unavailable(&error.to_string());
        }
        tracing::info!(
            server = order.server_name,
            request = order.request_id,
            "a server was taken out of the cluster"
        );
        answer("ok")
    }

    fn note(&self, state: &mut State, asked: Asked) -> io::Result<()> {
        state.requests.insert(asked.request_id.clone(), asked);
        folder::write(&self.file, &serde_json::to_string_pretty(state)?)
    }
}

/// Why nobody can say what would be lost with a server, and what to do then. A server that is taken out stores nothing from then on, so
/// a guess would be final.
fn unknown(seen: &Overview, leaving: &str) -> Option<String> {
    if !seen.is_led {
        return Some("no server leads the others, so nobody knows who they are; ask again, and see nats-bootstrap doctor if that stays".to_owned());
    }
    let others: Vec<&str> =
        seen.silent.iter().map(|one| one.name.as_str()).filter(|name| *name != leaving).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        return Some(format!(
            "{others} did not tell which streams it has, and they may need {leaving}; start it again, then ask again"
        ));
    }
    if seen.silent.iter().any(|one| one.name == leaving && !one.is_away) {
        return Some(format!(
            "{leaving} did not tell which streams it has, and is not known to be away; ask again in some minutes"
        ));
    }
    let unled = names(&seen.streams, |one| one.stream.is_clustered && !one.is_led);
    (!unled.is_empty()).then(|| {
        let unled = unled.join(", ");
        format!("the leader of {unled} did not tell which copies are whole; ask again, and start servers that are away")
    })
}

fn names(streams: &[Placed], is_meant: impl Fn(&Placed) -> bool) -> Vec<&str> {
    streams.iter().filter(|one| is_meant(one)).map(|one| one.stream.name.as_str()).collect()
}

/// The servers that have a copy, each once: one that does not lead names the leader a second time.
fn holders(stream: &StreamSeen) -> BTreeSet<&str> {
    stream.holders().collect()
}

/// Whether nobody else has all of a stream.
fn is_lost_with(stream: &StreamSeen, server: &str) -> bool {
    let followers = stream.followers.iter().filter(|one| one.current && !one.offline);
    let mut whole = stream.leader.as_deref().into_iter().chain(followers.map(|one| one.name.as_str()));
    stream.is_clustered && whole.all(|holder| holder == server)
}

fn invalid() -> (StatusCode, Value) {
    (StatusCode::BAD_REQUEST, json!({"error": "invalid_request"}))
}

fn unavailable(why: &str) -> (StatusCode, Value) {
    tracing::error!(why, "a server could not be taken out of the cluster");
    (StatusCode::SERVICE_UNAVAILABLE, json!({"error": "unavailable", "reason": why}))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pyoco_store_nats::cluster::Follower;
    use pyoco_store_nats::servers::Silent;

    use super::*;

    #[derive(Debug, Default)]
    struct Small {
        seen: Overview,
        removed: AtomicUsize,
    }

    impl Cluster for Small {
        async fn look(&self) -> Result<Overview, OpenError> {
            Ok(self.seen.clone())
        }

        async fn remove(&self, _server: &str) -> Result<(), OpenError> {
            self.removed.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    fn stream(leader: &str) -> StreamSeen {
        StreamSeen {
            name: "S".to_owned(),
            messages: 1,
            replicas: 1,
            is_clustered: true,
            leader: Some(leader.to_owned()),
            ..StreamSeen::default()
        }
    }

    fn told(streams: Vec<StreamSeen>) -> Overview {
        let placed = |stream| Placed { account: "A".to_owned(), stream, is_led: true };
        Overview { streams: streams.into_iter().map(placed).collect(), silent: Vec::new(), is_led: true }
    }

    fn seeing(folder: &Path, seen: Overview) -> Controller<Small> {
        let cluster = Small { seen, ..Small::default() };
        Controller::open(cluster, folder, || Timestamp::from_micros(1)).unwrap()
    }

    fn controller(folder: &Path, streams: Vec<StreamSeen>) -> Controller<Small> {
        seeing(folder, told(streams))
    }

    #[tokio::test]
    async fn an_order_is_carried_out_once_also_after_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let order = br#"{"request_id": "r", "server_name": "n2"}"#;
        let first = controller(home.path(), vec![stream("n1")]);
        assert_eq!(first.leave(order).await, (StatusCode::OK, json!({"request_id": "r", "result": "ok"})));
        let again = json!({"request_id": "r", "result": "already_done"});
        assert_eq!(first.leave(order).await, (StatusCode::OK, again.clone()));
        assert_eq!(first.cluster.removed.load(Ordering::SeqCst), 1);
        let second = controller(home.path(), Vec::new());
        assert_eq!(second.leave(order).await, (StatusCode::OK, again));
        assert_eq!(second.leave(br#"{"request_id": "r", "server_name": "n3"}"#).await, invalid());
    }

    #[tokio::test]
    async fn what_was_noted_and_not_done_is_done() {
        let home = tempfile::tempdir().unwrap();
        let noted = r#"{"requests": {"r": {"request_id": "r", "server_name": "n2", "nats_url": null, "timestamp": 1.5}}}"#;
        std::fs::write(home.path().join(STATE), noted).unwrap();
        let controller = controller(home.path(), Vec::new());
        let (status, answer) = controller.leave(br#"{"request_id": "r", "server_name": "n2"}"#).await;
        assert_eq!((status, &answer["result"]), (StatusCode::OK, &json!("ok")));
    }

    #[tokio::test]
    async fn a_server_that_alone_has_a_stream_stays() {
        let home = tempfile::tempdir().unwrap();
        let controller = controller(home.path(), vec![stream("n2")]);
        let (status, answer) = controller.leave(br#"{"request_id": "r", "server_name": "n2"}"#).await;
        assert_eq!((status, &answer["streams"]), (StatusCode::CONFLICT, &json!(["S"])));
        assert_eq!(controller.cluster.removed.load(Ordering::SeqCst), 0);
        for nonsense in [&b""[..], b"{}", br#"{"request_id": "", "server_name": "n"}"#, b"[1]"] {
            assert_eq!(controller.leave(nonsense).await, invalid());
        }
    }

    #[test]
    fn only_a_whole_copy_elsewhere_saves_a_stream() {
        let copy = |name: &str, current, offline| Follower {
            name: name.to_owned(),
            current,
            offline,
            ..Follower::default()
        };
        let with = |leader: &str, followers: Vec<Follower>| StreamSeen { followers, ..stream(leader) };
        let half = || copy("n1", false, false);
        assert!(is_lost_with(&with("n2", vec![half(), copy("n3", true, true)]), "n2"));
        assert!(!is_lost_with(&with("n2", vec![half(), copy("n3", true, false)]), "n2"));
        assert!(!is_lost_with(&with("n2", vec![half()]), "n1"), "the leader has all of it");
        let named_twice = with("n2", vec![copy("n2", true, false), half()]);
        assert!(is_lost_with(&named_twice, "n2"));
        assert_eq!(holders(&named_twice), BTreeSet::from(["n1", "n2"]));
        let headless = StreamSeen { leader: None, ..stream("n1") };
        assert!(is_lost_with(&headless, "n2"), "nobody is known to have it");
    }

    #[tokio::test]
    async fn nothing_is_decided_while_somebody_is_silent() {
        let order = br#"{"request_id": "r", "server_name": "n2"}"#;
        let silent = |name: &str, is_away| vec![Silent { name: name.to_owned(), is_away }];
        let mut unled = told(vec![stream("n1")]);
        unled.streams[0].is_led = false;
        let seen = [
            (Overview { is_led: false, ..told(Vec::new()) }, "no server leads"),
            (Overview { silent: silent("n3", false), ..told(Vec::new()) }, "n3 did not tell"),
            (Overview { silent: silent("n3", true), ..told(Vec::new()) }, "n3 did not tell"),
            (Overview { silent: silent("n2", false), ..told(Vec::new()) }, "not known to be away"),
            (unled, "leader of S"),
        ];
        for (seen, why) in seen {
            let home = tempfile::tempdir().unwrap();
            let controller = seeing(home.path(), seen);
            for (status, answer) in [controller.leave(order).await, controller.replicas("n2").await] {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
                assert!(answer["reason"].as_str().unwrap().contains(why), "{answer}");
            }
            assert_eq!(controller.cluster.removed.load(Ordering::SeqCst), 0);
            assert!(!home.path().join(STATE).exists());
        }
        // One that is away can be taken out: that is how a dead one goes.
        let home = tempfile::tempdir().unwrap();
        let gone = Overview { silent: silent("n2", true), ..told(vec![stream("n1")]) };
        let controller = seeing(home.path(), gone);
        assert_eq!(controller.leave(order).await.0, StatusCode::OK);
        assert_eq!(controller.cluster.removed.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_password_in_an_order_is_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let controller = controller(home.path(), Vec::new());
        let order = br#"{"request_id": "r", "server_name": "n2", "nats_url": "nats://u:secret@h:4222"}"#;
        assert_eq!(controller.leave(order).await.0, StatusCode::OK);
        let kept = std::fs::read_to_string(home.path().join(STATE)).unwrap();
        assert!(kept.contains("nats://h:4222") && !kept.contains("secret"), "{kept}");
    }
}
