//! A look at the folder of an embedded store, also while a server has it.

use std::path::{Path, PathBuf};

use pyoco_api::WorkerRecord;
use pyoco_core::time::Timestamp;
use pyoco_store_sqlite::{Examination, Listed, OpenError, SqliteStore};

use super::logs::{Logs, Verdict};
use super::{Depth, Finding, earlier, overdue_before, some};
use crate::Config;

/// So many executions are looked at, unless all are.
const SAMPLE: usize = 200;
/// So many at a time.
const PAGE: usize = 1_000;
/// So many that are stuck are looked for.
const STUCK: usize = 100;
/// A write-ahead log of more is not moved any more.
const LONG_WAL: u64 = 256 << 20;
/// With less room the store soon cannot write.
const LITTLE_ROOM: u64 = 1 << 30;
/// With less it cannot.
const NO_ROOM: u64 = 64 << 20;
/// A clock that is behind what is stored by more was set back.
const CLOCK_SLACK_SECONDS: f64 = 2.0;

pub(super) async fn examine(config: &Config, depth: Depth, now: Timestamp) -> Vec<Finding> {
    let visit = Visit {
        folder: config.data_dir.clone(),
        depth,
        now,
        overdue_before: overdue_before(config, now),
        unheard_before: earlier(now, config.worker_disconnect),
    };
    // A large file takes a while, on a thread of its own.
    match tokio::task::spawn_blocking(move || visit.findings()).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::error("store", format!("the look at the folder ended early: {error}"))],
    }
}

struct Visit {
    folder: PathBuf,
    depth: Depth,
    now: Timestamp,
    overdue_before: Timestamp,
    unheard_before: Timestamp,
}

