//! A look at the servers that changes nothing: which streams and consumers are there, how they differ from what this product would
//! make, and what the servers' clock says.

use pyoco_core::time::Timestamp;
use pyoco_ports::StoreError;
use serde::Deserialize;
use serde_json::Value;

use crate::connection::Connection;
use crate::error::{OpenError, Refusal};
use crate::resources::{self, Wanted};
use crate::stream::StreamInfo;
use crate::{NatsStore, Settings};

const OPERATION: &str = "look at the servers";

/// How the servers stand.
#[derive(Debug, Clone)]
pub struct NatsHealth {
    /// The version of the server that was asked.
    pub version: String,
    /// The cluster that it is in.
    pub cluster: Option<String>,
    /// What its clock said when it was asked.
    pub time: Option<Timestamp>,
    /// What may be stored, and what is, in bytes; nothing when nobody has set a limit.
    pub storage: Option<(u64, u64)>,
    /// The streams and buckets, whether they are there or not.
    pub streams: Vec<StreamHealth>,
    /// The consumers of jobs.
    pub consumers: Vec<ConsumerHealth>,
}

/// How a stream or a bucket stands.
#[derive(Debug, Clone, Default)]
pub struct StreamHealth {
    /// What it is called.
    pub name: String,
    /// Whether it is there.
    pub is_there: bool,
    /// Losing a message of it breaks a promise.
    pub is_truth: bool,
    /// What keeps it from being used.
    pub flaw: Option<String>,
    /// What would be made otherwise, each as a sentence.
    pub drift: Vec<String>,
    /// On how many servers it stands.
    pub replicas: usize,
    /// Servers that should have a copy and are away or behind.
    pub behind: Vec<String>,
    /// How full it is, of 100; nothing without a limit that refuses more.
    pub percent_full: Option<u64>,
}

/// How a consumer of jobs stands.
#[derive(Debug, Clone, Default)]
pub struct ConsumerHealth {
    /// What it is called.
    pub name: String,
    /// What would be made otherwise, each as a sentence.
    pub drift: Vec<String>,
    /// Jobs that were handed out as often as they may be, as far as the counts tell.
    pub redelivered: u64,
    /// Jobs that wait.
    pub pending: u64,
    /// Jobs in hand.
    pub in_hand: u64,
    /// So many may be in hand.
    pub most_in_hand: i64,
}

