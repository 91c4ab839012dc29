//! Which subjects each program needs, for servers that let nobody do more. Nothing is asked of a server here.
//!
//! A worker may read and write what runs need, and makes no stream. It may neither read nor hear API keys, nor listen where answers to
//! others come. It may ask how a stream stands, also the one of keys, which tells their ids and no secret.

use crate::backup::ours;
use crate::{Settings, names};

/// Who is to be let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// Answers requests, keeps lists, makes what is missing, and may have a worker inside.
    Gateway,
    /// Takes runs.
    Worker,
    /// Looks after everything: backups, keys, dead letters, streams.
    Admin,
}

impl Party {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gateway, Self::Worker, Self::Admin];

    /// What its user is called.
    pub const fn user(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Worker => "worker",
            Self::Admin => "admin",
        }
    }

    /// Where answers to it come, and to nobody else: `Settings::inbox_prefix`.
    pub const fn inbox_prefix(self) -> &'static str {
        match self {
            Self::Gateway => "_INBOX_gateway",
            Self::Worker => "_INBOX_worker",
            Self::Admin => "_INBOX_admin",
        }
    }
}

/// The subjects somebody may send to, and those it may listen to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// May be sent to.
    pub publish: Vec<String>,
    /// May be listened to.
    pub subscribe: Vec<String>,
}

impl Rights {
    /// What a program needs with these names of streams and buckets.
    pub fn of(party: Party, settings: &Settings) -> Self {
        let inbox = format!("{}.>", party.inbox_prefix());
        match party {
            Party::Gateway => Self::gateway(settings, inbox),
            Party::Worker => Self::worker(settings, inbox),
            Party::Admin => Self::admin(settings, inbox),
        }
    }

    fn gateway(settings: &Settings, inbox: String) -> Self {
        let mut publish = vec!["$JS.API.INFO".to_owned(), "$JS.ACK.>".to_owned()];
        for stream in ours(settings) {
            publish.extend(reads(&stream));
            publish.extend(consumes(&stream));
            let writes = ["STREAM.CREATE", "STREAM.PURGE", "STREAM.MSG.DELETE"];
            publish.extend(writes.map(|what| format!("$JS.API.{what}.{stream}")));
        }
        publish.extend(data(settings));
        let mut subscribe = vec![inbox];
        subscribe.extend(heard(settings));
        subscribe.push(names::ALL_LOGS.to_owned());
        Self { publish, subscribe }
    }

    fn worker(settings: &Settings, inbox: String) -> Self {
        let auth = names::bucket_stream(&settings.auth_bucket);
        let kept = [auth.as_str(), names::AUDIT];
        let mut publish = vec!["$JS.API.INFO".to_owned()];
        for stream in ours(settings) {
            if kept.contains(&stream.as_str()) {
                publish.push(format!("$JS.API.STREAM.INFO.{stream}"));
            } else {
                publish.extend(reads(&stream));
            }
        }
        let work = &settings.work_stream;
        publish.extend(consumes(work));
        publish.push(format!("$JS.ACK.{work}.>"));
        publish.push(format!("$JS.API.STREAM.MSG.DELETE.{work}"));
        // What was put half is taken back.
        let taken_back = [names::object_stream(names::BLOBS), names::RETENTION.to_owned()];
        publish.extend(taken_back.map(|stream| format!("$JS.API.STREAM.PURGE.{stream}")));
        let kept = [names::bucket_subjects(&settings.auth_bucket), names::ALL_AUDIT.to_owned()];
        publish.extend(data(settings).into_iter().filter(|subject| !kept.contains(subject)));
        let mut subscribe = vec![inbox];
        subscribe.extend(heard(settings));
        Self { publish, subscribe }
    }

    fn admin(settings: &Settings, inbox: String) -> Self {
        // Backups are the servers' own copies, which go other ways than messages do.
        let all = ["$JS.API.>", "$JS.ACK.>", "$JS.SNAPSHOT.>"];
        let mut publish: Vec<String> = all.map(str::to_owned).into();
        publish.extend(data(settings));
        let mut subscribe = vec![inbox];
        subscribe.extend(heard(settings));
        subscribe.push(names::ALL_LOGS.to_owned());
        Self { publish, subscribe }
    }
}

