//! The streams and buckets: made when they are missing, in the form that all implementations make them, and never changed.
//!
//! Consumers are made where they are used. What an operator or another implementation made stays as it is; it is refused only when
//! it cannot do what we need of it. An update is never sent: it has cost others their delayed jobs.

use std::time::Duration;

use pyoco_ports::{ErrorKind, StoreError};
use serde_json::{Value, json};

use crate::Settings;
use crate::connection::Connection;
use crate::error::{self, ApiError, OpenError, Refusal};
use crate::names;
use crate::stream::{StreamConfig, StreamInfo};

const OPERATION: &str = "look for the streams";
/// A cluster that has just started needs a moment to agree on a leader.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);
/// Two minutes, the server's own choice.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// What was found, as far as it changes how we read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources {
    /// Many records may be read with one request.
    pub(crate) is_events_direct: bool,
    /// Many messages of task logs may be read with one request.
    pub(crate) is_logs_direct: bool,
    /// Many pieces of a blob may be read with one request.
    pub(crate) is_blobs_direct: bool,
    /// Many entries of the audit trail may be read with one request.
    pub(crate) is_audit_direct: bool,
    /// Many messages of wheels may be read with one request.
    pub(crate) is_wheels_direct: bool,
}

/// What is needed of a stream.
pub(crate) struct Wanted {
    pub(crate) name: String,
    subjects: Vec<String>,
    retention: &'static str,
    /// Losing a message of it, or storing one late, breaks a promise.
    pub(crate) is_truth: bool,
    /// How it is made when it is missing.
    pub(crate) config: Value,
}

impl Resources {
    /// Looks for everything and makes what is missing.
    pub(crate) async fn open(connection: &Connection, settings: &Settings) -> Result<Self, OpenError> {
        let events = ensure(connection, &events(settings)).await?;
        let logs = ensure(connection, &logs(settings)).await?;
        let blobs = ensure(connection, &blobs(settings)).await?;
        let others = [work, dead_letters, runs, workers, auth, graphs, retention];
        for wanted in others.map(|wanted| wanted(settings)) {
            ensure(connection, &wanted).await?;
        }
        let audit = ensure(connection, &audit(settings)).await?;
        let wheels = ensure(connection, &wheels(settings)).await?;
        ensure(connection, &wheel_history(settings)).await?;
        Ok(Self {
            is_events_direct: events.config.allow_direct,
            is_logs_direct: logs.config.allow_direct,
            is_blobs_direct: blobs.config.allow_direct,
            is_audit_direct: audit.config.allow_direct,
            is_wheels_direct: wheels.config.allow_direct,
        })
    }
}

/// Everything that is needed.
pub(crate) fn all(settings: &Settings) -> Vec<Wanted> {
    let wanted: [fn(&Settings) -> Wanted; 13] = [
        events,
        logs,
        blobs,
        work,
        dead_letters,
        runs,
        workers,
        auth,
        graphs,
        audit,
        retention,
        wheels,
        wheel_history,
    ];
    wanted.map(|wanted| wanted(settings)).into()
}

/// The stream of jobs, made again if somebody has deleted it. Asked once only: somebody waits for an answer.
pub(crate) async fn ensure_work(
    connection: &Connection,
    settings: &Settings,
) -> Result<StreamInfo, StoreError> {
    again(once(connection, &work(settings)).await)
}

/// The buckets of runs and workers, made again if somebody has deleted them. Asked once only.
pub(crate) async fn ensure_buckets(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    for wanted in [runs(settings), workers(settings)] {
        again(once(connection, &wanted).await)?;
    }
    Ok(())
}

/// The bucket of API keys, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_auth(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    again(once(connection, &auth(settings)).await).map(|_| ())
}

/// The stream of graphs, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_graphs(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    again(once(connection, &graphs(settings)).await).map(|_| ())
}

/// The stream of the audit trail, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_audit(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    again(once(connection, &audit(settings)).await).map(|_| ())
}

/// The stream of tombstones and uses, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_retention(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    again(once(connection, &retention(settings)).await).map(|_| ())
}

/// The stream of dead letters, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_dead_letters(
    connection: &Connection,
    settings: &Settings,
) -> Result<(), StoreError> {
    again(once(connection, &dead_letters(settings)).await).map(|_| ())
}

/// The stream of what tasks write, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_logs(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    again(once(connection, &logs(settings)).await).map(|_| ())
}

