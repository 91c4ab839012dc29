//! Who is let in, and over which line: tokens, users, credentials files and TLS, against real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ground::{append, server, server_with, settings, texts};
use nkeys::KeyPair;
use pyoco_store_nats::{Access, NatsStore, OpenError, Settings, Tls};
use pyoco_testing_nats::NatsServer;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer};
use serde_json::{Value, json};

/// Opens a store that must work.
async fn works(settings: Settings) {
    let store = NatsStore::open(settings, None).await.unwrap();
    // Not the first one to open it, perhaps.
    let known = texts(&store, "e").await.len();
    append(&store, "e", known as u64, "x").await.unwrap();
    assert_eq!(texts(&store, "e").await.len(), known + 1);
}

/// Opens a store that must be refused; what is said must not hold a secret.
async fn refused(settings: Settings, secret: &str) {
    let error = NatsStore::open(settings, None).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(matches!(error, OpenError::Connect { .. }), "{text}");
    assert!(!text.contains(secret), "{text}");
}

fn with(server: &NatsServer, access: Access) -> Settings {
    Settings { access, ..settings(server) }
}

fn user(user: &str, password: &str) -> Access {
    Access::UserPassword { user: user.to_owned(), password: password.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_and_another_one_does_not() {
    let server = server_with("authorization { token: \"open sesame\" }");
    works(with(&server, Access::Token("open sesame".to_owned()))).await;
    works(Settings::new(&[&format!("nats://open%20sesame@127.0.0.1:{}", server.port())])).await;
    refused(with(&server, Access::Token("open barley".to_owned())), "barley").await;
    refused(settings(&server), "sesame").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_opens_with_the_right_password_also_in_the_address() {
    let server = server_with("authorization { user: me, password: secret }");
    works(with(&server, user("me", "secret"))).await;
    refused(with(&server, user("me", "hush")), "hush").await;
    let address = |password: &str| format!("nats://me:{password}@127.0.0.1:{}", server.port());
    works(Settings::new(&[&address("secret")])).await;
    refused(Settings::new(&[&address("hush")]), "hush").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credentials_file_opens_and_a_missing_or_foreign_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let (operator, account, system) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let server = server_with(&format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {}, {}: {} }}",
        jwt(&operator, &operator, &json!({"type": "operator", "version": 2})),
        system.public_key(),
        account.public_key(),
        jwt(&operator, &account, &json!({"type": "account", "version": 2, "limits": limits(-1)})),
        system.public_key(),
        jwt(&operator, &system, &json!({"type": "account", "version": 2, "limits": limits(0)})),
    ));
    let file = credentials(folder.path(), "mine.creds", &account);
    works(with(&server, Access::Credentials(file))).await;
    let foreign = credentials(folder.path(), "foreign.creds", &KeyPair::new_account());
    refused(with(&server, Access::Credentials(foreign)), "USER NKEY SEED").await;
    let missing = folder.path().join("missing.creds");
    let error =
        NatsStore::open(with(&server, Access::Credentials(missing)), None).await.unwrap_err().to_string();
    assert!(error.contains("missing.creds"), "{error}");
    refused(settings(&server), "SEED").await;
}

fn limits(storage: i64) -> Value {
    json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
           "mem_storage": storage, "disk_storage": storage, "streams": storage, "consumer": storage})
}

/// What one key says about another, as NATS wants it said.
fn jwt(issuer: &KeyPair, subject: &KeyPair, what: &Value) -> String {
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claims = json!({"jti": "x", "iat": 1_700_000_000, "iss": issuer.public_key(), "sub": subject.public_key(),
                        "name": "test", "nats": what});
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let signature = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// The file of a user of an account.
fn credentials(folder: &Path, name: &str, account: &KeyPair) -> PathBuf {
    let user = KeyPair::new_user();
    let what = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        jwt(account, &user, &what),
        user.seed().unwrap()
    );
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Certificates of one authority, as files.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let authority = Self { folder: tempfile::tempdir().unwrap(), issuer: Issuer::new(params, key) };
        std::fs::write(authority.ca(), certificate.pem()).unwrap();
        authority
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The certificate of somebody and its key.
    fn certificate(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let certificate: Certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths =
            (self.folder.path().join(format!("{name}.pem")), self.folder.path().join(format!("{name}.key")));
        std::fs::write(&paths.0, certificate.pem()).unwrap();
        std::fs::write(&paths.1, key.serialize_pem()).unwrap();
        paths
    }

    fn server(&self, more: &str) -> NatsServer {
        let (certificate, key) = self.certificate("server");
        server_with(&format!("tls {{ cert_file: {certificate:?}\n key_file: {key:?}\n {more} }}"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_certificate_is_believed_only_by_its_authority() {
    let authority = Authority::new();
    let server = authority.server("");
    let with = |tls| Settings { tls, ..settings(&server) };
    works(with(Tls { ca: Some(authority.ca()), ..Tls::default() })).await;
    works(with(Tls { required: true, ca: Some(authority.ca()), ..Tls::default() })).await;
    let address = format!("tls://localhost:{}", server.port());
    works(Settings { tls: Tls { ca: Some(authority.ca()), ..Tls::default() }, ..Settings::new(&[&address]) })
        .await;
    refused(with(Tls { ca: Some(Authority::new().ca()), ..Tls::default() }), "PRIVATE").await;
    refused(with(Tls { ca: Some("nowhere.pem".into()), ..Tls::default() }), "PRIVATE").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_want_our_certificate_too() {
    let authority = Authority::new();
    let server = authority.server(&format!("verify: true\n ca_file: {:?}", authority.ca()));
    let with = |client| Settings {
        tls: Tls { required: true, ca: Some(authority.ca()), client },
        ..settings(&server)
    };
    works(with(Some(authority.certificate("client")))).await;
    refused(with(None), "PRIVATE").await;
    let foreign = Authority::new();
    refused(with(Some(foreign.certificate("client"))), "PRIVATE").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wants_tls_does_not_speak_without() {
    let server = server();
    let tls = Tls { required: true, ..Tls::default() };
    refused(Settings { tls, ..settings(&server) }, "PRIVATE").await;
}
