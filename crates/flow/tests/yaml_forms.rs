//! YAML as people write it for PyYAML: what YAML 1.2 parsers are stricter about, and what 1.1 means.

use pyoco_flow::{Limits, validate};
use serde_json::json;

#[test]
fn brackets_and_quotes_may_end_at_the_margin() {
    for source in [
        "flow: {\n\"graph\": \"a\",\n\"defaults\": {\n\"k\": [1,\n2\n]}\n}\n",
        "flow:\n  graph: a\n  defaults: {\n    k: [\n      1,\n      2\n    ]\n  }\n",
        "flow:\n  graph: a\n  defaults:\n    k: [\n1,\n2,\n]\n",
        "{\"flow\": {\"graph\": \"a\", \"defaults\": {\"k\": [1, 2]}}}",
    ] {
        let document = validate(source.as_bytes(), Limits::default(), true).unwrap();
        assert_eq!(json!(document.defaults()), json!({"k": [1, 2]}), "{source}");
    }
    let document = validate(b"flow:\n  graph: \"a >>\n b\"\n", Limits::default(), true).unwrap();
    assert_eq!(document.graph(), Some("a >> b"));
}

#[test]
fn a_position_ignores_the_spaces_that_were_added() {
    let source = b"flow: {\ngraph: a,\ndefaults: {k: .inf}}\n";
    let error = validate(source, Limits::default(), true).unwrap_err();
    assert_eq!((error.first().line(), error.first().column()), (Some(3), Some(15)));
}

#[test]
fn values_that_json_cannot_hold_are_refused_by_their_key() {
    for (value, path) in [
        (".nan", "defaults.k"),
        ("[1, {x: -.inf}]", "defaults.k[1].x"),
        ("!!binary aGk=", "defaults.k"),
        ("!!set {a, b}", "defaults.k"),
        ("99999999999999999999", "defaults.k"),
    ] {
        let source = format!("flow: {{graph: a, defaults: {{k: {value}}}}}");
        let error = validate(source.as_bytes(), Limits::default(), true).unwrap_err();
        assert_eq!(error.reason(), "invalid_flow_defaults");
        assert!(error.to_string().contains(path), "{error}");
    }
    let source = b"flow: {graph: a}\ntasks: {a: {callable: 'm:f', inputs: {x: .inf}}}";
    assert_eq!(validate(source, Limits::default(), true).unwrap_err().reason(), "invalid_task_inputs: a");
}

#[test]
fn dates_pairs_and_keys_become_what_json_has_for_them() {
    let source = b"flow:\n  graph: a\n  defaults:\n    day: 2024-01-02\n    at: 2024-01-02 03:04:05Z\n    1: one\n    true: yes\n    ~: null\n    pairs: !!omap [x: 1, y: 2]\n    big: 18446744073709551615\n";
    let document = validate(source, Limits::default(), true).unwrap();
    let expected = json!({
        "day": "2024-01-02", "at": "2024-01-02T03:04:05+00:00", "1": true, "null": null,
        "pairs": [["x", 1], ["y", 2]], "big": 18_446_744_073_709_551_615_u64,
    });
    assert_eq!(json!(document.defaults()), expected);
}

#[test]
fn merge_keys_give_way_to_the_mappings_own() {
    let source = b"flow: {graph: a}\ntasks:\n  a: &a {callable: 'm:a', inputs: {x: 1}}\n  b: {<<: [{outputs: [scratch.b]}, *a], callable: 'm:b'}\n";
    let document = validate(source, Limits::default(), true).unwrap();
    let (_, task) = document.tasks().last().unwrap();
    assert_eq!((task.callable(), task.outputs()), (Some("m:b"), &["scratch.b".to_owned()][..]));
    assert_eq!(json!(task.inputs()), json!({"x": 1}));
}

#[test]
fn what_pyyaml_refuses_is_refused() {
    for source in [
        "a: &x 1\nb: &x 2\n",
        "a: *nope\n",
        "a: 1\n---\nb: 2\n",
        "a: !custom 1\n",
        "a: !!python/object:os.system x\n",
        "? [a]\n: b\n",
        "a: =\n",
        "- <<\n",
        "<<: 1\n",
        "a: 2024-02-30\n",
        "a: !!int x\n",
        "a:\tb\n",
        "a: b\tc\n",
        "%YAML 2.0\n---\na: b\n",
        "a: {b: |\n}\n",
        "a: @b\n",
        "a: b: c\n",
        "a: [1,,2]\n",
        "\u{7}",
    ] {
        assert_eq!(
            validate(source.as_bytes(), Limits::default(), true).unwrap_err().reason(),
            "invalid_yaml",
            "{source:?}"
        );
    }
}

#[test]
fn keys_of_mixed_kinds_are_listed_by_their_text() {
    for (source, reason) in [
        ("flow: {graph: a}\n1: x\nzz: y\n", "unknown_top_level_keys: ['zz', 1]"),
        ("flow: {graph: a}\n10: x\n9: y\ntrue: z\n", "unknown_top_level_keys: [True, 9, 10]"),
        ("flow: {graph: a}\n2024-01-02: x\n", "unknown_top_level_keys: [datetime.date(2024, 1, 2)]"),
        ("flow: {graph: a, \"it's\": 1}\n", "unknown_flow_keys: [\"it's\"]"),
    ] {
        assert_eq!(validate(source.as_bytes(), Limits::default(), true).unwrap_err().reason(), reason);
    }
}
