//! `status`: the lines of the original first, then the servers that run.

use pyoco_bootstrap::facts::{Facts, Server};
use pyoco_bootstrap::find::Binary;
use pyoco_bootstrap::monitor::{self, Monitor};
use pyoco_server::config::without_secrets;
use pyoco_store_nats::cluster;
use serde_json::{Value, json};

use super::arguments::{Common, Status};
use super::binary::{self, ConfigFile};
use super::{now, place, refused};
use crate::errors::Failure;
use crate::{output, table};

/// Where a server tells about itself when nobody says where.
const USUAL: &str = "http://127.0.0.1:8222";

/// What was looked at.
pub(super) struct Looked {
    pub(super) facts: Facts,
    /// Whether somebody has said where to look: then it must be there.
    pub(super) was_told: bool,
    /// Where NATS should be.
    pub(super) nats_url: String,
}

pub(super) async fn show(common: &Common, status: &Status) -> Result<(), Failure> {
    let (search, config) = binary::search(common).await?;
    let found =
        search.found.ok_or_else(|| refused("nats-server not found").hint(binary::how_to_install()))?;
    let looked = look(status).await?;
    if common.json {
        output::json(&as_json(&found, &config, &looked))?;
    } else {
        for line in binary_lines("status", &found, &config) {
            output::line(&line)?;
        }
        for line in lines(&looked) {
            output::line(&line)?;
        }
    }
    let facts = &looked.facts;
    let is_silent = !facts.silent.is_empty() || facts.jetstream_error.is_some();
    if looked.was_told && is_silent { Err(Failure::said(1)) } else { Ok(()) }
}

/// The lines of the original.
pub(super) fn binary_lines(command: &str, found: &Binary, config: &ConfigFile) -> [String; 5] {
    let exists = if config.exists { "exists" } else { "missing" };
    [
        format!("{command}: ok"),
        format!("nats-server: {}", found.path.display()),
        format!("version: v{}", found.version),
        format!("source: {}", found.source.as_str()),
        format!("config: {} ({exists})", config.path.display()),
    ]
}

/// Asks everybody that can be asked: servers over HTTP or the system account, and JetStream.
pub(super) async fn look(status: &Status) -> Result<Looked, Failure> {
    let found = place::find(&status.place)?;
    let config = &found.config;
    let nats_url = without_secrets(config.nats_url.as_deref().unwrap_or_default());
    let place = &status.place;
    let was_told = place.nats_url.is_some() || place.context.is_some() || !status.http_url.is_empty();
    let mut urls = status.http_url.clone();
    let mut facts = Facts::default();
    let monitor = Monitor::new().map_err(Failure::unexpected)?;
    if let Some(settings) = found.system().filter(|_| urls.is_empty()) {
        // Passwords of another server, or of one that is away: then it is asked as everybody may.
        facts.servers = monitor::ask_all(&settings, now).await.unwrap_or_default();
    }
    if facts.servers.is_empty() {
        let is_guess = urls.is_empty();
        if is_guess && place.nats_url.is_none() {
            let said = config.nats_access.monitor.as_deref().unwrap_or(USUAL);
            urls.extend(said.split(',').map(str::to_owned));
        }
        for url in &urls {
            match monitor.ask(url, now).await {
                Ok(server) => facts.servers.push(server),
                Err(silent) if !is_guess => facts.silent.push(silent),
                Err(_) => {}
            }
        }
    }
    // Where only monitoring ports were named, nobody has said where JetStream is.
    if place.nats_url.is_some() || place.context.is_some() || status.http_url.is_empty() {
        match cluster::look(&place::settings(config)).await {
            Ok(seen) => facts.jetstream = Some(seen),
            Err(error) => facts.jetstream_error = Some(error.to_string()),
        }
    }
    Ok(Looked { facts, was_told, nats_url })
}

