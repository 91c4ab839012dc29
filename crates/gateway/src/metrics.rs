//! Figures for an operator, in Prometheus' text form.

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_figures::table::{
    Figure, LETTERS_KEPT, QUEUE_DEPTH, QUEUE_OLDEST, RUNS, RUNS_TODAY, WORKERS_ALIVE,
};
use pyoco_figures::{Figures, Sheet};
use pyoco_ports::Queue;

use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;
use crate::health::health;

/// So many tags are told apart.
const MOST_TAGS: usize = 100;

/// Counts of runs, workers, dead letters and queues, and what this process has done.
#[utoipa::path(get, operation_id = "metrics", tag = "service", path = "/metrics", responses(
    (status = 200, description = "The figures.", content_type = "text/plain", body = String), Reading, Always
))]
pub(crate) async fn metrics(State(app): State<App>, _caller: Caller) -> Result<impl IntoResponse, Refusal> {
    let store = app.engine.store();
    let all = store.counts(None).await?;
    let today = store.counts_since(None, start_of_day(app.clock.now())).await?;
    let alive = app.worker_views().await?.iter().filter(|worker| worker.state.is_alive()).count();
    let letters = match store.count_letters().await {
        Ok(letters) => Some(letters),
        Err(error) => {
            tracing::warn!(reason = %error, "the dead letters cannot be counted");
            None
        }
    };
    let mut sheet = Sheet::default();
    runs(&mut sheet, &RUNS, &all);
    runs(&mut sheet, &RUNS_TODAY, &today);
    sheet.only(&WORKERS_ALIVE, alive);
    dead_letters(&mut sheet, letters);
    queues(&mut sheet, store.queues().await?, app.clock.now());
    sheet.push(&app.engine.figures().text());
    Ok(read(sheet.into_text()))
}

/// The metrics and the health of a process that answers no other requests: a worker's.
pub fn worker_router(figures: Figures) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(move || std::future::ready(read(figures.text()))))
        .fallback(|| async { Refusal::path_not_found() })
        .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
}

/// A request was answered.
pub(crate) fn answered(
    figures: &Figures,
    route: Option<&str>,
    method: &Method,
    status: StatusCode,
    seconds: f64,
) {
    // With a slash at its end it is the same route. What is not in the table may be called anything.
    let route = route.map_or("other", |route| match route.trim_end_matches('/') {
        "" => "/",
        route => route,
    });
    let method = match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    };
    let status = match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    figures.http(route, method, status, seconds);
}

fn read(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// The first instant of the day, in UTC.
fn start_of_day(now: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000_000;
    Timestamp::from_micros(now.as_micros().div_euclid(DAY) * DAY)
}

fn runs(sheet: &mut Sheet, figure: &Figure, counts: &[(RunStatus, u64)]) {
    sheet.head(figure);
    let mut counts: Vec<(String, u64)> =
        counts.iter().map(|(status, runs)| (status.to_string(), *runs)).collect();
    counts.sort();
    for (status, runs) in counts {
        sheet.value(figure, &[&status], runs);
    }
}

/// Without their line when nobody knows.
fn dead_letters(sheet: &mut Sheet, letters: Option<u64>) {
    sheet.head(&LETTERS_KEPT);
    if let Some(letters) = letters {
        sheet.value(&LETTERS_KEPT, &[], letters);
    }
}

/// The tags that are not told apart.
const REST: &str = "other";

/// What waits, by tag. People make tags, so those with the most are told apart and the others are one.
fn queues(sheet: &mut Sheet, mut queues: Vec<Queue>, now: Timestamp) {
    // One that is called like the rest belongs to it: no series may be there twice.
    queues.sort_by_key(|queue| (queue.tag.as_str() == REST, std::cmp::Reverse(queue.depth)));
    let others = queues.split_off(queues.len().min(MOST_TAGS));
    let mut shown: Vec<(&str, u64, Timestamp)> =
        queues.iter().map(|queue| (queue.tag.as_str(), queue.depth, queue.oldest)).collect();
    if let Some(oldest) = others.iter().map(|queue| queue.oldest).min() {
        shown.push((REST, others.iter().map(|queue| queue.depth).sum(), oldest));
    }
    sheet.head(&QUEUE_DEPTH);
    for (tag, depth, _) in &shown {
        sheet.value(&QUEUE_DEPTH, &[tag], depth);
    }
    sheet.head(&QUEUE_OLDEST);
    for (tag, _, oldest) in &shown {
        let age = Timestamp::from_micros(now.as_micros().saturating_sub(oldest.as_micros()).max(0));
        sheet.value(&QUEUE_OLDEST, &[tag], age.as_unix_seconds());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight() {
        let day = start_of_day(Timestamp::from_unix_seconds(1_700_000_000.5).unwrap());
        assert_eq!(day.to_string(), "2023-11-14T00:00:00.000000Z");
    }

    #[test]
    fn the_line_of_the_dead_letters_is_left_out_when_nobody_knows() {
        let text = |letters| {
            let mut sheet = Sheet::default();
            dead_letters(&mut sheet, letters);
            sheet.into_text()
        };
        assert!(text(Some(3)).ends_with("pyoco_dlq_messages_total 3\n"));
        assert!(text(None).ends_with("# TYPE pyoco_dlq_messages_total gauge\n"));
    }

    #[test]
    fn of_many_tags_those_with_few_runs_are_one() {
        let queue = |tag: usize, depth| Queue {
            tag: pyoco_core::ids::Tag::new(&format!("t{tag}")).unwrap(),
            depth,
            oldest: Timestamp::from_micros(1_000_000 * i64::try_from(tag).unwrap()),
        };
        let many = (0..MOST_TAGS + 2).map(|tag| queue(tag, if tag < 2 { 1 } else { 5 })).collect();
        let mut sheet = Sheet::default();
        queues(&mut sheet, many, Timestamp::from_micros(200_000_000));
        let text = sheet.into_text();
        assert!(text.contains("pyoco_queue_depth{tag=\"t2\"} 5\n"), "{text}");
        assert!(text.contains("pyoco_queue_depth{tag=\"other\"} 2\n"), "{text}");
        assert!(text.contains("pyoco_queue_oldest_age_seconds{tag=\"other\"} 200\n"), "{text}");
        assert!(!text.contains("tag=\"t0\""), "{text}");
        assert_eq!(text.lines().count(), 2 * (2 + MOST_TAGS + 1));
    }

    #[test]
    fn a_request_is_counted_by_the_template_of_its_route() {
        let figures = Figures::default();
        for (route, method) in [(Some("/runs/"), "GET"), (Some("/runs"), "GET"), (None, "BREW")] {
            answered(&figures, route, &method.parse().unwrap(), StatusCode::NOT_FOUND, 0.1);
        }
        let text = figures.text();
        let count = "pyoco_http_request_duration_seconds_count";
        assert!(
            text.contains(&format!("{count}{{route=\"/runs\",method=\"GET\",status=\"4xx\"}} 2\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("{count}{{route=\"other\",method=\"other\",status=\"4xx\"}} 1\n")),
            "{text}"
        );
    }
}
