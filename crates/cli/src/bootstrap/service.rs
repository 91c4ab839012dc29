//! `service`: systemd keeps a server running. Only with `--now` is systemd told anything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pyoco_bootstrap::folder;
use pyoco_bootstrap::unit::{self, Scope};
use serde_json::json;

use super::arguments::{Common, Service, Unit};
use super::{binary, refused};
use crate::errors::Failure;
use crate::output;

pub(super) fn run(common: &Common, service: Service) -> Result<(), Failure> {
    match service {
        Service::Print(options) => {
            let (path, text) = unit_of(&options)?;
            if common.json { output::json(&json!({"path": path, "unit": text})) } else { output::text(&text) }
        }
        Service::Install(options) => install(common, &options),
        Service::Uninstall(options) => uninstall(common, &options),
    }
}

/// `up --service` and `join --service`: a service that is called as this process was.
pub(super) fn of_this_call(common: &Common, name: &str) -> Result<(), Failure> {
    let mut arguments = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--service" | "--background" => {}
            "--service-name" => {
                let _ = words.next();
            }
            _ if word.starts_with("--service-name=") => {}
            _ => arguments.push(word),
        }
    }
    let unit =
        Unit { service_name: name.to_owned(), bin_dir: None, nats_config: None, now: false, arguments };
    install(common, &unit)
}

/// Whether systemd runs here.
fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

fn scope() -> Scope {
    if is_root() { Scope::System } else { Scope::User }
}

/// The owner of our own process is root.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn path_of(name: &str) -> PathBuf {
    let folder = match scope() {
        Scope::System => PathBuf::from("/etc/systemd/system"),
        Scope::User => {
            let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            config.unwrap_or_else(|| binary::home().join(".config")).join("systemd").join("user")
        }
    };
    folder.join(format!("{name}.service"))
}

/// How the unit of a name stands.
pub(super) fn state(name: &str) -> &'static str {
    match (unit::is_name(name) && path_of(name).exists(), has_systemd()) {
        (true, true) => "installed",
        (true, false) => "installed, and systemd does not run here",
        (false, true) => "not installed",
        (false, false) => "not installed, and systemd does not run here",
    }
}

fn unit_of(options: &Unit) -> Result<(PathBuf, String), Failure> {
    let name = &options.service_name;
    if !unit::is_name(name) {
        return Err(refused(format!("{name:?} is no name of a service")));
    }
    let folder = std::env::current_dir().map_err(Failure::unexpected)?;
    let program = match &options.bin_dir {
        Some(bin) => std::path::absolute(bin.join("nats-bootstrap")).map_err(Failure::unexpected)?,
        None => std::env::current_exe().map_err(Failure::unexpected)?,
    };
    let mut command = vec![program.to_string_lossy().into_owned()];
    // The arguments may name the command themselves.
    if !matches!(options.arguments.first().map(String::as_str), Some("up" | "join")) {
        command.push("up".to_owned());
    }
    if let Some(file) = &options.nats_config {
        let file = std::path::absolute(file).map_err(Failure::unexpected)?;
        command.extend(["--nats-config".to_owned(), file.to_string_lossy().into_owned()]);
    }
    command.extend(options.arguments.iter().cloned());
    Ok((path_of(name), unit::text(name, scope(), &command, &folder)))
}

fn install(common: &Common, options: &Unit) -> Result<(), Failure> {
    let (path, text) = unit_of(options)?;
    if !has_systemd() {
        return Err(refused("service needs systemd, which does not run here")
            .hint("nats-bootstrap service print shows the unit, for a machine that has it"));
    }
    if std::fs::read_to_string(&path)
        .is_ok_and(|there| there != text && !there.starts_with("# Written by nats-bootstrap"))
    {
        return Err(Failure::new(format!("{} is somebody's, and is not written over", path.display()))
            .hint("choose another --service-name"));
    }
    let unusable = |error: std::io::Error| Failure::file(&path.to_string_lossy(), &error);
    std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(unusable)?;
    folder::write(&path, &text).map_err(unusable)?;
    if options.now {
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", "--now", &options.service_name])?;
    }
    said(common, "install", &path, options.now)
}

fn uninstall(common: &Common, options: &Unit) -> Result<(), Failure> {
    let (path, _) = unit_of(options)?;
    if !has_systemd() {
        return Err(refused("service needs systemd, which does not run here"));
    }
    let Ok(there) = std::fs::read_to_string(&path) else {
        return Err(refused(format!("there is no {}", path.display())));
    };
    if !there.starts_with("# Written by nats-bootstrap") {
        return Err(Failure::new(format!("{} is somebody's, and stays", path.display())));
    }
    if options.now {
        systemctl(&["disable", "--now", &options.service_name])?;
    }
    std::fs::remove_file(&path).map_err(|error| Failure::file(&path.to_string_lossy(), &error))?;
    if options.now {
        systemctl(&["daemon-reload"])?;
    }
    said(common, "uninstall", &path, options.now)
}

fn said(common: &Common, what: &str, path: &Path, was_told: bool) -> Result<(), Failure> {
    if common.json {
        return output::json(&json!({"service": what, "path": path, "told_systemd": was_told}));
    }
    output::line(&format!("service {what}: ok"))?;
    output::line(&format!("unit: {}", path.display()))?;
    if !was_told {
        output::aside("systemd was not told; --now does that");
    }
    Ok(())
}

fn systemctl(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("systemctl");
    if scope() == Scope::User {
        command.arg("--user");
    }
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::new(format!("systemctl: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Failure::new(format!("systemctl {}: {said}", arguments.join(" "))))
}
