//! `--with-nats-bootstrap`: a nats-server of our own beside the gateway, started first and stopped last.

use std::fs::{File, TryLockError};
use std::net::IpAddr;

use pyoco_bootstrap::conf::Listen;
use pyoco_bootstrap::folder::Folder;
use pyoco_bootstrap::process::Launch;
use pyoco_bootstrap::setup::{self, Doors, Wish};
use pyoco_bootstrap::supervise::{self, Supervised};
use pyoco_bootstrap::version::Verdict;
use pyoco_bootstrap::{doctor, find, pidfile, ports};
use pyoco_server::{Config, Role, StartError, nats_settings};

use super::arguments::UpArguments;
use crate::bootstrap::{how_to_install, places};

/// The folder of the server, in the data folder.
const FOLDER: &str = "nats";
/// Whoever has this file locked has the server.
const LOCK: &str = "lock";

/// The nats-server beside this process.
pub(super) struct Beside {
    server: Supervised,
    /// Until this is dropped nobody else takes the folder for that of a server that was left behind.
    _lock: File,
}

impl Beside {
    pub(super) async fn stop(self) {
        self.server.stop().await;
    }
}

fn refused(why: impl Into<String>) -> StartError {
    StartError::Other(why.into().into())
}

fn url(up: &UpArguments) -> String {
    let listen = Listen { host: up.nats_listen_host.clone(), port: up.nats_client_port };
    format!("nats://{}", setup::reached(&listen).address())
}

/// What is wrong with the flags themselves.
pub(super) fn mistake(up: &UpArguments, config: &Config) -> Option<String> {
    if !up.with_nats_bootstrap {
        return None;
    }
    let url = url(up);
    if let Some(other) = config.nats_url.as_deref().filter(|other| *other != url) {
        let other = pyoco_server::config::without_secrets(other);
        return Some(format!(
            "--with-nats-bootstrap starts a nats-server at {url}, and --nats-url or PYOCO_NATS_URL says {other}; leave one of them out"
        ));
    }
    let host = &up.nats_listen_host;
    let is_loopback = host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    if !is_loopback && !up.allow_unauthenticated {
        return Some(format!(
            "others can reach a nats-server at {host}, and nobody is asked for a password; use nats-bootstrap up --with-users, or say --allow-unauthenticated"
        ));
    }
    None
}

/// Starts it, if it is wanted, and lets the configuration point there.
pub(super) async fn start(up: &UpArguments, config: &mut Config) -> Result<Option<Beside>, StartError> {
    if !up.with_nats_bootstrap {
        return Ok(None);
    }
    if let Some(mistake) = mistake(up, config) {
        return Err(refused(mistake));
    }
    let search = find::find(&places(None, None)).await;
    let binary =
        search.found.ok_or_else(|| refused(format!("nats-server not found; {}", how_to_install())))?;
    let finding = doctor::of_version(&binary.version);
    match binary.version.verdict() {
        Verdict::Good => {}
        Verdict::Aged(_) => tracing::warn!("{}", finding.what),
        Verdict::Bad(_) | Verdict::TooOld => {
            return Err(refused(format!("{}; {}", finding.what, finding.fix.unwrap_or_default())));
        }
    }
    let folder = Folder::new(&config.data_dir.join(FOLDER)).map_err(|error| refused(error.to_string()))?;
    let unusable = |error: std::io::Error| refused(format!("{}: {error}", folder.path().display()));
    folder.make().map_err(unusable)?;
    let lock = File::create(folder.path().join(LOCK)).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let shown = config.data_dir.display();
            return Err(refused(format!(
                "another pyoco-server has its nats-server in {shown}; stop that one, or give another --data-dir"
            )));
        }
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let pid_file = folder.path().join(pidfile::NAME);
    supervise::clear(&pid_file).await.map_err(|error| refused(error.to_string()))?;
    let listen = |host: &str, port: u16| Listen { host: host.to_owned(), port };
    let client = listen(&up.nats_listen_host, up.nats_client_port);
    let http = listen("127.0.0.1", up.nats_http_port);
    for one in [&client, &http] {
        ports::is_free(&one.host, one.port).map_err(|error| refused(error.to_string()))?;
    }
    let wish = Wish {
        server_name: setup::usual_name(client.port),
        client: client.clone(),
        http: http.clone(),
        client_advertise: None,
        tls: None,
        max_file: None,
        doors: Doors::Open,
        cluster: None,
        folder,
    };
    let names = nats_settings(config, &Role::Admin);
    let prepared = setup::prepare(&wish, &names).map_err(|error| refused(error.to_string()))?;
    setup::check(&binary.path, &prepared).await.map_err(refused)?;
    let launch = Launch {
        binary: binary.path,
        arguments: vec!["-c".into(), prepared.conf.into_os_string()],
        env: prepared.env,
        log: Some(wish.folder.log()),
        lock: Some(wish.folder.lock()),
        // Ctrl-C is for the gateway, which then stops it when nobody needs it any more.
        is_detached: true,
    };
    let server = supervise::Server { launch, address: setup::reached(&client).address(), pid_file };
    let server = server.up().await.map_err(|error| refused(error.to_string()))?;
    config.nats_url = Some(url(up));
    config.nats_access.monitor.get_or_insert_with(|| format!("http://{}", http.address()));
    Ok(Some(Beside { server, _lock: lock }))
}
