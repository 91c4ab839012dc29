//! The servers as whoever looks after NATS sees them: every stream with its copies and consumers, who works, and more copies of a
//! stream. What a single server tells about itself is not here.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use pyoco_ports::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::backup::ours;
use crate::connection::Connection;
use crate::error::{OpenError, Refusal};
use crate::{Settings, names, resources};

const LOOK: &str = "look at the streams";
const RAISE: &str = "raise the replicas of a stream";
/// So many streams are asked about at a time.
const AT_ONCE: usize = 8;
/// A server that moves data answers late, and one that waits for others gives up on them after some seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Consumers that are named so go with their gateway.
const INDEX: &str = "pyoco_index_";

/// What JetStream tells.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Seen {
    /// The version of the server that was asked.
    pub version: String,
    /// All streams of the account.
    pub streams: Vec<StreamSeen>,
    /// Streams that should be there and that no server answers for.
    pub silent: Vec<String>,
    /// Who works, as they say.
    pub workers: Vec<WorkerSeen>,
}

/// A stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamSeen {
    /// What it is called.
    pub name: String,
    /// Whether this product uses it.
    pub is_ours: bool,
    /// Losing a message of it breaks a promise.
    pub is_truth: bool,
    /// What it holds.
    pub messages: u64,
    /// How large that is.
    pub bytes: u64,
    /// On how many servers it should stand.
    pub replicas: usize,
    /// The server that decides; nothing outside a cluster, and nothing while there is none.
    pub leader: Option<String>,
    /// Whether it stands in a cluster.
    pub is_clustered: bool,
    /// The servers beside the leader that have a copy.
    pub followers: Vec<Follower>,
    /// Its consumers.
    pub consumers: Vec<ConsumerSeen>,
}

impl StreamSeen {
    /// The servers that have a copy.
    pub fn holders(&self) -> impl Iterator<Item = &str> {
        self.leader.as_deref().into_iter().chain(self.followers.iter().map(|one| one.name.as_str()))
    }
}

/// A copy of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Follower {
    /// The server.
    pub name: String,
    /// Whether it has everything.
    pub current: bool,
    /// Whether it is away.
    pub offline: bool,
    /// How many operations it is behind.
    pub lag: u64,
    /// How long ago it was heard of, in nanoseconds.
    pub active: u64,
}

/// A consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerSeen {
    /// What it is called.
    pub name: String,
    /// Messages that wait.
    pub pending: u64,
    /// Messages in somebody's hand.
    pub in_hand: u64,
    /// So many may be; less than one: any number.
    pub max_in_hand: i64,
    /// Requests for messages that wait.
    pub asking: u64,
    /// Whether it stays when nobody uses it.
    pub is_durable: bool,
    /// The server that hands out messages; nothing outside a cluster, and nothing while there is none.
    pub leader: Option<String>,
    /// The servers beside the leader that know what was handed out.
    pub followers: Vec<Follower>,
}

/// A worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerSeen {
    /// Its name.
    pub worker_id: String,
    /// Which jobs it takes.
    pub tags: Vec<String>,
    /// How many at once; older ones do not say.
    pub concurrency: Option<u64>,
    /// How it is.
    pub state: String,
}

/// What became of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Raised {
    /// Which.
    pub stream: String,
    /// On how many servers it stood.
    pub from: usize,
    /// On how many it stands.
    pub to: usize,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    config: Config,
    state: State,
    cluster: Option<Cluster>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    name: String,
    num_replicas: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    messages: u64,
    bytes: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cluster {
    leader: Option<String>,
    name: Option<String>,
    replicas: Option<Vec<Follower>>,
}

impl Cluster {
    /// The leader and the others. A server on its own is called its leader, too, and is none.
    fn parts(self) -> (Option<String>, Vec<Follower>) {
        let leader = self.leader.filter(|leader| !leader.is_empty() && self.name.is_some());
        (leader, self.replicas.unwrap_or_default())
    }
}

/// Looks at everything. Nothing is made and nothing is changed.
pub async fn look(settings: &Settings) -> Result<Seen, OpenError> {
    settings.check_names()?;
    let connection = Connection::open(&Settings { patience: PATIENCE, ..settings.clone() }).await?;
    let seen = see(&connection, settings).await;
    connection.close().await;
    Ok(seen?)
}

