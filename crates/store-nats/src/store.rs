//! The handle: everything that the roles share. Each role keeps its own state in a type of its own.

use std::fmt;
use std::sync::Arc;

use pyoco_ports::RunIndex;

use crate::Settings;
use crate::audit::{Written, written};
use crate::carried::Carried;
use crate::connection::Connection;
use crate::dead_letters::{SeenLetters, seen_letters};
use crate::error::OpenError;
use crate::graphs::KnownGraphs;
use crate::index::LocalIndex;
use crate::log::Heads;
use crate::queue::Queue;
use crate::resources::Resources;
use crate::task_logs::Ends;
use crate::unshown::Look;
use crate::wheels::Shelf;
use crate::workers::Workers;

/// A store in NATS. Any number of processes may have it open.
pub struct NatsStore {
    pub(crate) connection: Arc<Connection>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) resources: Resources,
    pub(crate) log: Heads,
    pub(crate) look: Look,
    pub(crate) task_logs: Ends,
    pub(crate) queue: Queue,
    pub(crate) workers: Arc<Workers>,
    pub(crate) index: LocalIndex,
    pub(crate) carried: Arc<Carried>,
    pub(crate) graphs: KnownGraphs,
    pub(crate) letters: SeenLetters,
    pub(crate) audited: Written,
    pub(crate) shelf: Arc<Shelf>,
}

impl NatsStore {
    /// Connects, and makes what is missing. `index` is where this process keeps its index of runs; a process that answers no
    /// lists needs none.
    pub async fn open(settings: Settings, index: Option<Arc<dyn RunIndex>>) -> Result<Arc<Self>, OpenError> {
        settings.check_names()?;
        if settings.replicas == 0 || settings.replicas > 5 {
            let what = format!("{} replicas cannot be; 1 or 3 are usual", settings.replicas);
            return Err(OpenError::Setting { what });
        }
        let settings = Arc::new(settings);
        let connection = Connection::open(&settings).await?;
        let resources = Resources::open(&connection, &settings).await?;
        let shelf = Arc::new(Shelf::new(&connection, &settings, resources.is_wheels_direct));
        // Only a gateway has an index, and gateways keep the shelf tidy.
        if index.is_some() {
            shelf.keep_tidy();
        }
        let index = LocalIndex::new(&connection, &settings, index);
        let carried = Carried::new(&index);
        Ok(Arc::new(Self {
            log: Heads::new(),
            look: Look::default(),
            task_logs: Ends::new(),
            queue: Queue::new(&connection, &settings, &carried),
            workers: Arc::new(Workers::new(&connection, &settings)),
            index,
            carried,
            graphs: KnownGraphs::default(),
            letters: seen_letters(),
            audited: written(),
            shelf,
            resources,
            settings,
            connection,
        }))
    }

    /// Whether there is a connection now, as far as anybody knows. Nothing is asked.
    pub fn is_connected(&self) -> bool {
        self.connection.is_connected()
    }

    /// How many messages this store has sent so far: what it costs the servers.
    pub fn messages_sent(&self) -> u64 {
        self.connection.sent()
    }

    /// Gives back what nobody has taken and closes the connection. Every later call is `Closed`.
    pub async fn close(&self) {
        self.queue.close().await;
        self.connection.close().await;
    }
}

impl Drop for NatsStore {
    /// The tasks of the store end; the connection ends with the last of them.
    fn drop(&mut self) {
        self.connection.closing().cancel();
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore").field("settings", &self.settings).finish_non_exhaustive()
    }
}
