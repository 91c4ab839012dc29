//! A store, an engine on it and a gateway in front of that.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Engine, Ids};
use pyoco_gateway::{Access, Gateway, ServerLimits, Settings, serve};
use pyoco_ports::{Heard, Store};
use pyoco_store_memory::MemoryStore;
use pyoco_store_nats::{Listener, NatsStore};
use pyoco_store_sqlite::SqliteStore;
use pyoco_testing_nats::{NatsServer, Options};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The tests' time begins here: 2023-11-14T22:13:20Z.
const START: i64 = 1_700_000_000_000_000;

/// The stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The reference.
    Memory,
    /// Embedded, in a folder.
    Sqlite,
    /// Shared, on a real nats-server.
    Nats,
}

/// A clock that moves a millisecond at each look, and as the test says.
#[derive(Debug)]
pub struct Hands(AtomicI64);

impl Hands {
    /// Lets time pass.
    pub fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000, Ordering::SeqCst))
    }
}

struct Names;

impl Ids for Names {
    fn event(&self) -> EventId {
        EventId::new(&uuid::Uuid::new_v4().to_string()).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        ExecutionId::new(&uuid::Uuid::new_v4().to_string()).unwrap()
    }
}

/// What other gateways write reaches those who watch here.
struct Ears(Engine);

#[async_trait]
impl Listener for Ears {
    async fn heard(&self, heard: Heard) {
        self.0.heed(&heard).await;
    }
}

/// Where the store of a site lives.
#[derive(Clone)]
enum Ground {
    Memory(Arc<MemoryStore>),
    Sqlite { store: SqliteStore, folder: Arc<TempDir> },
    Nats(Arc<NatsServer>),
}

/// A gateway that serves.
pub struct Site {
    /// Which store it has.
    pub kind: Kind,
    /// Where it listens.
    pub address: SocketAddr,
    /// What is behind it, for what only a worker may say.
    pub engine: Engine,
    /// Its time.
    pub hands: Arc<Hands>,
    /// A client.
    pub client: reqwest::Client,
    ground: Ground,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a site on {:?}", self.kind)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Site {
    /// A gateway on a new store.
    pub async fn open(kind: Kind) -> Self {
        Self::open_with(kind, Settings::default()).await
    }

    /// The same, with other settings.
    pub async fn open_with(kind: Kind, settings: Settings) -> Self {
        let ground = match kind {
            Kind::Memory => Ground::Memory(Arc::new(MemoryStore::new())),
            Kind::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let store = SqliteStore::open(folder.path(), Default::default()).unwrap();
                Ground::Sqlite { store, folder: Arc::new(folder) }
            }
            Kind::Nats => Ground::Nats(Arc::new(NatsServer::start(&Options::default()))),
        };
        Self::on(kind, ground, Arc::new(Hands(AtomicI64::new(START))), settings).await
    }

    /// A second gateway beside this one: another process where the store is shared, else another port of this one.
    pub async fn beside(&self) -> Self {
        match self.kind {
            Kind::Memory | Kind::Sqlite => self.again(Settings::default()).await,
            Kind::Nats => {
                Self::on(self.kind, self.ground.clone(), self.hands.clone(), Settings::default()).await
            }
        }
    }

    /// The gateway after its process was stopped and started again: it knows nothing but what is stored.
    pub async fn restarted(self) -> Self {
        let ground = match &self.ground {
            Ground::Memory(store) => Ground::Memory(store.clone()),
            Ground::Sqlite { store, folder } => {
                store.close().await.unwrap();
                let store = SqliteStore::open(folder.path(), Default::default()).unwrap();
                Ground::Sqlite { store, folder: folder.clone() }
            }
            Ground::Nats(server) => Ground::Nats(server.clone()),
        };
        Self::on(self.kind, ground, self.hands.clone(), Settings::default()).await
    }

    /// The gateway after it has hung up on everybody: the same engine, at the same address.
    pub async fn listening_again(self) -> Self {
        self.shutdown.cancel();
        let listener = loop {
            // The old one goes first.
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let gateway = Gateway::new(self.engine.clone(), self.hands.clone(), Settings::default());
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, gateway.router(), ServerLimits::default(), shutdown.clone()));
        Self {
            kind: self.kind,
            address: self.address,
            engine: self.engine.clone(),
            hands: self.hands.clone(),
            client: self.client.clone(),
            ground: self.ground.clone(),
            shutdown,
        }
    }

    /// The same gateway with other settings, on the same engine.
    pub async fn again(&self, settings: Settings) -> Self {
        Self::serving(self.kind, self.ground.clone(), self.engine.clone(), self.hands.clone(), settings).await
    }

    async fn on(kind: Kind, ground: Ground, hands: Arc<Hands>, settings: Settings) -> Self {
        let engine_on = |store: Arc<dyn Store>| {
            Engine::new(store, hands.clone(), Arc::new(Names), pyoco_engine::Settings::default())
        };
        let engine = match &ground {
            Ground::Memory(store) => engine_on(store.clone()),
            Ground::Sqlite { store, .. } => engine_on(Arc::new(store.clone())),
            Ground::Nats(server) => {
                let index = SqliteStore::scratch(&std::env::temp_dir()).unwrap();
                let settings = pyoco_store_nats::Settings::new(&[&server.url()]);
                let store = NatsStore::open(settings, Some(Arc::new(index))).await.unwrap();
                let engine = engine_on(store.clone());
                store.follow(Arc::new(Ears(engine.clone()))).unwrap().caught_up().await;
                engine
            }
        };
        Self::serving(kind, ground, engine, hands, settings).await
    }

    async fn serving(
        kind: Kind,
        ground: Ground,
        engine: Engine,
        hands: Arc<Hands>,
        settings: Settings,
    ) -> Self {
        let gateway = Gateway::new(engine.clone(), hands.clone(), settings);
        let (address, shutdown) = Self::listening(gateway).await;
        let client = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
        Self { kind, address, engine, hands, client, ground, shutdown }
    }

    /// The same engine behind a gateway that wants to know who calls, seen by somebody with this secret.
    pub async fn for_one(&self, access: Arc<dyn Access>, secret: Option<&str>) -> Self {
        self.for_one_with(access, secret, Settings::default()).await
    }

    /// The same, with other settings.
    pub async fn for_one_with(
        &self,
        access: Arc<dyn Access>,
        secret: Option<&str>,
        settings: Settings,
    ) -> Self {
        let gateway = Gateway::with_access(self.engine.clone(), self.hands.clone(), settings, access);
        let mut headers = HeaderMap::new();
        if let Some(secret) = secret {
            headers.insert(AUTHORIZATION, format!("Bearer {secret}").parse().unwrap());
        }
        let client = reqwest::Client::builder().timeout(Duration::from_secs(30)).default_headers(headers);
        let served = Self::listening(gateway).await;
        Self {
            kind: self.kind,
            address: served.0,
            engine: self.engine.clone(),
            hands: self.hands.clone(),
            client: client.build().unwrap(),
            ground: self.ground.clone(),
            shutdown: served.1,
        }
    }

    async fn listening(gateway: Gateway) -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, gateway.router(), ServerLimits::default(), shutdown.clone()));
        (address, shutdown)
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}
