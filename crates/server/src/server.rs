//! The server: a backend, its HTTP surface on a port, and usually a worker in the same process.

use std::net::SocketAddr;
use std::sync::Arc;

use pyoco_gateway::ServerLimits;
use pyoco_worker::Functions;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::AuthMode;
use crate::{Backend, Config, StartError, Worker, WorkerOptions};

/// What an operator chooses for a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address to listen on.
    pub host: String,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Whether to listen without API keys also where others can reach it.
    pub allow_unauthenticated: bool,
    /// The worker in the same process, if there is to be one.
    pub worker: Option<WorkerOptions>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8000,
            allow_unauthenticated: false,
            worker: Some(WorkerOptions::default()),
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    backend: Backend,
    address: SocketAddr,
    stopping: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    worker: Option<(Arc<Worker>, JoinHandle<()>)>,
}

impl Server {
    /// Starts everything. When this returns, requests are answered. `functions` are flows of Rust tasks.
    pub async fn start(
        config: Config,
        options: ServerOptions,
        functions: Functions,
    ) -> Result<Self, StartError> {
        // The port first: a second start on the same port is told so, not that the folder is locked.
        let listener = listen(&options.host, options.port).await?;
        let address = listener.local_addr().map_err(StartError::other)?;
        if config.auth_mode == AuthMode::None && !address.ip().to_canonical().is_loopback() {
            if !options.allow_unauthenticated {
                return Err(StartError::OpenToOthers(address));
            }
            tracing::warn!(%address, "everybody who reaches this address may submit and cancel runs: no API keys are asked for");
        }
        config.warn_of_unknown();
        let backend = Backend::open(config).await?;
        let worker = match options.worker {
            Some(options) => {
                let worker = Arc::new(Worker::on(&backend, functions, options)?);
                worker.check().await?;
                let running = worker.clone();
                Some((worker, tokio::spawn(async move { running.run().await })))
            }
            None => None,
        };
        let stopping = CancellationToken::new();
        let serving = tokio::spawn(pyoco_gateway::serve(
            listener,
            backend.router(),
            ServerLimits::default(),
            stopping.clone(),
        ));
        tracing::info!(%address, store = backend.store_name(), "pyoco-server is up");
        Ok(Self { backend, address, stopping, serving, worker })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The backend that it serves.
    pub const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Stops in good order: no new requests, running tasks may finish for a while, then the store is closed.
    pub async fn stop(self) -> Result<(), StartError> {
        self.stop_or_hurry(CancellationToken::new()).await
    }

    /// Stops in good order; once `hurry` is cancelled, running tasks are ended at once.
    pub async fn stop_or_hurry(self, hurry: CancellationToken) -> Result<(), StartError> {
        tracing::info!(address = %self.address, "pyoco-server stops");
        self.stopping.cancel();
        if let Some((worker, running)) = self.worker {
            let leaving = worker.close();
            tokio::pin!(leaving);
            tokio::select! {
                left = &mut leaving => left?,
                () = hurry.cancelled() => {
                    worker.abandon();
                    leaving.await?;
                }
            }
            running.await.map_err(StartError::other)?;
        }
        self.serving.await.map_err(StartError::other)?.map_err(StartError::other)?;
        self.backend.close().await
    }
}

async fn listen(host: &str, port: u16) -> Result<TcpListener, StartError> {
    match TcpListener::bind((host, port)).await {
        Ok(listener) => Ok(listener),
        Err(source) if source.kind() == std::io::ErrorKind::AddrInUse => {
            let resolved =
                tokio::net::lookup_host((host, port)).await.ok().and_then(|mut found| found.next());
            match resolved {
                Some(address) => Err(StartError::PortTaken(address)),
                None => Err(StartError::Listen { address: format!("{host}:{port}"), source }),
            }
        }
        Err(source) => Err(StartError::Listen { address: format!("{host}:{port}"), source }),
    }
}
