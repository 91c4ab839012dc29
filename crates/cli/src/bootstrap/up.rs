//! `up` and `join`: a server in the foreground or in the background, on its own or in a cluster.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use pyoco_bootstrap::conf::Author;
use pyoco_bootstrap::find::Binary;
use pyoco_bootstrap::pidfile::{self, Identity, Named};
use pyoco_bootstrap::plan::Plan;
use pyoco_bootstrap::process::{self, Launch, Listening};
use pyoco_bootstrap::seed::Seed;
use pyoco_bootstrap::setup::{self, Prepared, Wish};
use pyoco_bootstrap::version::Verdict;
use pyoco_bootstrap::{doctor, ports};
use serde_json::json;
use tokio::process::Child;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::arguments::{Common, Form, Join, Place, Up};
use super::wish::{plan, server_name, wish};
use super::{binary, joined, raise, refused, service};
use crate::errors::{Failure, conclude};
use crate::output;

/// How long a server in the background may take to listen.
const START: Duration = Duration::from_secs(30);
/// How long copies may take to be whole after a server has joined.
const JOINED: Duration = Duration::from_secs(120);
/// How long one may take to end before it is killed.
pub(super) const END: Duration = Duration::from_secs(30);

/// Runs a program that hears signals itself; its exit code is the server's.
pub(super) fn run(program: impl Future<Output = Result<u8, Failure>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return conclude(Err(Failure::unexpected(error))),
    };
    let ended = runtime.block_on(program);
    runtime.shutdown_background();
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => conclude(Err(failure)),
    }
}

/// How a server is started.
enum Mode {
    /// With arguments only, or with a configuration of somebody's.
    Plain(Vec<std::ffi::OsString>),
    /// With a configuration of ours, or one that somebody has made of it.
    Ours(Box<Wish>, Prepared),
}

/// What is to come of it when it runs.
struct After {
    /// How long it may take to find the others.
    patience: Duration,
    /// On how many servers existing streams are to stand then.
    replicas: Option<usize>,
}

/// Being told to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal is gone: the server would stay behind without anybody who waits for it.
    hangup: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::unexpected);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }
}

pub(super) async fn up(common: &Common, up: Up) -> Result<u8, Failure> {
    if up.form.service {
        return service::of_this_call(common, &up.form.service_name).map(|()| 0);
    }
    let plan = plan(&up.form)?;
    let cluster = up.cluster.clone().or_else(|| plan.as_ref().map(|plan| plan.cluster.clone()));
    let wished = cluster.map(|name| (name, Vec::new()));
    start(common, &up.form, plan, wished, None).await
}

pub(super) async fn join(common: &Common, join: Join) -> Result<u8, Failure> {
    if join.form.service {
        return service::of_this_call(common, &join.form.service_name).map(|()| 0);
    }
    if join.seed.is_empty() {
        let hint = "nats-bootstrap join --seed nats://HOST:6222";
        return Err(refused("--seed is required").hint(hint));
    }
    let plan = plan(&join.form)?;
    let wanted = join.cluster.clone().or_else(|| plan.as_ref().map(|plan| plan.cluster.clone()));
    let name =
        joined::cluster_of(&join.seed, wanted.as_deref(), &server_name(&join.form, plan.as_ref())).await?;
    let replicas = join.raise_replicas.as_deref().and_then(|number| number.parse().ok());
    start(common, &join.form, plan, Some((name, join.seed.clone())), replicas).await
}

async fn start(
    common: &Common,
    form: &Form,
    plan: Option<Plan>,
    cluster: Option<(String, Vec<Seed>)>,
    replicas: Option<usize>,
) -> Result<u8, Failure> {
    let after = After { patience: Duration::from_secs(form.wait_sec), replicas };
    let binary = usable(common, form).await?;
    // Before anything is started: from here on a signal does not leave it behind.
    let signals = Signals::listen()?;
    let own_pid_file = own_pid_file(form);
    clear(&common.pid_file)?;
    let mode = mode(form, plan, cluster, &binary).await?;
    let (mut arguments, env) = match &mode {
        Mode::Plain(arguments) => (arguments.clone(), Vec::new()),
        Mode::Ours(_, prepared) => {
            let mut arguments = vec!["-c".into(), prepared.conf.clone().into_os_string()];
            arguments.extend(form.arguments.iter().cloned());
            (arguments, prepared.env.clone())
        }
    };
    // It vanishes as soon as the server has said where it listens.
    let told = tempfile::tempdir().map_err(Failure::unexpected)?;
    if form.background {
        arguments.extend(process::telling(told.path()));
    }
    let log = form.background.then(|| match &mode {
        Mode::Plain(_) => PathBuf::from("nats-server.log"),
        Mode::Ours(wish, _) => wish.folder.log(),
    });
    let lock = match &mode {
        Mode::Plain(_) => None,
        Mode::Ours(wish, _) => Some(wish.folder.lock()),
    };
    let (binary, is_detached) = (binary.path, form.background);
    let shown = binary.display().to_string();
    let launch = Launch { binary, arguments, env, log: log.clone(), lock, is_detached };
    let cannot = |error: std::io::Error| Failure::new(format!("cannot start {shown}: {error}"));
    let mut child = launch.start().map_err(cannot)?;
    let identity = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Identity::of);
    if let Some(identity) = identity.as_ref().filter(|_| !own_pid_file)
        && let Err(error) = pidfile::claim(&common.pid_file, identity)
    {
        let _ = child.kill().await;
        return Err(Failure::file(&common.pid_file.to_string_lossy(), &error));
    }
    said(&mode);
    if !form.background {
        return watch(child, identity, &common.pid_file, &mode, &after, signals).await;
    }
    match process::listening(&mut child, told.path(), START).await {
        Ok(listening) => settled(common, &mode, identity.as_ref(), &listening, log.as_deref(), &after).await,
        Err(why) => {
            stop(&mut child, identity.as_ref(), &common.pid_file).await;
            let words = log.as_deref().and_then(process::last_words);
            let failure =
                Failure::new(words.map_or_else(|| why.to_string(), |words| format!("{why}: {words}")));
            Err(match &log {
                Some(log) => failure.hint(format!("see {}", log.display())),
                None => failure,
            })
        }
    }
}

