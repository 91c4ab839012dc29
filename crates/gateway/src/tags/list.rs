//! The tags that are in use, with how many jobs have each.

use axum::Json;
use axum::extract::State;
use pyoco_api::{TagCount, TagPage};
use pyoco_core::ids::TenantId;
use pyoco_core::notice::Notice;
use pyoco_ports::LabelFilter;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::CHARACTERS;
use crate::caller::Viewer;
use crate::docs::{Denied, Listed, Tokened};
use crate::error::{Denial, Refusal};
use crate::query::Query;
use crate::validation::Inputs;
use crate::{App, opaque};

/// A label of another surface may be longer than any tag. A token has no room for more of it than this.
const LONGEST_PLACE: usize = 1 << 10;

/// Where the list goes on, and of what it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    a: String,
    m: String,
}

/// Tags with how many jobs have them, in the order of their bytes.
#[utoipa::path(get, operation_id = "listTags", tag = "tags", path = "/tags", params(
    ("prefix" = Option<String>, Query, max_length = 128, description = "what they begin with"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 1_000), ("nextToken" = Option<String>, Query)
), responses((status = 200, description = "The tags.", body = TagPage), Tokened, Listed, Denied))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    query: Query,
) -> Result<Json<TagPage>, Denial> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=1_000, 100);
    let prefix = query.text(&mut inputs, "prefix", CHARACTERS);
    inputs.finish(Notice::InvalidListQuery)?;
    let prefix = prefix.map(|prefix| prefix.nfc().collect::<String>());
    let mark = mark(caller.tenant.as_ref(), prefix.as_deref());
    let after = match query.filled("nextToken") {
        None => None,
        Some(text) => match opaque::decode::<Token>(text).filter(|token| token.m == mark) {
            Some(token) => Some(token.a),
            None => return Err(Refusal::bad_token("nextToken", "it is not of this list").into()),
        },
    };
    let filter = LabelFilter { tenant: caller.tenant, prefix, after };
    let page = app.engine.store().labels(&filter, limit as usize).await?;
    let next_token = page.next.map(|next| opaque::encode(&Token { a: place(next), m: mark }));
    let tags = page.labels.into_iter().map(|(tag, count)| TagCount { tag, count }).collect();
    Ok(Json(TagPage { tags, next_token }))
}

fn mark(tenant: Option<&TenantId>, prefix: Option<&str>) -> String {
    opaque::mark(&("tags", tenant, prefix))
}

/// Where to go on behind a label: behind all that begin like it, if it is longer than anybody reads.
fn place(label: String) -> String {
    let end = label.floor_char_boundary(LONGEST_PLACE);
    match label.get(..end) {
        Some(beginning) if end < label.len() => format!("{beginning}{}", char::MAX),
        Some(_) | None => label,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_room_in_a_token_and_lies_behind_its_label() {
        assert_eq!(place("short".to_owned()), "short");
        let long = "語".repeat(5_000);
        let behind = place(long.clone());
        assert!(behind.len() <= LONGEST_PLACE + 4 && behind > long);
    }
}
