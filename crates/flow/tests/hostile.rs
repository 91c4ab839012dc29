//! Documents made to hurt: each is refused, fast and without swelling.

use std::time::{Duration, Instant};

use pyoco_flow::{Limits, parse, parse_native};

#[path = "support/hostile.rs"]
mod documents;

use documents::{documents, in_graph};

/// The only place where time is measured: whether a refusal is fast is what is asked.
#[expect(clippy::disallowed_methods, reason = "the test measures time")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

#[test]
fn hostile_documents_are_refused() {
    for (name, text) in documents() {
        let (result, took) = timed(|| parse(text.as_bytes(), Limits::default()));
        assert!(result.is_err(), "{name} was accepted");
        // Debug builds and busy machines are slow in their own ways.
        if !cfg!(debug_assertions) {
            assert!(took < Duration::from_millis(50), "{name} took {took:?}");
        }
        assert!(took < Duration::from_secs(5), "{name} took {took:?}");
    }
}

#[test]
fn hostile_native_graphs_are_refused() {
    let mut pipes = "pipes:\n".to_owned();
    for level in 0..100 {
        pipes += &format!("  p{level}: pipe(p{0}) >> pipe(p{0})\n", level + 1);
    }
    pipes += "  p100: a\n";
    for (name, text) in [
        ("doubling pipes", format!("flow: {{graph: pipe(p0)}}\n{pipes}")),
        ("deep braces", in_graph(&"repeat(count=1){".repeat(10_000))),
        ("many terms", in_graph(&vec!["a"; 60_000].join(">>"))),
        ("shifts", in_graph(&">>".repeat(100_000))),
        ("deep switches", in_graph(&"switch(on=x){1:".repeat(10_000))),
        ("quoted branches", in_graph(&"switch(on=x){1:\"".repeat(10_000))),
    ] {
        let (result, took) = timed(|| parse_native(text.as_bytes(), Limits::default()));
        assert!(result.is_err(), "{name}");
        let limit = if cfg!(debug_assertions) { 5000 } else { 50 };
        assert!(took < Duration::from_millis(limit), "{name} took {took:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for bytes in [&b"\xff\xfe"[..], b"flow: {graph: \xc3}", b"\x80", b"a: \xed\xa0\x80"] {
        assert_eq!(parse(bytes, Limits::default()).unwrap_err().reason(), "invalid_utf8");
    }
}

#[test]
fn a_long_but_honest_document_is_accepted() {
    let csv: String = (0..10_000).map(|n| format!("{n},{n}\n      ")).collect();
    let chain = (0..3000).map(|n| format!("t{}", n % 50)).collect::<Vec<_>>().join(" >> ");
    let text = format!("flow:\n  graph: {chain}\n  defaults:\n    csv: |\n      {csv}\n");
    assert!(parse(text.as_bytes(), Limits::default()).is_ok());
    assert_eq!(parse(text.as_bytes(), Limits { max_bytes: 1000 }).unwrap_err().reason(), "too_large");
}