/// The program, if it is none that loses data.
async fn usable(common: &Common, form: &Form) -> Result<Binary, Failure> {
    let binary = binary::found(common).await?;
    let finding = doctor::of_version(&binary.version);
    let fix = finding.fix.unwrap_or_default();
    match binary.version.verdict() {
        Verdict::Good => {}
        Verdict::Bad(_) if form.allow_known_bad => {
            output::aside(&format!("warning: {}; {fix}", finding.what))
        }
        Verdict::Aged(_) => output::aside(&format!("warning: {}; {fix}", finding.what)),
        Verdict::Bad(_) | Verdict::TooOld => return Err(Failure::new(finding.what).hint(fix)),
    }
    Ok(binary)
}

/// Whether the server was told to write its number itself.
fn own_pid_file(form: &Form) -> bool {
    let arguments: Vec<String> =
        form.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    pidfile::pid_argument(&arguments).is_some()
}

/// A file that names a process which is gone goes too; one that names a process which runs stays, and so does the process.
fn clear(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let removed = |why: String| {
        output::aside(&format!("{shown} is stale: {why}"));
        std::fs::remove_file(path).map_err(|error| Failure::file(&path.to_string_lossy(), &error))
    };
    match pidfile::read(path) {
        Named::Nobody => Ok(()),
        Named::Ended(pid) => removed(format!("pid {pid} has ended")),
        Named::Another(pid, name) => removed(format!("pid {pid} is {name} now, which is left alone")),
        Named::Ours(process) => Err(Failure::new(format!("{process} runs already, says {shown}"))
            .hint("nats-bootstrap down --confirm stops it; another server needs another --pid-file")),
        Named::Unproven(pid, name) => Err(Failure::new(format!("{shown} names {name} (pid {pid}), and does not say when that was started"))
            .hint("look whether it is a nats-server of yours, stop it, and remove the file; or give another --pid-file")),
        Named::Unreadable(why) => {
            Err(Failure::new(format!("{shown}: {why}")).hint("remove it, or give another --pid-file"))
        }
    }
}

async fn mode(
    form: &Form,
    plan: Option<Plan>,
    cluster: Option<(String, Vec<Seed>)>,
    binary: &Binary,
) -> Result<Mode, Failure> {
    if let Some(file) = &form.nats_config {
        if !file.is_file() {
            return Err(refused(format!("nats config not found: {}", file.display())));
        }
        let mut arguments = vec!["-c".into(), file.clone().into_os_string()];
        arguments.extend(form.arguments.iter().cloned());
        return Ok(Mode::Plain(arguments));
    }
    let has_form = form.datafolder.is_some()
        || form.server_name.is_some()
        || form.client_port.is_some()
        || form.http_port.is_some()
        || form.listen.is_some()
        || form.with_users
        || form.tls_cert.is_some()
        || form.max_file_mib.is_some();
    if !form.arguments.is_empty() && !has_form && plan.is_none() && cluster.is_none() {
        return Ok(Mode::Plain(form.arguments.clone()));
    }
    let wish = wish(form, plan, cluster)?;
    // Before anything of it is written anew.
    let folder = wish.folder.path();
    let is_in_use =
        wish.folder.is_in_use().map_err(|error| Failure::file(&folder.to_string_lossy(), &error))?;
    if is_in_use {
        let why = format!("a server runs on {}: two on the same folder would destroy it", folder.display());
        return Err(Failure::new(why).hint("stop it first, or give another --datafolder"));
    }
    let taken = |error: ports::Refused| Failure::new(error.to_string());
    ports::is_free(&wish.client.host, wish.client.port).map_err(taken)?;
    ports::is_free(&wish.http.host, wish.http.port).map_err(taken)?;
    if let Some(cluster) = &wish.cluster {
        ports::is_free(&cluster.listen.host, cluster.listen.port).map_err(taken)?;
    }
    // The names of streams and buckets are this product's settings, as for the programs themselves.
    let config = pyoco_server::Config::from_env().map_err(|error| Failure::arguments(error.to_string()))?;
    let names = pyoco_server::nats_settings(&config, &pyoco_server::Role::Admin);
    let prepared = setup::prepare(&wish, &names).map_err(|error| Failure::new(error.to_string()))?;
    setup::check(&binary.path, &prepared).await.map_err(|why| {
        Failure::new(format!("nats-server does not take {}: {why}", prepared.conf.display()))
    })?;
    Ok(Mode::Ours(Box::new(wish), prepared))
}

