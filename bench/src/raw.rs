//! What the machine gives to everybody: syncs of its disk, commits of bare SQLite, messages stored by a bare nats-server. No server can be faster
//! than what it waits for.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use rusqlite::Connection;
use serde_json::Value;

use crate::broker::{self, Sync};
use crate::measure::{CONNECTIONS, MEASURED, WARM_UP};
use crate::stats::{Figure, ms};
use crate::subject::Places;
use crate::table::value;
use crate::{Failure, clock, progress};

const PAGE: usize = 4_096;
const PAGES: u64 = 4_096;
const SYNCS: usize = 1_000;
const SYNCS_AFTER_A_PAUSE: usize = 100;
/// A disk, and a core, that had nothing to do for so long may have gone to sleep.
const PAUSE: Duration = Duration::from_millis(30);
/// What a row or a message holds: about as much as a record of ours.
const PAYLOAD: [u8; 1_024] = [7; 1_024];
const STREAM: &str = "RAW";
const SUBJECT: &str = "raw.message";

/// A limit: its name, its unit and its figure, or why there is none.
pub(crate) struct Limit {
    title: String,
    unit: &'static str,
    result: Result<Option<Figure>, Failure>,
}

/// All limits.
pub(crate) async fn measure(places: &Places) -> Vec<Limit> {
    progress("raw limits", "disk, SQLite, JetStream");
    let pause = PAUSE.as_millis();
    let mut limits = vec![
        limit(
            "fdatasync of 4 KiB written over a file that is there, back to back",
            "ms",
            syncs(places, None, SYNCS),
        ),
        limit(
            &format!("the same, each after a pause of {pause} ms"),
            "ms",
            syncs(places, Some(PAUSE), SYNCS_AFTER_A_PAUSE),
        ),
        limit("SQLite, WAL, synchronous=FULL: commits of 1 row of 1 KiB", "/s", commits(places, 1)),
        limit("SQLite, WAL, synchronous=FULL: commits of 16 rows of 1 KiB", "/s", commits(places, 16)),
    ];
    for sync in Sync::ALL {
        let title = format!("JetStream, {sync}: messages of 1 KiB, 16 in flight");
        limits.push(limit(&title, "/s", publishes(places, sync).await));
    }
    limits
}

fn limit(title: &str, unit: &'static str, result: Result<Option<Figure>, Failure>) -> Limit {
    Limit { title: title.to_owned(), unit, result }
}

/// As a table.
pub(crate) fn markdown(limits: &[Limit]) -> String {
    let mut text = "\nWhat the machine gives to everybody. Median, and p99 in parentheses.\n\n| raw limit | unit | value | n |\n|---|---|---|---|\n".to_owned();
    for Limit { title, unit, result } in limits {
        // Writing to a String cannot fail.
        let _ = match result {
            Ok(Some(figure)) => {
                writeln!(text, "| {title} | {unit} | {} | {} |", value(figure), figure.samples)
            }
            Ok(None) => writeln!(text, "| {title} | {unit} | no sample | 0 |"),
            Err(error) => writeln!(text, "| {title} | {unit} | failed: {error} | 0 |"),
        };
    }
    text
}

/// Whether all of them were measured.
pub(crate) fn is_complete(limits: &[Limit]) -> bool {
    limits.iter().all(|limit| matches!(limit.result, Ok(Some(_))))
}

#[allow(clippy::disallowed_methods, reason = "a bench waits by the clock")]
fn syncs(places: &Places, pause: Option<Duration>, count: usize) -> Result<Option<Figure>, Failure> {
    let folder = places.fresh_data()?;
    let file = File::create(folder.path().join("pages"))?;
    let page = [0; PAGE];
    for number in 0..PAGES {
        file.write_all_at(&page, number * PAGE as u64)?;
    }
    file.sync_all()?;
    let mut samples = Vec::with_capacity(count);
    for number in (0..PAGES).cycle().take(count) {
        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
        let begin = clock::now();
        file.write_all_at(&page, number * PAGE as u64)?;
        file.sync_data()?;
        samples.push(ms(begin.elapsed()));
    }
    Ok(Figure::of(samples, 0))
}

fn commits(places: &Places, rows: usize) -> Result<Option<Figure>, Failure> {
    let folder = places.fresh_data()?;
    let mut connection = Connection::open(folder.path().join("rows.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)", [])?;
    let begin = clock::now() + WARM_UP;
    let end = begin + MEASURED;
    let mut within = 0;
    while clock::now() < end {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO row (payload) VALUES (?1)")?;
            for _ in 0..rows {
                insert.execute([&PAYLOAD[..]])?;
            }
        }
        transaction.commit()?;
        let done = clock::now();
        within += usize::from(done >= begin && done < end);
    }
    Ok(Some(Figure::single(within as f64 / MEASURED.as_secs_f64(), within, 0)))
}

async fn publishes(places: &Places, sync: Sync) -> Result<Option<Figure>, Failure> {
    let folder = places.fresh_data()?;
    let (process, storage) = broker::start("raw-nats", places, sync, folder.path()).await?;
    let client = async_nats::connect(storage.url()).await?;
    let stream =
        format!(r#"{{"name":"{STREAM}","subjects":["{SUBJECT}"],"storage":"file","retention":"limits"}}"#);
    let made = client.request(format!("$JS.API.STREAM.CREATE.{STREAM}"), stream.into()).await?;
    stored(&made.payload)?;
    let begin = clock::now() + WARM_UP;
    let end = begin + MEASURED;
    let within = Cell::new(0_usize);
    let one = async || -> Result<(), Failure> {
        while clock::now() < end {
            let answer = client.request(SUBJECT, Bytes::from_static(&PAYLOAD)).await?;
            stored(&answer.payload)?;
            let done = clock::now();
            within.set(within.get() + usize::from(done >= begin && done < end));
        }
        Ok(())
    };
    try_join_all((0..CONNECTIONS).map(|_| one())).await?;
    process.stop().await;
    Ok(Some(Figure::single(within.get() as f64 / MEASURED.as_secs_f64(), within.get(), 0)))
}

/// An answer of JetStream that is not a refusal.
fn stored(answer: &[u8]) -> Result<(), Failure> {
    let answer: Value = serde_json::from_slice(answer)?;
    if answer.get("error").is_some() { Err(format!("JetStream answered {answer}").into()) } else { Ok(()) }
}
