//! What requests for a wheel have in common, for the description.

use utoipa::openapi::ResponseBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Content, ObjectBuilder, Ref};
use utoipa::{IntoParams, IntoResponses, ToSchema};

use super::refusals::{Described, described, with_body};

/// The bytes of a wheel.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "describes the bytes for OpenAPI; they are sent as they are")]
pub(crate) struct WheelFile(Vec<u8>);

/// The headers that ask for a part.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the headers for OpenAPI; they are read one by one")]
pub(crate) struct PartHeaders {
    /// The `ETag` of what the client has.
    #[param(rename = "If-None-Match")]
    known: Option<String>,
    /// Which bytes are wanted. One range is followed; several are not.
    #[param(rename = "Range")]
    range: Option<String>,
    /// Only if it still has this `ETag`; else all of it is sent.
    #[param(rename = "If-Range")]
    unchanged: Option<String>,
}

/// Of a look at one wheel.
pub(crate) struct WheelRead;

impl IntoResponses for WheelRead {
    fn responses() -> Described {
        let length = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .description(Some("`bytes */` and how many there are."));
        let beyond = with_body("The wheel has no such bytes.", "ErrorBody");
        let bytes = Content::new(Some(Ref::from_schema_name("WheelFile")));
        let part = "The bytes that were asked for; `Content-Range` says which.";
        described([
            ("206", ResponseBuilder::new().description(part).content("application/octet-stream", bytes)),
            ("304", ResponseBuilder::new().description("The client has it already.")),
            ("404", with_body("There is no such wheel.", "ErrorBody")),
            ("416", beyond.header("Content-Range", length.build())),
        ])
    }
}
