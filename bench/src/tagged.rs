//! A store with very many jobs and tags, written row by row as the server writes them; and what is asked of it.
//!
//! Each job has two of a few topics, which many jobs share, and is of one case, which some twenty jobs share that are not far apart in time.
//! One job of [`FAILED_EVERY`] has failed.

use std::fmt;
use std::path::Path;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use pyoco_core::ids::{ExecutionId, Tag, Version};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{IndexRow, RunIndex as _};
use pyoco_store_sqlite::{Options, SqliteStore};

use crate::Failure;
use crate::flows::SERVED;

pub(crate) const JOBS: usize = 1_000_000;
const TOPICS: usize = 20;
/// So many jobs follow one another before other cases come up.
const ERA: usize = 20_000;
/// Cases of an era.
const CASES: usize = 1_000;
pub(crate) const TAGS: usize = TOPICS + CASES * (JOBS / ERA);
pub(crate) const FAILED_EVERY: usize = 20;
/// More than share one transaction, so that the writer never waits.
const WRITERS: usize = 1_024;
/// When the first job was created, in Unix microseconds.
const FIRST: i64 = 1_700_000_000_000_000;

/// What lists are asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    CommonTag,
    RareTag,
    TwoCommonTags,
    CommonAndRareTag,
    AnyOfEight,
    TagAndStatus,
}

impl Asked {
    pub(crate) const ALL: [Self; 6] = [
        Self::CommonTag,
        Self::RareTag,
        Self::TwoCommonTags,
        Self::CommonAndRareTag,
        Self::AnyOfEight,
        Self::TagAndStatus,
    ];

    /// The question of a number: every number asks for other tags.
    pub(crate) fn question(self, number: usize) -> Question {
        let topic = |more: usize| topic((number + more) % TOPICS);
        // Those of a job that there is, so that somebody has them.
        let job = Job::of(mix(number, 3) % JOBS);
        let (tags, any, is_failed) = match self {
            Self::CommonTag => (vec![topic(0)], Vec::new(), false),
            Self::RareTag => (vec![job.case], Vec::new(), false),
            Self::TwoCommonTags => (vec![topic(0), topic(1 + number % (TOPICS - 1))], Vec::new(), false),
            Self::CommonAndRareTag => {
                let Job { topics: [one, _], case, .. } = job;
                (vec![one, case], Vec::new(), false)
            }
            Self::AnyOfEight => {
                let cases = (0..6).map(|more| Job::of(mix(number + more, 4) % JOBS).case);
                (Vec::new(), [topic(0), topic(1)].into_iter().chain(cases).collect(), false)
            }
            Self::TagAndStatus => (vec![topic(0)], Vec::new(), true),
        };
        Question { tags, any, is_failed }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CommonTag => "a common tag",
            Self::RareTag => "a rare tag",
            Self::TwoCommonTags => "two common tags (AND)",
            Self::CommonAndRareTag => "a common and a rare tag (AND)",
            Self::AnyOfEight => "any of 8 tags",
            Self::TagAndStatus => "a common tag and a status that 5 % have",
        })
    }
}

/// What one list is to show.
#[derive(Debug)]
pub(crate) struct Question {
    /// All of these.
    pub(crate) tags: Vec<String>,
    /// And one of these, if there are any.
    pub(crate) any: Vec<String>,
    pub(crate) is_failed: bool,
}

impl Question {
    pub(crate) fn path(&self) -> String {
        let tags = self.tags.iter().map(|tag| format!("&tag={tag}"));
        let any = self.any.iter().map(|tag| format!("&tagAny={tag}"));
        let status = self.is_failed.then(|| "&status=failed".to_owned());
        format!("/jobs?limit=50{}", tags.chain(any).chain(status).collect::<String>())
    }

    /// Whether a job with these tags belongs to the answer.
    pub(crate) fn is_met_by(&self, tags: &[&str], is_failed: bool) -> bool {
        let has = |tag: &String| tags.contains(&tag.as_str());
        self.tags.iter().all(has)
            && (self.any.is_empty() || self.any.iter().any(has))
            && (is_failed || !self.is_failed)
    }

