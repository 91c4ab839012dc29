//! What a store is told before it connects. Nothing here reads the environment; the binaries do.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How to reach NATS and what stands there under which name.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the servers are: `nats://host:port` or `tls://host:port`, one or several of a cluster.
    pub servers: Vec<Server>,
    /// What the servers show of this process, e.g. `pyoco-http-api`.
    pub name: String,
    /// Who this process is.
    pub access: Access,
    /// Answers come to subjects that begin so; nothing: as every client does. With one of its own, others need no right to listen there.
    pub inbox_prefix: Option<String>,
    /// How the connection is protected.
    pub tls: Tls,
    /// On how many servers of a cluster everything that is created here stands.
    pub replicas: usize,
    /// The stream of jobs.
    pub work_stream: String,
    /// Jobs of a tag stand at `<prefix>.<tag>`.
    pub work_subject_prefix: String,
    /// The stream of dead letters.
    pub dlq_stream: String,
    /// Dead letters of a tag stand at `<prefix>.<tag>`.
    pub dlq_subject_prefix: String,
    /// How long a dead letter is kept.
    pub dlq_max_age: Duration,
    /// How many dead letters are kept.
    pub dlq_max_messages: i64,
    /// How many bytes of dead letters are kept. The server sets them aside at once.
    pub dlq_max_bytes: i64,
    /// How long an entry of the audit trail is kept at most, whoever prunes; zero: for ever. A stream that is there stays as it is.
    pub audit_max_age: Duration,
    /// How many bytes of the audit trail are kept. The server sets them aside at once.
    pub audit_max_bytes: i64,
    /// The bucket of run snapshots.
    pub runs_bucket: String,
    /// The bucket of workers.
    pub workers_bucket: String,
    /// How long a worker is known after its last report.
    pub workers_ttl: Duration,
    /// The bucket of API keys.
    pub auth_bucket: String,
    /// The bucket of wheels.
    pub wheels_bucket: String,
    /// How many bytes of wheels are kept; zero: no bound. The server sets them aside at once.
    pub wheels_max_bytes: i64,
    /// The bucket of the history of wheels.
    pub wheel_history_bucket: String,
    /// How long an event of the history of wheels is kept; zero: for ever.
    pub wheel_history_ttl: Duration,
    /// How long a job may be in hand without a word.
    pub ack_wait: Duration,
    /// How often a job is delivered.
    pub max_deliver: i64,
    /// How many jobs of a tag may be in hand, in all workers together.
    pub max_ack_pending: i64,
    /// How long one request may take. Callers answer "not available" within two seconds, so it must be less.
    pub patience: Duration,
}

impl Settings {
    /// The settings of the contract, for the servers at these addresses.
    pub fn new(servers: &[&str]) -> Self {
        Self {
            servers: servers.iter().map(|address| Server::new(*address)).collect(),
            name: "pyoco".to_owned(),
            access: Access::Open,
            inbox_prefix: None,
            tls: Tls::default(),
            replicas: 1,
            work_stream: "PYOCO_WORK".to_owned(),
            work_subject_prefix: "pyoco.work".to_owned(),
            dlq_stream: "PYOCO_DLQ".to_owned(),
            dlq_subject_prefix: "pyoco.dlq".to_owned(),
            dlq_max_age: Duration::from_secs(604_800),
            dlq_max_messages: 100_000,
            dlq_max_bytes: 536_870_912,
            audit_max_age: Duration::from_secs(7_776_000),
            audit_max_bytes: 256 << 20,
            runs_bucket: "pyoco_runs".to_owned(),
            workers_bucket: "pyoco_workers".to_owned(),
            workers_ttl: Duration::from_secs(15),
            auth_bucket: "pyoco_auth".to_owned(),
            wheels_bucket: "pyoco_wheels".to_owned(),
            wheels_max_bytes: 536_870_912,
            wheel_history_bucket: "pyoco_wheel_history".to_owned(),
            wheel_history_ttl: Duration::from_secs(7_776_000),
            ack_wait: Duration::from_secs(30),
            max_deliver: 20,
            max_ack_pending: 200,
            patience: Duration::from_millis(1500),
        }
    }
}

impl Settings {
    /// Who this process is: as it was told, or as the first address that names somebody says. The library does not look there.
    pub(crate) fn named_access(&self) -> Access {
        match &self.access {
            Access::Open => self.servers.iter().find_map(Server::access).unwrap_or_default(),
            told @ (Access::Token(_) | Access::UserPassword { .. } | Access::Credentials(_)) => told.clone(),
        }
    }
}

/// The address of a server. It may hold a password, so it shows itself without one.
#[derive(Clone, PartialEq, Eq)]
pub struct Server(String);

impl Server {
    /// An address as an operator writes it.
    pub fn new(address: impl Into<String>) -> Self {
        Self(address.into())
    }

    /// Whom the address names: `user:password@` or `token@`.
    fn access(&self) -> Option<Access> {
        let (_, rest) = self.parts();
        let (named, _) = rest.rsplit_once('@')?;
        let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        Some(match named.split_once(':') {
            Some((user, password)) => Access::UserPassword { user: plain(user), password: plain(password) },
            None => Access::Token(plain(named)),
        })
    }

    /// The scheme, and what follows it.
    fn parts(&self) -> (&str, &str) {
        self.0.split_once("://").unwrap_or(("", &self.0))
    }

    /// The address with everything that is in it.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.parts();
        // The last one: a password may hold an `@` itself.
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        if scheme.is_empty() { f.write_str(host) } else { write!(f, "{scheme}://{host}") }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Who a process is to NATS.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Nobody in particular, or whoever the first address with a name names.
    #[default]
    Open,
    /// Whoever knows the token.
    Token(String),
    /// A user.
    UserPassword {
        /// Its name.
        user: String,
        /// Its password.
        password: String,
    },
    /// Whoever holds this credentials file.
    Credentials(PathBuf),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("Open"),
            Self::Token(_) => f.write_str("Token(…)"),
            Self::UserPassword { user, .. } => write!(f, "UserPassword {{ user: {user:?}, password: … }}"),
            Self::Credentials(path) => write!(f, "Credentials({})", path.display()),
        }
    }
}

/// How the connection is protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Refuse a server that speaks without TLS. An address with `tls://` says the same.
    pub required: bool,
    /// Certificates that are trusted instead of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate and the key that this process shows.
    pub client: Option<(PathBuf, PathBuf)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_a_user_or_a_token_and_settings_win() {
        let user = |user: &str, password: &str| Access::UserPassword {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        for (address, wanted) in [
            ("nats://host:4222", Access::Open),
            ("nats://me:secret@host:4222", user("me", "secret")),
            ("me:a%40b%3A@host", user("me", "a@b:")),
            ("tls://tok%20en@host", Access::Token("tok en".to_owned())),
        ] {
            assert_eq!(Settings::new(&["nats://first", address]).named_access(), wanted, "{address}");
            let told = Settings { access: user("x", "y"), ..Settings::new(&[address]) };
            assert_eq!(told.named_access(), user("x", "y"));
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let mut settings = Settings::new(&["nats://me:hush@host:4222", "token-hush@other"]);
        for access in [
            Access::Token("hush".to_owned()),
            Access::UserPassword { user: "me".to_owned(), password: "hush@hush".to_owned() },
        ] {
            settings.access = access;
            let shown = format!("{settings:?}");
            assert!(!shown.contains("hush"), "{shown}");
            assert!(shown.contains("nats://host:4222") && shown.contains("other"), "{shown}");
        }
    }
}
