//! Forms of the server graph: what they build, and what is refused with advice.
#![expect(clippy::panic, reason = "a failure in a helper fails the test")]

mod support;

use pyoco_core::plan::{FailPolicy, JoinPolicy, Kind, Plan, Runner, TaskSpec};
use pyoco_core::time::Millis;
use pyoco_flow::{FlowError, Limits, Loaded, parse};
use support::edges;

fn build(graph: &str) -> Result<Plan, FlowError> {
    let tasks: String =
        "abcdef".chars().map(|name| format!("  {name}: {{callable: 'm:{name}'}}\n")).collect();
    // A block scalar, whose indentation is given so that a graph may begin with spaces.
    let source = format!("flow:\n  graph: |2\n    {}\ntasks:\n{tasks}", graph.replace('\n', "\n    "));
    parse(source.as_bytes(), Limits::default())?.compile("main", &Loaded::default())
}

/// The lines of those nodes that wait for something or contain something.
fn shape(graph: &str) -> Vec<String> {
    let plan = build(graph).unwrap_or_else(|error| panic!("{graph}: {error}"));
    let lines = edges(&plan);
    let is_program = plan.root.nodes().iter().any(|node| !node.kind.blocks().is_empty());
    lines.into_iter().filter(|line| is_program || line.contains('<')).collect()
}

#[test]
fn groups_fork_and_join_wherever_their_meaning_is_evident() {
    for (graph, lines) in [
        ("a >> (b & c) >> d", vec!["b < a", "c < a", "d < b c"]),
        ("a >> [b, c] >> d", vec!["b < a", "c < a", "d < b c"]),
        ("a >> (b | c) >> d", vec!["b < a", "c < a", "d < b|c"]),
        ("(a & b & c) >> d", vec!["d < a b c"]),
        ("(a | b | c) >> d", vec!["d < a|b|c"]),
        ("((a >> b) & c) >> d", vec!["b < a", "d < b c"]),
        ("((a >> b) & (c >> d)) >> e", vec!["b < a", "d < c", "e < b d"]),
        ("a >> (b & (c >> d)) >> e", vec!["b < a", "c < a", "d < c", "e < b d"]),
        ("flow >> a >> ((b >> c) & d) >> e", vec!["b < a", "c < b", "d < a", "e < c d"]),
        ("(a & b & c) >> (d >> e)", vec!["d < a b c", "e < d"]),
        ("x = a & b & c\nx >> d", vec!["d < a b c"]),
        ("((a & b) >> c) & d", vec!["c < a b"]),
        ("(((a & b) >> c) & d) >> e", vec!["c < a b", "e < c d"]),
    ] {
        assert_eq!(shape(graph), lines, "{graph}");
    }
}

#[test]
fn a_group_may_have_many_members() {
    let many = vec!["(a >> b)"; 500].join(" & ");
    assert_eq!(shape(&format!("({many}) >> c")), ["b < a", "c < b"]);
    let many = vec!["(a | b)"; 200].join(" >> ");
    assert_eq!(shape(&many), ["a < a|b", "b < a|b"]);
    let many = vec!["b"; 500].join(", ");
    assert_eq!(shape(&format!("a >> [{many}] >> c")), ["b < a", "c < b"]);
}

#[test]
fn a_program_forks_and_joins_around_loops() {
    assert_eq!(shape("flow >> a >> (b[2] & c) >> d"), ["a", "repeat < a", "  b", "c < a", "d < c repeat"]);
    assert_eq!(
        shape("flow >> ((a >> b) | c[1]) >> d[2]"),
        ["a", "b < a", "repeat", "  c", "repeat~2 < b|repeat", "  d"]
    );
    assert_eq!(
        shape("flow >> switch(\"$ctx.params.m\")[\"X\" >> (a >> (b & c) >> d)] >> a"),
        ["switch", "  a", "  b < a", "  c < a", "  d < b c", "a < switch"]
    );
    assert_eq!(
        shape("flow >> (a >> [b, c] >> a)[2]"),
        ["repeat", "  a", "  b < a", "  c < a", "  a~2 < b c"]
    );
}

