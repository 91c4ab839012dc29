//! The log that people read: what the engine says about tasks, pages and text of it, and following it to its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use pyoco_core::command::{Command, CreateExecution, Request};
use pyoco_core::ids::{Attempt, ExecutionId};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Ask, Create, Engine, LineFilter, Lines, LogFollower};
use pyoco_ports::{
    ErrorKind, GraphFormat, GraphSource, LinePlace, LogEnd, LogLine, LogStream, LogTerms, StoreError,
    TaskLogs, Written,
};
use pyoco_store_memory::MemoryStore;
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{
    caller, cancel, create, fail, node, put_waiting, resume, start, start_attempt, start_node, succeed,
};
use serde_json::json;

const CHAIN: &str = "version: 2\nflow: {graph: 'load >> check'}\n\
    tasks:\n  load: {retries: 1, retry_delay_sec: 2}\n  check: {}\n";

async fn ask(engine: &Engine, execution: &ExecutionId, command: impl Into<Command>) {
    let ask = Ask { command: command.into(), issuer: caller(), key: None, correlation_id: None };
    engine.ask(execution, ask).await.unwrap();
}

async fn started(engine: &Engine) -> ExecutionId {
    let source = GraphSource { format: GraphFormat::Yaml, text: CHAIN.to_owned() };
    let put =
        pyoco_engine::GraphPut { tenant: None, id: "chain".to_owned(), source, by: None, expected: None };
    engine.put_graph(put).await.unwrap();
    let command = CreateExecution { graph_id: "chain".to_owned(), ..create() };
    let wanted = Create { command, version: None, issuer: caller(), key: None, correlation_id: None };
    let execution = engine.create(wanted).await.unwrap().execution;
    ask(engine, &execution, start()).await;
    execution
}

fn line(task: &str, text: &str) -> LogLine {
    LogLine {
        node: Some(node(task)),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(1),
        text: text.to_owned(),
    }
}

/// Task and text of everything in the log.
async fn log(engine: &Engine, execution: &ExecutionId) -> Vec<(String, String)> {
    engine.lines().flush().await;
    let page = engine.log_page(execution, 0, 1_000, &LineFilter::default()).await.unwrap();
    let shown = |(_, line): &(u64, LogLine)| {
        (line.node.as_ref().map_or_else(String::new, ToString::to_string), line.text.clone())
    };
    page.lines.iter().map(shown).collect()
}

fn told(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(task, text)| ((*task).to_owned(), (*text).to_owned())).collect()
}

async fn rest(follower: &mut LogFollower) -> Vec<String> {
    let mut texts = Vec::new();
    let all = async {
        while let Some(lines) = follower.next().await.unwrap() {
            texts.extend(lines.iter().map(|(_, line)| line.text.clone()));
        }
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.unwrap();
    texts
}

#[tokio::test]
async fn the_engine_says_what_becomes_of_each_task_and_of_the_run() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let run = started(&engine).await;
    ask(&engine, &run, start_node("load")).await;
    engine.lines().write(&run, vec![line("load", "10 rows")]).await.unwrap();
    deployment.hands.forward(1_500);
    ask(&engine, &run, fail("load", "no such file\nand a traceback")).await;
    deployment.hands.forward(2_000);
    ask(&engine, &run, start_attempt("load", 2)).await;
    deployment.hands.forward(20);
    ask(&engine, &run, succeed("load", json!(1))).await;
    ask(&engine, &run, start_node("check")).await;
    ask(&engine, &run, put_waiting("check", "ok?")).await;
    ask(&engine, &run, resume("check", "ok?")).await;
    ask(&engine, &run, succeed("check", json!(1))).await;
    let lines = log(&engine, &run).await;
    assert_eq!(
        lines,
        told(&[
            ("load", "started"),
            ("load", "10 rows"),
            ("load", "attempt 1 failed: no such file; the next one in 2.0 s"),
            ("load", "started, attempt 2"),
            ("load", "succeeded after 20 ms"),
            ("check", "started"),
            ("check", "waits for an answer (ok?)"),
            ("check", "was answered"),
            ("check", "succeeded after 0 ms"),
            ("", "run completed after 3.5 s"),
        ]),
        "{lines:#?}"
    );
    assert!(engine.log_end(&run).await.unwrap().is_closed);
}

