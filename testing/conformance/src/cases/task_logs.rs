//! Cases of what tasks write.

use std::sync::Arc;

use pyoco_ports::{LinePlace, LogEnd, LogLine, LogStream, LogTerms, Store, Written};

use crate::samples::{OPEN, execution, line, text};
use crate::{Subject, Verdict};

/// All lines, in as many pages as the store makes of them.
async fn lines(store: &dyn Store, name: &str) -> Vec<(u64, LogLine)> {
    let mut lines = Vec::new();
    loop {
        let after = lines.last().map_or(0, |(number, _)| *number);
        let page = store.read_lines(&execution(name), after, usize::MAX).await.unwrap();
        if page.is_empty() {
            return lines;
        }
        lines.extend(page);
    }
}

async fn write_to(store: &dyn Store, name: &str, lines: Vec<LogLine>, terms: LogTerms) -> Written {
    store.write_lines(&execution(name), lines, terms).await.unwrap()
}

async fn end_of(store: &dyn Store, name: &str) -> LogEnd {
    store.log_end(&execution(name)).await.unwrap()
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
    // Of no node: about the execution itself.
    lines.push(LogLine { node: None, stream: LogStream::Engine, ..line("n", 0, 50, "it begins") });
    // Long ones do not fit a page, and time may go back.
    lines.push(line("prepare", 1, 0, &"long ☃ ".repeat(20_000)));
    lines
}

pub(crate) async fn write(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let first = varied();
    let written = write_to(&*store, "e", first.clone(), OPEN).await;
    let wanted: Vec<(u64, LogLine)> = (1..).zip(first).collect();
    assert_eq!(written.lines, wanted);
    assert_eq!(
        write_to(&*store, "e", Vec::new(), OPEN).await,
        Written { lines: Vec::new(), end: written.end }
    );
    assert_eq!(lines(&*store, "e").await, wanted);
    let Some(store) = subject.lose_and_reopen(store).await else {
        return Verdict::Skipped("nothing survives the process");
    };
    assert_eq!(lines(&*store, "e").await, wanted);
    // The numbers go on where they were.
    write_to(&*store, "e", vec![line("prepare", 1, 99, "later")], OPEN).await;
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
        let before = wanted.len() - batch.len();
        let written = write_to(&*store, "e", batch, OPEN).await;
        assert!(written.lines.iter().map(|(number, _)| *number).eq(before as u64 + 1..=wanted.len() as u64));
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
                    write_to(&*store, &format!("e{}", writer / 2), batch, OPEN).await;
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
    write_to(&*store, "e", batch, OPEN).await;
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
    // Two megabytes: whoever reads all of it may get it in several pages.
    for round in 0..4 {
        let batch = (0..5).map(|n| line("n", 1, 0, &format!("{round}{n}").repeat(50_000))).collect();
        write_to(&*store, "long", batch, OPEN).await;
    }
    let wanted = (0..4).flat_map(|round| (0..5).map(move |n| format!("{round}{n}").repeat(50_000)));
    assert!(texts(&*store, "long").await.into_iter().eq(wanted), "some of the long lines are not there");
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
            write_to(&*writer, "followed", lines, OPEN).await;
            said.send_replace(batch * SIZE);
        }
    });
    let mut seen = 0;
    while seen < BATCHES * SIZE {
        let promised = *written.borrow();
        let end = end_of(&**store, "followed").await;
        assert!(end.lines >= promised, "{promised} lines were written, and the log ends with {}", end.lines);
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

fn plain(count: usize) -> Vec<LogLine> {
    (0..count).map(|_| line("n", 1, 3, "0123456789")).collect()
}

pub(crate) async fn limit(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let each = plain(1)[0].text_bytes();
    let terms = LogTerms { max_bytes: 5 * each, closes: false };
    assert_eq!(write_to(&*store, "e", plain(4), terms).await.end.lines, 4);
    // The fifth fits to the byte; the sixth does not, and what is kept instead of it says why the log ends.
    let last = write_to(&*store, "e", plain(3), terms).await;
    assert_eq!(last.lines.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(last.lines[0].1, plain(1)[0]);
    let mark = &last.lines[1].1;
    assert_eq!((&mark.node, mark.stream), (&None, LogStream::Engine));
    let cut = LogEnd { lines: 6, bytes: 5 * each + mark.text_bytes(), is_cut: true, is_closed: false };
    assert_eq!(last.end, cut);
    // Nothing follows, whatever is allowed now.
    for terms in [terms, OPEN] {
        assert_eq!(write_to(&*store, "e", plain(2), terms).await, Written { lines: Vec::new(), end: cut });
    }
    assert_eq!(end_of(&*store, "e").await, cut);
    let kept = lines(&*store, "e").await;
    assert_eq!((kept.len(), &kept[5].1), (6, mark));
    // But it can be closed.
    let closed = LogEnd { is_closed: true, ..cut };
    let closing = LogTerms { closes: true, ..OPEN };
    assert_eq!(write_to(&*store, "e", plain(1), closing).await, Written { lines: Vec::new(), end: closed });
    closes(&store).await;
    races_for_the_limit(&store).await;
    races_with_the_end(&store).await;
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    for name in ["e", "closed", "never"] {
        let before = end_of(&*store, name).await;
        assert!(before.is_closed, "{name}");
        assert_eq!(write_to(&*store, name, plain(1), OPEN).await, Written { lines: Vec::new(), end: before });
    }
    Verdict::Passed
}

async fn closes(store: &Arc<dyn Store>) {
    let closing = LogTerms { closes: true, ..OPEN };
    write_to(&**store, "closed", plain(2), OPEN).await;
    let last = write_to(&**store, "closed", plain(1), closing).await;
    assert_eq!(last.lines, [(3, plain(1).remove(0))]);
    assert!(last.end.is_closed && !last.end.is_cut);
    for terms in [OPEN, closing] {
        let after = write_to(&**store, "closed", plain(2), terms).await;
        assert_eq!(after, Written { lines: Vec::new(), end: last.end });
    }
    assert_eq!(end_of(&**store, "closed").await, last.end);
    assert_eq!(lines(&**store, "closed").await.len(), 3);
    // One that nothing was ever written to.
    let end = LogEnd { is_closed: true, ..LogEnd::default() };
    assert_eq!(write_to(&**store, "never", Vec::new(), closing).await, Written { lines: Vec::new(), end });
    assert_eq!(write_to(&**store, "never", plain(1), OPEN).await, Written { lines: Vec::new(), end });
    assert_eq!(end_of(&**store, "never").await, end);
    assert_eq!(lines(&**store, "never").await, []);
}

/// Several write at the same time until the log is full: what each is told was kept is what is there.
async fn races_for_the_limit(store: &Arc<dyn Store>) {
    let each = line("n", 1, 3, "0/00").text_bytes();
    let terms = LogTerms { max_bytes: 50 * each, closes: false };
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store: Arc<dyn Store> = Arc::clone(store);
            tokio::spawn(async move {
                let mut kept = Vec::new();
                for batch in 0..10 {
                    let lines = (0..3).map(|n| line("n", 1, 3, &format!("{writer}/{batch}{n}"))).collect();
                    kept.extend(write_to(&*store, "raced", lines, terms).await.lines);
                }
                kept
            })
        })
        .collect();
    let mut told = Vec::new();
    for writer in writers {
        told.extend(writer.await.unwrap());
    }
    told.sort_by_key(|(number, _)| *number);
    let kept = lines(&**store, "raced").await;
    assert_eq!(told, kept);
    assert_eq!(kept.len(), 51, "as many as there is room for, and one mark");
    assert_eq!(kept[50].1.stream, LogStream::Engine);
    assert_eq!(end_of(&**store, "raced").await.bytes, text(&kept).len() as u64);
}

