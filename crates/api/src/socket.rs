//! What is said over the WebSocket of a job, in either direction. Each message is one text of JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Job, LogEntry};

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum JobNews {
    /// The job, at once and whenever it changes. The last one comes before the connection is closed.
    Status {
        /// The job, without its parameters.
        job: Box<Job>,
    },
    /// How far it is, whenever that changes.
    Progress(JobProgress),
    /// One line of its log.
    Log {
        /// The line.
        entry: LogEntry,
        /// What to send as `sinceToken` to go on behind it.
        token: String,
    },
    /// The answer to a ping.
    Pong,
    /// A message could not be understood, or not be followed.
    Error {
        /// A stable word for it, as in the bodies of refusals.
        code: String,
        /// For people.
        message: String,
    },
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// How many tasks are settled.
    pub completed: u64,
    /// How many there are, as far as that is known.
    pub total: u64,
    /// Those that run now, the first hundred of them.
    pub tasks: Vec<RunningTask>,
}

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunningTask {
    /// Its name.
    pub task: String,
    /// `running` or `waiting`.
    #[schema(example = "running")]
    pub status: String,
    /// How far it is, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// What it says about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum JobWish {
    /// Stop the job.
    Cancel {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(max_length = 2_000)]
        reason: Option<String>,
    },
    /// Is anybody there?
    Ping {},
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_message_names_its_type() {
        let progress = JobNews::Progress(JobProgress { completed: 1, total: 2, tasks: Vec::new() });
        for (news, shown) in [
            (JobNews::Pong, json!({"type": "pong"})),
            (progress, json!({"type": "progress", "completed": 1, "total": 2, "tasks": []})),
        ] {
            assert_eq!(serde_json::to_value(&news).unwrap(), shown);
            assert_eq!(serde_json::from_value::<JobNews>(shown).unwrap(), news);
        }
    }

    #[test]
    fn a_wish_with_more_than_it_may_have_is_none() {
        let read = |value| serde_json::from_value::<JobWish>(value);
        assert_eq!(read(json!({"type": "ping"})).unwrap(), JobWish::Ping {});
        assert_eq!(read(json!({"type": "cancel"})).unwrap(), JobWish::Cancel { reason: None });
        for wrong in [
            json!({"type": "ping", "x": 1}),
            json!({"type": "cancel", "reason": 5}),
            json!({"type": "Cancel"}),
            json!({"type": "delete"}),
            json!({}),
            json!([]),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