#[test]
fn forms_that_would_silently_become_something_else_are_refused_with_advice() {
    for (graph, column) in [
        ("(c & (a >> b)) >> d", 1),
        ("(a & (b | c)) >> d", 1),
        ("[a, b] >> c", 1),
        ("(a, b) >> c", 1),
        ("(a & b) >> (c >> d)", 12),
        ("(a & b) >> c[2]", 12),
        ("(a & b) >> [c, d] >> e", 22),
        ("flow >> [a >> b, c] >> d", 9),
        ("flow >> [a, [b, c]] >> d", 9),
        ("flow >> [a, b] >> c[2]", 9),
        ("flow >> (a & b) >> c[2]", 9),
        ("flow >> a[2] >> (b & c)", 17),
        ("flow >> \"x\" >> a", 9),
        ("flow >> {a, b} >> c", 9),
        ("flow >> switch(\"$ctx.params.m\") >> a", 9),
        ("flow >> [] >> a", 9),
        ("a[3]", 1),
        ("a[3] >> b", 1),
        ("a % \"$ctx.params.x\"", 1),
        ("x = a[2]", 5),
        ("x = a[2]\nflow >> x\nx >> b", 1),
        ("switch(\"$ctx.params.m\")[\"X\" >> a]", 1),
        ("flow >> switch(\"$ctx.params.m\")[\"X\" >> a >> b]", 33),
        ("(a & b)[1] >> c", 1),
        ("flow >> a[True]", 11),
        ("a >> ((b & c) >> d)", 6),
        ("flow >> a >> ((b | c) >> d)", 14),
        ("flow >> ((a & b) >> c)[2]", 9),
        ("flow >> switch(\"$ctx.params.m\")[\"X\" >> ((a & b) >> c)]", 40),
        ("a(b >> c)", 3),
    ] {
        let error = build(graph).expect_err(graph);
        let first = error.first();
        assert_eq!(first.reason(), "invalid_graph", "{graph}");
        assert_eq!(first.column(), Some(column + 4), "{graph}: {error}");
    }
}

#[test]
fn forms_without_an_evident_meaning_are_errors() {
    for graph in [
        "flow >> a & b",
        "a > b",
        "flow >> (a & b)[2]",
        "flow >> switch(\"$ctx.params.m\")[a, b]",
        "a >> flow",
        "a >> \"x\"",
        "flow >> switch(\"$ctx.params.m\")[\"X\" >> (a & b)]",
        "(a | b) & c",
        "a & b | c",
        "a >>",
        ">> a",
        "a b",
        "  a",
        "a;;b",
        ";a",
        "my-task >> a",
        "a >>\nb",
        "a >> (b",
        "a)",
        "class >> a",
        "a.b",
        "a.task.inputs = 1",
        "a.task.retries = \"x\"",
        "flow = a",
        "flow >> a[1.5]",
        "\u{feff}a",
        "a >> 'x",
        "a = ",
        "a == b",
        "a <- b",
        "print(a >> b)",
        "(a & b) % \"$ctx.params.x\"",
        "lambda: a",
        "for x in a: x",
        "a if b else c",
        "*a, b = c",
        "a[1:2]",
        "a[1][1]",
        "a >> (((b | c) & (a >> d)) >> e)",
    ] {
        assert!(build(graph).is_err(), "{graph}");
    }
}