async fn see(connection: &Connection, settings: &Settings) -> Result<Seen, StoreError> {
    let (told, silent) = list(connection).await?;
    let truths = resources::all(settings);
    let ours = ours(settings);
    let streams = stream::iter(told).map(|told| {
        let (truths, ours) = (&truths, &ours);
        async move {
            let mut stream = shown(told);
            stream.is_ours = ours.contains(&stream.name);
            stream.is_truth = truths.iter().any(|wanted| wanted.is_truth && wanted.name == stream.name);
            // Nobody would answer.
            if stream.is_ours && (stream.leader.is_some() || !stream.is_clustered) {
                stream.consumers = consumers(connection, &stream.name).await?;
            }
            Ok::<_, StoreError>(stream)
        }
    });
    let mut seen = Vec::new();
    let mut streams = streams.buffered(AT_ONCE);
    while let Some(stream) = streams.next().await {
        seen.push(stream?);
    }
    let workers = match seen.iter().find(|one| one.name == names::bucket_stream(&settings.workers_bucket)) {
        Some(bucket) if bucket.leader.is_some() || !bucket.is_clustered => {
            workers(connection, settings).await?
        }
        Some(_) | None => Vec::new(),
    };
    Ok(Seen { version: connection.server_version(), streams: seen, silent, workers })
}

/// Every stream of the account, and those that nobody answers for.
async fn list(connection: &Connection) -> Result<(Vec<Told>, Vec<String>), StoreError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        total: usize,
        streams: Option<Vec<Told>>,
        missing: Option<Vec<String>>,
    }
    let (mut streams, mut silent) = (Vec::new(), Vec::new());
    loop {
        let asked = streams.len();
        let told: Answer = connection
            .api(LOOK, "STREAM.LIST", &json!({"offset": asked}))
            .await
            .map_err(|error| error.into_store(LOOK))?;
        streams.extend(told.streams.unwrap_or_default());
        silent.extend(told.missing.unwrap_or_default());
        if streams.len() == asked || streams.len() + silent.len() >= told.total {
            streams.sort_by(|one, other| one.config.name.cmp(&other.config.name));
            silent.sort();
            silent.dedup();
            return Ok((streams, silent));
        }
    }
}

pub(crate) fn shown(told: Told) -> StreamSeen {
    let cluster = told.cluster.unwrap_or_default();
    let is_clustered = cluster.name.is_some();
    let (leader, followers) = cluster.parts();
    StreamSeen {
        name: told.config.name,
        messages: told.state.messages,
        bytes: told.state.bytes,
        replicas: told.config.num_replicas.max(1),
        is_clustered,
        leader,
        followers,
        ..StreamSeen::default()
    }
}

async fn consumers(connection: &Connection, stream: &str) -> Result<Vec<ConsumerSeen>, StoreError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        total: usize,
        consumers: Option<Vec<Consumer>>,
        missing: Option<Vec<String>>,
    }
    #[derive(Deserialize)]
    struct Consumer {
        name: String,
        config: Setup,
        #[serde(default)]
        num_pending: u64,
        #[serde(default)]
        num_ack_pending: u64,
        #[serde(default)]
        num_waiting: u64,
        cluster: Option<Cluster>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Setup {
        max_ack_pending: i64,
        durable_name: Option<String>,
        inactive_threshold: i64,
    }
    let subject = format!("CONSUMER.LIST.{stream}");
    let mut found = Vec::new();
    loop {
        let asked = found.len();
        let told = connection.ask::<Answer>(LOOK, &subject, &json!({"offset": asked})).await;
        let told = match told {
            // Somebody has removed it meanwhile.
            Err(error) if error.is(Refusal::NO_STREAM) => return Ok(found),
            told => told.map_err(|error| error.into_store(LOOK))?,
        };
        found.extend(told.consumers.unwrap_or_default().into_iter().map(|one| {
            let (leader, followers) = one.cluster.unwrap_or_default().parts();
            ConsumerSeen {
                name: one.name,
                pending: one.num_pending,
                in_hand: one.num_ack_pending,
                max_in_hand: one.config.max_ack_pending,
                asking: one.num_waiting,
                is_durable: one.config.durable_name.is_some() && one.config.inactive_threshold == 0,
                leader,
                followers,
            }
        }));
        // Nobody answers for these: their servers are away, or they are being moved.
        found.extend(told.missing.unwrap_or_default().into_iter().map(|name| ConsumerSeen {
            is_durable: !name.starts_with(INDEX),
            name,
            ..ConsumerSeen::default()
        }));
        if found.len() == asked || found.len() >= told.total {
            return Ok(found);
        }
    }
}