/// One closes the log while others write: nothing is behind its last line.
async fn races_with_the_end(store: &Arc<dyn Store>) {
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let store: Arc<dyn Store> = Arc::clone(store);
            tokio::spawn(async move {
                for _ in 0..15 {
                    write_to(&*store, "ended", plain(2), OPEN).await;
                }
            })
        })
        .collect();
    write_to(&**store, "ended", plain(2), OPEN).await;
    let closing = LogTerms { closes: true, ..OPEN };
    let last = write_to(&**store, "ended", vec![line("n", 1, 3, "the end")], closing).await;
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(end_of(&**store, "ended").await, last.end);
    let kept = lines(&**store, "ended").await;
    assert_eq!(kept.last(), last.lines.last());
    assert_eq!(kept.len() as u64, last.end.lines);
}

pub(crate) async fn end(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(end_of(&*store, "e").await, LogEnd::default());
    let mut all: Vec<(u64, LogLine)> = Vec::new();
    for batch in [varied(), plain(100), Vec::new(), varied(), plain(1)] {
        let written = write_to(&*store, "e", batch, OPEN).await;
        all.extend(written.lines);
        let wanted = LogEnd { lines: all.len() as u64, bytes: text(&all).len() as u64, ..LogEnd::default() };
        assert_eq!(written.end, wanted);
        assert_eq!(end_of(&*store, "e").await, wanted);
        // Another one is not concerned.
        assert_eq!(end_of(&*store, "f").await, LogEnd::default());
    }
    let before = end_of(&*store, "e").await;
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(end_of(&*store, "e").await, before);
    Verdict::Passed
}

pub(crate) async fn place(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let line_at = async |name: &str, byte| store.line_at(&execution(name), byte).await.unwrap();
    assert_eq!(line_at("e", 0).await, None);
    let mut batches = vec![plain(1), varied(), plain(150), varied()];
    batches.extend((0..10).map(|_| plain(2)));
    for batch in batches {
        write_to(&*store, "e", batch, OPEN).await;
        write_to(&*store, "f", plain(3), OPEN).await;
    }
    // The mark has a place like others.
    write_to(&*store, "e", plain(1), LogTerms { max_bytes: 0, closes: true }).await;
    let all = lines(&*store, "e").await;
    let end = end_of(&*store, "e").await;
    assert_eq!((end.lines, end.bytes), (all.len() as u64, text(&all).len() as u64));
    let mut first_byte = 0;
    for (number, line) in &all {
        let behind = first_byte + line.text_bytes();
        let wanted = Some(LinePlace { number: *number, first_byte });
        // Of the many that are alike a few are enough.
        if line.text != "0123456789" || number % 16 == 0 {
            for byte in [first_byte, first_byte + 1, behind - 1] {
                assert_eq!(line_at("e", byte).await, wanted, "byte {byte}");
            }
        }
        first_byte = behind;
    }
    assert_eq!(first_byte, end.bytes);
    for byte in [end.bytes, end.bytes + 1, u64::MAX] {
        assert_eq!(line_at("e", byte).await, None, "byte {byte}");
    }
    assert_eq!(line_at("nobody", 0).await, None);
    Verdict::Passed
}
