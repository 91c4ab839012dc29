//! The text of a server's configuration, from what is wanted of it. Nothing is read or written here.
//!
//! Its first line has a fingerprint of the rest. Whoever changes the text by hand breaks that, and keeps what they wrote.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pyoco_store_nats::rights::Rights;
use sha2::{Digest as _, Sha256};

/// What a server is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conf {
    /// Its name: no other server of the cluster has it.
    pub server_name: String,
    /// Where clients come.
    pub client: Listen,
    /// Where it tells about itself.
    pub http: Listen,
    /// Where others are told that clients come, if that differs.
    pub client_advertise: Option<String>,
    /// What JetStream stores.
    pub store: PathBuf,
    /// How much of it in memory, in bytes.
    pub max_memory: u64,
    /// How much of it in files, in bytes.
    pub max_file: u64,
    /// Certificates, if clients are to speak TLS.
    pub tls: Option<Tls>,
    /// Whoever looks after the servers.
    pub system: Account,
    /// Everybody else.
    pub app: Account,
    /// Who somebody is who does not say.
    pub nobody: Option<String>,
    /// The cluster it is part of.
    pub cluster: Option<Cluster>,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Listen {
    /// As it is written.
    pub fn address(&self) -> String {
        // An address of version 6 has colons of its own.
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// What the server shows.
    pub certificate: PathBuf,
    /// The key of that.
    pub key: PathBuf,
    /// Whom clients must have been certified by, if they must.
    pub ca: Option<PathBuf>,
}

/// An account: what one stores the other does not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// What it is called.
    pub name: String,
    /// Its users.
    pub users: Vec<User>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// The variable of its password.
    pub password_env: String,
    /// What it may do; nothing said: everything in its account.
    pub rights: Option<Rights>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// What it is called.
    pub name: String,
    /// Where other servers come.
    pub listen: Listen,
    /// Where others are told that servers come, if that differs.
    pub advertise: Option<String>,
    /// Where other servers are. A server that names nobody names itself: it would not start otherwise.
    pub routes: Vec<Route>,
    /// The user of other servers, and the variable of its password.
    pub access: Option<(String, String)>,
}

/// Where another server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// As it is.
    Plain(String),
    /// In a variable, because it has a password in it.
    Variable(String),
}

/// The text, with its first line.
pub fn text(conf: &Conf) -> String {
    let body = body(conf);
    format!("{HEAD}{}\n{body}", fingerprint(&body))
}

const HEAD: &str = "# nats-bootstrap ";

/// Who wrote a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// We did, and nobody has touched it.
    Us,
    /// Somebody has changed it, or has written it.
    Somebody,
}

/// Who wrote a text.
pub fn author(text: &str) -> Author {
    let sealed = text.strip_prefix(HEAD).and_then(|rest| rest.split_once('\n'));
    match sealed {
        Some((seal, body)) if seal == fingerprint(body) => Author::Us,
        Some(_) | None => Author::Somebody,
    }
}

/// How much may be stored in files by a text of ours: a limit that was set once does not shrink as the disk fills.
pub fn max_file(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix("max_file_store: "))
        .and_then(|number| number.parse().ok())
}

/// Where a text says that clients come, as `host:port`.
pub fn listens(text: &str) -> Option<String> {
    said(text, "listen: ")
}

/// Where a text says that the server tells about itself, as `host:port`.
pub fn tells(text: &str) -> Option<String> {
    said(text, "http: ")
}

/// What a text calls the server.
pub fn name(text: &str) -> Option<String> {
    said(text, "server_name: ")
}

/// A value of the outermost level, as we write it.
fn said(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?.trim();
    Some(value.trim_matches('"').to_owned()).filter(|value| !value.is_empty())
}