impl Visit {
    fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![sqlite()];
        let folder = self.folder.display();
        if !SqliteStore::is_in(&self.folder) {
            let seen = format!("there is no store in {folder} yet; the first start makes one");
            findings.push(Finding::warn("store", seen).advice("check --data-dir if there should be one"));
            return findings;
        }
        let in_use = match SqliteStore::is_in_use(&self.folder) {
            Ok(in_use) => in_use,
            Err(error) => {
                let seen = format!("the lock of {folder} cannot be looked at: {error}");
                findings.push(
                    Finding::error("store", seen).advice("run this as the user that the server runs as"),
                );
                return findings;
            }
        };
        findings.push(Finding::ok(
            "store",
            format!(
                "embedded in {folder}, {}",
                if in_use { "which a process has open" } else { "which nobody has open" }
            ),
        ));
        findings.extend(room(&self.folder));
        findings.extend(permissions(&self.folder));
        let mut inside = match self.inside(in_use) {
            Ok(inside) => inside,
            Err(error) => vec![Finding::error("store", error.to_string())],
        };
        // What was seen while somebody began to write may be neither what was there nor what is.
        if !in_use && SqliteStore::is_in_use(&self.folder).unwrap_or(true) {
            inside = vec![
                Finding::warn("store", "a process opened the store while it was looked at")
                    .advice("run this again"),
            ];
        }
        findings.extend(inside);
        findings
    }

    fn inside(&self, in_use: bool) -> Result<Vec<Finding>, OpenError> {
        let store = SqliteStore::examine(&self.folder)?;
        let mut findings = integrity(&store, self.depth)?;
        if findings.iter().any(|finding| finding.severity == super::Severity::Error) {
            return Ok(findings);
        }
        findings.extend(files(&store)?);
        findings.extend(self.logs(&store)?);
        findings.extend(self.clock(&store)?);
        let letters = store.letters()?;
        if letters > 0 {
            findings.push(Finding::warn("dead letters", format!("there are {letters}")).advice(
                "pyoco-server-admin dlq list shows them, dlq redrive runs them again, dlq purge removes them",
            ));
        }
        if in_use {
            findings.extend(self.stuck(&store)?);
            findings.extend(self.workers(&store)?);
        } else {
            let unfinished = store.unfinished()?;
            if unfinished > 0 {
                findings.push(Finding::ok(
                    "runs",
                    format!("{unfinished} have not ended and go on when a server is started"),
                ));
            }
        }
        Ok(findings)
    }

    fn logs(&self, store: &Examination) -> Result<Vec<Finding>, OpenError> {
        let mut logs = Logs::default();
        if !self.depth.is_deep {
            let newest = store.newest(SAMPLE)?;
            for listed in &newest {
                logs.add(&listed.execution, verdict(store, listed)?);
            }
            return Ok(logs.findings(newest.len() == SAMPLE));
        }
        let mut after = String::new();
        loop {
            let page = store.behind(&after, PAGE)?;
            let Some(last) = page.last() else { return Ok(logs.findings(false)) };
            last.execution.as_str().clone_into(&mut after);
            for listed in &page {
                logs.add(&listed.execution, verdict(store, listed)?);
            }
        }
    }

    fn stuck(&self, store: &Examination) -> Result<Vec<Finding>, OpenError> {
        let overdue = store.overdue(self.overdue_before, STUCK)?;
        let mut findings = Vec::new();
        if !overdue.without_job.is_empty() {
            let seen = format!("want a worker and stand in no queue: {}", some(&overdue.without_job));
            findings.push(
                Finding::error("stuck runs", seen)
                    .advice("the server's sweeper should have put them there: see its log, and restart it"),
            );
        }
        if !overdue.timers.is_empty() {
            let seen = format!("something is long due and does not happen: {}", some(&overdue.timers));
            findings.push(Finding::error("stuck runs", seen).advice(
                "a server fires timers, a pyoco-worker alone does not; see the server's log, and restart it",
            ));
        }
        if findings.is_empty() {
            findings.push(Finding::ok("stuck runs", "none"));
        }
        Ok(findings)
    }

    fn workers(&self, store: &Examination) -> Result<Vec<Finding>, OpenError> {
        let records = store.workers(PAGE)?;
        let read = records.iter().filter_map(|(body, seen_at)| {
            Some((serde_json::from_slice::<WorkerRecord>(body).ok()?, *seen_at))
        });
        let (heard, unheard): (Vec<_>, Vec<_>) = read
            .filter(|(worker, _)| worker.state != "STOPPED_GRACEFUL")
            .partition(|(_, seen_at)| *seen_at >= self.unheard_before);
        let mut findings = Vec::new();
        let vanished: Vec<String> = unheard.into_iter().map(|(worker, _)| worker.worker_id).collect();
        if !vanished.is_empty() {
            findings.push(
                Finding::warn("workers", format!("ended without a word: {}", some(&vanished))).advice(
                    "their runs went to others; hide one that does not come back with PATCH /workers/{id}",
                ),
            );
        }
        let served: Vec<String> = heard.into_iter().flat_map(|(worker, _)| worker.tags).collect();
        let unserved: Vec<String> =
            store.waiting_tags()?.into_iter().filter(|tag| !served.contains(tag)).collect();
        if unserved.is_empty() {
            findings.push(Finding::ok("workers", "every tag with runs that wait has a worker"));
        } else {
            findings.push(
                Finding::warn(
                    "workers",
                    format!("runs wait for tags that nobody serves: {}", some(&unserved)),
                )
                .advice("start the server with --tags that name them"),
            );
        }
        Ok(findings)
    }

    /// What is stored cannot be later than now.
    fn clock(&self, store: &Examination) -> Result<Vec<Finding>, OpenError> {
        let Some(latest) = store.latest()? else { return Ok(Vec::new()) };
        let ahead = latest.as_unix_seconds() - self.now.as_unix_seconds();
        Ok(vec![if ahead > CLOCK_SLACK_SECONDS {
            Finding::warn(
                "clock",
                format!("a run changed {ahead:.0} s later than now: the clock was set back"),
            )
            .advice("let the system keep its time (chrony, systemd-timesyncd); timers wait until then")
        } else {
            Finding::ok("clock", "not behind what is stored")
        }])
    }
}