#[tokio::test]
async fn a_cancel_and_a_failure_are_told_with_their_reason() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let run = started(&engine).await;
    let mut request = cancel();
    request.reason = Some("not needed".to_owned());
    engine.command(&run, &Request::new(caller(), Timestamp::from_micros(9), request)).await.unwrap();
    let lines = log(&engine, &run).await;
    assert_eq!(lines.first().unwrap().1, "cancel requested: not needed");
    assert!(lines.last().unwrap().1.starts_with("run cancelled"), "{lines:?}");
    // What a worker that was not told still has to say comes too late.
    let end = engine.lines().write(&run, vec![line("load", "still here")]).await.unwrap();
    assert!(end.is_closed);
    assert_eq!(log(&engine, &run).await, lines);
}

#[tokio::test]
async fn a_follower_is_told_at_once_and_ends_with_the_log() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let run = started(&engine).await;
    let mut follower = engine.follow_log(&run, 0).await.unwrap();
    let mut behind = engine.follow_log(&run, 1).await.unwrap();
    ask(&engine, &run, start_node("load")).await;
    let first = follower.next().await.unwrap().unwrap();
    assert_eq!((first[0].0, first[0].1.text.as_str()), (1, "started"));
    for number in 0..5_000 {
        engine.lines().write(&run, vec![line("load", &format!("{number}"))]).await.unwrap();
    }
    ask(&engine, &run, succeed("load", json!(1))).await;
    ask(&engine, &run, start_node("check")).await;
    ask(&engine, &run, succeed("check", json!(1))).await;
    let texts = rest(&mut follower).await;
    assert!(texts[..5_000].iter().enumerate().all(|(number, text)| *text == number.to_string()));
    assert!(texts.last().unwrap().starts_with("run completed"), "{texts:?}");
    assert!(follower.is_over().await.unwrap());
    // Who begins behind the first line is told the same.
    assert_eq!(rest(&mut behind).await, texts);
}

#[tokio::test]
async fn a_follower_does_not_wait_for_a_log_that_nobody_closes() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let run = started(&engine).await;
    ask(&engine, &run, start_node("load")).await;
    engine.lines().flush().await;
    // Another process ends it and dies before it has said so.
    let (other, ended) = (deployment.engine(), run.clone());
    let dies = std::thread::spawn(move || {
        let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let request = Request::new(caller(), Timestamp::from_micros(9), cancel());
        process.block_on(other.command(&ended, &request)).unwrap();
    });
    dies.join().unwrap();
    assert!(!engine.log_end(&run).await.unwrap().is_closed);
    deployment.hands.forward(60_000);
    let mut follower = engine.follow_log(&run, 0).await.unwrap();
    assert_eq!(rest(&mut follower).await, ["started"]);
}

/// A store that is away for so many calls.
#[derive(Default)]
struct Away {
    inner: MemoryStore,
    calls: AtomicUsize,
}

#[async_trait]
impl TaskLogs for Away {
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        let is_away = |calls: usize| calls.checked_sub(1);
        if self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_away).is_ok() {
            return Err(StoreError::plain(ErrorKind::Unavailable, "write lines"));
        }
        self.inner.write_lines(execution, lines, terms).await
    }
    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError> {
        self.inner.log_end(execution).await
    }
    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        self.inner.read_lines(execution, after, limit).await
    }
    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError> {
        self.inner.line_at(execution, byte).await
    }
}

async fn texts(store: &Away, execution: &ExecutionId) -> Vec<String> {
    let lines = store.read_lines(execution, 0, 100).await.unwrap();
    lines.into_iter().map(|(_, line)| line.text).collect()
}