async fn workers(connection: &Connection, settings: &Settings) -> Result<Vec<WorkerSeen>, StoreError> {
    let bucket = &settings.workers_bucket;
    let (stream, all) = (names::bucket_stream(bucket), names::bucket_subjects(bucket));
    let subjects = connection.subjects(LOOK, &stream, &all).await?.unwrap_or_default();
    let records = connection.last_of_each(LOOK, &stream, subjects).await?;
    // A record that cannot be read is another's, or the mark of a deletion.
    let read = |payload: &[u8]| serde_json::from_slice::<WorkerSeen>(payload).ok();
    let mut workers: Vec<WorkerSeen> = records.iter().filter_map(|record| read(&record.payload)).collect();
    workers.sort_by(|one, other| one.worker_id.cmp(&other.worker_id));
    Ok(workers)
}

/// Has every stream of ours stand on so many servers, where it stands on fewer. To say it again goes on where it was left. An update
/// may make jobs that wait for the end of a delay disappear from the queue; the sweeper of a gateway puts them back.
pub async fn raise(settings: &Settings, replicas: usize) -> Result<Vec<Raised>, OpenError> {
    settings.check_names()?;
    let connection = Connection::open(&Settings { patience: PATIENCE, ..settings.clone() }).await?;
    let raised = raise_all(&connection, settings, replicas).await;
    connection.close().await;
    raised
}

async fn raise_all(
    connection: &Connection,
    settings: &Settings,
    replicas: usize,
) -> Result<Vec<Raised>, OpenError> {
    let mut raised = Vec::new();
    for name in ours(settings) {
        let subject = format!("STREAM.INFO.{name}");
        let mut told = match connection.ask::<Value>(RAISE, &subject, &Value::Null).await {
            Ok(told) => told,
            Err(error) if error.is(Refusal::NO_STREAM) => continue,
            Err(error) => return Err(error.into_store(RAISE).into()),
        };
        let Some(config) = told.get_mut("config").and_then(Value::as_object_mut) else { continue };
        let from = config.get("num_replicas").and_then(Value::as_u64).unwrap_or(1);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        if from >= replicas {
            continue;
        }
        config.insert("num_replicas".to_owned(), json!(replicas));
        let changed = connection.api::<Value>(RAISE, &format!("STREAM.UPDATE.{name}"), config).await;
        changed.map_err(|error| OpenError::NotMade {
            name: format!("{replicas} copies of {name}"),
            why: error.to_string(),
        })?;
        raised.push(Raised { stream: name, from, to: replicas });
    }
    Ok(raised)
}

/// The streams of ours that have not all their copies yet, each with how many are whole. What was handed out to workers counts too.
pub async fn unfinished(settings: &Settings) -> Result<Vec<(String, usize, usize)>, OpenError> {
    let seen = look(settings).await?;
    let known = ours(settings);
    // While its copies are being made nobody may answer for a stream.
    let silent = seen.silent.into_iter().filter(|name| known.contains(name)).map(|name| (name, 0, 1));
    let streams = seen.streams.into_iter().filter(|stream| stream.is_ours && stream.is_clustered);
    let streams = streams.map(|stream| {
        let durable = stream.consumers.iter().filter(|consumer| consumer.is_durable);
        let consumers = durable.map(|consumer| whole(consumer.leader.as_deref(), &consumer.followers));
        let copies = whole(stream.leader.as_deref(), &stream.followers);
        let least = consumers.chain([copies]).min().unwrap_or(0);
        (stream.name, least, stream.replicas)
    });
    Ok(silent.chain(streams.filter(|(_, whole, wanted)| whole < wanted)).collect())
}

/// How many servers have everything.
fn whole(leader: Option<&str>, followers: &[Follower]) -> usize {
    let followers = followers.iter().filter(|one| one.current && !one.offline).count();
    followers + usize::from(leader.is_some())
}
