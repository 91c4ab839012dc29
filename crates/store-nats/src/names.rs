//! The subjects and names of everything that stands in NATS. No other file builds a subject.
//!
//! A subject is made of tokens between dots; `*` and `>` match others, blanks and line breaks end a command of the protocol.
//! What people choose becomes part of a subject here only, and only in a form that can mean nothing else.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, KeyId, Tag, TenantId, WorkerId};

use crate::Settings;
use crate::error::OpenError;

/// The stream of records.
pub(crate) const EVENTS: &str = "PYOCO_EVENTS";
/// The stream of what tasks write.
pub(crate) const LOGS: &str = "PYOCO_LOGS";
/// The stream of registered graphs.
pub(crate) const GRAPHS: &str = "PYOCO_GRAPHS";
/// The stream of the audit trail.
pub(crate) const AUDIT: &str = "PYOCO_AUDIT";
/// The stream of what retention needs to know: tombstones, and who uses which blob.
pub(crate) const RETENTION: &str = "PYOCO_RETENTION";
/// The bucket of blobs.
pub(crate) const BLOBS: &str = "pyoco_blobs";

/// All records.
pub(crate) const ALL_EVENTS: &str = "pyoco.events.>";
/// Everything that tasks write.
pub(crate) const ALL_LOGS: &str = "pyoco.logs.>";
/// All versions of all graphs.
pub(crate) const ALL_GRAPHS: &str = "pyoco.graphs.>";
/// The whole audit trail.
pub(crate) const ALL_AUDIT: &str = "pyoco.audit.>";

/// All tombstones.
pub(crate) const ALL_TOMBSTONES: &str = "pyoco.tombstones.*";
/// All uses of blobs.
pub(crate) const ALL_USES: &str = "pyoco.uses.>";
/// Who uses the blobs of graphs, which stay. No execution can have this name.
pub(crate) const GRAPHS_USE: &str = "=graphs";

/// How far the records were looked through for executions that nobody is shown. It stands among the uses because a stream that is there
/// is never given another subject. No execution can have this name, and no blob.
pub(crate) const LOOKED: &str = "pyoco.uses.=looked.events";

/// What is left of an execution that was removed.
pub(crate) fn tombstone(execution: &ExecutionId) -> String {
    format!("pyoco.tombstones.{execution}")
}

/// Somebody, an execution or the graphs, uses a blob.
pub(crate) fn blob_use(user: &str, digest: &Digest) -> String {
    format!("pyoco.uses.{user}.{digest}")
}

/// All blobs that an execution uses.
pub(crate) fn uses_by(execution: &ExecutionId) -> String {
    format!("pyoco.uses.{execution}.*")
}

/// All who use a blob.
pub(crate) fn uses_of(digest: &Digest) -> String {
    format!("pyoco.uses.*.{digest}")
}

/// The records of an execution.
pub(crate) fn events(execution: &ExecutionId) -> String {
    format!("pyoco.events.{execution}")
}

/// Whose records stand at a subject; nothing if it is none of records.
pub(crate) fn of_events(subject: &str) -> Option<ExecutionId> {
    ExecutionId::new(subject.strip_prefix("pyoco.events.")?).ok()
}

/// What the tasks of an execution write.
pub(crate) fn logs(execution: &ExecutionId) -> String {
    format!("pyoco.logs.{execution}")
}

/// All versions of a graph.
pub(crate) fn graph(tenant: Option<&TenantId>, id: &str) -> String {
    format!("pyoco.graphs.{}.{}", tenant_token(tenant), graph_token(id))
}

/// All graphs of a tenant.
pub(crate) fn graphs_of(tenant: Option<&TenantId>) -> String {
    format!("pyoco.graphs.{}.>", tenant_token(tenant))
}

/// The audit trail of a tenant.
pub(crate) fn audit(tenant: Option<&TenantId>) -> String {
    format!("pyoco.audit.{}", tenant_token(tenant))
}

/// The stream of a bucket of keys and values.
pub(crate) fn bucket_stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

