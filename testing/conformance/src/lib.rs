//! One suite for every store. Each MUST of `pyoco-ports` names a case here, and each case is in one list.
//!
//! An adapter's test is one call: `pyoco_conformance::run(&subject).await`. Abilities are asked of the subject; a case that
//! does not apply is printed as skipped, and run plus skipped is the whole list.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a suite: a surprise stops the case, and what was skipped is said"
)]

mod cases;
mod differential;
mod samples;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Store, WheelRecord};

pub use differential::{differ, differ_in_real_time};

/// A store under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// An empty store of its own. Those that it gave before are not used any more.
    async fn fresh(&self) -> Arc<dyn Store>;

    /// The same store after the process was lost and came back; `None` if nothing survives.
    async fn lose_and_reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>>;

    /// How long a job is lent. A store that decides this by itself says what it was set to.
    fn lease(&self) -> Millis {
        Millis(30_000)
    }

    /// How far off the end of a lease or of a delay may be. A store that is told the time has none; one that lives in real
    /// time needs some, for a machine that is busy with other things. MUST be less than half a lease.
    fn slack(&self) -> Millis {
        Millis(0)
    }

    /// Lets time pass and gives the instant after it. A store that lives in real time has to sleep.
    async fn pass(&self, now: Timestamp, by: Millis) -> Timestamp {
        now.after(by)
    }

    /// Whether the oldest job of several tags comes first. A store with a queue for each tag can say that of each tag alone.
    fn orders_tags_together(&self) -> bool {
        true
    }

    /// The same store as another process has it; `None` if only one can have it.
    async fn beside(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }

    /// Makes what is stored of a wheel something else than what its record says; `false` if nobody can.
    async fn spoil(&self, _store: &Arc<dyn Store>, _wheel: &WheelRecord) -> bool {
        false
    }

    /// How long events of the history of wheels are kept.
    fn wheel_history_ttl(&self) -> Millis {
        Millis(7_776_000_000)
    }
}

type CaseFuture<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// How a case ended; a failure is a panic.
pub(crate) enum Verdict {
    Passed,
    /// It does not apply to this store.
    Skipped(&'static str),
}

/// One case.
pub struct Case {
    /// Its name, as the ports name it.
    pub id: &'static str,
    run: for<'a> fn(&'a dyn Subject) -> CaseFuture<'a>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

macro_rules! cases {
    ($($id:literal => $($path:ident)::+,)+) => {
        /// Every case there is.
        pub const CASES: &[Case] = &[$(Case { id: $id, run: |subject| Box::pin(cases::$($path)::+(subject)) }),+];
    };
}

cases! {
    "log/append" => log::append,
    "log/conflict" => log::conflict,
    "log/race" => log::race,
    "log/isolation" => log::isolation,
    "log/reopen" => log::reopen,
    "log/consequences" => log::consequences,
    "log/read" => log::read,
    "log/read-some" => log::read_some,
    "log/peek" => log::peek,
    "log/read-unknown" => log::read_unknown,
    "log/read-on" => retention::read_on,
    "queue/deliver" => queue::deliver,
    "queue/reopen" => queue::reopen,
    "queue/tags" => queue::tags,
    "queue/lease" => queue::lease,
    "queue/redeliver" => queue::redeliver,
    "queue/race" => queue::race,
    "queue/wake" => queue::wake,
    "queue/extend" => queue::extend,
    "queue/ack" => queue::ack,
    "queue/nak" => queue::nak,
    "queue/refuse" => queue::refuse,
    "queue/drop" => queue::drop_waiting,
    "queue/depth" => queue::depth,
    "index/monotone" => index::monotone,
    "index/put-all" => index::put_all,
    "index/publish" => index::publish,
    "index/forget" => index::forget,
    "index/get" => index::get,
    "index/filter" => index::filter,
    "index/pages" => index::pages,
    "index/waits" => index::waits,
    "index/jobs" => jobs::filter,
    "index/job-pages" => jobs::pages,
    "index/labels" => jobs::labels,
    "index/counts" => index::counts,
    "index/counts-since" => index::counts_since,
    "index/timers" => index::timers,
    "index/runnable" => index::runnable,
    "index/ended" => retention::ended,
    "index/queues" => index::queues,
    "graphs/put" => graphs::put,
    "graphs/get" => graphs::get,
    "graphs/known" => graphs::known,
    "graphs/list" => graphs::list,
    "keys/get" => keys::get,
    "keys/put" => keys::put,
    "keys/list" => keys::list_all,
    "audit/write" => audit::write,
    "audit/filter" => audit::filter,
    "audit/pages" => audit::pages,
    "audit/prune" => audit::prune,
    "blobs/put" => others::blob_put,
    "blobs/same" => others::blob_same,
    "blobs/get" => others::blob_get,
    "blobs/share" => retention::share,
    "workers/report" => others::worker_report,
    "workers/list" => others::worker_list,
    "workers/hide" => others::worker_hide,
    "dead-letters/once" => others::letter_once,
    "dead-letters/count" => others::letter_count,
    "dead-letters/pages" => others::letter_pages,
    "dead-letters/get" => others::letter_get,
    "dead-letters/remove" => others::letter_remove,
    "dead-letters/purge" => others::letter_purge,
    "retention/remove" => retention::remove,
    "retention/changed" => retention::changed,
    "retention/again" => retention::again,
    "retention/blobs" => retention::blobs,
    "retention/tombstones" => retention::tombstones,
    "task-logs/write" => task_logs::write,
    "task-logs/order" => task_logs::order,
    "task-logs/isolation" => task_logs::isolation,
    "task-logs/limit" => task_logs::limit,
    "task-logs/end" => task_logs::end,
    "task-logs/read" => task_logs::read,
    "task-logs/place" => task_logs::place,
    "wheels/list" => wheels::list,
    "wheels/rule" => wheels::rule,
    "wheels/race" => wheels::race,
    "wheels/put" => wheels::put,
    "wheels/torn" => wheels::torn,
    "wheels/read" => wheels::read,
    "wheels/flipped" => wheels::flipped,
    "wheels/delete" => wheels::delete,
    "wheels/heard" => wheels::heard,
    "wheels/history" => wheel_history::history,
    "wheels/forgotten" => wheel_history::forgotten,
}

/// Runs every case on a store and says which did not apply. A case that fails stops the run with its name.
pub async fn run(subject: &dyn Subject) {
    let (mut passed, mut skipped) = (0, 0);
    for case in CASES {
        println!("case {}", case.id);
        match (case.run)(subject).await {
            Verdict::Passed => passed += 1,
            Verdict::Skipped(why) => {
                println!("skipped {}: {why}", case.id);
                skipped += 1;
            }
        }
    }
    assert_eq!(passed + skipped, CASES.len());
    println!("{passed} cases passed, {skipped} skipped");
}