#[test]
fn the_texts_of_pyoco_are_kept() {
    for (graph, message) in [
        ("flow >> a[-1]", "Repeat count must be non-negative."),
        ("flow >> a[None]", "Unsupported loop selector: None"),
        ("flow >> a[1, 2]", "Unsupported loop selector: (1, 2)"),
        ("flow >> a[\"$ctx.params.x as params\"]", "Invalid foreach alias 'params'."),
        ("flow >> a % (\"$ctx.params.x\", 1, 2)", "Until tuple selector must be (expression, max_iter)."),
        ("flow >> a % 3", "Unsupported expression value: 3"),
        ("flow >> switch(3)[\"X\" >> a]", "Unsupported expression value: 3"),
        ("flow >> switch(\"$ctx.params.m\")[()]", "switch() requires at least one case."),
        ("flow >> switch(\"$ctx.params.m\")[1]", "switch()[...] expects CaseNode(s)"),
        ("a >> None", "Cannot treat None as a flow fragment."),
        ("a >> nope", "name 'nope' is not defined"),
    ] {
        assert_eq!(build(graph).expect_err(graph).to_string(), message, "{graph}");
    }
}

#[test]
fn a_group_behind_flow_waits_for_all_and_says_so() {
    let plan = build("flow >> (a | b) >> c").unwrap();
    assert!(edges(&plan).contains(&"c < a b".to_owned()));
    assert!(
        plan.warnings.iter().any(|warning| warning.contains("line 3") && warning.contains("(a | b) >> c"))
    );
}

#[test]
fn a_circle_is_left_to_the_run_but_named_in_a_warning() {
    let plan = build("a >> b >> a\nc").unwrap();
    assert_eq!(plan.warnings, ["tasks wait for each other and will never run: a -> b -> a"]);
    let plan = build("flow >> a >> a").unwrap();
    assert_eq!(edges(&plan)[0], "a < a");
    assert_eq!(plan.warnings.len(), 1);
    assert!(build("a >> a").unwrap().warnings.is_empty());
}

#[test]
fn policies_can_be_set_in_the_graph_and_the_last_word_counts() {
    let plan = build("a.task.retries = 2\na.task.fail_policy = \"isolate\"\nb.task.timeout_sec = 1.5\nb.task.fail_policy = \"retry\"\nx = c\nx.task.timeout_sec = 0").unwrap();
    let policy = |number: usize| plan.tasks[number].policy;
    assert_eq!(
        (policy(0).retries, policy(0).fail, policy(0).retry_delay),
        (2, FailPolicy::Isolate, Millis(100))
    );
    assert_eq!((policy(1).timeout, policy(1).fail), (Some(Millis(1500)), FailPolicy::Stop));
    assert_eq!(policy(2).timeout, None);
    assert_eq!(shape("(a | b) >> c\nc.task.trigger_policy = \"ALL\""), ["c < a b"]);
    assert_eq!(shape("(a & b) >> c\nc.task.trigger_policy = \"ANY\""), ["c < a|b"]);
}

#[test]
fn a_program_of_version_one_ignores_fail_policies_and_deadlines() {
    let plan =
        build("a.task.fail_policy = \"isolate\"\na.task.timeout_sec = 1\na.task.retries = 1\nflow >> a[2]")
            .unwrap();
    assert_eq!((plan.tasks[0].policy.fail, plan.tasks[0].policy.timeout), (FailPolicy::Stop, None));
    assert_eq!(plan.tasks[0].policy.retries, 1);
    assert!(
        plan.warnings.iter().any(|warning| warning.ends_with("never run: b, c, d, e, f")),
        "{:?}",
        plan.warnings
    );
}

#[test]
fn until_counts_rounds_as_the_reference_does() {
    for (graph, rounds) in [
        ("flow >> a % \"$ctx.params.x\"", 1000),
        ("flow >> a % (\"$ctx.params.x\", None)", 1000),
        ("flow >> a % (\"$ctx.params.x\", 0)", 1000),
        ("flow >> a % (\"$ctx.params.x\", -3)", -3),
    ] {
        let plan = build(graph).unwrap();
        let Kind::Until { max_rounds, .. } = &plan.root.nodes()[0].kind else { panic!("{graph}") };
        assert_eq!(*max_rounds, rounds);
    }
}

