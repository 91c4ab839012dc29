//! `controller start`.

use pyoco_bootstrap::controller::Controller;
use pyoco_bootstrap::credentials::Holder;
use pyoco_bootstrap::setup::SYSTEM;
use pyoco_server::Config;
use pyoco_store_nats::{Access, Settings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{arguments, binary, now, place, refused};
use crate::errors::Failure;
use crate::output;

pub(super) async fn start(options: &arguments::Controller) -> Result<u8, Failure> {
    let mut config = Config::from_env().map_err(|error| Failure::arguments(error.to_string()))?;
    config.nats_url = Some(options.nats_url.clone());
    let settings = system(options, &config)?;
    let folder = options
        .state_dir
        .clone()
        .unwrap_or_else(|| binary::home().join(".nats-bootstrap").join("controller"));
    let controller = Controller::open(settings, &folder, now)
        .map_err(|error| Failure::file(&folder.to_string_lossy(), &error))?;
    let listener = TcpListener::bind(&options.listen).await.map_err(|error| {
        Failure::new(format!("cannot listen on {}: {error}", options.listen)).hint("choose another --listen")
    })?;
    let address = listener.local_addr().map_err(Failure::unexpected)?;
    if !address.ip().to_canonical().is_loopback() {
        output::aside(
            "warning: whoever reaches this address may take servers out of the cluster: let only your servers reach it",
        );
    }
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::unexpected)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::unexpected)?;
    output::aside(&format!("controller: http://{address}"));
    let stopping = CancellationToken::new();
    let serving = controller.serve(listener, stopping.clone());
    tokio::pin!(serving);
    let code = tokio::select! {
        () = &mut serving => 0,
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 0,
    };
    stopping.cancel();
    Ok(code)
}

fn system(options: &arguments::Controller, config: &Config) -> Result<Settings, Failure> {
    if let Some(file) = &options.sys_creds {
        if !file.is_file() {
            return Err(refused(format!("sys creds not found: {}", file.display())));
        }
        let settings = place::settings(config);
        return Ok(Settings { access: Access::Credentials(file.clone()), inbox_prefix: None, ..settings });
    }
    if let Some(folder) = &options.credentials_of {
        let found = place::credentials(Some(folder))?;
        let password = found.map(|(_, credentials)| credentials.password(Holder::System).to_owned());
        return Ok(place::as_system(config, SYSTEM.1.to_owned(), password.unwrap_or_default()));
    }
    let (Some(user), Some(name)) = (&options.sys_user, &options.sys_password_env) else {
        return Err(refused("sys creds not found").hint("give --sys-creds, --sys-user or --credentials-of"));
    };
    let password = std::env::var_os(name).and_then(|password| password.into_string().ok());
    let password = password.ok_or_else(|| refused(format!("the variable {name} is not set")))?;
    Ok(place::as_system(config, user.clone(), password))
}