/// The bucket of wheels, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_wheels(connection: &Connection, settings: &Settings) -> Result<(), StoreError> {
    again(once(connection, &wheels(settings)).await).map(|_| ())
}

/// The bucket of the history of wheels, made again if somebody has deleted it. Asked once only.
pub(crate) async fn ensure_wheel_history(
    connection: &Connection,
    settings: &Settings,
) -> Result<(), StoreError> {
    again(once(connection, &wheel_history(settings)).await).map(|_| ())
}

/// What was there when the store was opened is not now: that may change.
fn again<T>(found: Result<T, OpenError>) -> Result<T, StoreError> {
    found.map_err(|error| {
        if let OpenError::Store(error) = error {
            error
        } else {
            StoreError::new(ErrorKind::Unavailable, OPERATION, error)
        }
    })
}

/// The stream as it is, or made now. Asks again for a while when there is no leader.
async fn ensure(connection: &Connection, wanted: &Wanted) -> Result<StreamInfo, OpenError> {
    let mut attempt = 1;
    loop {
        let error = match once(connection, wanted).await {
            Err(OpenError::Store(error)) if error.kind.is_retryable() && connection.is_connected() => error,
            done => return done,
        };
        if attempt == ATTEMPTS || error::is_not_enabled(&error) {
            let is_away = error.kind == ErrorKind::Unavailable;
            return Err(if is_away {
                OpenError::NoJetStream { why: error.to_string() }
            } else {
                error.into()
            });
        }
        tracing::debug!(stream = wanted.name, %error, attempt, "asking NATS again");
        attempt += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn once(connection: &Connection, wanted: &Wanted) -> Result<StreamInfo, OpenError> {
    if let Some(found) = connection.info(OPERATION, &wanted.name, None).await? {
        return usable(wanted, found);
    }
    match connection.create(OPERATION, &wanted.name, &wanted.config).await {
        Ok(made) => {
            tracing::info!(stream = wanted.name, "made in NATS");
            usable(wanted, made)
        }
        // Somebody else was faster, with other settings.
        Err(error) if error.is(Refusal::NAME_IN_USE) => {
            match connection.info(OPERATION, &wanted.name, None).await? {
                Some(found) => usable(wanted, found),
                None => Err(StoreError::plain(ErrorKind::Unavailable, OPERATION).into()),
            }
        }
        Err(ApiError::Refused(refusal)) if refusal.kind() != ErrorKind::Unavailable => {
            Err(OpenError::NotMade { name: wanted.name.clone(), why: refusal.to_string() })
        }
        Err(error) => Err(error.into_store(OPERATION).into()),
    }
}

fn usable(wanted: &Wanted, found: StreamInfo) -> Result<StreamInfo, OpenError> {
    match flaw(wanted, &found.config) {
        Some(why) => Err(OpenError::Unusable { name: wanted.name.clone(), why }),
        None => {
            if !wanted.is_truth && found.config.persist_mode.as_deref() == Some("async") {
                tracing::warn!(stream = wanted.name, "it answers before it has written (persist_mode async)");
            }
            Ok(found)
        }
    }
}

/// What keeps a stream from being used.
pub(crate) fn flaw(wanted: &Wanted, found: &StreamConfig) -> Option<String> {
    let missing =
        wanted.subjects.iter().find(|subject| !found.subjects.iter().any(|one| covers(one, subject)));
    if let Some(subject) = missing {
        return Some(format!("it does not listen to {subject}, only to {}", found.subjects.join(", ")));
    }
    if found.retention != wanted.retention {
        return Some(format!("its retention is {}, not {}", found.retention, wanted.retention));
    }
    if found.sealed {
        return Some("it is sealed: nothing can be written".to_owned());
    }
    if found.no_ack {
        return Some("it does not say whether it has stored a message (no_ack)".to_owned());
    }
    if !wanted.is_truth {
        return None;
    }
    if found.persist_mode.as_deref() == Some("async") {
        return Some("it answers before it has written (persist_mode async)".to_owned());
    }
    if found.storage != "file" {
        return Some(format!("it is kept in {}, not in files", found.storage));
    }
    if found.max_age > Duration::ZERO {
        return Some("it forgets what is old (max_age)".to_owned());
    }
    let is_bounded = found.max_msgs > 0 || found.max_bytes > 0 || found.max_msgs_per_subject > 0;
    if is_bounded && found.discard != "new" {
        return Some("it forgets what is old when it is full (discard old with a limit)".to_owned());
    }
    None
}

/// Whether a pattern of subjects takes every subject of another.
fn covers(pattern: &str, subjects: &str) -> bool {
    let mut wanted = subjects.split('.');
    for token in pattern.split('.') {
        match (token, wanted.next()) {
            (">", Some(_)) => return true,
            ("*", Some(other)) if other != ">" => {}
            (one, Some(other)) if one == other => {}
            (_, Some(_) | None) => return false,
        }
    }
    wanted.next().is_none()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long repeats are recognised by their id: not for longer than anything is kept, which a server refuses.
fn window(age: Duration) -> Duration {
    // No age means for ever; then the window is the server's own.
    if age.is_zero() { DUPLICATE_WINDOW } else { DUPLICATE_WINDOW.min(age) }
}

/// The records: nothing is ever forgotten by itself, and a full stream says so.
fn events(settings: &Settings) -> Wanted {
    let subjects = vec![names::ALL_EVENTS.to_owned()];
    let config = json!({
        "name": names::EVENTS, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": settings.replicas, "allow_direct": true, "deny_delete": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
    });
    Wanted { name: names::EVENTS.to_owned(), subjects, retention: "limits", is_truth: true, config }
}

/// What tasks write.
fn logs(settings: &Settings) -> Wanted {
    let subjects = vec![names::ALL_LOGS.to_owned()];
    let config = json!({
        "name": names::LOGS, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": settings.replicas, "allow_direct": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
    });
    Wanted { name: names::LOGS.to_owned(), subjects, retention: "limits", is_truth: false, config }
}

/// The graphs: nothing is ever forgotten by itself.
fn graphs(settings: &Settings) -> Wanted {
    let subjects = vec![names::ALL_GRAPHS.to_owned()];
    let config = json!({
        "name": names::GRAPHS, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": settings.replicas, "deny_delete": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
    });
    Wanted { name: names::GRAPHS.to_owned(), subjects, retention: "limits", is_truth: true, config }
}

/// Tombstones, and who uses which blob: one message each. Whoever prunes takes away what is old.
fn retention(settings: &Settings) -> Wanted {
    let subjects = vec![names::ALL_TOMBSTONES.to_owned(), names::ALL_USES.to_owned()];
    let config = json!({
        "name": names::RETENTION, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": settings.replicas, "max_msgs_per_subject": 1,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
    });
    Wanted { name: names::RETENTION.to_owned(), subjects, retention: "limits", is_truth: true, config }
}

/// The blobs: a bucket of objects as every client makes one.
fn blobs(settings: &Settings) -> Wanted {
    let name = names::object_stream(names::BLOBS);
    let subjects = names::object_subjects(names::BLOBS).to_vec();
    let config = json!({
        "name": name, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": settings.replicas, "allow_direct": true, "allow_rollup_hdrs": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
    });
    Wanted { name, subjects, retention: "limits", is_truth: true, config }
}

/// The wheels: a bucket of objects exactly as the original makes it.
fn wheels(settings: &Settings) -> Wanted {
    let name = names::object_stream(&settings.wheels_bucket);
    let subjects = names::object_subjects(&settings.wheels_bucket).to_vec();
    let max_bytes = if settings.wheels_max_bytes > 0 { settings.wheels_max_bytes } else { -1 };
    let config = json!({
        "name": name, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": settings.replicas, "allow_direct": true, "allow_rollup_hdrs": true,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": max_bytes,
    });
    Wanted { name, subjects, retention: "limits", is_truth: true, config }
}

/// The jobs.
fn work(settings: &Settings) -> Wanted {
    let name = settings.work_stream.clone();
    let subjects = vec![settings.all_work()];
    let config = json!({
        "name": name, "subjects": subjects, "storage": "file", "retention": "workqueue", "discard": "old",
        "num_replicas": settings.replicas, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
    });
    Wanted { name, subjects, retention: "workqueue", is_truth: false, config }
}

/// The dead letters: the oldest go when there is no room.
fn dead_letters(settings: &Settings) -> Wanted {
    let name = settings.dlq_stream.clone();
    let subjects = vec![settings.all_dead_letters()];
    let (age, window) = (nanoseconds(settings.dlq_max_age), nanoseconds(window(settings.dlq_max_age)));
    let config = json!({
        "name": name, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "old",
        "num_replicas": settings.replicas, "max_consumers": -1, "duplicate_window": window,
        "max_age": age, "max_msgs": settings.dlq_max_messages, "max_bytes": settings.dlq_max_bytes,
    });
    Wanted { name, subjects, retention: "limits", is_truth: false, config }
}

/// The audit trail: the oldest entries go when there is no room, whoever prunes.
fn audit(settings: &Settings) -> Wanted {
    let subjects = vec![names::ALL_AUDIT.to_owned()];
    let (age, window) = (nanoseconds(settings.audit_max_age), nanoseconds(window(settings.audit_max_age)));
    let config = json!({
        "name": names::AUDIT, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "old",
        "num_replicas": settings.replicas, "allow_direct": true, "max_consumers": -1, "max_msgs": -1,
        "max_age": age, "max_bytes": settings.audit_max_bytes, "duplicate_window": window,
    });
    Wanted { name: names::AUDIT.to_owned(), subjects, retention: "limits", is_truth: false, config }
}

/// The snapshots of runs.
fn runs(settings: &Settings) -> Wanted {
    bucket(&settings.runs_bucket, Duration::ZERO, settings.replicas)
}

/// The workers, forgotten when they are silent.
fn workers(settings: &Settings) -> Wanted {
    bucket(&settings.workers_bucket, settings.workers_ttl, settings.replicas)
}

/// The API keys.
fn auth(settings: &Settings) -> Wanted {
    bucket(&settings.auth_bucket, Duration::ZERO, settings.replicas)
}

/// The history of wheels, forgotten when it is old.
fn wheel_history(settings: &Settings) -> Wanted {
    bucket(&settings.wheel_history_bucket, settings.wheel_history_ttl, settings.replicas)
}

/// A bucket exactly as the original makes it: whoever comes second finds what it would have made itself.
fn bucket(bucket: &str, ttl: Duration, replicas: usize) -> Wanted {
    let name = names::bucket_stream(bucket);
    let subjects = vec![names::bucket_subjects(bucket)];
    let window = window(ttl);
    let config = json!({
        "name": name, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "new",
        "num_replicas": replicas, "max_msgs_per_subject": 1, "max_age": nanoseconds(ttl),
        "duplicate_window": nanoseconds(window), "allow_rollup_hdrs": true, "deny_delete": true,
        "allow_msg_ttl": true, "allow_direct": false,
        "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_msg_size": -1,
    });
    Wanted { name, subjects, retention: "limits", is_truth: false, config }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_it_takes_and_nothing_more() {
        for (pattern, subjects) in [
            ("pyoco.work.>", "pyoco.work.>"),
            ("pyoco.>", "pyoco.work.>"),
            (">", "pyoco.work.>"),
            ("*.work.>", "pyoco.work.>"),
            ("a.*", "a.b"),
        ] {
            assert!(covers(pattern, subjects), "{pattern} {subjects}");
        }
        for (pattern, subjects) in [
            ("pyoco.work.*", "pyoco.work.>"),
            ("pyoco.work", "pyoco.work.>"),
            ("pyoco.work.a", "pyoco.work.>"),
            ("a.>", "a"),
        ] {
            assert!(!covers(pattern, subjects), "{pattern} {subjects}");
        }
    }

    #[test]
    fn what_would_break_a_promise_is_refused_for_the_log_only() {
        let settings = Settings::new(&[]);
        let sound = StreamConfig {
            subjects: vec![names::ALL_EVENTS.to_owned()],
            discard: "new".to_owned(),
            ..StreamConfig::default()
        };
        assert_eq!(flaw(&events(&settings), &sound), None);
        let flawed = [
            StreamConfig { max_age: Duration::from_secs(1), ..sound.clone() },
            StreamConfig { persist_mode: Some("async".to_owned()), ..sound.clone() },
            StreamConfig { storage: "memory".to_owned(), ..sound.clone() },
            StreamConfig { discard: "old".to_owned(), max_bytes: 1, ..sound.clone() },
            StreamConfig { retention: "interest".to_owned(), ..sound.clone() },
            StreamConfig { sealed: true, ..sound.clone() },
            StreamConfig { no_ack: true, ..sound.clone() },
            StreamConfig { subjects: vec!["pyoco.events.a".to_owned()], ..sound },
        ];
        for config in flawed {
            assert!(flaw(&events(&settings), &config).is_some(), "{config:?}");
        }
        let bounded = StreamConfig {
            subjects: vec![settings.all_dead_letters()],
            max_bytes: 1,
            max_age: Duration::from_secs(1),
            ..StreamConfig::default()
        };
        assert_eq!(flaw(&dead_letters(&settings), &bounded), None);
    }
}