#[derive(Debug, Deserialize)]
struct Told {
    #[serde(flatten)]
    info: StreamInfo,
    ts: Option<Timestamp>,
    cluster: Option<Cluster>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cluster {
    name: Option<String>,
    leader: Option<String>,
    replicas: Vec<Peer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Peer {
    name: String,
    current: bool,
    offline: bool,
}

impl NatsStore {
    /// Connects and looks. Nothing is made and nothing is changed.
    pub async fn examine(settings: Settings) -> Result<NatsHealth, OpenError> {
        settings.check_names()?;
        let connection = Connection::open(&settings).await?;
        let looked = look(&connection, &settings).await;
        connection.close().await;
        Ok(looked?)
    }
}

async fn look(connection: &Connection, settings: &Settings) -> Result<NatsHealth, StoreError> {
    let mut health = NatsHealth {
        version: connection.server_version(),
        cluster: None,
        time: None,
        storage: storage(connection).await?,
        streams: Vec::new(),
        consumers: Vec::new(),
    };
    for wanted in resources::all(settings) {
        let Some(told) = told(connection, &wanted.name).await? else {
            let is_truth = wanted.is_truth;
            health.streams.push(StreamHealth { name: wanted.name, is_truth, ..StreamHealth::default() });
            continue;
        };
        health.time = told.ts.or(health.time);
        health.cluster = told.cluster.as_ref().and_then(|cluster| cluster.name.clone()).or(health.cluster);
        health.streams.push(stream(&wanted, &told));
    }
    let work_is_there =
        health.streams.iter().any(|stream| stream.name == settings.work_stream && stream.is_there);
    if work_is_there {
        health.consumers = consumers(connection, settings).await?;
    }
    Ok(health)
}

async fn told(connection: &Connection, stream: &str) -> Result<Option<Told>, StoreError> {
    match connection.ask::<Told>(OPERATION, &format!("STREAM.INFO.{stream}"), &Value::Null).await {
        Ok(told) => Ok(Some(told)),
        Err(error) if error.is(Refusal::NO_STREAM) => Ok(None),
        Err(error) => Err(error.into_store(OPERATION)),
    }
}

fn stream(wanted: &Wanted, told: &Told) -> StreamHealth {
    let (config, state) = (&told.info.config, &told.info.state);
    let number = |name: &str| wanted.config.get(name).and_then(Value::as_i64);
    let mut drift = Vec::new();
    let mut compare = |name: &str, found: i64, unit: &str| {
        if let Some(made) = number(name).filter(|made| *made != found) {
            drift.push(format!("its {name} is {found}{unit}, it would be made with {made}{unit}"));
        }
    };
    compare("num_replicas", i64::try_from(config.num_replicas).unwrap_or(i64::MAX), "");
    compare("max_age", i64::try_from(config.max_age.as_nanos()).unwrap_or(i64::MAX), " ns");
    compare("max_msgs", config.max_msgs, "");
    compare("max_bytes", config.max_bytes, "");
    let refuses = config.discard == "new" && config.max_bytes > 0;
    let limit = u64::try_from(config.max_bytes).unwrap_or(0);
    StreamHealth {
        name: wanted.name.clone(),
        is_there: true,
        is_truth: wanted.is_truth,
        flaw: resources::flaw(wanted, config),
        drift,
        replicas: config.num_replicas,
        behind: told.cluster.as_ref().map(behind).unwrap_or_default(),
        percent_full: refuses.then(|| state.bytes.saturating_mul(100).checked_div(limit)).flatten(),
    }
}

fn behind(cluster: &Cluster) -> Vec<String> {
    let late = cluster.replicas.iter().filter(|peer| peer.offline || !peer.current);
    let mut behind: Vec<String> = late.map(|peer| peer.name.clone()).collect();
    if cluster.name.is_some() && cluster.leader.as_deref().is_none_or(str::is_empty) {
        behind.push("there is no leader".to_owned());
    }
    behind
}

async fn consumers(connection: &Connection, settings: &Settings) -> Result<Vec<ConsumerHealth>, StoreError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        total: usize,
        consumers: Option<Vec<Consumer>>,
    }
    #[derive(Deserialize)]
    struct Consumer {
        name: String,
        config: Config,
        #[serde(default)]
        num_pending: u64,
        #[serde(default)]
        num_ack_pending: u64,
        #[serde(default)]
        num_redelivered: u64,
    }
    #[derive(Deserialize)]
    #[serde(default)]
    struct Config {
        ack_wait: i64,
        max_deliver: i64,
        max_ack_pending: i64,
    }
    impl Default for Config {
        fn default() -> Self {
            Self { ack_wait: 0, max_deliver: -1, max_ack_pending: 0 }
        }
    }
    let subject = format!("CONSUMER.LIST.{}", settings.work_stream);
    let mut found: Vec<ConsumerHealth> = Vec::new();
    loop {
        let body = serde_json::json!({"offset": found.len()});
        let told: Answer =
            connection.ask(OPERATION, &subject, &body).await.map_err(|error| error.into_store(OPERATION))?;
        let page = told.consumers.unwrap_or_default();
        if page.is_empty() {
            return Ok(found);
        }
        for Consumer { name, config, num_pending, num_ack_pending, num_redelivered } in page {
            let mut drift = Vec::new();
            let wait = i64::try_from(settings.ack_wait.as_nanos()).unwrap_or(i64::MAX);
            for (what, found, made, unit) in [
                ("ack_wait", config.ack_wait, wait, " ns"),
                ("max_deliver", config.max_deliver, settings.max_deliver, ""),
                ("max_ack_pending", config.max_ack_pending, settings.max_ack_pending, ""),
            ] {
                if found != made {
                    drift.push(format!("its {what} is {found}{unit}, it would be made with {made}{unit}"));
                }
            }
            found.push(ConsumerHealth {
                name,
                drift,
                redelivered: num_redelivered,
                pending: num_pending,
                in_hand: num_ack_pending,
                most_in_hand: config.max_ack_pending,
            });
        }
        if found.len() >= told.total {
            return Ok(found);
        }
    }
}

/// How much the account may store, and how much it does.
async fn storage(connection: &Connection) -> Result<Option<(u64, u64)>, StoreError> {
    #[derive(Deserialize)]
    struct Account {
        #[serde(default)]
        storage: u64,
        limits: Limits,
    }
    #[derive(Deserialize)]
    struct Limits {
        #[serde(default)]
        max_storage: i64,
    }
    let told: Account =
        connection.ask(OPERATION, "INFO", &Value::Null).await.map_err(|error| error.into_store(OPERATION))?;
    let limit = u64::try_from(told.limits.max_storage).ok().filter(|limit| *limit > 0);
    Ok(limit.map(|limit| (limit, told.storage)))
}
