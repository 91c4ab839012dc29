//! A gateway on a port of its own, clients for it, and executions driven by hand.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyoco_core::command::{Command, Issuer, Request};
use pyoco_core::ids::{EventId, ExecutionId, Tag};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Engine, Ids};
use pyoco_gateway::{Access, Gateway, ServerLimits, Settings, serve};
use pyoco_ports::{Filter, IndexRow, Store};
use pyoco_store_memory::MemoryStore;
use pyoco_testkit::{Graph, callable, claim, start_node, succeed, worker};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// The tests' time begins here: 2023-11-14T22:13:20Z.
pub(crate) const START: i64 = 1_700_000_000_000_000;

/// A clock that moves a millisecond at each look, and as the test says.
pub(crate) struct Hands {
    micros: AtomicI64,
    is_broken: AtomicBool,
}

impl Hands {
    pub(crate) fn forward(&self, seconds: i64) {
        self.micros.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// From now on, whoever asks for the time panics (or no more).
    pub(crate) fn break_down(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        assert!(!self.is_broken.load(Ordering::SeqCst), "the clock is broken, as the test wants it");
        Timestamp::from_micros(self.micros.fetch_add(1_000, Ordering::SeqCst))
    }
}

/// Names in a row that look like the real ones.
struct Counter(AtomicU64);

impl Ids for Counter {
    fn event(&self) -> EventId {
        EventId::new(&format!("ev-{}", self.0.fetch_add(1, Ordering::SeqCst))).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        ExecutionId::new(&format!("00000000-0000-4000-8000-{number:012x}")).unwrap()
    }
}

/// A gateway that serves.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hands: Arc<Hands>,
    pub(crate) client: reqwest::Client,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// An answer with a JSON body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON ({status}): {text}"));
        Self { status, headers, json }
    }

    /// The `detail` of an error, which has to be that status.
    #[track_caller]
    pub(crate) fn detail(&self, status: u16) -> &Value {
        assert_eq!(self.status, status, "{}", self.json);
        &self.json["detail"]
    }

    /// The only problem of a 422 list.
    #[track_caller]
    pub(crate) fn problem(&self) -> &Value {
        let detail = self.detail(422);
        let problems = detail.as_array().unwrap_or_else(|| panic!("no list: {detail}"));
        assert_eq!(problems.len(), 1, "{detail}");
        &problems[0]
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default(), ServerLimits::default()).await
    }

    pub(crate) async fn with(settings: Settings, limits: ServerLimits) -> Self {
        Self::on(Arc::new(MemoryStore::new()), settings, limits).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>, settings: Settings, limits: ServerLimits) -> Self {
        Self::serving(store, settings, limits, None).await
    }

    /// One for those who are admitted.
    pub(crate) async fn guarded(access: Arc<dyn Access>, settings: Settings) -> Self {
        Self::serving(Arc::new(MemoryStore::new()), settings, ServerLimits::default(), Some(access)).await
    }

    async fn serving(
        store: Arc<dyn Store>,
        settings: Settings,
        limits: ServerLimits,
        access: Option<Arc<dyn Access>>,
    ) -> Self {
        let hands = Arc::new(Hands { micros: AtomicI64::new(START), is_broken: AtomicBool::new(false) });
        let ids = Arc::new(Counter(AtomicU64::new(0)));
        let engine = Engine::new(store.clone(), hands.clone(), ids, pyoco_engine::Settings::default());
        let gateway = match access {
            None => Gateway::new(engine.clone(), hands.clone(), settings),
            Some(access) => Gateway::with_access(engine.clone(), hands.clone(), settings, access),
        };
        let router = gateway.router();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        Self { address, engine, store, hands, client, shutdown, served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.client.get(self.url(path)).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.client.post(self.url(path)).json(body).send().await.unwrap()).await
    }

    /// Posts bytes that claim to be JSON.
    pub(crate) async fn post_bytes(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.client.post(self.url(path)).header("content-type", "application/json");
        Answer::of(request.body(body).send().await.unwrap()).await
    }

    /// Submits a run of `main` and gives its id.
    pub(crate) async fn submit(&self) -> String {
        let answer = self.post("/runs", &serde_json::json!({"flow_name": "main", "params": {"x": 1}})).await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        answer.json["run_id"].as_str().unwrap().to_owned()
    }

    /// Asks something of a run, as its worker or another issuer.
    pub(crate) async fn ask(&self, run: &str, issuer: &Issuer, command: impl Into<Command>) {
        let request = Request::new(issuer.clone(), self.hands.now(), command);
        self.engine.command(&ExecutionId::new(run).unwrap(), &request).await.unwrap();
    }

    /// A worker takes a run of two tasks, `a` then `b`.
    pub(crate) async fn claim(&self, run: &str) {
        let plan = Graph::chain(&["a", "b"], &callable()).plan();
        self.ask(run, &worker(0), claim("job-1", Some(&plan))).await;
    }

    /// A worker does a task.
    pub(crate) async fn run_task(&self, run: &str, task: &str, output: Value) {
        self.ask(run, &worker(1), start_node(task)).await;
        self.ask(run, &worker(1), succeed(task, output)).await;
    }

    /// Everything that a request could have left behind.
    pub(crate) async fn stored(&self) -> (Vec<IndexRow>, u64, u64) {
        let rows = self.store.list(&Filter::default(), 10_000).await.unwrap().rows;
        let jobs = self.store.depth(&Tag::default()).await.unwrap();
        (rows, jobs, self.store.count_letters().await.unwrap())
    }

    /// Sends bytes as they are and gives what comes back until the connection is closed.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        read_to_end(&mut stream).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// What a peer still says. A connection that is reset says nothing more.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(15), async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            text.extend_from_slice(&buffer[..count]);
        }
    });
    read.await.expect("the connection is closed in time");
    String::from_utf8_lossy(&text).into_owned()
}

/// The status of an answer as it stands on the wire.
pub(crate) fn status_of(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

/// What was logged.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// What was logged since the last look.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged on this thread from now on.
pub(crate) fn logged() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    (lines, tracing::subscriber::set_default(subscriber))
}
