//! `wheels`, `wheel-upload`, `wheel-history` and `wheel-download`. What is looked at before an upload stands in `preflight`.

mod preflight;
mod transfer;

use std::path::{Path, PathBuf};

use pyoco_client::api::WheelArtifact;
use pyoco_client::{Client, Error, WheelFile, WheelHistoryFilter};
use serde_json::{Value, json};

use super::labels;
use super::options::ListForm;
use super::options::wheels::{Preflight, WheelDownload, WheelHistory, WheelUpload, Wheels};
use super::rows::{member, tags};
use crate::errors::Failure;
use crate::{output, table};

use preflight::Findings;
use transfer::Transfer;

pub(super) async fn list(client: &Client, options: &Wheels) -> Result<(), Failure> {
    let wheels = client.list_wheels().await?;
    let columns = ["name", "size_bytes", "tags", "mtime"];
    show(options.output.form(), wheels.json(), columns, |wheel| {
        columns.map(|name| if name == "tags" { tags(wheel) } else { member(wheel, name) })
    })
}

pub(super) async fn history(client: &Client, options: WheelHistory) -> Result<(), Failure> {
    let WheelHistory { limit, wheel_name, action, output } = options;
    let filter = WheelHistoryFilter { wheel_name, action, limit: Some(limit) };
    let events = client.list_wheel_history(&filter).await?;
    let columns = ["occurred_at", "action", "wheel_name", "tags", "api_key_id", "remote_addr"];
    show(output.form(), events.json(), columns, |event| {
        columns.map(|name| match name {
            "tags" => tags(event),
            "api_key_id" => member(&event["actor"], name),
            "remote_addr" => member(&event["source"], name),
            _ => member(event, name),
        })
    })
}

fn show<const N: usize>(
    form: ListForm,
    list: &Value,
    columns: [&str; N],
    row: impl Fn(&Value) -> [String; N],
) -> Result<(), Failure> {
    match form {
        ListForm::Json => output::json(list),
        ListForm::Table => {
            let items = list.as_array().map_or(&[][..], Vec::as_slice);
            let rows: Vec<[String; N]> = items.iter().map(row).collect();
            output::line(&table::lines(columns, &rows).join("\n"))
        }
    }
}

pub(super) async fn upload(client: &Client, options: WheelUpload) -> Result<(), Failure> {
    let (path, replace) = (options.wheel_file.clone(), options.replace());
    let size = size_of(&path)?;
    if options.preflight != Preflight::Off {
        look_before(client, &options).await?;
    }
    let wheel = WheelFile { path, tags: labels(options.tags.as_deref()), replace };
    let transfer = Transfer::start("uploading", &wheel.path, size);
    let shown = transfer.clone();
    let uploaded = client.upload_wheel(&wheel, move |sent| shown.show(sent)).await;
    transfer.end();
    output::json(uploaded?.json())
}

/// The file is there and can be read, which is said in the contract's words if not.
fn size_of(path: &Path) -> Result<u64, Failure> {
    let found = std::fs::File::open(path).and_then(|file| file.metadata());
    let metadata = found.map_err(|error| Failure::file(&path.to_string_lossy(), &error))?;
    if metadata.is_dir() {
        let error = std::io::ErrorKind::IsADirectory.into();
        return Err(Failure::file(&path.to_string_lossy(), &error));
    }
    Ok(metadata.len())
}

/// Names what is wrong with a wheel, and what the gateway would refuse.
async fn look_before(client: &Client, options: &WheelUpload) -> Result<(), Failure> {
    let there = match client.list_wheels().await {
        Ok(wheels) => Ok(wheels.into_value()),
        // Another implementation may not be able to tell when there are none.
        Err(Error::Status(refusal)) if refusal.status >= 500 => Err(refusal.to_string()),
        Err(error) => return Err(error.into()),
    };
    let wheel = preflight::Wheel {
        path: options.wheel_file.clone(),
        tags: options.tags.clone().unwrap_or_default(),
        may_lack_entry_points: options.allow_no_entry_points,
        may_lack_usage: options.allow_missing_usage_doc,
    };
    // A large wheel takes a while.
    let looked = tokio::task::spawn_blocking(move || wheel.look()).await;
    let mut findings = looked
        .map_err(Failure::unexpected)?
        .map_err(|error| Failure::file(&options.wheel_file.to_string_lossy(), &error))?;
    match &there {
        Ok(wheels) => findings.compare(&options.wheel_file, wheels.iter().map(name)),
        Err(why) => findings.warn(format!("the gateway cannot say which wheels there are ({why})")),
    }
    conclude(findings, options.preflight)
}

fn name(wheel: &WheelArtifact) -> &str {
    &wheel.name
}

/// Says what was found. Flaws keep a wheel from being sent, unless they are only to be warned of.
fn conclude(findings: Findings, preflight: Preflight) -> Result<(), Failure> {
    let Findings { warnings, flaws } = findings;
    let is_strict = preflight == Preflight::Strict;
    let said = warnings.iter().chain(flaws.iter().filter(|_| !is_strict));
    said.for_each(|warning| output::aside(&format!("[pyoco-client][preflight][warn] {warning}")));
    if flaws.is_empty() || !is_strict {
        return Ok(());
    }
    let failure = Failure::arguments(format!("wheel preflight failed: {}", flaws.join("; ")));
    Err(failure.hint("fix wheel metadata/entry_points or use --preflight warn/off"))
}

pub(super) async fn download(client: &Client, options: WheelDownload) -> Result<(), Failure> {
    let path = target(&options.name, options.output)?;
    let transfer = Transfer::start("fetching", &path, 0);
    let shown = transfer.clone();
    let fetched = client
        .download_wheel(&options.name, &path, move |had, all| {
            shown.expect(all.unwrap_or(had));
            shown.show(had);
        })
        .await;
    transfer.end();
    output::json(&json!({"name": options.name, "path": path.to_string_lossy(), "size_bytes": fetched?}))
}

/// The file that a wheel goes to.
fn target(name: &str, output: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let own = || {
        // A name is from outside: it may name a file here, and no place elsewhere.
        let is_name = pyoco_wheels::WheelName::parse(name).is_ok();
        let refused = || Failure::arguments(format!("'{name}' is no name of a wheel"));
        is_name.then(|| PathBuf::from(name)).ok_or_else(|| refused().hint("pyoco-client wheels"))
    };
    match output {
        None => own(),
        Some(folder) if folder.is_dir() => Ok(folder.join(own()?)),
        Some(path) => Ok(path),
    }
}
