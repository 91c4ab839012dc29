//! What servers told about themselves, and what JetStream told: facts, and nothing about what they mean.

use std::path::PathBuf;

use pyoco_core::time::Timestamp;
use pyoco_store_nats::cluster::{Follower, Seen};
use serde::Serialize;
use serde_json::Value;

use crate::monitor::Silent;
use crate::{folder, monitor};

/// All that is known.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// The servers that told.
    pub servers: Vec<Server>,
    /// Those that did not.
    pub silent: Vec<Silent>,
    /// What JetStream told.
    pub jetstream: Option<Seen>,
    /// Why JetStream told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jetstream_error: Option<String>,
}

/// A server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where it was asked, if it was asked itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its version.
    pub version: String,
    /// Its cluster.
    pub cluster: Option<String>,
    /// Whether it syncs before it answers; nothing without JetStream.
    pub syncs_always: Option<bool>,
    /// How far its clock is before ours, in milliseconds.
    pub clock_ahead_ms: Option<i64>,
    /// Where it stores.
    pub store: Option<PathBuf>,
    /// How much it stores, in bytes.
    pub stored: u64,
    /// How much it may, in bytes.
    pub may_store: u64,
    /// How much room its disk has, in bytes, if that is ours to see.
    pub room: Option<u64>,
    /// What it knows of the cluster.
    pub meta: Option<Meta>,
    /// The servers that it is connected with.
    pub knows: Vec<String>,
}

/// What a server knows of the cluster that decides where streams stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Who leads.
    pub leader: Option<String>,
    /// How many servers there are, away or not.
    pub size: usize,
    /// The others, if it leads.
    pub others: Vec<Follower>,
}

impl Server {
    /// Reads the answer to `/varz`. `asked` is what our clock said.
    pub fn read(varz: &Value, asked: Timestamp) -> Option<Self> {
        let text =
            |pointer: &str| varz.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = |pointer: &str| varz.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let name = text("/server_name").or_else(|| text("/server_id"))?.to_owned();
        let now: Option<Timestamp> = varz.get("now").and_then(|now| serde_json::from_value(now.clone()).ok());
        let ahead = now.map(|now| now.as_micros().saturating_sub(asked.as_micros()) / 1_000);
        let setup = varz.pointer("/jetstream/config").filter(|setup| setup.get("store_dir").is_some());
        let store = text("/jetstream/config/store_dir").map(PathBuf::from);
        let mut server = Self {
            name,
            url: None,
            version: text("/version").unwrap_or_default().to_owned(),
            cluster: text("/cluster/name").map(str::to_owned),
            syncs_always: setup
                .map(|setup| setup.get("sync_always").and_then(Value::as_bool).unwrap_or(false)),
            clock_ahead_ms: ahead,
            room: None,
            store,
            stored: number("/jetstream/stats/storage"),
            may_store: number("/jetstream/config/max_storage"),
            meta: varz.pointer("/jetstream/meta").map(Meta::read),
            knows: Vec::new(),
        };
        // Whoever listens to this machine only is on it.
        if text("/host").is_some_and(monitor::is_loopback) {
            server.look_at_disk();
        }
        Some(server)
    }

    /// Looks how much room its disk has. Only for one that is on this machine.
    pub(crate) fn look_at_disk(&mut self) {
        self.room = self.store.as_deref().filter(|store| store.is_dir()).and_then(folder::room);
    }
}

impl Meta {
    fn read(meta: &Value) -> Self {
        let others = meta.get("replicas").cloned().unwrap_or_default();
        let leader = meta.get("leader").and_then(Value::as_str).filter(|leader| !leader.is_empty());
        let size = meta.get("cluster_size").and_then(Value::as_u64).unwrap_or(0);
        Self {
            leader: leader.map(str::to_owned),
            size: usize::try_from(size).unwrap_or(usize::MAX),
            others: serde_json::from_value(others).unwrap_or_default(),
        }
    }
}

impl Facts {
    /// Who leads the cluster, if anybody does.
    pub fn leader(&self) -> Option<&str> {
        self.servers.iter().filter_map(|server| server.meta.as_ref()).find_map(|meta| meta.leader.as_deref())
    }

    /// Whether the servers form a cluster.
    pub fn is_cluster(&self) -> bool {
        self.servers.iter().any(|server| server.meta.is_some())
    }

    /// How many servers there should be.
    pub fn size(&self) -> usize {
        let told = self.servers.iter().filter_map(|server| server.meta.as_ref()).map(|meta| meta.size).max();
        told.unwrap_or(0).max(self.servers.len())
    }

    /// The servers that are there, as far as any of them knows.
    pub fn there(&self) -> Vec<&str> {
        let told = self.servers.iter().map(|server| server.name.as_str());
        let known = self.servers.iter().flat_map(|server| server.knows.iter().map(String::as_str));
        let mut names: Vec<&str> = told.chain(known).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The servers that should be there and are not, by name where one knows it.
    pub fn away(&self) -> Vec<String> {
        let there = self.there();
        let others =
            self.servers.iter().filter_map(|server| server.meta.as_ref()).flat_map(|meta| &meta.others);
        let is_away = |one: &&Follower| {
            !there.contains(&one.name.as_str()) && (one.offline || !one.current || one.active > 0)
        };
        let mut away: Vec<String> = others.filter(is_away).map(|one| one.name.clone()).collect();
        away.sort();
        away.dedup();
        let unnamed = self.size().saturating_sub(there.len()).saturating_sub(away.len());
        away.extend((0..unnamed).map(|_| "a server whose name nobody tells".to_owned()));
        away
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(name: &str, knows: &[&str], meta: &Value) -> Server {
        let varz = json!({"server_name": name, "version": "2.15.1", "now": "2026-01-01T00:00:01Z",
            "cluster": {"name": "c"},
            "jetstream": {"config": {"store_dir": "/no/such/folder", "max_storage": 100, "sync_always": true},
                          "stats": {"storage": 7}, "meta": meta}});
        let asked: Timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        let mut server = Server::read(&varz, asked).unwrap();
        server.knows = knows.iter().map(|name| (*name).to_owned()).collect();
        server
    }

    #[test]
    fn what_a_server_tells_is_understood() {
        let one = server("a", &[], &json!({"leader": "a", "cluster_size": 3, "replicas": []}));
        assert_eq!((one.clock_ahead_ms, one.syncs_always, one.stored), (Some(1_000), Some(true), 7));
        assert_eq!((one.room, one.cluster.as_deref()), (None, Some("c")));
        assert_eq!(Server::read(&json!({"jetstream": {}}), Timestamp::from_micros(0)), None);
        let plain =
            Server::read(&json!({"server_name": "x", "jetstream": {}}), Timestamp::from_micros(0)).unwrap();
        assert_eq!((plain.syncs_always, plain.meta), (None, None));
    }

    #[test]
    fn a_server_that_is_away_is_named_if_anybody_knows_it() {
        let others = json!([{"name": "b", "current": true, "active": 5}, {"name": "c", "current": false, "active": 9}]);
        let leader = server("a", &["b"], &json!({"leader": "a", "cluster_size": 3, "replicas": others}));
        let facts = Facts { servers: vec![leader], ..Facts::default() };
        assert_eq!((facts.there(), facts.away()), (vec!["a", "b"], vec!["c".to_owned()]));
        let follower = server("b", &["a"], &json!({"leader": "a", "cluster_size": 3}));
        let facts = Facts { servers: vec![follower], ..Facts::default() };
        assert_eq!(facts.away().len(), 1);
        assert_eq!((facts.leader(), facts.size()), (Some("a"), 3));
    }
}
