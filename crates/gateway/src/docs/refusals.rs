//! The answers from 400 up that several requests share, for the description. What is particular to one request stands at
//! its handler.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Content, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder};

pub(super) type Described = BTreeMap<String, RefOr<Response>>;

/// Of every request that does something.
pub(crate) struct Always;

/// Of a request that asks the store.
pub(crate) struct Reading;

/// Of a request that changes what is stored.
pub(crate) struct Writing;

/// Of a request with a body.
pub(crate) struct Bodied;

impl IntoResponses for Always {
    fn responses() -> Described {
        let broken = refusal("A fault of the server: JSON about one run, or plain text.")
            .content("text/plain", Content::new(Some(ObjectBuilder::new().schema_type(Type::String))));
        described([("415", refusal("The body is compressed.")), ("500", broken)])
    }
}

impl IntoResponses for Reading {
    fn responses() -> Described {
        described([("503", later("The store is away, or the server is busy or stopping."))])
    }
}

impl IntoResponses for Writing {
    fn responses() -> Described {
        let mut both = Reading::responses();
        both.extend(described([("507", later("The store is full. Nothing was changed."))]));
        both
    }
}

impl IntoResponses for Bodied {
    fn responses() -> Described {
        described([
            ("400", refusal("The body ended early or is malformed, or a header is not as it has to be.")),
            ("408", refusal("The body did not arrive in time.")),
            ("413", refusal("The body, or a value in it, is too large.")),
        ])
    }
}

pub(super) fn described<const N: usize>(answers: [(&str, ResponseBuilder); N]) -> Described {
    answers.into_iter().map(|(status, answer)| (status.to_owned(), answer.build().into())).collect()
}

fn refusal(description: &str) -> ResponseBuilder {
    with_body(description, "ErrorBody")
}

fn later(description: &str) -> ResponseBuilder {
    with_retry(refusal(description))
}

pub(super) fn with_body(description: &str, schema: &str) -> ResponseBuilder {
    let body = Content::new(Some(Ref::from_schema_name(schema)));
    ResponseBuilder::new().description(description).content("application/json", body)
}

/// The same request may succeed in a moment.
pub(super) fn with_retry(answer: ResponseBuilder) -> ResponseBuilder {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer);
    let header = HeaderBuilder::new()
        .schema(Some(seconds))
        .description(Some("After how many seconds to try again, when that may help."));
    answer.header("Retry-After", header.build())
}
