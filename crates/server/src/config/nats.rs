//! What an operator says about NATS: names and limits of the contract, and how it is reached.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::settings::Settings;

/// The names of what stands in NATS, and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct NatsNames {
    /// `PYOCO_WORK_SUBJECT_PREFIX`.
    pub work_subject_prefix: String,
    /// `PYOCO_RUNS_KV_BUCKET`.
    pub runs_bucket: String,
    /// `PYOCO_WORKERS_KV_BUCKET`.
    pub workers_bucket: String,
    /// `PYOCO_WORKERS_KV_TTL_SEC`.
    pub workers_ttl: Duration,
    /// `PYOCO_AUTH_KV_BUCKET`.
    pub auth_bucket: String,
    /// `PYOCO_CONSUMER_MAX_DELIVER`.
    pub max_deliver: i64,
    /// `PYOCO_CONSUMER_MAX_ACK_PENDING`.
    pub max_ack_pending: i64,
    /// `PYOCO_DLQ_STREAM`.
    pub dlq_stream: String,
    /// `PYOCO_DLQ_SUBJECT_PREFIX`.
    pub dlq_subject_prefix: String,
    /// `PYOCO_DLQ_MAX_AGE_SEC`.
    pub dlq_max_age: Duration,
    /// `PYOCO_DLQ_MAX_MSGS`.
    pub dlq_max_messages: i64,
    /// `PYOCO_DLQ_MAX_BYTES`.
    pub dlq_max_bytes: i64,
}

impl NatsNames {
    pub(super) fn read(from: &mut Settings) -> Self {
        Self {
            work_subject_prefix: from.text("PYOCO_WORK_SUBJECT_PREFIX"),
            runs_bucket: from.text("PYOCO_RUNS_KV_BUCKET"),
            workers_bucket: from.text("PYOCO_WORKERS_KV_BUCKET"),
            workers_ttl: from.seconds("PYOCO_WORKERS_KV_TTL_SEC"),
            auth_bucket: from.text("PYOCO_AUTH_KV_BUCKET"),
            max_deliver: from.number("PYOCO_CONSUMER_MAX_DELIVER"),
            max_ack_pending: from.number("PYOCO_CONSUMER_MAX_ACK_PENDING"),
            dlq_stream: from.text("PYOCO_DLQ_STREAM"),
            dlq_subject_prefix: from.text("PYOCO_DLQ_SUBJECT_PREFIX"),
            dlq_max_age: from.seconds("PYOCO_DLQ_MAX_AGE_SEC"),
            dlq_max_messages: from.number("PYOCO_DLQ_MAX_MSGS"),
            dlq_max_bytes: from.number("PYOCO_DLQ_MAX_BYTES"),
        }
    }
}

/// How NATS is reached, and what is asked of it. It holds secrets, which it does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsAccess {
    /// `PYOCO_NATS_USER`.
    pub user: Option<String>,
    /// `PYOCO_NATS_PASSWORD`.
    pub password: Option<String>,
    /// `PYOCO_NATS_TOKEN`.
    pub token: Option<String>,
    /// `PYOCO_NATS_CREDS`: a credentials file.
    pub credentials: Option<PathBuf>,
    /// `PYOCO_NATS_INBOX_PREFIX`: where answers come.
    pub inbox_prefix: Option<String>,
    /// `PYOCO_NATS_TLS`: refuse a server without TLS.
    pub tls: bool,
    /// `PYOCO_NATS_TLS_CA`: certificates to trust.
    pub tls_ca: Option<PathBuf>,
    /// `PYOCO_NATS_TLS_CERT`: the certificate to show.
    pub tls_cert: Option<PathBuf>,
    /// `PYOCO_NATS_TLS_KEY`: its key.
    pub tls_key: Option<PathBuf>,
    /// `PYOCO_NATS_REPLICAS`: on how many servers what is created here stands.
    pub replicas: usize,
    /// `PYOCO_NATS_MONITOR_URL`: where the servers tell how they are set up.
    pub monitor: Option<String>,
    /// `PYOCO_DURABILITY`.
    pub durability: Durability,
}

/// What is asked of the servers' disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A server that does not sync before it answers, or does not say, is a warning.
    Relaxed,
    /// Such a server is refused.
    Strict,
}

impl NatsAccess {
    pub(super) fn read(from: &mut Settings) -> Self {
        let path = |from: &mut Settings, name| from.given(name).map(PathBuf::from);
        let access = Self {
            user: from.given("PYOCO_NATS_USER"),
            password: from.given("PYOCO_NATS_PASSWORD"),
            token: from.given("PYOCO_NATS_TOKEN"),
            credentials: path(from, "PYOCO_NATS_CREDS"),
            inbox_prefix: from.given("PYOCO_NATS_INBOX_PREFIX"),
            tls: from.flag("PYOCO_NATS_TLS"),
            tls_ca: path(from, "PYOCO_NATS_TLS_CA"),
            tls_cert: path(from, "PYOCO_NATS_TLS_CERT"),
            tls_key: path(from, "PYOCO_NATS_TLS_KEY"),
            replicas: from.choice("PYOCO_NATS_REPLICAS", &[("1", 1), ("3", 3)], 1),
            monitor: from.given("PYOCO_NATS_MONITOR_URL"),
            durability: from.choice(
                "PYOCO_DURABILITY",
                &[("relaxed", Durability::Relaxed), ("strict", Durability::Strict)],
                Durability::Strict,
            ),
        };
        access.check(from);
        access
    }

    /// What one value alone cannot tell.
    fn check(&self, from: &mut Settings) {
        if self.user.is_some() != self.password.is_some() {
            from.mistakes.push("PYOCO_NATS_USER and PYOCO_NATS_PASSWORD go together".to_owned());
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            from.mistakes.push("PYOCO_NATS_TLS_CERT and PYOCO_NATS_TLS_KEY go together".to_owned());
        }
        let ways = [self.user.is_some(), self.token.is_some(), self.credentials.is_some()];
        if ways.into_iter().filter(|is_given| *is_given).count() > 1 {
            let names = "PYOCO_NATS_USER, PYOCO_NATS_TOKEN and PYOCO_NATS_CREDS";
            from.mistakes.push(format!("{names} are three ways to say who one is; give one"));
        }
    }
}

impl fmt::Debug for NatsAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsAccess")
            .field("replicas", &self.replicas)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