    /// The ids of all jobs that belong to the answer, newest first.
    pub(crate) fn answer(&self) -> impl Iterator<Item = String> {
        (0..JOBS).rev().filter_map(|number| {
            let job = Job::of(number);
            let [one, other] = &job.topics;
            self.is_met_by(&[one, other, &job.case], job.is_failed).then(|| id(number))
        })
    }
}

struct Job {
    topics: [String; 2],
    case: String,
    is_failed: bool,
}

impl Job {
    fn of(number: usize) -> Self {
        let one = mix(number, 0) % TOPICS;
        let other = (one + 1 + mix(number, 1) % (TOPICS - 1)) % TOPICS;
        let case = number / ERA * CASES + mix(number, 2) % CASES;
        let is_failed = mix(number, 5).is_multiple_of(FAILED_EVERY);
        Self { topics: [topic(one), topic(other)], case: format!("case-{case}"), is_failed }
    }
}

fn topic(number: usize) -> String {
    format!("topic-{number}")
}

fn id(number: usize) -> String {
    format!("6f9619ff-8b86-4d01-b42d-{number:012}")
}

/// Numbers that look like chance and are the same in every bench. They are below 2^32, whatever the machine.
fn mix(number: usize, salt: u64) -> usize {
    let mut mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (salt << 56);
    for shift in [30, 27, 31] {
        mixed = (mixed ^ (mixed >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    usize::try_from(mixed >> 32).unwrap_or_default()
}

/// Writes all rows into a new store.
pub(crate) async fn write(folder: &Path) -> Result<(), Failure> {
    let store = SqliteStore::open(folder, Options::default())?;
    let rows = stream::iter(0..JOBS).map(row).map_ok(|row| store.put(row));
    let puts = rows.map(|put| async { Ok::<_, Failure>(put?.await?) });
    puts.buffer_unordered(WRITERS).try_for_each(async |()| Ok(())).await?;
    Ok(store.close().await?)
}

fn row(number: usize) -> Result<IndexRow, Failure> {
    let Job { topics: [one, other], case, is_failed } = Job::of(number);
    let at = Timestamp::from_micros(FIRST).after(Millis(number as u64));
    let execution = ExecutionId::new(&id(number))?;
    Ok(IndexRow {
        summary: RunSummary {
            run_id: execution.to_string(),
            flow_name: "analysis".to_owned(),
            tag: Some(Tag::new(SERVED)?),
            tags: vec![one, other, case],
            tenant_id: None,
            api_key_id: None,
            status: if is_failed { RunStatus::Failed } else { RunStatus::Completed },
            updated_at: Some(at.as_unix_seconds()),
            heartbeat_at: None,
            worker_id: None,
            error: None,
        },
        execution,
        version: Version(1),
        created_at: at,
        updated_at: at,
        started_at: Some(at),
        ended_at: Some(at),
        cancel_requested_at: None,
        workflow_sha256: None,
        hidden: false,
        next_timer: None,
        wants_job: false,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_as_common_and_as_rare_as_they_are_said_to_be() {
        let of = |asked: Asked| asked.question(7).answer().count();
        assert!((90_000..110_000).contains(&of(Asked::CommonTag)));
        assert!((5..50).contains(&of(Asked::RareTag)));
        assert!((4_000..7_000).contains(&of(Asked::TwoCommonTags)));
        assert!((1..50).contains(&of(Asked::CommonAndRareTag)));
        assert!((4_000..6_000).contains(&of(Asked::TagAndStatus)));
    }

    #[test]
    fn all_tags_are_used() {
        let mut used = std::collections::BTreeSet::new();
        for number in 0..JOBS {
            let Job { topics, case, .. } = Job::of(number);
            used.extend(topics);
            used.insert(case);
        }
        assert_eq!(used.len(), TAGS);
    }
}