#[tokio::test(start_paused = true)]
async fn lines_wait_for_a_store_that_is_away() {
    let (store, run) = (Arc::new(Away::default()), ExecutionId::new("e-1").unwrap());
    let lines = Lines::new(store.clone(), u64::MAX);
    // Half a minute, asked ten times a second.
    store.calls.store(300, Ordering::SeqCst);
    lines.write(&run, vec![line("load", "one")]).await.unwrap();
    lines.write(&run, vec![line("load", "two")]).await.unwrap();
    assert_eq!(texts(&store, &run).await, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_lost_leave_a_mark() {
    let (store, run) = (Arc::new(Away::default()), ExecutionId::new("e-1").unwrap());
    let lines = Lines::new(store.clone(), u64::MAX);
    lines.write(&run, vec![line("load", "one")]).await.unwrap();
    store.calls.store(100_000, Ordering::SeqCst);
    for _ in 0..2 {
        lines.write(&run, vec![line("load", "never seen"), line("load", "neither")]).await.unwrap_err();
    }
    store.calls.store(0, Ordering::SeqCst);
    lines.write(&run, vec![line("load", "six")]).await.unwrap();
    let mark = "4 lines are missing here: the store could not be reached";
    assert_eq!(texts(&store, &run).await, ["one", mark, "six"]);
}

#[tokio::test]
async fn pages_go_on_where_the_last_one_ended_also_through_a_filter() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let run = started(&engine).await;
    let lines = (1..=3_000).map(|number| {
        let stream = if number % 1_000 == 0 { LogStream::Stderr } else { LogStream::Stdout };
        LogLine { stream, ..line(if number % 2 == 0 { "each/2/load" } else { "check" }, &number.to_string()) }
    });
    engine.lines().write(&run, lines.collect()).await.unwrap();
    let page = |after, limit, filter: LineFilter| {
        let (engine, run) = (engine.clone(), run.clone());
        async move {
            let page = engine.log_page(&run, after, limit, &filter).await.unwrap();
            (page.lines.iter().map(|(number, _)| *number).collect::<Vec<_>>(), page.reached)
        }
    };
    let all = LineFilter::default();
    assert_eq!(page(0, 3, all.clone()).await, (vec![1, 2, 3], 3));
    assert_eq!(page(2_999, 10, all.clone()).await, (vec![3_000], 3_000));
    assert_eq!(page(3_000, 10, all).await, (vec![], 3_000));
    let errors = LineFilter { stream: Some(LogStream::Stderr), task: None };
    assert_eq!(page(0, 2, errors.clone()).await, (vec![1_000, 2_000], 2_000));
    assert_eq!(page(2_000, 2, errors).await, (vec![3_000], 3_000));
    for (task, wanted) in
        [("load", vec![2, 4]), ("each/2/load", vec![2, 4]), ("check", vec![1, 3]), ("oad", vec![])]
    {
        let filter = LineFilter { task: Some(task.to_owned()), stream: None };
        assert_eq!(page(0, 2, filter).await.0, wanted, "{task}");
    }
}

#[tokio::test]
async fn any_stretch_of_the_text_is_the_same_bytes() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let run = started(&engine).await;
    let texts = ["", "plain", "ünï ☃", "a\rb\u{1b}[2J", "x"];
    let lines = texts.iter().cycle().take(2_500).map(|text| line("load", text));
    engine.lines().write(&run, lines.collect()).await.unwrap();
    let end = engine.log_end(&run).await.unwrap();
    let text = |from, until| {
        let stream = engine.log_text(&run, from, until);
        async move { stream.try_collect::<Vec<_>>().await.unwrap().concat() }
    };
    let whole = text(0, end.bytes).await;
    assert_eq!(whole.len() as u64, end.bytes);
    assert_eq!(String::from_utf8(whole.clone()).unwrap().lines().count(), 2_500);
    for (from, until) in [(0, 1), (1, 50), (77, 78), (100_000, 100_500), (end.bytes - 3, end.bytes), (5, 5)] {
        let stretch = &whole[usize::try_from(from).unwrap()..usize::try_from(until).unwrap()];
        assert_eq!(text(from, until).await, stretch, "{from}..{until}");
    }
    assert_eq!(text(end.bytes, end.bytes + 10).await, b"");
}