/// All keys of a bucket.
pub(crate) fn bucket_subjects(bucket: &str) -> String {
    format!("$KV.{bucket}.>")
}

/// The stream of a bucket of objects.
pub(crate) fn object_stream(bucket: &str) -> String {
    format!("OBJ_{bucket}")
}

/// All pieces and all descriptions of a bucket of objects.
pub(crate) fn object_subjects(bucket: &str) -> [String; 2] {
    [format!("$O.{bucket}.C.>"), format!("$O.{bucket}.M.>")]
}

/// The pieces of a blob; `part` was made up for one writing of it.
pub(crate) fn blob_chunks(part: &str) -> String {
    format!("$O.{BLOBS}.C.{}", escaped(part))
}

/// The description of a blob.
pub(crate) fn blob_description(digest: &Digest) -> String {
    format!("$O.{BLOBS}.M.{}", URL_SAFE.encode(digest.to_string()))
}

impl Settings {
    /// The jobs of a tag.
    pub(crate) fn work(&self, tag: &Tag) -> String {
        format!("{}.{tag}", self.work_subject_prefix)
    }

    /// The jobs of all tags.
    pub(crate) fn all_work(&self) -> String {
        format!("{}.>", self.work_subject_prefix)
    }

    /// The one consumer of a tag's jobs, which all implementations share.
    pub(crate) fn work_consumer(tag: &Tag) -> String {
        format!("pyoco_workers_{tag}")
    }

    /// The one consumer of a bucket that a process has; `instance` was made up for it.
    pub(crate) fn index_consumer(instance: &str) -> String {
        format!("pyoco_index_{}", escaped(instance))
    }

    /// The dead letters of a tag, which may be a text that no tag could be.
    pub(crate) fn dead_letters(&self, tag: &str) -> String {
        format!("{}.{}", self.dlq_subject_prefix, tag_token(tag))
    }

    /// All dead letters.
    pub(crate) fn all_dead_letters(&self) -> String {
        format!("{}.>", self.dlq_subject_prefix)
    }

    /// The snapshot of a run.
    pub(crate) fn run(&self, execution: &ExecutionId) -> String {
        format!("$KV.{}.{execution}", self.runs_bucket)
    }

    /// The record of a worker.
    pub(crate) fn worker(&self, worker: &WorkerId) -> String {
        format!("$KV.{}.{}", self.workers_bucket, worker_key(worker))
    }

    /// The record of an API key. An id is one token.
    pub(crate) fn key(&self, id: &KeyId) -> String {
        format!("$KV.{}.api_keys.{id}", self.auth_bucket)
    }

    /// The records of all API keys.
    pub(crate) fn all_keys(&self) -> String {
        format!("$KV.{}.api_keys.*", self.auth_bucket)
    }

    /// The descriptions of all wheels.
    pub(crate) fn all_wheels(&self) -> String {
        format!("$O.{}.M.>", self.wheels_bucket)
    }

    /// The description of an object in the bucket of wheels.
    pub(crate) fn wheel(&self, name: &str) -> String {
        format!("$O.{}.M.{}", self.wheels_bucket, URL_SAFE.encode(name))
    }

    /// The pieces of all wheels.
    pub(crate) fn all_wheel_chunks(&self) -> String {
        format!("$O.{}.C.>", self.wheels_bucket)
    }

    /// The pieces of a wheel; `nuid` was made up for one upload of it.
    pub(crate) fn wheel_chunks(&self, nuid: &str) -> String {
        format!("$O.{}.C.{}", self.wheels_bucket, escaped(nuid))
    }

    /// An event of the history of wheels. Keys are in the order in which things happened.
    pub(crate) fn wheel_event(&self, millis: i64, id: &str) -> String {
        format!("$KV.{}.{millis:013}_{}", self.wheel_history_bucket, escaped(id))
    }

