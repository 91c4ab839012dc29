//! Logs of what tasks write, on a real server with several writers, beyond the conformance suite.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::{OPEN, Other, execution, line, lines, open, server, timed, write};
use pyoco_ports::{ErrorKind, LinePlace, LogEnd, LogLine, LogStream, LogTerms, TaskLogs as _, Written};
use pyoco_store_nats::NatsStore;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_place_of_a_long_task_log_is_found_without_reading_the_rest() {
    const CALLS: u64 = 400;
    const EACH: u64 = 25;
    let server = server();
    let store = open(&server).await;
    let before = store.messages_sent();
    for call in 0..CALLS {
        let lines = (1..=EACH).map(|n| line(format!("line {}", call * EACH + n))).collect();
        write(&store, "e", lines).await;
        write(&store, &format!("other-{}", call % 7), vec![line("x")]).await;
    }
    // One message each, also the first of a log, and two whenever others may be waiting.
    assert_eq!(store.messages_sent() - before, 2 * CALLS + 2 * (CALLS / 128));

    let cold = open(&server).await;
    for after in [0, 1, 24, 25, 26, 4999, 5000, 9974, 9975, 9999, 10_000, 20_000] {
        let before = cold.messages_sent();
        let lines = cold.read_lines(&execution("e"), after, 30).await.unwrap();
        let wanted = after + 1..=(after + 30).min(CALLS * EACH);
        assert!(lines.iter().map(|(number, _)| *number).eq(wanted), "after {after}");
        assert!(lines.iter().all(|(number, line)| line.text == format!("line {number}")));
        // The end, at most ten halves of 800 messages, and a page.
        assert!(cold.messages_sent() - before <= 13, "after {after}: {}", cold.messages_sent() - before);
    }
    // Page by page: the end is asked for, then the page.
    let mut after = 0;
    while after < CALLS * EACH {
        let before = cold.messages_sent();
        let lines = cold.read_lines(&execution("e"), after, 170).await.unwrap();
        assert!(lines.iter().map(|(number, _)| *number).eq(after + 1..=(after + 170).min(CALLS * EACH)));
        assert!(cold.messages_sent() - before <= 2, "after {after}: {}", cold.messages_sent() - before);
        after = lines.last().unwrap().0;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_several_processes_are_numbered_without_a_gap_and_calls_stay_whole() {
    let server = server();
    let mut writers = Vec::new();
    for writer in 0..3 {
        let store = open(&server).await;
        writers.push(tokio::spawn(async move {
            for call in 0..30 {
                let lines = (0..4).map(|n| line(format!("{writer}/{call}/{n}"))).collect();
                write(&store, "e", lines).await;
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let lines = lines(&*open(&server).await, "e").await;
    assert!(lines.iter().map(|(number, _)| *number).eq(1..=360));
    for call in lines.chunks(4) {
        let of = |line: &LogLine| line.text.rsplit_once('/').map(|(of, _)| of.to_owned());
        assert!(call.iter().all(|(_, line)| of(line) == of(&call[0].1)), "{call:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_lines_in_one_call_is_stored_in_messages_the_server_takes() {
    let server = server();
    let store = open(&server).await;
    // Every character of them is six on the wire.
    let flood: Vec<LogLine> = (0..40).map(|_| line("\u{1}".repeat(64 * 1024))).collect();
    write(&store, "e", flood.clone()).await;
    let found = lines(&*open(&server).await, "e").await;
    assert!(found.into_iter().eq((1..).zip(flood)));
}

/// Writes small calls until the log takes no more; gives what was kept of them.
async fn write_until_over(
    store: Arc<NatsStore>,
    writer: usize,
    terms: LogTerms,
) -> (Vec<(u64, LogLine)>, LogEnd) {
    let mut kept = Vec::new();
    for call in 0.. {
        let call = (0..3).map(|n| line(format!("{writer}/{call}/{n}"))).collect();
        let Written { lines, end } = store.write_lines(&execution("e"), call, terms).await.unwrap();
        let is_over = lines.len() < 3;
        kept.extend(lines);
        if is_over {
            return (kept, end);
        }
    }
    unreachable!("a log has an end")
}

/// What everybody was told to be kept is what is there, once.
async fn is_what_was_kept(
    store: &NatsStore,
    kept: impl IntoIterator<Item = Vec<(u64, LogLine)>>,
) -> Vec<(u64, LogLine)> {
    let mut told = BTreeMap::new();
    for (number, line) in kept.into_iter().flatten() {
        assert_eq!(told.insert(number, line), None, "line {number} was told twice");
    }
    let found = lines(store, "e").await;
    assert!(found.iter().map(|(number, _)| *number).eq(1..=found.len() as u64));
    assert!(told.into_iter().eq(found.iter().cloned()));
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_at_the_limit_leave_one_mark_and_nothing_behind_it() {
    let server = server();
    let terms = LogTerms { max_bytes: 200_000, closes: false };
    let stores = [open(&server).await, open(&server).await];
    let writers: Vec<_> = (0..2)
        .map(|writer| tokio::spawn(write_until_over(Arc::clone(&stores[writer]), writer, terms)))
        .collect();
    let mut kept = Vec::new();
    for writer in writers {
        let (lines, end) = writer.await.unwrap();
        assert!(end.is_cut && lines.len() > 3);
        kept.push(lines);
    }
    let found = is_what_was_kept(&stores[0], kept).await;
    let end = stores[1].log_end(&execution("e")).await.unwrap();
    let (mark, others) = found.split_last().unwrap();
    assert_eq!(mark.1.stream, LogStream::Engine);
    assert!(others.iter().all(|(_, line)| line.stream == LogStream::Stdout));
    let text: u64 = others.iter().map(|(_, line)| line.text_bytes()).sum();
    assert!(text <= 200_000 && text > 199_900, "{text}");
    assert_eq!(
        end,
        LogEnd { lines: mark.0, bytes: text + mark.1.text_bytes(), is_cut: true, is_closed: false }
    );
    // It can still be closed, by whoever knows that it has ended.
    let closed =
        stores[1].write_lines(&execution("e"), vec![line("late")], LogTerms { closes: true, ..terms }).await;
    let wanted = LogEnd { is_closed: true, ..end };
    assert_eq!(closed.unwrap(), Written { lines: Vec::new(), end: wanted });
    assert_eq!(stores[0].log_end(&execution("e")).await.unwrap(), wanted);
    assert_eq!(lines(&stores[0], "e").await, found);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_follows_once_a_process_has_closed_the_log_while_another_wrote() {
    let server = server();
    let stores = [open(&server).await, open(&server).await];
    write(&stores[0], "e", vec![line("first")]).await;
    let writing = tokio::spawn(write_until_over(Arc::clone(&stores[0]), 0, OPEN));
    while stores[1].log_end(&execution("e")).await.unwrap().lines < 100 {}
    let closes = LogTerms { closes: true, ..OPEN };
    let closing = stores[1].write_lines(&execution("e"), vec![line("last")], closes).await.unwrap();
    let (written, end) = writing.await.unwrap();
    assert!(end == closing.end && end.is_closed && !end.is_cut);
    let first = vec![(1, line("first"))];
    let found = is_what_was_kept(&stores[1], [first, written, closing.lines]).await;
    assert_eq!(found.last(), Some(&(end.lines, line("last"))));
    // Whoever did not hear of it is refused by the stream, and a second end is none.
    let third = open(&server).await;
    for terms in [OPEN, closes] {
        let late = third.write_lines(&execution("e"), vec![line("late")], terms).await.unwrap();
        assert_eq!(late, Written { lines: Vec::new(), end });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes_all_the_time_does_not_keep_others_from_writing() {
    let server = server();
    // Many small messages, and calls of several large ones.
    for (size, length) in [(3, 10), (300, 1_000)] {
        let (flooding, other) = (open(&server).await, open(&server).await);
        let is_over = Arc::new(AtomicBool::new(false));
        let name = format!("e{size}");
        write(&other, &name, vec![line("first")]).await;
        let flood = tokio::spawn({
            let (name, is_over) = (name.clone(), Arc::clone(&is_over));
            async move {
                while !is_over.load(Ordering::Relaxed) {
                    write(&flooding, &name, (0..size).map(|_| line("x".repeat(length))).collect()).await;
                }
            }
        });
        let mut times = Vec::new();
        for number in 0..20 {
            let before = other.log_end(&execution(&name)).await.unwrap().lines;
            while other.log_end(&execution(&name)).await.unwrap().lines < before + 3 * size {}
            times.push(timed(write(&other, &name, vec![line(number.to_string())])).await.1);
        }
        is_over.store(true, Ordering::Relaxed);
        flood.await.unwrap();
        let longest = times.iter().max().unwrap();
        assert!(*longest < Duration::from_secs(1), "{longest:?}");
        // They stand between calls, not in one.
        let found = lines(&other, &name).await;
        let mut others = 0;
        for (number, line) in &found {
            if !line.text.starts_with('x') {
                let flooded = number - 1 - others;
                assert!(flooded.is_multiple_of(size), "{flooded} lines before {line:?}");
                others += 1;
            }
        }
        assert_eq!(others, 21);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_a_line_can_be_closed_and_read() {
    let server = server();
    let store = open(&server).await;
    let end = LogEnd { is_closed: true, ..LogEnd::default() };
    let closes = LogTerms { closes: true, ..OPEN };
    assert_eq!(store.log_end(&execution("e")).await.unwrap(), LogEnd::default());
    let written = store.write_lines(&execution("e"), Vec::new(), closes).await.unwrap();
    assert_eq!(written, Written { lines: Vec::new(), end });
    let other = open(&server).await;
    assert_eq!(other.log_end(&execution("e")).await.unwrap(), end);
    assert_eq!(other.read_lines(&execution("e"), 0, 9).await.unwrap(), []);
    assert_eq!(other.line_at(&execution("e"), 0).await.unwrap(), None);

    // Behind lines it is no line either.
    write(&store, "f", (0..5).map(|n| line(n.to_string())).collect()).await;
    let end = store.write_lines(&execution("f"), Vec::new(), closes).await.unwrap().end;
    assert_eq!(other.log_end(&execution("f")).await.unwrap(), end);
    for after in 0..=5 {
        let numbers: Vec<u64> = other
            .read_lines(&execution("f"), after, 9)
            .await
            .unwrap()
            .into_iter()
            .map(|(number, _)| number)
            .collect();
        assert_eq!(numbers, (after + 1..=5).collect::<Vec<_>>());
    }
    let place = other.line_at(&execution("f"), end.bytes - 1).await.unwrap().unwrap();
    assert_eq!(place.number, 5);
    assert_eq!(other.line_at(&execution("f"), end.bytes).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_of_a_log_is_found_in_its_line_over_the_borders_of_messages() {
    let server = server();
    let store = open(&server).await;
    // Short and long lines, characters that take more room in the text than in the line, and calls of several messages.
    let length = |n: usize| if n.is_multiple_of(10) { 3_000 } else { n % 7 };
    let all: Vec<LogLine> = (0..400).map(|n| line(format!("{n} {}", "é\u{1b}".repeat(length(n))))).collect();
    for call in all.chunks(190) {
        write(&store, "e", call.to_vec()).await;
        write(&store, "other", vec![line("x")]).await;
    }
    let messages = Other::connect(&server).await.messages("PYOCO_LOGS").await;
    assert!((8..100).contains(&messages), "{messages}");
    let cold = open(&server).await;
    let mut first_byte = 0;
    for (number, line) in (1..).zip(&all) {
        let bytes = line.text_bytes();
        let wanted = Some(LinePlace { number, first_byte });
        for byte in [first_byte, first_byte + bytes - 1] {
            let before = cold.messages_sent();
            assert_eq!(cold.line_at(&execution("e"), byte).await.unwrap(), wanted, "byte {byte}");
            assert!(cold.messages_sent() - before <= 9, "{}", cold.messages_sent() - before);
        }
        if number.is_multiple_of(50) {
            // Whoever reads on from there knows the place.
            let before = cold.messages_sent();
            let next = cold.read_lines(&execution("e"), number - 1, 1).await.unwrap();
            assert_eq!(next, [(number, line.clone())]);
            assert!(cold.messages_sent() - before <= 2);
        }
        first_byte += bytes;
    }
    let end = cold.log_end(&execution("e")).await.unwrap();
    assert_eq!((end.bytes, end.lines), (first_byte, 400));
    for byte in [first_byte, first_byte + 1, u64::MAX] {
        assert_eq!(cold.line_at(&execution("e"), byte).await.unwrap(), None);
    }
}

/// The sizes of everything in the stream.
async fn sizes(other: &Other) -> Vec<usize> {
    let mut sizes = Vec::new();
    for sequence in 1..=other.messages("PYOCO_LOGS").await {
        let found = other.api("STREAM.MSG.GET.PYOCO_LOGS", &json!({"seq": sequence})).await;
        sizes.push(found["message"]["data"].as_str().unwrap().len() / 4 * 3);
    }
    sizes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_mebibyte_from_two_processes_stay_whole_in_messages_of_usual_size() {
    let server = server();
    let mut writers = Vec::new();
    for writer in 0..2 {
        let store = open(&server).await;
        writers.push(tokio::spawn(async move {
            let mut kept = Vec::new();
            for call in 0..4 {
                let text = |n: usize| format!("{writer}/{call}/{n:04} {}", "x".repeat(1_000));
                let written = write(&store, "e", (0..1_050).map(|n| line(text(n))).collect()).await;
                assert_eq!(written.lines.len(), 1_050);
                kept.extend(written.lines);
            }
            kept
        }));
    }
    let mut kept = Vec::new();
    for writer in writers {
        kept.push(writer.await.unwrap());
    }
    let store = open(&server).await;
    let found = is_what_was_kept(&store, kept).await;
    for call in found.chunks(1_050) {
        let of = |line: &LogLine| line.text.rsplit_once('/').map(|(of, _)| of.to_owned());
        assert!(call.iter().all(|(_, line)| of(line) == of(&call[0].1)), "a call was torn");
    }
    let sizes = sizes(&Other::connect(&server).await).await;
    assert!(sizes.len() > 100 && sizes.iter().all(|size| *size <= 64 * 1024), "{sizes:?}");
    // A page is about a mebibyte, however many lines are asked for.
    let page = store.read_lines(&execution("e"), 10, usize::MAX).await.unwrap();
    let bytes: usize = page.iter().map(|(_, line)| line.text.len()).sum();
    assert!((1 << 20..(1 << 20) + 2_000).contains(&bytes), "{bytes}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_its_process_never_finished_is_not_waited_for_for_ever() {
    let server = server();
    let store = open(&server).await;
    let first = write(&store, "e", vec![line("1")]).await;
    // As if a process had died behind the first message of several.
    let other = Other::connect(&server).await;
    let body = r#"[{"attempt":0,"stream":"engine","at":"2023-11-14T22:13:20.000000Z","text":"half"}]"#;
    let (begin, end) = (first.end.bytes.to_string(), (first.end.bytes + 50).to_string());
    let headers = [
        ("Pyoco-First-Line", "2"),
        ("Pyoco-Last-Line", "2"),
        ("Pyoco-First-Byte", &begin),
        ("Pyoco-End-Byte", &end),
        ("Pyoco-More", "1"),
    ];
    other.publish("pyoco.logs.e", &headers, body).await;
    let (written, took) = timed(write(&store, "e", vec![line("3")])).await;
    assert_eq!(written.lines, [(3, line("3"))]);
    assert!(took > Duration::from_millis(300) && took < Duration::from_millis(1_500), "{took:?}");
    let (_, took) = timed(write(&store, "e", vec![line("4")])).await;
    assert!(took < Duration::from_millis(300), "{took:?}");
    let found = lines(&store, "e").await;
    assert!(found.iter().map(|(_, line)| line.text.as_str()).eq(["1", "half", "3", "4"]), "{found:?}");
    assert_eq!(found[1].1.node, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_are_written_again_after_a_time_out_are_there_once() {
    let server = server();
    let store = open(&server).await;
    for text in ["1", "2"] {
        write(&store, "e", vec![line(text)]).await;
    }
    server.pause();
    let error = store.write_lines(&execution("e"), vec![line("3")], OPEN).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    server.resume();
    // What was sent is done now: the server takes what came in its order. That another one comes in between changes nothing.
    write(&*open(&server).await, "e", vec![line("between")]).await;
    let again = write(&store, "e", vec![line("3")]).await;
    assert_eq!(again.lines, [(3, line("3"))]);
    // Without a time-out the same again is meant.
    write(&store, "e", vec![line("3")]).await;
    let lines = lines(&store, "e").await;
    assert!(lines.iter().map(|(_, line)| &line.text).eq(["1", "2", "3", "between", "3"]), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_interrupted_between_its_messages_goes_on_where_it_was() {
    let server = server();
    let store = open(&server).await;
    let watching = open(&server).await;
    let all: Vec<LogLine> = (0..16_000).map(|n| line(format!("{n} {}", "x".repeat(1_000)))).collect();
    let closes = LogTerms { closes: true, ..OPEN };
    let writing = tokio::spawn({
        let (store, all) = (store.clone(), all.clone());
        async move { store.write_lines(&execution("e"), all, closes).await }
    });
    while watching.log_end(&execution("e")).await.unwrap().lines == 0 {}
    server.pause();
    let interrupted = writing.await.unwrap();
    server.resume();
    assert_eq!(interrupted.unwrap_err().kind, ErrorKind::Timeout);
    let before = watching.log_end(&execution("e")).await.unwrap();
    assert!(before.lines > 0 && before.lines < 16_000 && !before.is_closed, "{before:?}");
    let written = store.write_lines(&execution("e"), all.clone(), closes).await.unwrap();
    let wanted: Vec<(u64, LogLine)> = (1..).zip(all).collect();
    assert!(written.lines == wanted && written.end.is_closed);
    assert!(lines(&watching, "e").await == wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_long_log_is_told_at_once() {
    let server = server();
    let store = open(&server).await;
    for call in 0..200 {
        write(
            &store,
            "e",
            (0..100).map(|n| line(format!("line {} of a long log", call * 100 + n))).collect(),
        )
        .await;
    }
    let cold = open(&server).await;
    let mut times = Vec::new();
    for _ in 0..200 {
        let before = cold.messages_sent();
        let (end, took) = timed(cold.log_end(&execution("e"))).await;
        assert_eq!(end.unwrap().lines, 20_000);
        assert_eq!(cold.messages_sent() - before, 1);
        times.push(took);
    }
    times.sort_unstable();
    assert!(times[100] < Duration::from_millis(2), "half of them take longer than {:?}", times[100]);
}