fn fingerprint(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    digest.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Writing to a text cannot fail.
macro_rules! line {
    ($out:expr, $($text:tt)*) => {{ let _ = writeln!($out, $($text)*); }};
}

fn body(conf: &Conf) -> String {
    let mut out = String::new();
    line!(
        out,
        "# Written by nats-bootstrap. Change it if you like: the line above does not fit then, and it is never written over."
    );
    line!(out, "server_name: {}", quoted(&conf.server_name));
    line!(out, "listen: {}", quoted(&conf.client.address()));
    if let Some(advertise) = &conf.client_advertise {
        line!(out, "client_advertise: {}", quoted(advertise));
    }
    line!(out, "# Tells everything about the server to whoever can reach it.");
    line!(out, "http: {}", quoted(&conf.http.address()));
    line!(out, "# Larger values go through an object store.");
    line!(out, "max_payload: 1MB");
    line!(out, "\njetstream {{");
    line!(out, "  store_dir: {}", quoted_path(&conf.store));
    line!(
        out,
        "  # Every write is on the disk before it is answered: that is what an accepted run is worth."
    );
    line!(out, "  sync_interval: always");
    line!(out, "  max_memory_store: {}", conf.max_memory);
    line!(out, "  max_file_store: {}", conf.max_file);
    line!(out, "}}");
    if let Some(tls) = &conf.tls {
        line!(out, "\ntls {{");
        line!(out, "  cert_file: {}", quoted_path(&tls.certificate));
        line!(out, "  key_file: {}", quoted_path(&tls.key));
        if let Some(ca) = &tls.ca {
            line!(out, "  ca_file: {}", quoted_path(ca));
            line!(out, "  verify: true");
        }
        line!(out, "}}");
    }
    line!(out, "\n# What one account stores another does not see. Passwords come from the environment.");
    line!(out, "accounts {{");
    account(&mut out, &conf.system, false);
    account(&mut out, &conf.app, true);
    line!(out, "}}");
    line!(out, "system_account: {}", quoted(&conf.system.name));
    if let Some(nobody) = &conf.nobody {
        line!(out, "# Nobody is asked who they are.");
        line!(out, "no_auth_user: {}", quoted(nobody));
    }
    if let Some(cluster) = &conf.cluster {
        clustered(&mut out, cluster);
    }
    out
}

fn account(out: &mut String, account: &Account, has_jetstream: bool) {
    line!(out, "  {}: {{", quoted(&account.name));
    if has_jetstream {
        line!(out, "    jetstream: enabled");
    }
    line!(out, "    users: [");
    for user in &account.users {
        line!(out, "      {{");
        line!(out, "        user: {}", quoted(&user.name));
        line!(out, "        password: ${}", user.password_env);
        if let Some(rights) = &user.rights {
            line!(out, "        permissions: {{");
            line!(out, "          publish: {{ allow: [{}] }}", list(&rights.publish));
            line!(out, "          subscribe: {{ allow: [{}] }}", list(&rights.subscribe));
            line!(out, "        }}");
        }
        line!(out, "      }}");
    }
    line!(out, "    ]");
    line!(out, "  }}");
}

fn clustered(out: &mut String, cluster: &Cluster) {
    line!(out, "\ncluster {{");
    line!(out, "  name: {}", quoted(&cluster.name));
    line!(out, "  listen: {}", quoted(&cluster.listen.address()));
    if let Some(advertise) = &cluster.advertise {
        line!(out, "  advertise: {}", quoted(advertise));
    }
    if let Some((user, password_env)) = &cluster.access {
        line!(out, "  authorization {{ user: {}, password: ${password_env} }}", quoted(user));
    }
    line!(out, "  routes: [");
    for route in &cluster.routes {
        match route {
            Route::Plain(address) => line!(out, "    {}", quoted(address)),
            Route::Variable(name) => line!(out, "    ${name}"),
        }
    }
    line!(out, "  ]");
    line!(out, "}}");
}

fn list(subjects: &[String]) -> String {
    subjects.iter().map(|subject| quoted(subject)).collect::<Vec<_>>().join(", ")
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A text as the server reads it. What it could not read is left out; `is_plain` refuses it before.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

/// Whether a text can stand in a configuration.
pub fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, rights: Option<Rights>) -> User {
        User { name: name.to_owned(), password_env: format!("{}_PW", name.to_uppercase()), rights }
    }

    fn conf() -> Conf {
        Conf {
            server_name: "a \"b\"".to_owned(),
            client: Listen { host: "127.0.0.1".to_owned(), port: 4222 },
            http: Listen { host: "::1".to_owned(), port: 8222 },
            client_advertise: None,
            store: PathBuf::from("/var/lib/n"),
            max_memory: 1,
            max_file: 12_345,
            tls: None,
            system: Account { name: "SYS".to_owned(), users: vec![user("sys", None)] },
            app: Account { name: "PYOCO".to_owned(), users: vec![user("open", None)] },
            nobody: Some("open".to_owned()),
            cluster: None,
        }
    }

    #[test]
    fn what_durability_needs_is_in_the_text() {
        let text = text(&conf());
        for wanted in [
            "sync_interval: always",
            "server_name: \"a \\\"b\\\"\"",
            "http: \"[::1]:8222\"",
            "password: $OPEN_PW",
            "no_auth_user: \"open\"",
            "system_account: \"SYS\"",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(!text.contains("cluster {"));
        assert_eq!(max_file(&text), Some(12_345));
        assert_eq!(
            (listens(&text).as_deref(), tells(&text).as_deref()),
            (Some("127.0.0.1:4222"), Some("[::1]:8222"))
        );
    }

    #[test]
    fn a_text_that_somebody_changed_is_recognised() {
        let text = text(&conf());
        assert_eq!(author(&text), Author::Us);
        assert_eq!(author(&text.replace("4222", "4333")), Author::Somebody);
        assert_eq!(author(&format!("{text}debug: true\n")), Author::Somebody);
        assert_eq!(author("port: 4222\n"), Author::Somebody);
        assert_eq!(author(""), Author::Somebody);
    }

    #[test]
    fn a_cluster_has_its_routes_and_no_password() {
        let cluster = Cluster {
            name: "c".to_owned(),
            listen: Listen { host: "0.0.0.0".to_owned(), port: 6222 },
            advertise: Some("n1:6222".to_owned()),
            routes: vec![Route::Plain("nats://n1:6222".to_owned()), Route::Variable("ROUTE_1".to_owned())],
            access: Some(("route".to_owned(), "ROUTE_PW".to_owned())),
        };
        let rights = Rights { publish: vec!["a.>".to_owned()], subscribe: vec!["b".to_owned()] };
        let app = Account { name: "PYOCO".to_owned(), users: vec![user("worker", Some(rights))] };
        let text = text(&Conf { cluster: Some(cluster), app, nobody: None, ..conf() });
        assert!(text.contains("\"nats://n1:6222\"") && text.contains("    $ROUTE_1\n"), "{text}");
        assert!(text.contains("authorization { user: \"route\", password: $ROUTE_PW }"), "{text}");
        assert!(text.contains("publish: { allow: [\"a.>\"] }") && !text.contains("no_auth_user"), "{text}");
    }

    #[test]
    fn what_a_server_could_misread_is_refused() {
        assert!(is_plain("n 1") && !is_plain("") && !is_plain("a\nb"));
    }
}