#[test]
fn a_task_that_cannot_be_imported_is_left_out_unless_the_graph_names_it() {
    let source = b"flow: {graph: 'a >> b'}\ntasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}, ghost: {callable: 'm:x'}}";
    let workflow = parse(source, Limits::default()).unwrap();
    assert_eq!(workflow.callables().collect::<Vec<_>>(), [("a", "m:a"), ("b", "m:b"), ("ghost", "m:x")]);
    let missing = |name: &str| Loaded {
        missing: [(name.to_owned(), "module 'm' has no attribute 'x'".to_owned())].into_iter().collect(),
        discovered: Vec::new(),
    };
    let plan = workflow.compile("main", &missing("ghost")).unwrap();
    assert_eq!(plan.tasks.len(), 2);
    assert_eq!(plan.warnings, ["task 'ghost' was left out: module 'm' has no attribute 'x'"]);
    let error = workflow.compile("main", &missing("b")).unwrap_err();
    assert_eq!(error.to_string(), "name 'b' is not defined (module 'm' has no attribute 'x')");
    assert_eq!((error.first().line(), error.first().column()), (Some(1), Some(21)));
}

#[test]
fn discovered_tasks_are_members_and_the_file_adds_to_them() {
    let source = b"flow: {graph: 'a >> found'}\ntasks: {a: {callable: 'm:a'}, found: {inputs: {x: 1}, outputs: [scratch.f]}}";
    let workflow = parse(source, Limits::default()).unwrap();
    let discovered = |name: &str| TaskSpec::new(name, Runner::Registered(name.to_owned()));
    let mut found = discovered("found");
    found.outputs.push("scratch.own".to_owned());
    let loaded =
        Loaded { discovered: vec![found, discovered("other"), discovered("a")], ..Loaded::default() };
    let plan = workflow.compile("main", &loaded).unwrap();
    let names: Vec<&str> = plan.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "found", "other"]);
    assert_eq!(plan.tasks[0].runner, Runner::Callable("m:a".to_owned()));
    assert_eq!(plan.tasks[1].outputs, ["scratch.own", "scratch.f"]);
    assert!(plan.tasks[1].inputs.contains_key("x"));
    let error = workflow.compile("main", &Loaded::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("name 'found' is not defined (tasks.found has no callable"),
        "{error}"
    );
}

#[test]
fn a_callable_has_one_colon_and_a_module() {
    for (callable, message) in [
        ("m:a:b", "too many values to unpack (expected 2)"),
        (":", "Empty module name"),
        (":a", "Empty module name"),
    ] {
        let source = format!("flow: {{graph: a}}\ntasks: {{a: {{callable: '{callable}'}}}}");
        let workflow = parse(source.as_bytes(), Limits::default()).unwrap();
        assert_eq!(workflow.compile("main", &Loaded::default()).unwrap_err().to_string(), message);
    }
}

#[test]
fn several_unknown_names_are_reported_at_once() {
    let error = build("a >> nope >> b\nflow >> gone").unwrap_err();
    let reasons: Vec<&str> = error.diagnostics().map(|problem| problem.message()).collect();
    assert_eq!(reasons, ["name 'nope' is not defined", "name 'gone' is not defined"]);
}

#[test]
fn a_workflow_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&parse(b"flow: {graph: 'flow >> a[2]'}", Limits::default()).unwrap());
}

#[test]
fn any_is_a_join_policy_of_the_task() {
    let plan = build("(a | b) >> c\nd >> c").unwrap();
    let joins: Vec<&Kind> = plan
        .root
        .nodes()
        .iter()
        .map(|node| &node.kind)
        .filter(|kind| matches!(kind, Kind::Join { .. }))
        .collect();
    assert!(matches!(joins.as_slice(), [Kind::Join { policy: JoinPolicy::AnySuccess, explicit: false }]));
}