fn verdict(store: &Examination, listed: &Listed) -> Result<Verdict, OpenError> {
    let records = store.records(&listed.execution)?;
    Ok(Verdict::of(&listed.execution, listed.version, records.iter().map(Vec::as_slice)))
}

fn sqlite() -> Finding {
    let (version, is_good) = SqliteStore::sqlite_version();
    if is_good {
        Finding::ok("sqlite", format!("SQLite {version}"))
    } else {
        Finding::error("sqlite", format!("SQLite {version} may lose data"))
            .advice("build with 3.51.3 or later, but not 3.52.0")
    }
}

fn integrity(store: &Examination, depth: Depth) -> Result<Vec<Finding>, OpenError> {
    let flaws = store.flaws(depth.is_deep)?;
    if flaws.is_empty() {
        return Ok(vec![Finding::ok("integrity", "the files are whole")]);
    }
    let advice = |file: &str| match file {
        "pyoco-logs.db" => {
            "only logs of tasks stand there: the next start sets a damaged file aside and begins a new one"
        }
        _ => "stop the server, keep a copy, then restore a backup or try sqlite3's .recover; check the disk",
    };
    let told = |(file, flaw): (String, String)| {
        Finding::error("integrity", format!("{file}: {flaw}")).advice(advice(&file))
    };
    Ok(flaws.into_iter().map(told).collect())
}

fn files(store: &Examination) -> Result<Vec<Finding>, OpenError> {
    let mut findings = Vec::new();
    for file in store.files()? {
        let name = &file.name;
        let seen = format!(
            "{name} has {}, {} of it free; write-ahead log {}",
            size(file.bytes),
            size(file.free_bytes),
            size(file.wal_bytes)
        );
        findings.push(Finding::ok("files", seen));
        if file.wal_bytes > LONG_WAL {
            let seen = format!("the write-ahead log of {name} has {}", size(file.wal_bytes));
            findings.push(Finding::warn("files", seen).advice(
                "somebody reads for very long, for instance with sqlite3, and it cannot be moved: end that",
            ));
        }
        if file.schema < file.newest_schema {
            let seen =
                format!("{name} has schema {}; the next start makes it {}", file.schema, file.newest_schema);
            findings.push(Finding::ok("files", seen).advice("back up before you start a newer version"));
        }
    }
    Ok(findings)
}

fn room(folder: &Path) -> Option<Finding> {
    const ABOUT: &str = "disk";
    let advice = "make room, or move the folder; finished runs can be removed with pyoco-server-admin prune";
    match SqliteStore::room(folder) {
        Ok((free, _)) if free < NO_ROOM => {
            Some(Finding::error(ABOUT, format!("only {} are free", size(free))).advice(advice))
        }
        Ok((free, all)) if free < LITTLE_ROOM || free < all / 20 => Some(
            Finding::warn(ABOUT, format!("only {} of {} are free", size(free), size(all))).advice(advice),
        ),
        Ok((free, all)) => Some(Finding::ok(ABOUT, format!("{} of {} are free", size(free), size(all)))),
        Err(error) => Some(Finding::warn(ABOUT, format!("nobody knows how much room there is: {error}"))),
    }
}

fn permissions(folder: &Path) -> Vec<Finding> {
    const ABOUT: &str = "permissions";
    let open = match SqliteStore::open_to_others(folder) {
        Ok(open) => open,
        Err(error) => return vec![Finding::warn(ABOUT, format!("they cannot be looked at: {error}"))],
    };
    if open.is_empty() {
        return vec![Finding::ok(ABOUT, "only the owner may read the store")];
    }
    let told = open.into_iter().map(|found| {
        let path = found.path.display();
        let wanted = if found.is_folder { "700" } else { "600" };
        Finding::warn(ABOUT, format!("others may use {path} (mode {:o})", found.mode))
            .advice(format!("chmod {wanted} {path}: what users sent stands there"))
    });
    told.collect()
}

/// A number of bytes for people.
#[allow(clippy::cast_precision_loss, reason = "people read three digits of it")]
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}
