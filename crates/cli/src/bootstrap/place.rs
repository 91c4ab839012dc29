//! Where NATS is, and who we are there: from flags, a context of the `nats` tool, the settings of this product, or the passwords of a
//! data folder.

use std::path::{Path, PathBuf};

use pyoco_bootstrap::conf::{self, Listen};
use pyoco_bootstrap::credentials::{Credentials, Holder};
use pyoco_bootstrap::folder::Folder;
use pyoco_bootstrap::seed::Seed;
use pyoco_bootstrap::setup::{self, SYSTEM};
use pyoco_server::{Config, Role, nats_settings};
use pyoco_store_nats::rights::Party;
use pyoco_store_nats::{Access, Settings};
use serde::Deserialize;

use super::arguments::Place;
use super::{FOLDER, binary, refused};
use crate::errors::Failure;

/// Where NATS is when nobody says where.
pub(super) const USUAL: &str = "nats://127.0.0.1:4222";

/// A context as the `nats` tool writes it, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    url: String,
    creds: String,
    user: String,
    password: String,
    token: String,
}

/// The settings of this product with the flags over them, and the data folder of the server if it is one of ours.
pub(super) struct Found {
    pub(super) config: Config,
    near: Option<(Folder, Credentials)>,
}

/// Where NATS is. Whoever says nothing means the server whose data folder is here, if there is one.
pub(super) fn find(place: &Place) -> Result<Found, Failure> {
    let mut config = Config::from_env().map_err(|error| Failure::arguments(error.to_string()))?;
    if let Some(name) = &place.context {
        let context = context(name)?;
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        config.nats_url = given(context.url);
        let access = &mut config.nats_access;
        access.user = given(context.user);
        access.password = given(context.password);
        access.token = given(context.token);
        access.credentials = given(context.creds).map(PathBuf::from);
    }
    if place.nats_url.is_some() {
        config.nats_url.clone_from(&place.nats_url);
    }
    let access = &mut config.nats_access;
    if let Some(file) = &place.creds {
        access.credentials = Some(file.clone());
        (access.user, access.password, access.token) = (None, None, None);
    }
    // A folder that happens to be here is not the one of a server that somebody names.
    let near = match &place.credentials_of {
        None if config.nats_url.is_some() => None,
        named => credentials(named.as_deref())?,
    };
    let conf = near.as_ref().and_then(|(folder, _)| std::fs::read_to_string(folder.conf()).ok());
    let url = config.nats_url.get_or_insert_with(|| {
        let listens =
            conf.as_deref().and_then(conf::listens).and_then(|address| address.parse::<Seed>().ok());
        let listens = listens.map(|Seed { host, port }| setup::reached(&Listen { host, port }));
        listens.map_or_else(|| USUAL.to_owned(), |listen| format!("nats://{}", listen.address()))
    });
    let is_nobody = access.user.is_none() && access.token.is_none() && access.credentials.is_none();
    if let Some((folder, credentials)) = near.as_ref().filter(|_| is_nobody && !url.contains('@'))
        && Credentials::file_of(Party::Admin, folder).exists()
    {
        access.user = Some(Party::Admin.user().to_owned());
        access.password = Some(credentials.password(Holder::Party(Party::Admin)).to_owned());
        access.inbox_prefix = Some(Party::Admin.inbox_prefix().to_owned());
    }
    if access.monitor.is_none() {
        access.monitor = conf.as_deref().and_then(conf::tells).map(|address| format!("http://{address}"));
    }
    Ok(Found { config, near })
}

impl Found {
    /// The settings of the system account, if the data folder is known.
    pub(super) fn system(&self) -> Option<Settings> {
        let (_, credentials) = self.near.as_ref()?;
        let password = credentials.password(Holder::System).to_owned();
        Some(as_system(&self.config, SYSTEM.1.to_owned(), password))
    }
}

/// The settings alone.
pub(super) fn config(place: &Place) -> Result<Config, Failure> {
    find(place).map(|found| found.config)
}

/// The settings of whoever looks after everything.
pub(super) fn settings(config: &Config) -> Settings {
    nats_settings(config, &Role::Admin)
}

/// The same servers, as somebody of the system account.
pub(super) fn as_system(config: &Config, user: String, password: String) -> Settings {
    let access = Access::UserPassword { user, password };
    Settings { access, inbox_prefix: None, ..settings(config) }
}

/// The passwords of a data folder, if it has some.
pub(super) fn credentials(folder: Option<&Path>) -> Result<Option<(Folder, Credentials)>, Failure> {
    let path = folder.unwrap_or_else(|| Path::new(FOLDER));
    let unreadable = |error: std::io::Error| Failure::file(&path.to_string_lossy(), &error);
    let named = Folder::new(path).map_err(unreadable)?;
    let found = Credentials::of(&named).map_err(unreadable)?;
    match (found, folder) {
        (Some(credentials), _) => Ok(Some((named, credentials))),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(refused(format!("there is no {}", named.credentials().display()))),
    }
}

fn context(name: &str) -> Result<Context, Failure> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.starts_with('.') || !name.bytes().all(is_name) {
        return Err(refused(format!("{name:?} is no name of a context")));
    }
    let folder =
        std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| binary::home().join(".config"), PathBuf::from);
    let path = folder.join("nats").join("context").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| refused(format!("there is no context {name}: {}: {error}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| refused(format!("{}: {error}", path.display())))
}