    /// Whether every name an operator chose can be part of a subject.
    pub(crate) fn check_names(&self) -> Result<(), OpenError> {
        let single = [
            ("the stream of jobs", &self.work_stream),
            ("the stream of dead letters", &self.dlq_stream),
            ("the bucket of runs", &self.runs_bucket),
            ("the bucket of workers", &self.workers_bucket),
            ("the bucket of API keys", &self.auth_bucket),
            ("the bucket of wheels", &self.wheels_bucket),
            ("the bucket of the history of wheels", &self.wheel_history_bucket),
        ];
        let dotted = [
            ("the subject of jobs", &self.work_subject_prefix),
            ("the subject of dead letters", &self.dlq_subject_prefix),
        ];
        for (what, name) in single {
            if !is_token(name) {
                return Err(OpenError::Name { what, name: name.clone() });
            }
        }
        let inbox = self.inbox_prefix.iter().map(|prefix| ("the subject of answers", prefix));
        for (what, name) in dotted.into_iter().chain(inbox) {
            if !name.split('.').all(is_token) {
                return Err(OpenError::Name { what, name: name.clone() });
            }
        }
        Ok(())
    }
}

/// Whether a text may stand between two dots as it is.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_plain)
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A text with every byte that is not a letter, digit, `_` or `-` written as `=` and two hexadecimal digits.
fn escaped(text: &str) -> String {
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        push(&mut token, byte);
    }
    token
}

fn push(token: &mut String, byte: u8) {
    if is_plain(byte) {
        token.push(char::from(byte));
    } else {
        // Writing to a text cannot fail.
        let _ = write!(token, "={byte:02X}");
    }
}

/// Nobody's name is one that no tenant can have: what follows `=` is otherwise hexadecimal.
fn tenant_token(tenant: Option<&TenantId>) -> String {
    tenant.map_or_else(|| "=none".to_owned(), |tenant| escaped(tenant.as_str()))
}

/// The name of a graph as one token. One that would be very long is a fingerprint, which begins as no other does.
fn graph_token(id: &str) -> String {
    /// A command of the protocol has room for more, but not for much more.
    const MOST: usize = 1024;
    let token = escaped(id);
    let is_good = !token.is_empty() && token.len() <= MOST;
    if is_good { token } else { format!("=={}", Digest::of_bytes(id.as_bytes())) }
}

/// A tag as one token. A real tag is itself; of anything else a beginning is kept, for people who look for it.
fn tag_token(tag: &str) -> String {
    /// The length of the longest tag.
    const MOST: usize = 128;
    let cut = tag.char_indices().map(|(at, _)| at).find(|at| *at >= MOST).unwrap_or(tag.len());
    let token = escaped(tag.get(..cut).unwrap_or_default());
    if token.is_empty() { "default".to_owned() } else { token }
}

