//! Lists of jobs by their tags, with very many jobs and tags stored.

use serde_json::Value;

use crate::figures::{Figures, Metric};
use crate::http::{Address, Connection};
use crate::ours::Ours;
use crate::stats::{Figure, ms};
use crate::subject::Subject as _;
use crate::tagged::{self, Asked, Question};
use crate::{Failure, clock, progress};

const LISTS: usize = 2_000;
const PAGE: usize = 50;

/// Writes the store, starts the server on it and asks.
pub(super) async fn measure(ours: &Ours<'_>, figures: &mut Figures) -> Result<(), Failure> {
    let (data, store) = ours.fresh_store()?;
    tagged::write(&store).await?;
    progress(Ours::NAME, "tags: lists");
    let stack = ours.start_on(data).await?;
    for asked in Asked::ALL {
        figures.keep(Metric::Tagged { asked }, lists(stack.address, asked).await);
    }
    stack.stop().await;
    Ok(())
}

/// One page at a time on an idle server, each of other tags, in ms. Answers that are not what was asked for are counted and not timed.
async fn lists(address: Address, asked: Asked) -> Result<Option<Figure>, Failure> {
    let mut connection = Connection::open(address).await?;
    must_be_exact(&mut connection, &asked.question(LISTS)).await?;
    let (mut samples, mut shown, mut failed) = (Vec::new(), 0, 0);
    for number in 0..LISTS {
        let question = asked.question(number);
        let path = question.path();
        let sent = clock::now();
        let answer = connection.get(&path).await;
        let took = sent.elapsed();
        match answer.and_then(|answer| answer.json()).ok().and_then(|page| jobs_as_asked(&question, &page)) {
            Some(jobs) => {
                samples.push(ms(took));
                shown += jobs;
            }
            None => failed += 1,
        }
    }
    // A page that has looked at enough rows is short: whoever reads the figures should know how short.
    let mean = shown as f64 / samples.len().max(1) as f64;
    progress(Ours::NAME, &format!("tags: {mean:.0} jobs a page by {asked}"));
    Ok(Figure::of(samples, failed))
}

/// How many jobs a page shows, if they are what was asked for, newest first. It may be short only if more can be asked for or there is
/// no more.
fn jobs_as_asked(question: &Question, page: &Value) -> Option<usize> {
    let jobs = page.get("jobs").and_then(Value::as_array)?;
    let has_more = page.get("nextToken").is_some_and(Value::is_string);
    let fits = |job: &Value| {
        let tags = job.get("tags").and_then(Value::as_array);
        let tags: Vec<&str> = tags.into_iter().flatten().filter_map(Value::as_str).collect();
        let status = job.get("status").and_then(Value::as_str);
        question.is_met_by(&tags, status == Some("failed"))
    };
    // In the order of their numbers, as of their creation.
    let is_ordered = jobs.is_sorted_by(|one, next| id(one) > id(next));
    let is_long_enough = has_more || (1..=PAGE).contains(&jobs.len());
    (is_ordered && is_long_enough && jobs.iter().all(fits)).then_some(jobs.len())
}

fn id(job: &Value) -> Option<&str> {
    job.get("id").and_then(Value::as_str)
}

/// Asks for as many pages as make a full one, and compares them with what was written.
async fn must_be_exact(connection: &mut Connection, question: &Question) -> Result<(), Failure> {
    let first = question.path();
    let (mut path, mut found) = (first.clone(), Vec::new());
    while found.len() < PAGE {
        let page = connection.get(&path).await?.json()?;
        let jobs = page.get("jobs").and_then(Value::as_array).ok_or("a page without jobs")?;
        found.extend(jobs.iter().filter_map(id).map(str::to_owned));
        let Some(token) = page.get("nextToken").and_then(Value::as_str) else { break };
        path = format!("{first}&nextToken={token}");
    }
    found.truncate(PAGE);
    let wanted: Vec<String> = question.answer().take(PAGE).collect();
    if found == wanted { Ok(()) } else { Err(format!("{first} found {found:?}, not {wanted:?}").into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(page: &Value) -> Option<usize> {
        let question = Question { tags: vec!["a".to_owned()], any: Vec::new(), is_failed: true };
        jobs_as_asked(&question, page)
    }

    fn job(id: &str, tag: &str, status: &str) -> Value {
        json!({"id": id, "tags": ["z", tag], "status": status})
    }

    #[test]
    fn a_page_counts_when_every_job_was_asked_for_and_the_newest_is_first() {
        let (one, two) = (job("1", "a", "failed"), job("2", "a", "failed"));
        assert_eq!(shown(&json!({"jobs": [two, one]})), Some(2));
        assert_eq!(shown(&json!({"jobs": [one, two]})), None);
        assert_eq!(shown(&json!({"jobs": [job("1", "b", "failed")]})), None);
        assert_eq!(shown(&json!({"jobs": [job("1", "a", "completed")]})), None);
    }

    #[test]
    fn an_empty_page_counts_only_if_there_is_more_behind_it() {
        assert_eq!(shown(&json!({"jobs": [], "nextToken": "t"})), Some(0));
        assert_eq!(shown(&json!({"jobs": []})), None);
    }
}
