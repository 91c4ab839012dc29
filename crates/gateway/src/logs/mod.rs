//! Logs: the lines of an execution as JSON, as text and as they are written, for jobs and for runs alike.
//!
//! Here is what the answers share: which lines are wanted, and of whose log. `page` and `text` are the two forms of one answer, `form`
//! chooses between them, `validators` marks what was sent, `stream` tells lines as they come. The surfaces
//! only differ in how they word what is wrong, and in which executions they show.

mod form;
mod page;
mod stream;
mod text;
mod token;
mod validators;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use pyoco_api::{Extra, LogEntry};
use pyoco_core::ids::ExecutionId;
use pyoco_core::notice::Notice;
use pyoco_core::state::State as Folded;
use pyoco_core::view::{JobView, RunStatus};
use pyoco_engine::LineFilter;
use pyoco_ports::{LogEnd, LogLine, LogStream};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::error::Refusal;
use crate::query::{Query, place};
use crate::validation::Inputs;
use crate::{Shared, conditions, jobs};

use form::Form;

pub(crate) use stream::{Following, follow};
pub(crate) use token::Token;

/// The longest name of a task: as long as nested loops make it.
const TASK: usize = 2_048;

/// As what an execution is looked at: a job that was deleted is none any more, a run stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Job,
    Run,
}

impl View {
    const fn shows(self, state: &Folded) -> bool {
        match self {
            Self::Job => !JobView::is_deleted(state),
            Self::Run => true,
        }
    }

    fn not_found(self, execution: &ExecutionId) -> Refusal {
        match self {
            Self::Job => Refusal::job_not_found(execution.as_str()),
            Self::Run => Refusal::run_not_found(execution.as_str()),
        }
    }

    /// What is said of it when its log has ended.
    fn last_word(self, state: &Folded) -> Value {
        match self {
            Self::Job => json!(jobs::job(state)),
            Self::Run => json!({"run_id": state.id, "status": RunStatus::of(state)}),
        }
    }
}

/// A log that somebody may read.
pub(crate) struct Log<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) execution: &'a ExecutionId,
    pub(crate) view: View,
}

/// Which lines a request wants.
struct Wanted {
    since: Option<u64>,
    limit: Option<usize>,
    filter: LineFilter,
}

impl Wanted {
    fn of(query: &Query, execution: &ExecutionId) -> Result<Self, Refusal> {
        let mut inputs = Inputs::default();
        let limit = query.get("limit").map(|_| query.integer(&mut inputs, "limit", 1..=1_000, 200) as usize);
        let filter = filter(&mut inputs, query);
        inputs.finish(Notice::InvalidRequest)?;
        Ok(Self { since: since(query, execution)?, limit, filter })
    }

    /// Whether the whole log is wanted: only that has a text whose bytes can be named.
    const fn is_all(&self) -> bool {
        self.since.is_none() && self.limit.is_none() && self.filter.is_empty()
    }
}

/// The line that a query has seen last, if it says one.
pub(crate) fn since(query: &Query, execution: &ExecutionId) -> Result<Option<u64>, Refusal> {
    match query.filled("sinceToken") {
        None => Ok(None),
        Some(text) => Token::line_of(text, execution).map(Some),
    }
}

pub(crate) fn filter(inputs: &mut Inputs, query: &Query) -> LineFilter {
    let task = query.text(inputs, "task", TASK);
    let stream = query.filled("stream").and_then(|name| {
        let stream = LogStream::named(name);
        if stream.is_none() {
            let rule = "it must be one of stdout, stderr, engine";
            inputs.wrong("value_error", place("stream"), rule, json!(name), None);
        }
        stream
    });
    LineFilter { task, stream }
}

/// Refuses a token whose line is not there.
pub(crate) async fn must_have(
    engine: &pyoco_engine::Engine,
    execution: &ExecutionId,
    line: u64,
) -> Result<(), Refusal> {
    if line > 0 && line > engine.log_end(execution).await?.lines {
        return Err(token::beyond_the_end());
    }
    Ok(())
}

/// A line as it is shown.
pub(crate) fn entry(seq: u64, line: &LogLine) -> LogEntry {
    LogEntry {
        seq,
        timestamp: line.at,
        message: line.text.clone(),
        task: line.node.as_ref().map(ToString::to_string),
        attempt: line.attempt.0,
        stream: line.stream.name().to_owned(),
        extra: Extra::new(),
    }
}

impl Shared {
    /// Looks at an execution whose log the caller may read.
    async fn log_of<T: Send>(
        &self,
        log: &Log<'_>,
        view: impl FnOnce(&Folded) -> T + Send,
    ) -> Result<T, Refusal> {
        let found = self.found(log.caller, log.execution, |state| log.view.shows(state).then(|| view(state)));
        found.await?.ok_or_else(|| log.view.not_found(log.execution))
    }

    /// The log, or a part of it, in the form that is liked best.
    pub(crate) async fn log(
        &self,
        log: &Log<'_>,
        query: &Query,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response, Refusal> {
        let wanted = Wanted::of(query, log.execution)?;
        self.log_of(log, |_| ()).await?;
        let form = Form::liked(headers)?;
        // What is written from now on is not shown: the answer fits its mark.
        let end = self.engine.log_end(log.execution).await?;
        if wanted.since.is_some_and(|line| line > end.lines) {
            return Err(token::beyond_the_end());
        }
        let mark = validators::mark(log.execution, end, form);
        let mut response = if conditions::is_known(headers, &mark) {
            axum::http::StatusCode::NOT_MODIFIED.into_response()
        } else {
            let about = Answering { engine: &self.engine, execution: log.execution, end, wanted: &wanted };
            match form {
                Form::Json => page::answer(&about, method).await?,
                Form::Text => text::answer(&about, method, headers, &mark)?,
            }
        };
        let to = response.headers_mut();
        to.insert(header::ETAG, mark);
        to.insert(header::VARY, HeaderValue::from_static("accept"));
        to.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Ok(response)
    }
}

/// What an answer is about.
struct Answering<'a> {
    engine: &'a pyoco_engine::Engine,
    execution: &'a ExecutionId,
    /// How far the log went when it was looked at.
    end: LogEnd,
    wanted: &'a Wanted,
}
