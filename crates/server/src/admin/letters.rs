//! Dead letters: to see them, to run their runs once more, and to throw them away.

use pyoco_core::command::{DeadLetter, Issuer};
use pyoco_core::digest::Digest;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::{CommandId, ExecutionId};
use pyoco_core::state::{Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_engine::{EngineError, Retry};
use pyoco_ports::{DeadLetterRecord, ErrorKind, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::desk::Desk;
use super::order::AdminError;

/// So many are in memory at a time, whatever is looked for.
const PAGE: usize = 100;
/// The longest list, in bytes: an answer holds it.
const LONGEST_LIST: usize = 32 << 20;
/// So many runs are repeated by one order; the answer says whether there are more.
const REDRIVEN: usize = 10_000;

/// Whose runs are to be repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// Of this letter.
    Key(String),
    /// Of all letters with this reason.
    Reason(String),
    /// Of all.
    All,
}

/// What became of an order to repeat runs.
pub(super) struct Redriven {
    pub(super) answer: Value,
    /// So many runs are repeated, or would be.
    pub(super) redriven: usize,
    /// What ended it before all of it was done.
    pub(super) failed: Option<AdminError>,
}

/// What a letter says, as far as anybody asks. Others than us write letters, so nothing must be there.
struct Letter {
    record: DeadLetterRecord,
    body: Value,
}

impl Letter {
    fn new(record: DeadLetterRecord) -> Self {
        let body = serde_json::from_slice(&record.body).unwrap_or_default();
        Self { record, body }
    }

    fn member(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    fn reason(&self) -> Option<&str> {
        self.member("reason")
    }

    /// As a list shows it.
    fn shown(&self) -> Value {
        let member = |name: &str| self.body.get(name).cloned().unwrap_or_default();
        json!({
            "key": self.record.key,
            "at": self.record.at.as_unix_seconds(),
            "reason": member("reason"),
            "tag": self.record.tag,
            "run_id": member("run_id"),
            "flow_name": member("flow_name"),
            "tenant_id": member("tenant_id"),
            "worker_id": member("worker_id"),
            "error": member("error"),
        })
    }

    /// The run that it tells of, or why there is none to repeat.
    fn run(&self) -> Result<ExecutionId, String> {
        let is_invalid =
            self.reason() == serde_json::to_value(DeadLetter::InvalidJob).unwrap_or_default().as_str();
        if is_invalid {
            return Err(
                "its message was no job that could be read, so there is no run to repeat; submit it anew"
                    .to_owned(),
            );
        }
        let Some(run) = self.member("run_id") else {
            return Err("it names no run; submit it anew".to_owned());
        };
        ExecutionId::new(run).map_err(|error| format!("it names no run ({error}); submit it anew"))
    }
}

/// What is taken of the newest letters, newest first, at most so many.
async fn find<T>(
    desk: &Desk,
    limit: usize,
    mut take: impl FnMut(Letter) -> Result<Option<T>, AdminError> + Send,
) -> Result<Vec<T>, AdminError> {
    let (mut taken, mut behind) = (Vec::new(), None);
    while taken.len() < limit {
        if desk.stopping.is_cancelled() {
            return Err(stops());
        }
        let page = desk.storage.shared().letter_page(behind, PAGE).await?;
        for record in page.letters {
            taken.extend(take(Letter::new(record))?);
        }
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    taken.truncate(limit);
    Ok(taken)
}

fn stops() -> AdminError {
    AdminError::Failed("the server stops; order it again when it is back: nothing is done twice".to_owned())
}

pub(super) async fn list(
    desk: &Desk,
    reason: Option<&str>,
    tag: Option<&str>,
    limit: usize,
) -> Result<Value, AdminError> {
    let is_wanted = |letter: &Letter| {
        reason.is_none_or(|reason| letter.reason() == Some(reason))
            && tag.is_none_or(|tag| letter.record.tag == tag)
    };
    let (mut room, mut listed) = (LONGEST_LIST, 0);
    let shown = find(desk, limit, |letter| {
        // The rest of a page may be more than is wanted.
        if listed == limit || !is_wanted(&letter) {
            return Ok(None);
        }
        let shown = letter.shown();
        let Some(left) = room.checked_sub(shown.to_string().len()) else {
            let why = format!("only the newest {listed} fit into a list; ask with a smaller --limit");
            return Err(AdminError::Refused(why));
        };
        (room, listed) = (left, listed + 1);
        Ok(Some(shown))
    });
    Ok(shown.await?.into())
}

pub(super) async fn show(desk: &Desk, key: &str) -> Result<Value, AdminError> {
    let letter = one(desk, key).await?;
    let text = || Value::String(String::from_utf8_lossy(&letter.record.body).into_owned());
    let mut answer = json!({
        "key": letter.record.key,
        "at": letter.record.at.as_unix_seconds(),
        "tag": letter.record.tag,
        "letter": if letter.body.is_null() { text() } else { letter.body.clone() },
    });
    if let (Err(why), Some(members)) = (letter.run(), answer.as_object_mut()) {
        members.insert("not_redriven".to_owned(), json!(why));
    }
    Ok(answer)
}

async fn one(desk: &Desk, key: &str) -> Result<Letter, AdminError> {
    let found = desk.storage.shared().letter(key).await?;
    found.map(Letter::new).ok_or_else(|| AdminError::NoLetter { key: key.to_owned() })
}

/// Repeats runs, the longest dead first. A letter whose run is repeated is removed afterwards: if the process dies in between, the same
/// order finds the letter again, and the repetition that was made.
pub(super) async fn redrive(desk: &Desk, which: &Which, dry_run: bool) -> Result<Redriven, AdminError> {
    // Only their keys: of so many letters nobody knows how large they are.
    let keys = match which {
        Which::Key(key) => vec![one(desk, key).await?.record.key],
        Which::Reason(reason) => {
            let is_wanted = |letter: &Letter| letter.reason() == Some(reason.as_str());
            find(desk, REDRIVEN, |letter| Ok(is_wanted(&letter).then_some(letter.record.key))).await?
        }
        Which::All => find(desk, REDRIVEN, |letter| Ok(Some(letter.record.key))).await?,
    };
    let is_full = keys.len() == REDRIVEN;
    let (mut redriven, mut skipped) = (Vec::new(), Vec::new());
    let mut failed = None;
    for key in keys.iter().rev() {
        if let Err(error) = redrive_one(desk, key, dry_run, &mut redriven, &mut skipped).await {
            let done = redriven.len();
            failed = Some(AdminError::Failed(format!("{error} ({done} were redriven before)")));
            break;
        }
    }
    let count = redriven.len();
    if !dry_run && count > 0 {
        tracing::info!(letters = count, "runs of dead letters were repeated");
    }
    let answer =
        json!({"dry_run": dry_run, "redriven": redriven, "skipped": skipped, "may_be_more": is_full});
    Ok(Redriven { answer, redriven: count, failed })
}

async fn redrive_one(
    desk: &Desk,
    key: &str,
    dry_run: bool,
    redriven: &mut Vec<Value>,
    skipped: &mut Vec<Value>,
) -> Result<(), AdminError> {
    if desk.stopping.is_cancelled() {
        return Err(stops());
    }
    let store = desk.storage.shared();
    // Somebody else may have been faster.
    let Some(letter) = store.letter(key).await?.map(Letter::new) else { return Ok(()) };
    match repeat(desk, &letter, dry_run).await? {
        Ok(done) => {
            redriven.push(done);
            if !dry_run {
                store.remove_letter(key).await?;
            }
        }
        Err(why) => {
            let run = letter.member("run_id").and_then(|run| ExecutionId::new(run).ok());
            skipped.push(json!({"key": key, "run_id": run, "why": why}));
        }
    }
    Ok(())
}

/// Repeats the run of a letter, or says why not. A store that fails ends the whole order.
async fn repeat(desk: &Desk, letter: &Letter, dry_run: bool) -> Result<Result<Value, String>, AdminError> {
    let run = match letter.run() {
        Ok(run) => run,
        Err(why) => return Ok(Err(why)),
    };
    let key = &letter.record.key;
    let seen = desk.engine.look(&run, |state: &State| (state.phase, state.retried_by.clone())).await;
    let (phase, retried_by) = match seen {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(Err("its run does not exist any more".to_owned())),
        Err(error) => return failed(error),
    };
    if let Some(already) = retried_by {
        return Ok(Ok(json!({"key": key, "run_id": run, "retried_by": already, "already": true})));
    }
    match phase {
        Phase::Failed | Phase::Canceled => {}
        Phase::Completed => return Ok(Err("its run has succeeded".to_owned())),
        Phase::Absent | Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {
            return Ok(Err("its run has not ended".to_owned()));
        }
    }
    if dry_run {
        return Ok(Ok(json!({"key": key, "run_id": run, "retried_by": null, "already": false})));
    }
    let digest = Digest::of_bytes(key.as_bytes());
    let retry = Retry {
        input: None,
        from: None,
        issuer: Issuer::Caller(Actor::named(ActorKind::User, "pyoco-server-admin")),
        api_key_id: None,
        // The same letter is the same command, whoever orders it how often.
        key: CommandId::new(&format!("dlq-{digest}")).ok(),
        correlation_id: None,
        traceparent: None,
    };
    match desk.engine.retry(&run, retry).await {
        Ok(asked) => Ok(Ok(
            json!({"key": key, "run_id": run, "retried_by": asked.execution, "already": asked.is_repeat}),
        )),
        Err(error) => failed(error),
    }
}

/// A run that cannot be repeated is said; a store that cannot be asked ends the order.
fn failed(error: EngineError) -> Result<Result<Value, String>, AdminError> {
    match error {
        EngineError::Store(error) | EngineError::Unfollowed(error) if error.kind != ErrorKind::Corrupt => {
            Err(error.into())
        }
        EngineError::Store(_)
        | EngineError::Unfollowed(_)
        | EngineError::Rejected(_)
        | EngineError::UnknownGraph(_)
        | EngineError::UnusableGraph { .. }
        | EngineError::Log { .. }
        | EngineError::Busy(_) => Ok(Err(error.to_string())),
    }
}

pub(super) async fn purge(desk: &Desk, before: Timestamp) -> Result<Value, AdminError> {
    let purged = desk.storage.shared().purge_letters(before).await?;
    tracing::info!(letters = purged, %before, "dead letters were thrown away");
    Ok(json!({"purged": purged, "before": before.as_unix_seconds()}))
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}
