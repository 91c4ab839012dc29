//! A page of a log, as JSON.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use pyoco_api::LogPage;

use super::{Answering, Token, entry};
use crate::error::Refusal;

const DEFAULT_LIMIT: usize = 200;

/// Lines and where to go on. To look at the head alone reads none.
pub(super) async fn answer(about: &Answering<'_>, method: &Method) -> Result<Response, Refusal> {
    let Answering { engine, execution, end, wanted } = about;
    if method == Method::HEAD {
        // How long the page is would only be known if it were read: nothing is said of it.
        let unread = futures_util::stream::empty::<Result<Bytes, std::convert::Infallible>>();
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        return Ok((kind, Body::from_stream(unread)).into_response());
    }
    let after = wanted.since.unwrap_or(0);
    let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
    let page = engine.log_page(execution, after, limit, &wanted.filter).await?;
    let lines = page.lines.iter().take_while(|(number, _)| *number <= end.lines);
    let entries = lines.map(|(number, line)| entry(*number, line)).collect();
    let through_seq = page.reached.min(end.lines);
    let next_token = Token::of(execution, through_seq);
    Ok(Json(LogPage { entries, next_token, through_seq, last_seq: end.lines }).into_response())
}