/// The key of a worker. The original takes the id as it is, and host names have dots: a dot between two other characters stays,
/// as it does in every key of a bucket. A key cannot leave its bucket: no token is empty, and no other special character stays.
pub(crate) fn worker_key(worker: &WorkerId) -> String {
    let bytes = worker.as_str().as_bytes();
    let mut key = String::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        let is_inside = at > 0 && at + 1 < bytes.len() && bytes.get(at + 1) != Some(&b'.');
        // What follows an escaped dot is never an empty token, so only the character behind counts.
        if *byte == b'.' && is_inside {
            key.push('.');
        } else {
            push(&mut key, *byte);
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What would change the meaning of a subject.
    const HOSTILE: &[&str] = &[
        "",
        ".",
        "..",
        "*",
        ">",
        "a.b",
        "a.>",
        "a.*.b",
        "a b",
        "a\tb",
        "a\r\nPUB x 1\r\n",
        "$JS.API.STREAM.DELETE.PYOCO_EVENTS",
        "日本",
        "a=b",
        "\0",
        "a\u{a0}b",
        "\u{2028}",
    ];

    fn is_safe(token: &str) -> bool {
        !token.is_empty() && token.bytes().all(|byte| is_plain(byte) || byte == b'=')
    }

    #[test]
    fn an_id_that_is_not_one_token_cannot_be_made() {
        for text in HOSTILE {
            assert!(ExecutionId::new(text).is_err(), "{text:?}");
            assert!(Tag::new(text).is_err(), "{text:?}");
            assert!(KeyId::new(&format!("{text}-and-more")).is_err() || text.is_empty(), "{text:?}");
        }
        assert_eq!(events(&ExecutionId::new("a-b_1").unwrap()), "pyoco.events.a-b_1");
    }

    #[test]
    fn the_tag_of_a_dead_letter_is_always_one_token() {
        let settings = Settings::new(&[]);
        for text in HOSTILE {
            let subject = settings.dead_letters(text);
            let token = subject.strip_prefix("pyoco.dlq.").unwrap();
            assert!(is_safe(token), "{text:?} became {token:?}");
        }
        assert_eq!(settings.dead_letters("gpu-1"), "pyoco.dlq.gpu-1");
        assert_eq!(settings.dead_letters(&"日".repeat(1000)).len(), "pyoco.dlq.".len() + 43 * 9);
    }

    #[test]
    fn every_graph_has_a_subject_of_its_own() {
        let long = ["日".repeat(256), "日".repeat(255), "a".repeat(256)];
        let ids: Vec<&str> =
            HOSTILE.iter().copied().chain(long.iter().map(String::as_str)).chain(["a=2Eb"]).collect();
        let team = TenantId::new("none").unwrap();
        let subjects: std::collections::BTreeSet<String> =
            ids.iter().flat_map(|id| [graph(None, id), graph(Some(&team), id)]).collect();
        assert_eq!(subjects.len(), ids.len() * 2);
        for subject in &subjects {
            let tokens: Vec<&str> = subject.split('.').collect();
            assert_eq!((tokens.len(), &tokens[..2]), (4, &["pyoco", "graphs"][..]), "{subject}");
            assert!(tokens[2..].iter().all(|token| is_safe(token) && token.len() <= 1024), "{subject}");
        }
        assert_eq!(graph(None, "daily-report"), "pyoco.graphs.=none.daily-report");
        assert_eq!(graph(Some(&team), "a b"), "pyoco.graphs.none.a=20b");
    }

    #[test]
    fn the_key_of_a_worker_never_leaves_its_bucket() {
        let settings = Settings::new(&[]);
        for text in HOSTILE.iter().chain(&[".a", "a.", "a..b", "...", "a...b", "a. .b"]) {
            let Ok(worker) = WorkerId::new(text) else { continue };
            let subject = settings.worker(&worker);
            let key = subject.strip_prefix("$KV.pyoco_workers.").unwrap();
            assert!(key.split('.').all(is_safe), "{text:?} became {key:?}");
        }
        let host = WorkerId::new("gpu.example.org-1").unwrap();
        assert_eq!(settings.worker(&host), "$KV.pyoco_workers.gpu.example.org-1");
    }

    #[test]
    fn two_workers_never_share_a_key() {
        let ids = ["a.b", "a=2Eb", "a..b", "a.=2Eb", "a b", "a=20b", ".a", "=2Ea", "a.", "a=2E"];
        let keys: std::collections::BTreeSet<String> =
            ids.iter().map(|id| worker_key(&WorkerId::new(id).unwrap())).collect();
        assert_eq!(keys.len(), ids.len(), "{keys:?}");
    }

    #[test]
    fn a_name_that_an_operator_chose_is_refused_when_it_would_mean_something_else() {
        for text in ["", "a b", "a.*", ">", "a..b", ".a", "$JS.API", "a\n"] {
            let mut settings = Settings::new(&[]);
            settings.work_subject_prefix = text.to_owned();
            assert!(settings.check_names().is_err(), "{text:?}");
            let mut settings = Settings::new(&[]);
            settings.runs_bucket = text.to_owned();
            assert!(settings.check_names().is_err(), "{text:?}");
        }
        let mut settings = Settings::new(&[]);
        settings.work_subject_prefix = "team-1.pyoco.work".to_owned();
        settings.check_names().unwrap();
    }
}
