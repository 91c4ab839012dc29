//! One process on one store: the engine, what keeps executions going, and the way to a router and to workers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::notice::Notice;
use pyoco_core::time::Millis;
use pyoco_engine::{Clock, Engine, EngineError};
use pyoco_figures::Figures;
use pyoco_gateway::Gateway;
use pyoco_ports::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Doorkeeper;
use crate::admin::{AdminSocket, Desk};
use crate::config::{AuthMode, Config};
use crate::keeper::Keeper;
use crate::storage::{Role, Storage};
use crate::traces::Traces;
use crate::{RandomIds, StartError, SystemClock, news};

/// What the stores are called in log lines and figures.
const NATS: &str = "nats";
const EMBEDDED: &str = "embedded";

/// How often what is due is looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Executions that one sweep looks at, at most.
const SWEEP_MOST: usize = 1_000;

/// The parts that share a store.
#[derive(Debug, Clone)]
pub struct Backend {
    config: Arc<Config>,
    storage: Storage,
    engine: Engine,
    /// Who asks for keys, if anybody does.
    door: Option<Arc<Doorkeeper>>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Backend {
    /// Opens the store of a configuration, puts right what a crash may have left, and keeps executions going from here on.
    pub async fn open(config: Config) -> Result<Self, StartError> {
        Self::open_as(config, Role::Gateway).await
    }

    /// The same, for a process that does only a part.
    pub async fn open_as(config: Config, role: Role) -> Result<Self, StartError> {
        let store = if config.nats_url.is_some() { NATS } else { EMBEDDED };
        let figures = Figures::new(env!("CARGO_PKG_VERSION"), store);
        let traces = Traces::new(&config.traces, &figures)?;
        let storage = Storage::open(&config, &role, &figures).await?;
        let mut engine = engine_on(&storage, &config, figures);
        if let Some(traces) = &traces {
            engine = engine.telling(traces.endings());
        }
        // For every role: whoever has a backend may ask it for a router.
        let door = match config.auth_mode {
            AuthMode::None => None,
            AuthMode::ApiKey => {
                let keys = Doorkeeper::new(storage.shared(), config.auth_pepper.clone());
                Some(Arc::new(keys.map_err(StartError::other)?))
            }
        };
        let backend = Self {
            config: Arc::new(config),
            storage,
            engine,
            door,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        if let Some(traces) = traces {
            backend.tasks.spawn(traces.run(backend.engine.clone(), backend.stopping.clone()));
        }
        if let Storage::Nats(store) = &backend.storage
            && role == Role::Gateway
        {
            news::follow(store, &backend.engine, &backend.tasks, &backend.stopping).await?;
        }
        // A worker beside others has no index of all runs: those who answer requests see to what is due.
        if role == Role::Gateway || !backend.storage.is_shared() {
            // What cannot be put right now is tried again, and said, by every later sweep.
            if let Err(error) = backend.sweep(true).await {
                tracing::warn!(reason = %error, "the first sweep was not finished");
            }
            backend.tasks.spawn(backend.clone().keep_sweeping());
            if backend.storage.is_shared() {
                backend.tasks.spawn(backend.clone().keep_finishing());
            }
            let keeper = Keeper::new(backend.engine.clone(), backend.config.clone());
            backend.tasks.spawn(keeper.run(backend.stopping.clone()));
        }
        if role == Role::Gateway {
            backend.take_orders().await;
        }
        Ok(backend)
    }

    /// Takes orders where only this process can carry them out, and says so if nobody can come in yet.
    async fn take_orders(&self) {
        let (config, storage) = (self.config.clone(), self.storage.clone());
        let desk = Desk::new(config, storage, self.engine.clone(), self.stopping.clone());
        if self.door.is_some() && desk.has_no_keys().await {
            tracing::warn!(
                "there is no API key yet; make one with `pyoco-server-admin api-key create --tenant NAME`"
            );
        }
        if self.storage.is_shared() {
            return;
        }
        match AdminSocket::bind(&self.config.data_dir) {
            Ok(socket) => {
                let (tasks, stopping) = (self.tasks.clone(), self.stopping.clone());
                self.tasks.spawn(socket.serve(desk, tasks, stopping));
            }
            // Requests are answered all the same.
            Err(reason) => tracing::warn!(
                %reason,
                "the socket of pyoco-server-admin cannot be made, so orders can only be given while this server is stopped; a shorter --data-dir may help"
            ),
        }
    }

    /// What it was opened with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The use cases.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The time.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The HTTP surface, to be served or nested in a program of your own.
    pub fn router(&self) -> pyoco_gateway::Router {
        let settings = pyoco_gateway::Settings {
            default_tag: self.config.default_tag.clone(),
            workflow_yaml_max_bytes: self.config.workflow_yaml_max_bytes,
            max_run_snapshot_bytes: self.config.max_run_snapshot_bytes,
            worker_disconnect_timeout: millis(self.config.worker_disconnect),
            idempotency_key_required: self.config.idempotency_key_required,
            jobs_flow: self.config.jobs_flow.clone(),
            api_key_header: self.config.api_key_header.clone(),
            wheels: self.wheel_settings(),
            dashboard: self.dashboard_settings(),
            ..Default::default()
        };
        let (engine, clock) = (self.engine.clone(), self.clock());
        match &self.door {
            Some(door) => Gateway::with_access(engine, clock, settings, door.clone()),
            None => Gateway::new(engine, clock, settings),
        }
        .router()
    }

    /// Whether this build has a dashboard.
    pub fn has_dashboard(&self) -> bool {
        !pyoco_page::FILES.is_empty()
    }

    fn dashboard_settings(&self) -> pyoco_gateway::DashboardSettings {
        let served = |file: &pyoco_page::File| pyoco_gateway::PageFile {
            name: file.name,
            plain: file.plain,
            brotli: file.brotli,
            gzip: file.gzip,
        };
        pyoco_gateway::DashboardSettings {
            files: pyoco_page::FILES.iter().map(served).collect(),
            language: self.config.dashboard.language(),
            has_actions: self.config.dashboard.has_actions,
        }
    }

    fn wheel_settings(&self) -> pyoco_gateway::WheelSettings {
        let wheels = &self.config.wheels;
        // Beside the store, which has room for them if anything has; with NATS there is no such folder.
        let is_embedded = self.config.nats_url.is_none();
        pyoco_gateway::WheelSettings {
            bucket: wheels.bucket.clone(),
            max_bytes: wheels.max_bytes,
            upload_role: wheels.upload_role,
            folder: if is_embedded { self.config.data_dir.clone() } else { std::env::temp_dir() },
        }
    }

    /// Tells the figures of this process, and that it is there, to whoever asks at an address. For a process that answers no other
    /// requests; until it is closed.
    pub async fn tell_figures(&self, address: &str) -> Result<SocketAddr, StartError> {
        let refused = |error| StartError::Worker(format!("--metrics-addr {address}: cannot listen: {error}"));
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(StartError::other)?;
        if !address.ip().to_canonical().is_loopback() {
            tracing::warn!(%address, "everybody who reaches this address may read the figures of this worker: no API keys are asked for");
        }
        let router = pyoco_gateway::worker_router(self.engine.figures().clone());
        let limits = pyoco_gateway::ServerLimits::default();
        let serving = pyoco_gateway::serve(listener, router, limits, self.stopping.clone());
        self.tasks.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the figures of this worker are not told any more");
            }
        });
        tracing::info!(%address, "the figures of this worker are told here");
        Ok(address)
    }

    /// Returns when the store can write nothing any more and the process should be started anew.
    pub async fn store_gave_up(&self) {
        self.storage.gave_up().await;
    }

    /// Which kind of store it is, for log lines.
    pub(crate) const fn store_name(&self) -> &'static str {
        if self.storage.is_shared() { NATS } else { EMBEDDED }
    }

    /// The store, for parts of this crate.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.storage.shared()
    }

    /// Stops what runs in the background and closes the store; everything that was answered is on disk.
    pub async fn close(self) -> Result<(), StartError> {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        tokio::join!(self.engine.lines().flush(), self.engine.trail().flush());
        self.storage.close().await
    }

    /// Fires what is due, and if asked to compares the queues with what should be in them.
    async fn sweep(&self, compare: bool) -> Result<(), EngineError> {
        let tags = if compare { self.engine.store().runnable_tags().await? } else { Vec::new() };
        self.engine.sweep(&tags, SWEEP_MOST).await?;
        if compare {
            self.engine.succeed_the_gone(SWEEP_MOST).await?;
        }
        Ok(())
    }

    /// Fires what is due. Several processes may do so: each step is decided like any other command.
    async fn keep_sweeping(self) {
        let mut compared = tokio::time::Instant::now();
        loop {
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(SWEEP_EVERY) => {}
            }
            let compare = compared.elapsed() >= self.config.sweep_every;
            if compare {
                compared = tokio::time::Instant::now();
            }
            if let Err(error) = self.sweep(compare).await {
                unswept(&error);
            }
        }
    }

    /// Makes whole what others have begun and were lost with. Beside the sweeps: it takes its time, and timers do not wait for it.
    async fn keep_finishing(self) {
        let finish = async {
            loop {
                tokio::time::sleep(self.config.sweep_every).await;
                if let Err(error) = self.engine.finish_the_begun().await {
                    unswept(&error);
                }
            }
        };
        // What it leaves half-way is found again by whoever looks next.
        self.stopping.run_until_cancelled(finish).await;
    }
}

/// Says that the store kept a sweep from its end.
fn unswept(error: &EngineError) {
    let said = Notice::StoreUnavailable;
    let (err_id, msg_id) = (said.err_id(), said.msg_id());
    tracing::error!(err_id, msg_id, error = error as &(dyn std::error::Error + 'static), "{}", said.text());
}

/// The use cases on a store, as a configuration wants them.
pub(crate) fn engine_on(storage: &Storage, config: &Config, figures: Figures) -> Engine {
    let settings = pyoco_engine::Settings {
        cancel_grace: millis(config.cancel_grace),
        letters_for_failures: config.dlq_execution_error,
        max_snapshot_bytes: config.max_run_snapshot_bytes,
        max_log_bytes: config.run_log_max_bytes,
        figures,
    };
    Engine::new(storage.shared(), Arc::new(SystemClock), Arc::new(RandomIds), settings)
}

pub(crate) fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
