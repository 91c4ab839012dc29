//! The store of a process: embedded in a folder, or shared in NATS. From here on nobody asks which it is.

use std::sync::Arc;

use pyoco_figures::Figures;
use pyoco_ports::{RunIndex, Store};
use pyoco_store_nats::{Access, NatsStore, Server, Tls};
use pyoco_store_sqlite::{Options, SqliteStore};

use crate::config::Config;
use crate::{StartError, durability};

/// What a process does with its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Answers requests, so it keeps an index of all runs and sees to what is due.
    Gateway,
    /// Only takes runs; this is its name.
    Worker(String),
    /// Only looks after keys.
    Admin,
}

/// The store. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum Storage {
    Embedded(SqliteStore),
    Nats(Arc<NatsStore>),
}

impl Storage {
    pub(crate) async fn open(config: &Config, role: &Role, figures: &Figures) -> Result<Self, StartError> {
        match &config.nats_url {
            Some(_) => Self::connect(config, role).await,
            None => Self::embed(config, figures).await,
        }
    }

    async fn embed(config: &Config, figures: &Figures) -> Result<Self, StartError> {
        let wheel_history_ttl = config.wheels.history_ttl;
        let options = Options { figures: figures.clone(), wheel_history_ttl, ..Options::default() };
        let folder = config.data_dir.clone();
        // Checking a large file takes a while, on a thread of its own.
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&folder, options));
        Ok(Self::Embedded(opened.await.map_err(StartError::other)??))
    }

    async fn connect(config: &Config, role: &Role) -> Result<Self, StartError> {
        durability::check(&config.nats_access).await?;
        let index: Option<Arc<dyn RunIndex>> = match role {
            Role::Gateway => {
                let index = tokio::task::spawn_blocking(|| SqliteStore::scratch(&std::env::temp_dir()));
                Some(Arc::new(index.await.map_err(StartError::other)??))
            }
            Role::Worker(_) | Role::Admin => None,
        };
        Ok(Self::Nats(NatsStore::open(nats_settings(config, role), index).await?))
    }

    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded(store) => Arc::new(store.clone()),
            Self::Nats(store) => store.clone(),
        }
    }

    /// Whether other processes may use it at the same time.
    pub(crate) const fn is_shared(&self) -> bool {
        match self {
            Self::Embedded(_) => false,
            Self::Nats(_) => true,
        }
    }

    /// Returns when it can write nothing any more. NATS comes back by itself.
    pub(crate) async fn gave_up(&self) {
        match self {
            Self::Embedded(store) => store.gave_up().await,
            Self::Nats(_) => std::future::pending().await,
        }
    }

    pub(crate) async fn close(&self) -> Result<(), StartError> {
        match self {
            Self::Embedded(store) => store.close().await.map_err(StartError::other),
            Self::Nats(store) => {
                store.close().await;
                Ok(())
            }
        }
    }
}

/// How NATS is reached, and what stands there under which name.
pub fn nats_settings(config: &Config, role: &Role) -> pyoco_store_nats::Settings {
    let url = config.nats_url.as_deref().unwrap_or_default();
    let (names, access, wheels) = (&config.nats, &config.nats_access, &config.wheels);
    let servers = url.split(',').map(str::trim).filter(|server| !server.is_empty()).map(Server::new);
    let name = match role {
        Role::Gateway => "pyoco-http-api".to_owned(),
        Role::Worker(worker) => format!("pyoco-nats-worker:{worker}"),
        Role::Admin => "pyoco-admin-cli".to_owned(),
    };
    let who = match (&access.token, &access.credentials, &access.user, &access.password) {
        (Some(token), _, _, _) => Access::Token(token.clone()),
        (None, Some(file), _, _) => Access::Credentials(file.clone()),
        (None, None, Some(user), Some(password)) => {
            Access::UserPassword { user: user.clone(), password: password.clone() }
        }
        (None, None, _, _) => Access::Open,
    };
    let client = access.tls_cert.clone().zip(access.tls_key.clone());
    pyoco_store_nats::Settings {
        servers: servers.collect(),
        name,
        access: who,
        inbox_prefix: access.inbox_prefix.clone(),
        tls: Tls { required: access.tls, ca: access.tls_ca.clone(), client },
        replicas: access.replicas,
        work_subject_prefix: names.work_subject_prefix.clone(),
        dlq_stream: names.dlq_stream.clone(),
        dlq_subject_prefix: names.dlq_subject_prefix.clone(),
        dlq_max_age: names.dlq_max_age,
        dlq_max_messages: names.dlq_max_messages,
        dlq_max_bytes: names.dlq_max_bytes,
        audit_max_age: config.audit_retention.unwrap_or_default(),
        audit_max_bytes: config.audit_max_bytes,
        runs_bucket: names.runs_bucket.clone(),
        workers_bucket: names.workers_bucket.clone(),
        workers_ttl: names.workers_ttl,
        auth_bucket: names.auth_bucket.clone(),
        wheels_bucket: wheels.bucket.clone(),
        wheels_max_bytes: i64::try_from(wheels.max_bytes).unwrap_or(i64::MAX),
        wheel_history_bucket: wheels.history_bucket.clone(),
        wheel_history_ttl: wheels.history_ttl,
        ack_wait: config.ack_wait,
        max_deliver: names.max_deliver,
        max_ack_pending: names.max_ack_pending,
        ..pyoco_store_nats::Settings::new(&[])
    }
}
