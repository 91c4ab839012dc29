//! What is asked of the servers themselves, over the system account: how they are, and that one of them goes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::Settings;
use crate::cluster::{Follower, StreamSeen, Told, shown};
use crate::connection::Connection;
use crate::error::OpenError;
use crate::post::Haste;

/// A server that hands over its streams answers late.
const PATIENCE: Duration = Duration::from_secs(10);

/// Servers speak to each other every second; one that was not heard of for so long is away. That it is is noted minutes later only.
const UNHEARD: Duration = Duration::from_secs(10);

/// Asks every server of the cluster over the system account what it knows of itself: `VARZ`, `JSZ`. Servers that are away do not
/// answer, so it takes as long as the patience.
pub async fn ask_servers(settings: &Settings, what: &str, body: &Value) -> Result<Vec<Value>, OpenError> {
    /// The slowest one answers so long after the one before it.
    const QUIET: Duration = Duration::from_millis(500);
    ask(settings, what, body, QUIET, |_| false).await
}

/// Asks until enough is told, or nobody says anything any more.
async fn ask(
    settings: &Settings,
    what: &str,
    body: &Value,
    quiet: Duration,
    is_enough: impl Fn(&[Value]) -> bool,
) -> Result<Vec<Value>, OpenError> {
    const ASK: &str = "ask the servers";
    let connection = Connection::open(settings).await?;
    let inbox = connection.inbox();
    let mut answers = connection.subscribe(ASK, &inbox).await?;
    let subject = format!("$SYS.REQ.SERVER.PING.{what}");
    connection.send(Haste::Now, ASK, &subject, Some(&inbox), body.to_string().into())?;
    let mut told = Vec::new();
    let mut wait = settings.patience;
    while let Ok(Some(answer)) = tokio::time::timeout(wait, answers.next()).await {
        if answer.status.is_none() {
            told.extend(serde_json::from_slice::<Value>(&answer.payload).ok());
            wait = quiet;
        }
        if is_enough(&told) {
            break;
        }
    }
    connection.close().await;
    Ok(told)
}

/// What the servers tell of JetStream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// Every stream of every account.
    pub streams: Vec<Placed>,
    /// The servers that are part of the cluster and told nothing. What they have nobody knows.
    pub silent: Vec<Silent>,
    /// Whether the server that leads the others told who they are.
    pub is_led: bool,
}

/// A stream of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// Whose it is: two accounts may use the same name.
    pub account: String,
    /// The stream.
    pub stream: StreamSeen,
    /// Whether its leader told this. The others do not name themselves, and do not know which copies are whole.
    pub is_led: bool,
}

/// A server that told nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silent {
    /// What it is called, as far as anybody knows.
    pub name: String,
    /// Whether the others have not heard of it for some time either.
    pub is_away: bool,
}

/// Asks every server what it has. It waits for each that is not known to be away.
pub async fn overview(settings: &Settings) -> Result<Overview, OpenError> {
    /// One with many streams takes its time, and whoever wants to know waits for it.
    const QUIET: Duration = Duration::from_secs(3);
    let which = json!({"accounts": true, "streams": true, "config": true});
    let is_enough = |told: &[Value]| {
        let (silent, is_led) = silent_in(told);
        is_led && silent.iter().all(|one| one.is_away)
    };
    let told = ask(settings, "JSZ", &which, QUIET, is_enough).await?;
    Ok(overview_of(&told))
}

fn overview_of(told: &[Value]) -> Overview {
    let (silent, is_led) = silent_in(told);
    Overview { streams: streams_in(told), silent, is_led }
}

fn server_of(answer: &Value) -> Option<&str> {
    answer.pointer("/server/name").and_then(Value::as_str)
}

/// The servers that are part of the cluster and did not answer, and whether the one that leads did, which alone knows the others.
fn silent_in(told: &[Value]) -> (Vec<Silent>, bool) {
    let mut members: BTreeMap<String, bool> = BTreeMap::new();
    let (mut size, mut is_led) = (0, false);
    for answer in told {
        let Some((server, group)) = server_of(answer).zip(answer.pointer("/data/meta_cluster")) else {
            continue;
        };
        size = size.max(group.get("cluster_size").and_then(Value::as_u64).unwrap_or(0));
        if group.get("leader").and_then(Value::as_str) != Some(server) {
            continue;
        }
        is_led = true;
        members.insert(server.to_owned(), false);
        let others = group.get("replicas").cloned().unwrap_or_default();
        for other in serde_json::from_value::<Vec<Follower>>(others).unwrap_or_default() {
            let is_away = other.offline || u128::from(other.active) >= UNHEARD.as_nanos();
            members.entry(other.name).and_modify(|known| *known &= is_away).or_insert(is_away);
        }
    }
    let unnamed = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(members.len());
    let answered = |name: &str| told.iter().any(|answer| server_of(answer) == Some(name));
    let mut silent: Vec<Silent> = members
        .into_iter()
        .filter(|(name, _)| !answered(name))
        .map(|(name, is_away)| Silent { name, is_away })
        .collect();
    if is_led && unnamed > 0 {
        let name = "a server whose name nobody tells".to_owned();
        silent.push(Silent { name, is_away: false });
    }
    (silent, is_led)
}

/// What became of the removal of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is no part of the cluster any more.
    Removed,
    /// It was none.
    Unknown,
}

