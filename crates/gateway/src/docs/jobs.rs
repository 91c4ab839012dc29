//! The answers that requests of `/jobs` and `/tags` share, for the description.

use utoipa::{IntoParams, IntoResponses};

use super::denials::{denial, written};
use super::refusals::{Described, described, with_body, with_retry};

/// Of a look at one job.
pub(crate) struct JobFound;

/// Of a new job.
pub(crate) struct Submitting;

/// Of a new tag.
pub(crate) struct Adding;

/// Of something that is taken away.
pub(crate) struct Removed;

/// Of a list that goes on with a token.
pub(crate) struct Tokened;

/// Of a WebSocket that is not opened.
pub(crate) struct NotOpened;

/// The headers of a new job.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the headers for OpenAPI; they are read one by one")]
pub(crate) struct JobHeaders {
    /// A repeat under the same key makes no second job. `Idempotency-Key` means the same.
    #[param(
        rename = "X-Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$"
    )]
    key: Option<String>,
    /// The caller's thread through several commands; it stands in the events.
    #[param(rename = "X-Correlation-Id", max_length = 128, pattern = "^[ -~]*$")]
    correlation: Option<String>,
}

impl IntoResponses for JobFound {
    fn responses() -> Described {
        described([("404", denial("There is no such job."))])
    }
}

impl IntoResponses for Submitting {
    fn responses() -> Described {
        let repeat = "A repeat under the same key: the job as it is now, nothing happened.";
        let mut all = written();
        all.extend(described([
            ("200", with_body(repeat, "Job")),
            ("404", denial("A repeat under the same key, of a job that was removed when it had been kept for long enough.")),
            ("409", denial("The key was used with another input.")),
            ("422", denial("The key or the body is not as it has to be: `details.errors` says why.")),
        ]));
        all
    }
}

impl IntoResponses for Adding {
    fn responses() -> Described {
        let mut all = written();
        all.extend(JobFound::responses());
        all.extend(described([("422", denial("It is no tag, or the job has 64 already."))]));
        all
    }
}

impl IntoResponses for Removed {
    fn responses() -> Described {
        described([("507", with_retry(denial("The store is full. Nothing was changed.")))])
    }
}

impl IntoResponses for Tokened {
    fn responses() -> Described {
        described([("400", denial("The token is not one of this list."))])
    }
}

impl IntoResponses for NotOpened {
    fn responses() -> Described {
        let mut all = JobFound::responses();
        all.extend(described([
            ("400", denial("The token is not one of this log.")),
            ("405", denial("A WebSocket is asked for with GET over HTTP/1.1.")),
            ("426", denial("It is no request for a WebSocket, or of another version than 13.")),
        ]));
        all
    }
}
