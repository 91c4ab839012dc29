//! What requests for a log have in common, for the description: the query, the headers, and the answers of either surface.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

use super::refusals::{Described, described, with_body};

/// The query of a log.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; it is read one by one")]
pub(crate) struct LogQuery {
    /// The `nextToken` of the page before: only lines behind it.
    #[param(rename = "sinceToken")]
    since: Option<String>,
    /// Lines of a page; 200 unless told. Of a text: all.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
    /// Only lines of this task.
    #[param(max_length = 2_048)]
    task: Option<String>,
    /// Only lines of this stream: `stdout`, `stderr` or `engine`.
    stream: Option<String>,
}

/// The headers of a log.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the headers for OpenAPI; they are read one by one")]
pub(crate) struct LogHeaders {
    /// The `ETag` of what the client has.
    #[param(rename = "If-None-Match")]
    known: Option<String>,
    /// Of the text: which bytes are wanted. One range is followed.
    #[param(rename = "Range")]
    range: Option<String>,
    /// Of the text: only if it still has this `ETag`; else all of it is sent.
    #[param(rename = "If-Range")]
    unchanged: Option<String>,
}

/// The query of a stream of lines.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; it is read one by one")]
pub(crate) struct StreamQuery {
    /// Only lines behind this token.
    #[param(rename = "sinceToken")]
    since: Option<String>,
    /// Only lines of this task.
    #[param(max_length = 2_048)]
    task: Option<String>,
    /// Only lines of this stream: `stdout`, `stderr` or `engine`.
    stream: Option<String>,
}

/// Of the log of a job.
pub(crate) struct JobLogRead;

/// Of the log of a run.
pub(crate) struct RunLogRead;

/// Of the log of a job as it is written.
pub(crate) struct JobLogFollowed;

/// Of the log of a run as it is written.
pub(crate) struct RunLogFollowed;

impl IntoResponses for JobLogRead {
    fn responses() -> Described {
        read(NO_JOB, "DenialBody")
    }
}

impl IntoResponses for RunLogRead {
    fn responses() -> Described {
        read(NO_RUN, "ErrorBody")
    }
}

impl IntoResponses for JobLogFollowed {
    fn responses() -> Described {
        followed(NO_JOB, "DenialBody")
    }
}

impl IntoResponses for RunLogFollowed {
    fn responses() -> Described {
        followed(NO_RUN, "ErrorBody")
    }
}

const NO_JOB: &str = "There is no such job.";
const NO_RUN: &str = "There is no such run.";

fn followed(not_found: &str, schema: &str) -> Described {
    described([
        ("400", with_body("The token, or the number of the last line, is not one of this log.", schema)),
        ("404", with_body(not_found, schema)),
        ("422", with_body("The query cannot be read.", schema)),
    ])
}

fn read(not_found: &str, schema: &str) -> Described {
    let length = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some("`bytes */` and how many there are."));
    let beyond = with_body("The text has no such bytes.", schema).header("Content-Range", length.build());
    let mut all = followed(not_found, schema);
    all.extend(described([
        (
            "206",
            ResponseBuilder::new().description("The bytes that were asked for; `Content-Range` says which."),
        ),
        ("304", ResponseBuilder::new().description("The client has it already.")),
        ("406", with_body("A log has the forms `application/json` and `text/plain`.", schema)),
        ("416", beyond),
    ]));
    all
}