pub(super) fn as_json(found: &Binary, config: &ConfigFile, looked: &Looked) -> Value {
    let facts = &looked.facts;
    json!({
        "status": "ok",
        "nats_server": found.path,
        "version": found.version.to_string(),
        "source": found.source,
        "config": {"path": config.path, "exists": config.exists},
        "servers": facts.servers,
        "silent": facts.silent,
        "away": facts.away(),
        "leader": facts.leader(),
        "jetstream": facts.jetstream,
        "jetstream_error": facts.jetstream_error,
    })
}

fn lines(looked: &Looked) -> Vec<String> {
    let facts = &looked.facts;
    let is_nobody_there = facts.servers.is_empty() && facts.silent.is_empty() && facts.jetstream.is_none();
    if is_nobody_there && !looked.was_told {
        return vec![format!("servers: none answers at {}", looked.nats_url)];
    }
    let mut lines = vec![String::new()];
    let rows: Vec<_> = facts.servers.iter().map(|one| server_row(one, facts)).collect();
    if !rows.is_empty() {
        lines.extend(table::lines(
            ["server", "version", "cluster", "role", "syncs", "stored", "may store", "room"],
            &rows,
        ));
    }
    lines.extend(
        facts
            .silent
            .iter()
            .map(|silent| output::one_line(&format!("silent: {} ({})", silent.url, silent.why))),
    );
    lines.extend(facts.away().iter().map(|name| output::one_line(&format!("away: {name}"))));
    if facts.is_cluster() && facts.leader().is_none() {
        lines.push("leader: none, so nothing can be stored".to_owned());
    }
    if let Some(why) = &facts.jetstream_error {
        lines.push(output::one_line(&format!("jetstream: {why}")));
    }
    if let Some(seen) = &facts.jetstream {
        lines.push(String::new());
        let rows: Vec<_> = seen.streams.iter().map(stream_row).collect();
        lines.extend(table::lines(
            ["stream", "messages", "bytes", "copies", "leader", "lag", "waiting", "in hand"],
            &rows,
        ));
        lines.extend(seen.silent.iter().map(|name| output::one_line(&format!("silent: {name}"))));
    }
    lines
}

fn bytes(number: u64) -> String {
    indicatif::HumanBytes(number).to_string()
}

fn server_row(server: &Server, facts: &Facts) -> [String; 8] {
    let role = match (&server.meta, facts.leader()) {
        (None, _) => "alone",
        (Some(_), Some(leader)) if leader == server.name => "leader",
        (Some(_), _) => "follower",
    };
    let syncs = match server.syncs_always {
        Some(true) => "always",
        Some(false) => "later",
        None => "no JetStream",
    };
    [
        output::one_line(&server.name),
        output::one_line(&server.version),
        server.cluster.as_deref().map_or_else(|| "-".to_owned(), output::one_line),
        role.to_owned(),
        syncs.to_owned(),
        bytes(server.stored),
        bytes(server.may_store),
        server.room.map_or_else(|| "-".to_owned(), bytes),
    ]
}

fn stream_row(stream: &cluster::StreamSeen) -> [String; 8] {
    let whole = stream.followers.iter().filter(|copy| copy.current && !copy.offline).count()
        + usize::from(stream.leader.is_some() || !stream.is_clustered);
    let leader = match (&stream.leader, stream.is_clustered) {
        (Some(leader), _) => output::one_line(leader),
        (None, true) => "none".to_owned(),
        (None, false) => "-".to_owned(),
    };
    [
        output::one_line(&stream.name),
        stream.messages.to_string(),
        bytes(stream.bytes),
        format!("{whole}/{}", stream.replicas),
        leader,
        stream.followers.iter().map(|copy| copy.lag).max().unwrap_or(0).to_string(),
        stream.consumers.iter().map(|consumer| consumer.pending).sum::<u64>().to_string(),
        stream.consumers.iter().map(|consumer| consumer.in_hand).sum::<u64>().to_string(),
    ]
}
