//! The answers that requests of `/executions`, `/graphs` and `/waits` share, for the description, and those of every surface with codes.

use utoipa::openapi::schema::Type;
use utoipa::openapi::{Content, ObjectBuilder, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

use super::refusals::{Described, described, with_body, with_retry};

/// Of every request.
pub(crate) struct Denied;

/// Of a list.
pub(crate) struct Listed;

/// Of a look at one execution.
pub(crate) struct Found;

/// Of a look at one graph.
pub(crate) struct GraphFound;

/// Of a command.
pub(crate) struct Commanding;

/// Of a command to many executions.
pub(crate) struct ManyCommanding;

/// Of a change of a graph.
pub(crate) struct Changing;

/// Of a graph's end.
pub(crate) struct Removing;

/// The headers of a command.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the headers for OpenAPI; they are read one by one")]
pub(crate) struct CommandHeaders {
    /// A new one for each command, the same one to repeat it. `Idempotency-Key` means the same.
    #[param(
        rename = "X-Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$"
    )]
    key: String,
    /// The caller's thread through several commands; it stands in the events.
    #[param(rename = "X-Correlation-Id", max_length = 128, pattern = "^[ -~]*$")]
    correlation: Option<String>,
}

impl IntoResponses for Denied {
    fn responses() -> Described {
        let broken = denial("A fault of the server: JSON about one execution, or plain text.")
            .content("text/plain", Content::new(Some(ObjectBuilder::new().schema_type(Type::String))));
        described([
            ("415", denial("The body is compressed, or of a type that is not understood.")),
            ("500", broken),
            ("503", with_retry(denial("The store is away, or the server is busy or stopping."))),
        ])
    }
}

impl IntoResponses for Listed {
    fn responses() -> Described {
        described([("422", denial("The query cannot be read: `details.errors` says why."))])
    }
}

impl IntoResponses for Found {
    fn responses() -> Described {
        let mut both = Listed::responses();
        both.extend(described([("404", denial("There is no such execution."))]));
        both
    }
}

impl IntoResponses for GraphFound {
    fn responses() -> Described {
        let mut both = Listed::responses();
        both.extend(described([("404", denial("There is no such graph."))]));
        both
    }
}

impl IntoResponses for Commanding {
    fn responses() -> Described {
        let repeat = "A repeat under the same key: the answer of the first time, nothing happened now.";
        let mut all = written();
        all.extend(described([
            ("200", with_body(repeat, "Accepted")),
            ("404", denial("There is no such execution, node or graph.")),
            ("409", denial("The state does not allow it, or the key was used with another input.")),
            ("422", denial("The key or the body is not as it has to be: `details.errors` says why.")),
        ]));
        all
    }
}

impl IntoResponses for ManyCommanding {
    fn responses() -> Described {
        let mut all = written();
        all.extend(described([(
            "422",
            denial("The key or the body is not as it has to be: `details.errors` says why."),
        )]));
        all
    }
}

impl IntoResponses for Changing {
    fn responses() -> Described {
        let mut all = written();
        all.extend(described([
            ("412", denial("The newest version is another one.")),
            ("422", denial("The document is no flow: `details.errors` says where.")),
        ]));
        all
    }
}

impl IntoResponses for Removing {
    fn responses() -> Described {
        described([
            ("404", denial("There is no such graph.")),
            ("412", denial("The newest version is another one.")),
            ("507", with_retry(denial("The store is full. Nothing was changed."))),
        ])
    }
}

/// Of a request with a body that changes what is stored.
pub(super) fn written() -> Described {
    described([
        ("400", denial("The body ended early.")),
        ("408", denial("The body did not arrive in time.")),
        ("413", denial("The body, or a value in it, is too large.")),
        ("507", with_retry(denial("The store is full. Nothing was changed."))),
    ])
}

pub(super) fn denial(description: &str) -> ResponseBuilder {
    with_body(description, "DenialBody")
}
