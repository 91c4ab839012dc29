//! Starting and stopping the long-running programs: `pyoco-server` and `pyoco-worker`.

pub mod arguments;
mod check;
mod doctor;
mod nats;
mod settings;
mod signals;
mod status;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use pyoco_core::notice::Notice;
use pyoco_server::config::{AuthMode, Config, task_environment, without_secrets};
use pyoco_server::{Backend, Functions, Role, Server, ServerOptions, StartError, Worker, logging};
use tokio_util::sync::CancellationToken;

use crate::arguments::parse;
use crate::errors::{Failure, conclude};
use crate::foreground;
use arguments::{ServerArguments, ServerCommand, StandaloneWorkerArguments, UpArguments};
use signals::{Signal, Signals};

/// What to do when NATS is not where it should be.
const NO_NATS: &str = "start NATS there (nats-bootstrap up does), or name it with --nats-url; \
                       pyoco-server up without --nats-url needs none, and has a worker inside";

/// `pyoco-server`.
pub fn server(arguments: Vec<OsString>) -> ExitCode {
    conclude(parse::<ServerArguments>(with_command(arguments)).and_then(|parsed| {
        let Some(ServerArguments { command }) = parsed else { return Ok(()) };
        match command {
            ServerCommand::Up(up) if up.check_config => check::up(&up),
            ServerCommand::Up(up) => run(async move { serve(&up).await }, |error| {
                let failure =
                    Failure::new(format!("[pyoco-server][{}] {error}", Notice::InvalidArguments.err_id()));
                if matches!(error, StartError::Nats(_)) { failure.hint(NO_NATS) } else { failure }
            }),
            ServerCommand::Status(status) => foreground::run(status::show(status)),
            ServerCommand::Doctor(doctor) => foreground::run(doctor::examine(doctor)),
            ServerCommand::CheckConfig(check) => check::settings(&check),
            ServerCommand::Config(settings) => settings::explain(&settings),
        }
    }))
}

/// `pyoco-worker`.
pub fn worker(arguments: Vec<OsString>) -> ExitCode {
    conclude(parse::<StandaloneWorkerArguments>(arguments).and_then(|parsed| match parsed {
        Some(parsed) if parsed.check_config => check::worker(&parsed),
        Some(parsed) => run(async move { work(&parsed).await }, |error| {
            let hint = if matches!(error, StartError::Nats(_)) { NO_NATS } else { "pyoco-worker --help" };
            Failure::arguments(error.to_string()).usage("pyoco-worker [OPTIONS]").hint(hint)
        }),
        None => Ok(()),
    }))
}

/// Runs a program to its end.
fn run(
    program: impl Future<Output = Result<Signal, StartError>> + Send + 'static,
    said: impl FnOnce(StartError) -> Failure,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads())
        .enable_all()
        .build()
        .map_err(Failure::unexpected)?;
    // Not here: each wake-up of this thread by one of the runtime's would be one of the system's.
    let program = runtime.spawn(program);
    match runtime.block_on(program).map_err(Failure::unexpected)? {
        Ok(Signal::Terminate) => Ok(()),
        Ok(Signal::Interrupt) => Err(Failure::interrupted()),
        Err(error) => Err(said(error)),
    }
}

/// Half of the cores: the rest is for the disk's writers, the tasks' own processes and a NATS server beside us. With as many threads
/// as cores each request costs more (ADR 0029).
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// No command, or only options, mean `up`.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let asks = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).and_then(|argument| argument.to_str());
    if first.is_none_or(|first| first.starts_with('-') && !asks.contains(&first)) {
        arguments.insert(1.min(arguments.len()), OsString::from("up"));
    }
    arguments
}

async fn serve(up: &UpArguments) -> Result<Signal, StartError> {
    let mut config = Config::from_env()?;
    up.apply(&mut config);
    logging::start(&config.log);
    let signals = Signals::listen()?;
    let beside = nats::start(up, &mut config).await?;
    let served = serve_on(up, config, signals).await;
    if let Some(beside) = beside {
        beside.stop().await;
    }
    served
}

async fn serve_on(up: &UpArguments, config: Config, mut signals: Signals) -> Result<Signal, StartError> {
    let data = match &config.nats_url {
        Some(url) => format!("in NATS at {}", without_secrets(url)),
        None => config.data_dir.display().to_string(),
    };
    let options: ServerOptions = up.options(&config, task_environment());
    let has_worker = options.worker.is_some();
    let keys = match config.auth_mode {
        AuthMode::None => "not asked for",
        AuthMode::ApiKey => "asked for; pyoco-server-admin makes them",
    };
    let server = Server::start(config, options, Functions::new()).await?;
    let address = server.address();
    say(&format!("pyoco-server {} is up: http://{address}", env!("CARGO_PKG_VERSION")));
    if server.backend().has_dashboard() {
        say(&format!("  dashboard http://{address}/"));
    } else {
        say("  dashboard not in this build; `make dashboard` makes it, then build again");
    }
    say(&format!("  API       http://{address}/docs"));
    say(&format!("  data      {data}"));
    say(&format!("  API keys  {keys}"));
    say(&format!(
        "  worker    {}",
        if has_worker { "in this process" } else { "none here; start one with pyoco-worker" }
    ));
    say("  stop with Ctrl-C; running tasks may finish, a second Ctrl-C ends them");
    let signal = tokio::select! {
        signal = signals.next() => signal,
        () = server.backend().store_gave_up() => return Err(StartError::StoreGaveUp),
    };
    say("stopping; press Ctrl-C again to end running tasks at once");
    let hurry = CancellationToken::new();
    let _second = signals.cancel_on_next(hurry.clone());
    server.stop_or_hurry(hurry).await?;
    Ok(signal)
}

async fn work(arguments: &StandaloneWorkerArguments) -> Result<Signal, StartError> {
    let mut config = Config::from_env()?;
    arguments.apply(&mut config);
    logging::start(&config.log);
    config.warn_of_unknown();
    let mut signals = Signals::listen()?;
    let backend = Backend::open_as(config, Role::Worker(arguments.worker.worker_id.clone())).await?;
    if let Some(address) = &backend.config().worker_metrics_addr {
        backend.tell_figures(address).await?;
    }
    let worker = Worker::on(&backend, Functions::new(), arguments.worker.options(task_environment()))?;
    worker.check().await?;
    if !arguments.run_once {
        say(&greeting(arguments, backend.config()));
    }
    let working = async {
        if arguments.run_once {
            worker.run_once(Duration::from_secs_f64(arguments.poll_timeout)).await?;
        } else {
            worker.run().await;
        }
        Ok::<(), StartError>(())
    };
    tokio::pin!(working);
    let ended = tokio::select! {
        done = &mut working => {
            done?;
            Signal::Terminate
        }
        signal = signals.next() => {
            // What is in hand may finish; what does not in time goes to another worker.
            let (closed, worked) = tokio::join!(worker.close(), working);
            closed.and(worked)?;
            signal
        }
    };
    worker.close().await?;
    backend.close().await?;
    Ok(ended)
}

/// Who it is, what it takes, and from where.
fn greeting(arguments: &StandaloneWorkerArguments, config: &Config) -> String {
    let tags = match &arguments.worker.tags {
        Some(tags) => tags.0.join(", "),
        None => config.default_tag.to_string(),
    };
    let place = match &config.nats_url {
        Some(url) => without_secrets(url),
        None => config.data_dir.display().to_string(),
    };
    let name = &arguments.worker.worker_id;
    format!("pyoco-worker {name} takes runs with tag {tags} from {place}; stop with Ctrl-C")
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
