//! `backup` and `restore`: everything of this product as `pyoco-server-admin` copies it, or one stream as the `nats` tool does.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pyoco_bootstrap::{folder, s2};
use pyoco_server::admin::{self, AdminError, Order};
use pyoco_store_nats::backup::{self as streams, BackupError, StreamCopy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::arguments::{Backup, Common, Restore};
use super::{place, refused, unconfirmed};
use crate::errors::Failure;
use crate::output;

/// The files of one stream, as the `nats` tool names them.
const LIST: &str = "backup.json";
const DATA: &str = "stream.tar.s2";
/// Such a list has some kilobytes.
const LONGEST: u64 = 1 << 20;

/// What stands in the list: the server's words, which the `nats` tool reads too, and ours.
#[derive(Debug, Serialize, Deserialize)]
struct List {
    config: Value,
    state: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

pub(super) async fn make(common: &Common, backup: &Backup) -> Result<(), Failure> {
    let config = place::config(&backup.place)?;
    let output = std::path::absolute(&backup.output)
        .map_err(|error| Failure::file(&backup.output.to_string_lossy(), &error))?;
    let Some(stream) = &backup.stream else {
        let answer = admin::carry_out(&config, Order::Backup { path: output }).await;
        let answer = answer.map_err(|error| failed("backup", &error.to_string()))?;
        return said(common, &answer, "backup: ok");
    };
    if output.symlink_metadata().is_ok() {
        return Err(failed(
            "backup",
            &format!("{} exists already, and nothing that exists is written over", output.display()),
        ));
    }
    let parent = output.parent().unwrap_or(&output).to_owned();
    let unusable = |path: &Path| {
        let path = path.to_string_lossy().into_owned();
        move |error: io::Error| Failure::file(&path, &error)
    };
    // It has its name when it is whole; what was interrupted leaves nothing under that name.
    let stage =
        tempfile::Builder::new().prefix(".pyoco-backup-").tempdir_in(&parent).map_err(unusable(&parent))?;
    let data = stage.path().join(DATA);
    let copied = streams::back_up_stream(&place::settings(&config), stream, &data).await;
    let copy = copied.map_err(|error| failed("backup", &error.to_string()))?;
    let Some(copy) = copy else { return Err(failed("backup", &format!("there is no stream {stream}"))) };
    let (target, StreamCopy { config, state, .. }) = (output.clone(), copy);
    let finished = tokio::task::spawn_blocking(move || -> io::Result<(u64, String)> {
        let data = stage.path().join(DATA);
        let (bytes, sha256) = fingerprint(&data)?;
        let list = List { config, state, bytes: Some(bytes), sha256: Some(sha256.clone()) };
        folder::write_new(&stage.path().join(LIST), &serde_json::to_string_pretty(&list)?)?;
        // As whoever restores it will read it.
        read(stage.path()).map_err(io::Error::other)?;
        std::fs::rename(stage.path(), &target)?;
        let _ = stage.keep();
        File::open(&parent)?.sync_all()?;
        Ok((bytes, sha256))
    });
    let (bytes, sha256) = finished.await.map_err(Failure::unexpected)?.map_err(unusable(&output))?;
    said(common, &json!({"path": output, "stream": stream, "bytes": bytes, "sha256": sha256}), "backup: ok")
}

pub(super) async fn restore(common: &Common, restore: &Restore) -> Result<(), Failure> {
    if !restore.confirm {
        return Err(unconfirmed("restore"));
    }
    let input = &restore.input;
    if !input.exists() {
        return Err(refused(format!("input not found: {}", input.display())));
    }
    let config = place::config(&restore.place)?;
    if !input.join(LIST).is_file() {
        let answer = admin::restore(&config, input, true).await;
        let answer = answer.map_err(|error: AdminError| failed("restore", &error.to_string()))?;
        return said(common, &answer, "restore: ok");
    }
    let folder = input.clone();
    let checked = tokio::task::spawn_blocking(move || read(&folder)).await.map_err(Failure::unexpected)?;
    let copy =
        checked.map_err(|why| failed("restore", &format!("{}: {why}; nothing was made", input.display())))?;
    let replicas = restore.replicas.as_deref().and_then(|number| number.parse().ok());
    let made = streams::restore_stream(&place::settings(&config), replicas, &copy, &input.join(DATA)).await;
    made.map_err(|error| match error {
        BackupError::Exists(_) => failed("restore", &error.to_string()),
        BackupError::Open(_)
        | BackupError::Store(_)
        | BackupError::Nothing
        | BackupError::NotNamed(_)
        | BackupError::File { .. } => failed("restore", &format!("{error}; nothing was made")),
    })?;
    said(common, &json!({"restored": copy.name}), "restore: ok")
}

/// Reads a backup of one stream as far as it can be read without a server: it is whole, and as it was when it was made.
fn read(folder: &Path) -> Result<StreamCopy, String> {
    let (list, data): (PathBuf, PathBuf) = (folder.join(LIST), folder.join(DATA));
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut text = Vec::new();
    let file = File::open(&list).map_err(|error| failed(&list, &error))?;
    file.take(LONGEST).read_to_end(&mut text).map_err(|error| failed(&list, &error))?;
    let list: List = serde_json::from_slice(&text).map_err(|error| failed(&list, &error))?;
    let name = list.config.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(format!("{LIST} names no stream"));
    }
    let (bytes, sha256) = fingerprint(&data).map_err(|error| failed(&data, &error))?;
    if list.bytes.is_some_and(|wanted| wanted != bytes) {
        return Err(format!("{DATA} has {bytes} bytes and should have {}", list.bytes.unwrap_or_default()));
    }
    if list.sha256.is_some_and(|wanted| wanted != sha256) {
        return Err(format!("{DATA} is not as it was when the backup was made"));
    }
    let file = File::open(&data).map_err(|error| failed(&data, &error))?;
    let walked = s2::walk(file).map_err(|flaw| failed(&data, &flaw))?;
    if walked != bytes {
        return Err(format!("{DATA} has more than a copy has"));
    }
    Ok(StreamCopy { name, config: list.config, state: list.state })
}

fn fingerprint(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0_u8; 1 << 20];
    let mut bytes = 0_u64;
    loop {
        let read = file.read(&mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
        digest.update(piece);
        bytes = bytes.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
    }
    let digest: [u8; 32] = digest.finalize().into();
    Ok((bytes, digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))))
}

fn said(common: &Common, answer: &Value, line: &str) -> Result<(), Failure> {
    if common.json { output::json(answer) } else { output::line(line) }
}

fn failed(command: &str, why: &str) -> Failure {
    Failure::new(format!("{command} failed: {why}"))
}