/// Looking at a stream and reading its messages.
fn reads(stream: &str) -> [String; 4] {
    [
        format!("$JS.API.STREAM.INFO.{stream}"),
        format!("$JS.API.STREAM.MSG.GET.{stream}"),
        format!("$JS.API.DIRECT.GET.{stream}"),
        format!("$JS.API.DIRECT.GET.{stream}.>"),
    ]
}

/// Having a consumer of a stream.
fn consumes(stream: &str) -> [String; 5] {
    [
        format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
        format!("$JS.API.CONSUMER.INFO.{stream}.*"),
        format!("$JS.API.CONSUMER.LIST.{stream}"),
        format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*"),
        format!("$JS.API.CONSUMER.DELETE.{stream}.*"),
    ]
}

/// Everything that is stored.
fn data(settings: &Settings) -> Vec<String> {
    let buckets = [
        &settings.runs_bucket,
        &settings.workers_bucket,
        &settings.auth_bucket,
        &settings.wheel_history_bucket,
    ];
    let objects = [names::BLOBS, settings.wheels_bucket.as_str()];
    let mut subjects: Vec<String> = [
        names::ALL_EVENTS,
        names::ALL_LOGS,
        names::ALL_GRAPHS,
        names::ALL_AUDIT,
        names::ALL_TOMBSTONES,
        names::ALL_USES,
    ]
    .map(str::to_owned)
    .into();
    subjects.extend([settings.all_work(), settings.all_dead_letters()]);
    subjects.extend(buckets.map(|bucket| names::bucket_subjects(bucket)));
    subjects.extend(objects.into_iter().flat_map(names::object_subjects));
    subjects
}

/// What is heard of as it is written, and that a job was handed out too often.
fn heard(settings: &Settings) -> Vec<String> {
    vec![
        names::bucket_subjects(&settings.runs_bucket),
        settings.all_wheels(),
        format!("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{}.*", settings.work_stream),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a list takes a subject, as a server understands it.
    fn takes(list: &[String], subject: &str) -> bool {
        let one = |pattern: &String| {
            let mut tokens = subject.split('.');
            for wanted in pattern.split('.') {
                match (wanted, tokens.next()) {
                    (">", Some(_)) => return true,
                    ("*", Some(_)) => {}
                    (wanted, Some(token)) if wanted == token => {}
                    (_, Some(_) | None) => return false,
                }
            }
            tokens.next().is_none()
        };
        list.iter().any(one)
    }

    #[test]
    fn a_worker_has_no_way_to_a_key() {
        let rights = Rights::of(Party::Worker, &Settings::new(&[]));
        for way in [
            "$JS.API.STREAM.MSG.GET.KV_pyoco_auth",
            "$JS.API.DIRECT.GET.KV_pyoco_auth",
            "$JS.API.DIRECT.GET.KV_pyoco_auth.$KV.pyoco_auth.api_keys.x",
            "$JS.API.CONSUMER.CREATE.KV_pyoco_auth",
            "$JS.API.CONSUMER.CREATE.KV_pyoco_auth.c.$KV.pyoco_auth.>",
            "$JS.API.CONSUMER.DURABLE.CREATE.KV_pyoco_auth.c",
            "$JS.API.STREAM.SNAPSHOT.KV_pyoco_auth",
            "$JS.API.STREAM.CREATE.mirror",
            "$JS.API.STREAM.UPDATE.PYOCO_WORK",
            "$KV.pyoco_auth.api_keys.x",
        ] {
            assert!(!takes(&rights.publish, way), "{way}");
        }
        for place in
            ["$KV.pyoco_auth.api_keys.x", "_INBOX_gateway.x", "_INBOX_admin.x", "_INBOX.x", "$JS.API.x"]
        {
            assert!(!takes(&rights.subscribe, place), "{place}");
        }
        assert!(takes(&rights.publish, "pyoco.events.run") && takes(&rights.subscribe, "_INBOX_worker.x"));
    }

    #[test]
    fn a_gateway_may_do_what_a_worker_may() {
        let settings = Settings::new(&[]);
        let (gateway, worker) = (Rights::of(Party::Gateway, &settings), Rights::of(Party::Worker, &settings));
        for subject in &worker.publish {
            assert!(takes(&gateway.publish, &subject.replace(['>', '*'], "x")), "{subject}");
        }
        assert!(!takes(&gateway.publish, "$JS.API.STREAM.DELETE.PYOCO_EVENTS"));
        assert!(!takes(&gateway.publish, "$JS.API.STREAM.CREATE.OTHER"));
    }
}
