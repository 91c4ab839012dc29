//! Everything that a server needs before it is started: its folder, its passwords, its configuration. What somebody has changed by hand
//! stays.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use pyoco_store_nats::Settings;
use pyoco_store_nats::rights::{Party, Rights};
use tokio::process::Command;

use crate::conf::{self, Account, Author, Cluster, Conf, Listen, Route, Tls, User};
use crate::credentials::{Credentials, Holder};
use crate::folder::{self, Folder, Past};
use crate::plan::PlannedAccount;
use crate::seed::Seed;

/// The account of servers, and its user.
pub const SYSTEM: (&str, &str) = ("SYS", "sys");
/// The account of this product. It is always this one: who may enter can be changed later, where things are stored cannot.
const APP: &str = "PYOCO";
/// Who somebody is who is not asked.
const OPEN: &str = "pyoco";
/// The user of other servers.
const ROUTE: &str = "route";
/// In memory there are only small things.
pub const MAX_MEMORY: u64 = 256 << 20;
/// What a disk that cannot be looked at is believed to have.
const SOME: u64 = 10 << 30;

/// What is wanted of a server.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Where it keeps its things.
    pub folder: Folder,
    /// Its name.
    pub server_name: String,
    /// Where clients come.
    pub client: Listen,
    /// Where it tells about itself.
    pub http: Listen,
    /// Where others are told that clients come.
    pub client_advertise: Option<String>,
    /// Certificates.
    pub tls: Option<Tls>,
    /// How much it may store in files; nothing: as before, or three quarters of the room.
    pub max_file: Option<u64>,
    /// Who may enter.
    pub doors: Doors,
    /// The cluster.
    pub cluster: Option<WishedCluster>,
}

/// Who may enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doors {
    /// Whoever can reach it.
    Open,
    /// A user for each program, with the rights it needs.
    Users,
    /// The accounts that a plan names, with passwords of its own.
    Planned {
        /// Whoever looks after servers.
        system: PlannedAccount,
        /// Everybody else.
        app: PlannedAccount,
    },
}

/// The cluster that a server is to be part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WishedCluster {
    /// Its name.
    pub name: String,
    /// Where other servers come.
    pub listen: Listen,
    /// Where others are told that they do.
    pub advertise: Option<String>,
    /// Where others are.
    pub seeds: Vec<Seed>,
}

/// What is there now.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The configuration.
    pub conf: PathBuf,
    /// Who wrote it.
    pub author: Author,
    /// What the server must find in its environment.
    pub env: Vec<(String, String)>,
    /// Files for the programs, to be named by `PYOCO_ENV_FILE`.
    pub programs: Vec<PathBuf>,
}

/// Why a server cannot be started like this.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The folder cannot be used.
    #[error("{}: {source}", .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A cluster would not see what is stored there.
    #[error(
        "{} holds streams of a server on its own, and a cluster would not see them; back them up (nats-bootstrap backup --output DIR), start the cluster with another --datafolder, and restore them there",
        .0.display()
    )]
    WasAlone(PathBuf),
    /// A server on its own would go on with what may be old.
    #[error(
        "{} belongs to a server of a cluster; start it with --cluster or join, as before, or use another --datafolder",
        .0.display()
    )]
    WasClustered(PathBuf),
    /// All servers of a cluster have the same passwords.
    #[error("{} is missing: copy it from the first server of the cluster, so that all have the same passwords", .0.display())]
    NoCredentials(PathBuf),
    /// A text that no configuration can hold.
    #[error("{0:?} cannot stand in a configuration")]
    NotPlain(String),
}