/// What people should know before they read the server's own words.
fn said(mode: &Mode) {
    let Mode::Ours(_, prepared) = mode else { return };
    let conf = prepared.conf.display();
    match prepared.author {
        Author::Us => output::aside(&format!("configuration: {conf}")),
        Author::Somebody => {
            output::aside(&format!(
                "configuration: {conf} was changed by hand and is used as it is; flags change nothing in it"
            ));
        }
    }
    for path in &prepared.programs {
        output::aside(&format!("for a program: PYOCO_ENV_FILE={}", path.display()));
    }
}

/// Waits for the end of a server in the foreground.
async fn watch(
    mut child: Child,
    identity: Option<Identity>,
    pid_file: &Path,
    mode: &Mode,
    after: &After,
    mut signals: Signals,
) -> Result<u8, Failure> {
    let told = async {
        if let Mode::Ours(wish, _) = mode {
            joined::tell(wish, after.patience).await;
        }
        std::future::pending::<()>().await;
    };
    let code = tokio::select! {
        ended = child.wait() => ended.map(code_of).map_err(Failure::unexpected),
        _ = signals.interrupt.recv() => Ok(130),
        _ = signals.terminate.recv() => Ok(0),
        _ = signals.hangup.recv() => Ok(0),
        () = told => Ok(0),
    };
    stop(&mut child, identity.as_ref(), pid_file).await;
    code
}

fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Ends a server of this process, and forgets it.
async fn stop(child: &mut Child, identity: Option<&Identity>, pid_file: &Path) {
    let Some(identity) = identity else { return };
    if child.id().is_some() {
        let (stopped, _) = tokio::join!(process::stop(identity, END), child.wait());
        if let Err(error) = stopped {
            output::aside(&format!("it was not stopped: {error}"));
            return;
        }
    }
    if let Err(error) = pidfile::release(pid_file, identity) {
        output::aside(&format!("{}: {error}", pid_file.display()));
    }
}

/// A server in the background listens; in a cluster it must find the others too.
async fn settled(
    common: &Common,
    mode: &Mode,
    identity: Option<&Identity>,
    listening: &Listening,
    log: Option<&Path>,
    after: &After,
) -> Result<u8, Failure> {
    let (cluster, seeds) = match mode {
        Mode::Ours(wish, _) => {
            (wish.cluster.as_ref(), wish.cluster.as_ref().map_or(0, |cluster| cluster.seeds.len()))
        }
        Mode::Plain(_) => (None, 0),
    };
    let http = listening.monitoring.first().cloned();
    let state = match (&http, cluster) {
        (Some(http), Some(_)) if seeds > 0 => Some(joined::wait(http, after.patience).await),
        (_, _) => None,
    };
    let pid = identity.map(|identity| identity.pid);
    let client = listening.nats.first().cloned();
    let report = json!({
        "pid": pid, "client_url": client, "http_url": http, "log": log,
        "cluster": cluster.map(|cluster| &cluster.name), "pid_file": common.pid_file,
        "leader": state.as_ref().and_then(|state| state.as_ref().ok()),
    });
    if common.json {
        output::json(&report)?;
    } else {
        output::line("up: ok")?;
        for (name, value) in
            [("pid", pid.map(|pid| pid.to_string())), ("client", client.clone()), ("http", http.clone())]
        {
            output::line(&format!("{name}: {}", value.unwrap_or_else(|| "-".to_owned())))?;
        }
        if let Some(log) = log {
            output::line(&format!("log: {}", log.display()))?;
        }
    }
    if let (Some(cluster), 0) = (cluster, seeds) {
        let own = setup::reached(&cluster.listen).address();
        output::aside(&format!(
            "a cluster stores nothing before a second server is there: nats-bootstrap join --seed nats://{own}"
        ));
    }
    if let Some(Err(why)) = state {
        return Err(why);
    }
    if let (Some(replicas), Some(_)) = (after.replicas, &client) {
        raise::all(&place_of(mode, client.as_deref().unwrap_or_default()), replicas, JOINED).await?;
    }
    Ok(0)
}

/// Who we are to a server that we have just started.
fn place_of(mode: &Mode, client: &str) -> Place {
    let credentials_of = match mode {
        Mode::Ours(wish, _) => Some(wish.folder.path().to_owned()),
        Mode::Plain(_) => None,
    };
    Place { nats_url: Some(client.to_owned()), creds: None, context: None, credentials_of }
}
