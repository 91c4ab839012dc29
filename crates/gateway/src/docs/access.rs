//! What the description says about keys: how one is shown, and what whoever has none is answered. Which requests need one, and of
//! which role, is read from the table of routes.

use axum::http::{HeaderName, Method};
use pyoco_core::access::Role;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi, ResponseBuilder};

use super::refusals::{Described, described, with_body, with_retry};
use crate::error::has_codes;
use crate::routes::RouteInfo;

/// The names of the two ways.
const KEY: &str = "apiKey";
const BEARER: &str = "bearer";

/// Describes the door of these routes. A request is said to need a key only where keys are asked for.
pub(super) fn describe(
    description: &mut OpenApi,
    routes: &[RouteInfo],
    header: &HeaderName,
    is_closed: bool,
) {
    let key = ApiKeyValue::with_description(header.as_str(), "An API key.");
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("The same key."));
    let components = description.components.get_or_insert_default();
    components.add_security_scheme(KEY, SecurityScheme::ApiKey(ApiKey::Header(key)));
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer.build()));
    for RouteInfo { path, method, needs, .. } in routes {
        let item = description.paths.paths.get_mut(*path);
        let Some(operation) = item.and_then(|item| operation(item, method)) else { continue };
        let either = [KEY, BEARER].map(|name| SecurityRequirement::new(name, [""; 0]));
        operation.security = is_closed.then(|| needs.map_or_else(Vec::new, |_| either.to_vec()));
        if let Some(role) = needs {
            for (status, answer) in answers(path, *role) {
                operation.responses.responses.entry(status).or_insert(answer);
            }
        }
    }
}

fn operation<'a>(item: &'a mut PathItem, method: &Method) -> Option<&'a mut Operation> {
    let operation = match *method {
        Method::GET => &mut item.get,
        Method::PUT => &mut item.put,
        Method::POST => &mut item.post,
        Method::PATCH => &mut item.patch,
        Method::DELETE => &mut item.delete,
        _ => return None,
    };
    operation.as_mut()
}

/// What is answered at the door, in the words of the surface.
fn answers(path: &str, role: Role) -> Described {
    let body = if has_codes(path) { "DenialBody" } else { "ErrorBody" };
    let answer = |said: &str| -> ResponseBuilder { with_body(said, body) };
    described([
        ("400", answer("Two credentials at once.")),
        ("401", answer("A key is needed, where keys are asked for.")),
        ("403", answer(&format!("The key is not valid, or its role is smaller than `{role}`."))),
        ("429", with_retry(answer("The key was shown wrongly too often."))),
        ("503", with_retry(answer("Nobody can tell now whether the key is valid."))),
    ])
}
