//! Cases of what tasks write.

use std::sync::Arc;

use pyoco_ports::{LogLine, LogStream, Store};

use crate::samples::{execution, line};
use crate::{Subject, Verdict};

async fn lines(store: &dyn Store, name: &str) -> Vec<(u64, LogLine)> {
    store.read_lines(&execution(name), 0, usize::MAX).await.unwrap()
}

async fn texts(store: &dyn Store, name: &str) -> Vec<String> {
    lines(store, name).await.into_iter().map(|(_, line)| line.text).collect()
}

/// Lines that differ in everything that a line has, with texts that are awkward to store.
fn varied() -> Vec<LogLine> {
    let awkward =
        ["", "plain", "ünï ☃ \u{10ffff}", "a\0b", "\t\r\u{1b}[31mred", " ends with blanks  ", "'; --"];
    let streams = [LogStream::Stdout, LogStream::Stderr, LogStream::Engine];
    let nodes = ["prepare", "each[3].body", "prepare", "ünï"];
    let parts = awkward.into_iter().zip(streams.into_iter().cycle()).zip(nodes.into_iter().cycle());
    let mut lines: Vec<LogLine> = (1..)
        .zip(parts)
        .map(|(number, ((text, stream), node))| LogLine {
            stream,
            ..line(node, number % 3 + 1, number.into(), text)
        })
        .collect();
    // Long ones do not fit a page, and time may go back.
    lines.push(line("prepare", 1, 0, &"long ☃ ".repeat(20_000)));
    lines
}

pub(crate) async fn write(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let first = varied();
    store.write_lines(&execution("e"), first.clone()).await.unwrap();
    store.write_lines(&execution("e"), Vec::new()).await.unwrap();
    let wanted: Vec<(u64, LogLine)> = (1..).zip(first).collect();
    assert_eq!(lines(&*store, "e").await, wanted);
    let Some(store) = subject.lose_and_reopen(store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    assert_eq!(lines(&*store, "e").await, wanted);
    // The numbers go on where they were.
    store.write_lines(&execution("e"), vec![line("prepare", 1, 99, "later")]).await.unwrap();
    let all = lines(&*store, "e").await;
    assert_eq!(all.last(), Some(&(wanted.len() as u64 + 1, line("prepare", 1, 99, "later"))));
    assert_eq!(all.len(), wanted.len() + 1);
    Verdict::Passed
}

pub(crate) async fn order(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let mut wanted = Vec::new();
    for (round, size) in [1_u32, 3, 1000, 2, 1, 500].into_iter().enumerate() {
        // The clocks of writers do not decide; the calls do.
        let batch: Vec<LogLine> =
            (0..size).map(|n| line("n", 1, 9 - round as u64, &format!("{round}/{n}"))).collect();
        wanted.extend(batch.iter().map(|line| line.text.clone()));
        store.write_lines(&execution("e"), batch).await.unwrap();
    }
    assert_eq!(texts(&*store, "e").await, wanted);
    let numbers: Vec<u64> = lines(&*store, "e").await.into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..=wanted.len() as u64).collect::<Vec<_>>());
    Verdict::Passed
}

pub(crate) async fn isolation(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    // Several write at the same time: each has its own numbers, and its batches stay whole.
    let writers: Vec<_> = (0..6)
        .map(|writer| {
            let store: Arc<dyn Store> = store.clone();
            tokio::spawn(async move {
                for batch in 0..20 {
                    let batch = (0..5).map(|n| line("n", 1, 0, &format!("{writer}/{batch}/{n}"))).collect();
                    store.write_lines(&execution(&format!("e{}", writer / 2)), batch).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    for number in 0..3 {
        let found = lines(&*store, &format!("e{number}")).await;
        assert!(found.iter().map(|(number, _)| *number).eq(1..=200), "the numbers of e{number}");
        for writer in [number * 2, number * 2 + 1] {
            let own = format!("{writer}/");
            let mine = found.iter().filter(|(_, line)| line.text.starts_with(&own));
            let wanted = (0..100).map(|n| format!("{writer}/{}/{}", n / 5, n % 5));
            assert!(mine.map(|(_, line)| line.text.clone()).eq(wanted), "the lines of writer {writer}");
        }
        for batch in found.chunks(5) {
            let of = |line: &LogLine| line.text.rsplit_once('/').map(|(of, _)| of.to_owned());
            assert!(batch.iter().all(|(_, line)| of(line) == of(&batch[0].1)), "a batch was torn: {batch:?}");
        }
    }
    assert_eq!(lines(&*store, "nobody").await, []);
    Verdict::Passed
}

pub(crate) async fn read(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let batch: Vec<LogLine> = (1..=10).map(|n| line("n", 1, n, &format!("line {n}"))).collect();
    store.write_lines(&execution("e"), batch).await.unwrap();
    let page = |after, limit| {
        let store = Arc::clone(&store);
        async move {
            let lines = store.read_lines(&execution("e"), after, limit).await.unwrap();
            lines.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(0, 3).await, [1, 2, 3]);
    assert_eq!(page(3, 3).await, [4, 5, 6]);
    assert_eq!(page(8, 100).await, [9, 10]);
    for (after, limit) in [(10, 3), (11, 3), (u64::MAX, 3), (0, 0)] {
        assert_eq!(page(after, limit).await, [0_u64; 0], "{limit} after {after}");
    }
    follow(&store).await;
    Verdict::Passed
}

/// Reads while somebody writes: what has been said to be written is there, and nothing has a gap.
async fn follow(store: &Arc<dyn Store>) {
    const BATCHES: u64 = 60;
    const SIZE: u64 = 7;
    let (said, written) = tokio::sync::watch::channel(0_u64);
    let writer: Arc<dyn Store> = Arc::clone(store);
    let writing = tokio::spawn(async move {
        for batch in 1..=BATCHES {
            let lines =
                (0..SIZE).map(|n| line("n", 1, n, &format!("{}", (batch - 1) * SIZE + n + 1))).collect();
            writer.write_lines(&execution("followed"), lines).await.unwrap();
            said.send_replace(batch * SIZE);
        }
    });
    let mut seen = 0;
    while seen < BATCHES * SIZE {
        let promised = *written.borrow();
        let found = store.read_lines(&execution("followed"), seen, usize::MAX).await.unwrap();
        for (number, line) in found {
            seen += 1;
            assert_eq!((number, line.text), (seen, seen.to_string()));
        }
        assert!(seen >= promised, "{promised} lines were written, {seen} are seen");
        tokio::task::yield_now().await;
    }
    writing.await.unwrap();
}