/// Puts everything there. `names` are those of the streams and buckets, for the rights of users.
pub fn prepare(wish: &Wish, names: &Settings) -> Result<Prepared, SetupError> {
    let folder = &wish.folder;
    let failed = |path: PathBuf| move |source| SetupError::Folder { path, source };
    for text in [&wish.server_name, &wish.client.host, &wish.http.host] {
        if !conf::is_plain(text) {
            return Err(SetupError::NotPlain(text.clone()));
        }
    }
    match (folder.past(), &wish.cluster) {
        (Past::Alone, Some(_)) => return Err(SetupError::WasAlone(folder.path().to_owned())),
        (Past::Clustered, None) => return Err(SetupError::WasClustered(folder.path().to_owned())),
        (Past::Alone | Past::Empty, None) | (Past::Clustered | Past::Empty, Some(_)) => {}
    }
    folder.make().map_err(failed(folder.path().to_owned()))?;
    let credentials = match Credentials::of(folder).map_err(failed(folder.credentials()))? {
        Some(known) => known,
        None if must_be_shared(wish) => return Err(SetupError::NoCredentials(folder.credentials())),
        None => Credentials::ensure(folder).map_err(failed(folder.credentials()))?,
    };
    let mut env: Vec<(String, String)> =
        credentials.variables().map(|(name, password)| (name.to_owned(), password.to_owned())).collect();
    let path = folder.conf();
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(SetupError::Folder { path, source }),
    };
    let conf = wished(wish, names, before.as_deref(), &credentials, &mut env);
    let author = before.as_deref().map_or(Author::Us, conf::author);
    if author == Author::Us {
        folder::write(&path, &conf::text(&conf)).map_err(failed(path.clone()))?;
    }
    let programs = match &wish.doors {
        Doors::Users => {
            let url = format!("nats://{}", reached(&wish.client).address());
            credentials.write_for_programs(folder, &url).map_err(failed(folder.path().to_owned()))?
        }
        Doors::Open | Doors::Planned { .. } => {
            // Their users do not exist any more. The passwords stay, should they come back.
            Credentials::remove_for_programs(folder).map_err(failed(folder.path().to_owned()))?;
            Vec::new()
        }
    };
    Ok(Prepared { conf: path, author, env, programs })
}

/// Whether the passwords must be those of the other servers: it joins them, and they ask.
fn must_be_shared(wish: &Wish) -> bool {
    wish.doors == Doors::Users && wish.cluster.as_ref().is_some_and(|cluster| !cluster.seeds.is_empty())
}

/// What a server of this machine is called, unless somebody says otherwise. Several on one machine differ by their ports.
pub fn usual_name(client_port: u16) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim().replace(char::is_whitespace, "-");
    let host = if host.is_empty() { "nats".to_owned() } else { host };
    if client_port == 4222 { host } else { format!("{host}-{client_port}") }
}

