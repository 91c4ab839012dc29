//! Whatever the bytes, the answer is a workflow or a list of diagnostics that can be drawn.

use proptest::prelude::*;
use pyoco_flow::{Limits, Loaded, parse, parse_native};

fn check(source: &[u8]) {
    for read in [parse, parse_native] {
        match read(source, Limits::default()) {
            Ok(workflow) => {
                let _plan = workflow.compile("main", &Loaded::default());
            }
            Err(error) => {
                let text = String::from_utf8_lossy(source);
                assert!(!error.render("flow.yaml", &text).is_empty());
            }
        }
    }
}

/// Pieces of graphs, in any order.
fn graph_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a"),
        Just("b"),
        Just("flow"),
        Just(" >> "),
        Just(" & "),
        Just(" | "),
        Just("("),
        Just(")"),
        Just("["),
        Just("]"),
        Just(", "),
        Just(";"),
        Just("\n"),
        Just("[2]"),
        Just("\"X\""),
        Just("'$ctx.params.x'"),
        Just(" % "),
        Just("switch("),
        Just("= "),
        Just("x"),
        Just(".task.retries"),
        Just("{"),
        Just("}"),
        Just("repeat(count=2)"),
        Just("pipe(p)"),
        Just(":"),
        Just("\\"),
        Just("#"),
        Just("-1"),
        Just("é"),
        Just("1.5"),
        Just("\r"),
        Just("\""),
        Just("{{x}}"),
        Just("default"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Pieces of YAML, in any order.
fn yaml_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("flow"),
        Just(": "),
        Just("graph"),
        Just("\n"),
        Just("  "),
        Just("tasks"),
        Just("- "),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(", "),
        Just("&a "),
        Just("*a"),
        Just("!!set "),
        Just("|"),
        Just(">-"),
        Just("'"),
        Just("\""),
        Just("\\"),
        Just("#"),
        Just("? "),
        Just("<<: "),
        Just("---\n"),
        Just("...\n"),
        Just("%YAML 1.1\n"),
        Just("\t"),
        Just("é"),
        Just("\u{feff}"),
        Just("1:30"),
        Just("2024-01-02"),
        Just("!!binary aGk="),
        Just("\r"),
        Just("version: 2\n"),
        Just("~"),
        Just("! "),
        Just("a"),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        check(text.as_bytes());
    }

    #[test]
    fn text_like_yaml(text in yaml_like()) {
        check(text.as_bytes());
        check(format!("flow:\n  graph: a\n  defaults:\n    {text}\n").as_bytes());
    }

    #[test]
    fn text_like_a_graph(text in graph_like()) {
        let quoted = serde_json::to_string(&text).unwrap();
        check(format!("version: 2\nflow: {{graph: {quoted}}}\ntasks: {{a: {{}}, b: {{}}}}\n").as_bytes());
        let block = text.replace('\n', "\n    ");
        check(format!("flow:\n  graph: |\n    {block}\ntasks: {{a: {{callable: 'm:a'}}}}\n").as_bytes());
    }
}