/// Takes a server out of the cluster, over the system account: its copies are made anew on other servers, where there are enough.
pub async fn remove_server(settings: &Settings, server: &str) -> Result<Removal, OpenError> {
    const REMOVE: &str = "remove a server";
    /// The cluster does not know it.
    const NOT_A_MEMBER: [u32; 2] = [10040, 10044];
    let connection = Connection::open(&Settings { patience: PATIENCE, ..settings.clone() }).await?;
    let removed = connection.api::<Value>(REMOVE, "SERVER.REMOVE", &json!({"peer": server})).await;
    connection.close().await;
    match removed {
        Ok(_) => Ok(Removal::Removed),
        Err(error) if NOT_A_MEMBER.into_iter().any(|code| error.is(code)) => Ok(Removal::Unknown),
        Err(error) => Err(error.into_store(REMOVE).into()),
    }
}

/// Every stream of every account, in the words of its leader where those are there.
fn streams_in(told: &[Value]) -> Vec<Placed> {
    let mut seen: BTreeMap<(String, String), Placed> = BTreeMap::new();
    for answer in told {
        let accounts = answer.pointer("/data/account_details").and_then(Value::as_array);
        for account in accounts.into_iter().flatten() {
            let text = |name: &str| account.get(name).and_then(Value::as_str);
            // A name can be that of two accounts, where a resolver hands them out.
            let owner = text("id").or_else(|| text("name")).unwrap_or_default();
            let streams = account.get("stream_detail").and_then(Value::as_array);
            for stream in streams.into_iter().flatten() {
                let Ok(stream) = serde_json::from_value::<Told>(stream.clone()) else { continue };
                let stream = shown(stream);
                let is_led = stream.leader.is_some() && stream.leader.as_deref() == server_of(answer);
                let key = (owner.to_owned(), stream.name.clone());
                let is_better = seen.get(&key).is_none_or(|known| is_led && !known.is_led);
                if is_better {
                    seen.insert(key, Placed { account: owner.to_owned(), stream, is_led });
                }
            }
        }
    }
    seen.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server answers: the group of the servers as it knows it, and streams as `(account, name, cluster)`.
    fn answer(server: &str, group: &Value, streams: &[(&str, &str, Value)]) -> Value {
        let accounts: Vec<Value> = streams
            .iter()
            .map(|(account, name, cluster)| {
                json!({"name": account, "id": account, "stream_detail": [{"name": name, "cluster": cluster,
                    "config": {"name": name, "num_replicas": 3}, "state": {"messages": 1, "bytes": 1}}]})
            })
            .collect();
        json!({"server": {"name": server}, "data": {"meta_cluster": group, "account_details": accounts}})
    }

    fn copy(name: &str, is_current: bool) -> Value {
        json!({"name": name, "current": is_current, "active": 1})
    }

    fn group(leader: &str, others: &[Value]) -> Value {
        json!({"name": "c", "leader": leader, "cluster_size": 3, "replicas": others})
    }

    #[test]
    fn the_leader_of_a_stream_has_the_last_word_on_its_copies() {
        let told_by_leader =
            json!({"name": "c", "leader": "n1", "replicas": [copy("n2", true), copy("n3", false)]});
        let told_by_other =
            json!({"name": "c", "leader": "n1", "replicas": [copy("n1", true), copy("n3", true)]});
        let leader = answer("n1", &Value::Null, &[("A", "S", told_by_leader)]);
        let other = answer("n2", &Value::Null, &[("A", "S", told_by_other)]);
        for told in [[leader.clone(), other.clone()], [other.clone(), leader]] {
            let seen = streams_in(&told);
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert!(seen[0].is_led);
            let copies: Vec<(&str, bool)> =
                seen[0].stream.followers.iter().map(|one| (one.name.as_str(), one.current)).collect();
            assert_eq!(copies, [("n2", true), ("n3", false)]);
        }
        assert!(!streams_in(&[other])[0].is_led, "its leader said nothing");
    }

    #[test]
    fn streams_of_two_accounts_are_two_even_with_one_name() {
        let on = |server: &str| json!({"name": "c", "leader": server});
        let told = [
            answer("n1", &Value::Null, &[("A", "S", on("n1"))]),
            answer("n2", &Value::Null, &[("B", "S", on("n2"))]),
        ];
        let seen = streams_in(&told);
        let places: Vec<(&str, Option<&str>)> =
            seen.iter().map(|one| (one.account.as_str(), one.stream.leader.as_deref())).collect();
        assert_eq!(places, [("A", Some("n1")), ("B", Some("n2"))]);
    }

    #[test]
    fn a_server_that_says_nothing_is_noticed() {
        let all = [copy("n2", true), copy("n3", true)];
        let (n1, n2, n3) = (
            answer("n1", &group("n1", &all), &[]),
            answer("n2", &group("n1", &[]), &[]),
            answer("n3", &group("n1", &[]), &[]),
        );
        assert_eq!(silent_in(&[n1.clone(), n2.clone(), n3.clone()]), (Vec::new(), true));
        let silent = |name: &str, is_away| Silent { name: name.to_owned(), is_away };
        assert_eq!(silent_in(&[n1, n2.clone()]), (vec![silent("n3", false)], true));
        assert!(!silent_in(&[n2.clone(), n3]).1, "only the one that leads knows the others");
        // Not heard of for long, or known to be away.
        let unheard = json!({"name": "n3", "current": true, "active": 10_000_000_000_u64});
        let offline = json!({"name": "n3", "current": false, "offline": true, "active": 0});
        for gone in [unheard, offline] {
            let n1 = answer("n1", &group("n1", &[copy("n2", true), gone]), &[]);
            assert_eq!(silent_in(&[n1, n2.clone()]), (vec![silent("n3", true)], true));
        }
        // There are three, and only two of them have names.
        let n1 = answer("n1", &group("n1", &[copy("n2", true)]), &[]);
        let (missing, _) = silent_in(&[n1, n2]);
        assert!(missing.len() == 1 && !missing[0].is_away, "{missing:?}");
    }
}