/// Where a server is reached from its own machine that listens everywhere.
pub fn reached(listen: &Listen) -> Listen {
    let host = match listen.host.as_str() {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    Listen { host: host.to_owned(), port: listen.port }
}

fn wished(
    wish: &Wish,
    names: &Settings,
    before: Option<&str>,
    credentials: &Credentials,
    env: &mut Vec<(String, String)>,
) -> Conf {
    let user = |name: &str, holder: Holder, rights: Option<Rights>| User {
        name: name.to_owned(),
        password_env: holder.variable().to_owned(),
        rights,
    };
    let planned = |account: &PlannedAccount| Account {
        name: account.name.clone(),
        users: vec![User {
            name: account.user.clone(),
            password_env: account.password_env.clone(),
            rights: None,
        }],
    };
    let system = Account { name: SYSTEM.0.to_owned(), users: vec![user(SYSTEM.1, Holder::System, None)] };
    let (system, app, nobody) = match &wish.doors {
        Doors::Open => {
            let app = Account { name: APP.to_owned(), users: vec![user(OPEN, Holder::Open, None)] };
            (system, app, Some(OPEN.to_owned()))
        }
        Doors::Users => {
            let users = Party::ALL
                .map(|party| user(party.user(), Holder::Party(party), Some(Rights::of(party, names))))
                .into();
            (system, Account { name: APP.to_owned(), users }, None)
        }
        Doors::Planned { system, app } => (planned(system), planned(app), None),
    };
    // A limit that was set once stays: the room shrinks as it is used.
    let kept = before.filter(|text| conf::author(text) == Author::Us).and_then(conf::max_file);
    let some = || folder::room(wish.folder.path()).map_or(SOME, |room| room / 4 * 3);
    Conf {
        server_name: wish.server_name.clone(),
        client: wish.client.clone(),
        http: wish.http.clone(),
        client_advertise: wish.client_advertise.clone(),
        store: wish.folder.store(),
        max_memory: MAX_MEMORY,
        max_file: wish.max_file.or(kept).unwrap_or_else(some),
        tls: wish.tls.clone(),
        system,
        app,
        nobody,
        cluster: wish.cluster.as_ref().map(|cluster| clustered(wish, cluster, credentials, env)),
    }
}

fn clustered(
    wish: &Wish,
    cluster: &WishedCluster,
    credentials: &Credentials,
    env: &mut Vec<(String, String)>,
) -> Cluster {
    let own = reached(&cluster.listen);
    let own = Seed { host: own.host, port: own.port };
    let seeds = cluster.seeds.iter().filter(|seed| **seed != own).chain([&own]);
    let has_users = wish.doors == Doors::Users;
    let routes = seeds.enumerate().map(|(number, seed)| {
        if !has_users {
            return Route::Plain(seed.route(None));
        }
        let name = format!("NATS_BOOTSTRAP_ROUTE_{number}");
        let address = seed.route(Some((ROUTE, credentials.password(Holder::Route))));
        env.push((name.clone(), format!("\"{address}\"")));
        Route::Variable(name)
    });
    Cluster {
        name: cluster.name.clone(),
        listen: cluster.listen.clone(),
        advertise: cluster.advertise.clone(),
        routes: routes.collect(),
        access: has_users.then(|| (ROUTE.to_owned(), Holder::Route.variable().to_owned())),
    }
}

/// Has the program itself look whether it understands a configuration.
pub async fn check(binary: &Path, prepared: &Prepared) -> Result<(), String> {
    let mut command = Command::new(binary);
    command.arg("-t").arg("-c").arg(&prepared.conf).stdin(Stdio::null()).kill_on_drop(true);
    command.envs(prepared.env.iter().map(|(name, value)| (name, value)));
    let output = command.output().await.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    Err(line.trim_start_matches("nats-server: ").chars().take(500).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(port: u16) -> Listen {
        Listen { host: "127.0.0.1".to_owned(), port }
    }

    fn wish(folder: &Path) -> Wish {
        Wish {
            folder: Folder::new(folder).unwrap(),
            server_name: "n1".to_owned(),
            client: listen(4222),
            http: listen(8222),
            client_advertise: None,
            tls: None,
            max_file: None,
            doors: Doors::Open,
            cluster: None,
        }
    }

    fn cluster(seeds: &[&str]) -> Option<WishedCluster> {
        let seeds = seeds.iter().map(|seed| seed.parse().unwrap()).collect();
        Some(WishedCluster { name: "c".to_owned(), listen: listen(6222), advertise: None, seeds })
    }

    #[test]
    fn a_configuration_that_somebody_changed_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let (wish, names) = (wish(home.path()), Settings::new(&[]));
        let first = prepare(&wish, &names).unwrap();
        assert_eq!(first.author, Author::Us);
        let text = std::fs::read_to_string(&first.conf).unwrap();
        let limit = conf::max_file(&text).unwrap();
        let again = prepare(&Wish { client: listen(4333), ..wish.clone() }, &names).unwrap();
        let rewritten = std::fs::read_to_string(&again.conf).unwrap();
        assert!(rewritten.contains("4333") && conf::max_file(&rewritten) == Some(limit));
        std::fs::write(&first.conf, format!("{rewritten}debug: true\n")).unwrap();
        let kept = prepare(&wish, &names).unwrap();
        assert_eq!(kept.author, Author::Somebody);
        assert!(std::fs::read_to_string(&kept.conf).unwrap().ends_with("debug: true\n"));
    }

    #[test]
    fn no_password_stands_in_the_configuration() {
        let home = tempfile::tempdir().unwrap();
        let wish = Wish { doors: Doors::Users, cluster: cluster(&[]), ..wish(home.path()) };
        let prepared = prepare(&wish, &Settings::new(&[])).unwrap();
        let text = std::fs::read_to_string(&prepared.conf).unwrap();
        for (name, value) in &prepared.env {
            assert!(!text.contains(value.as_str()), "{name}");
        }
        assert_eq!(prepared.programs.len(), 3);
        let worker = std::fs::read_to_string(home.path().join("worker.env")).unwrap();
        assert!(worker.contains("PYOCO_NATS_INBOX_PREFIX=_INBOX_worker"), "{worker}");
    }

    #[test]
    fn what_would_hide_or_split_what_is_stored_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let names = Settings::new(&[]);
        let alone = wish(home.path());
        let joining = Wish { cluster: cluster(&["nats://n9:6222"]), ..alone.clone() };
        let users = Wish { doors: Doors::Users, ..joining.clone() };
        assert!(matches!(prepare(&users, &names), Err(SetupError::NoCredentials(_))));
        let store = alone.folder.store().join("jetstream");
        std::fs::create_dir_all(store.join("PYOCO/streams/S")).unwrap();
        assert!(matches!(prepare(&joining, &names), Err(SetupError::WasAlone(_))));
        prepare(&alone, &names).unwrap();
        std::fs::create_dir_all(store.join("SYS/_js_/_meta_")).unwrap();
        assert!(matches!(prepare(&alone, &names), Err(SetupError::WasClustered(_))));
        prepare(&joining, &names).unwrap();
    }
}
