//! The keys of version 2: who runs a task, policies, joins, copies, pipes and the native graph.
#![expect(clippy::panic, reason = "a failure in a helper fails the test")]

mod support;

use pyoco_core::plan::{FailPolicy, Input, JoinPolicy, Kind, Plan, Runner};
use pyoco_core::time::Millis;
use pyoco_flow::{FlowError, Limits, Loaded, parse};
use support::edges;

fn build(rest: &str) -> Result<Plan, FlowError> {
    let source = format!("version: 2\n{rest}");
    parse(source.as_bytes(), Limits::default())?.compile("main", &Loaded::default())
}

fn plan(rest: &str) -> Plan {
    build(rest)
        .unwrap_or_else(|error| panic!("{}", error.render("flow.yaml", &format!("version: 2\n{rest}"))))
}

fn joins(plan: &Plan) -> Vec<&JoinPolicy> {
    let mut joins = Vec::new();
    for node in plan.root.nodes() {
        if let Kind::Join { policy, .. } = &node.kind {
            joins.push(policy);
        }
    }
    joins
}

#[test]
fn every_way_to_run_a_task_has_its_key() {
    let plan = plan(
        "flow: {graph: 'a >> b >> c >> d'}\ntasks:\n  a: {callable: 'm:a'}\n  b: {command: [ls, -l]}\n  c: {wait: {key: ok, prompt: {text: sure?}}}\n  d: {}\n",
    );
    let runners: Vec<&Runner> = plan.tasks.iter().map(|task| &task.runner).collect();
    let wait =
        Runner::Wait { key: "ok".to_owned(), prompt: Some(serde_json::json!({"text": "sure?"}).into()) };
    assert_eq!(
        runners,
        [
            &Runner::Callable("m:a".to_owned()),
            &Runner::Command(vec!["ls".to_owned(), "-l".to_owned()]),
            &wait,
            &Runner::External
        ]
    );
}

#[test]
fn policies_are_keys_of_the_task() {
    let plan = plan(
        "flow: {graph: a}\ntasks: {a: {retries: 3, retry_delay_sec: 0, timeout_sec: 0.0001, fail_policy: isolate}, b: {timeout_sec: 2}}",
    );
    let policy = plan.tasks[0].policy;
    assert_eq!(
        (policy.retries, policy.retry_delay, policy.timeout, policy.fail),
        (3, Millis(0), Some(Millis(1)), FailPolicy::Isolate)
    );
    let policy = plan.tasks[1].policy;
    assert_eq!(
        (policy.retries, policy.retry_delay, policy.timeout, policy.fail),
        (0, Millis(100), Some(Millis(2000)), FailPolicy::Stop)
    );
}

#[test]
fn a_program_honours_policies() {
    let plan = plan("flow: {graph: 'flow >> a[2]'}\ntasks: {a: {timeout_sec: 2, fail_policy: isolate}}");
    assert_eq!(
        (plan.tasks[0].policy.timeout, plan.tasks[0].policy.fail),
        (Some(Millis(2000)), FailPolicy::Isolate)
    );
}

#[test]
fn a_tolerant_join_shelters_branches_whose_author_said_nothing() {
    let plan =
        plan("flow: {graph: '(a & b) >> c'}\ntasks: {a: {}, b: {fail_policy: stop}, c: {join: ALL_DONE}}");
    assert_eq!(joins(&plan), [&JoinPolicy::AllDone]);
    let fails: Vec<FailPolicy> = plan.tasks.iter().map(|task| task.policy.fail).collect();
    assert_eq!(fails, [FailPolicy::Isolate, FailPolicy::Stop, FailPolicy::Stop]);
}

#[test]
fn a_custom_join_is_an_expression_over_its_branches() {
    let custom = plan(
        "flow: {graph: '(a & b) >> c'}\ntasks:\n  a: {}\n  b: {}\n  c: {join: {policy: CUSTOM, when: '$ctx.branches.completed > 0'}}",
    );
    let joins = joins(&custom);
    assert!(
        matches!(joins.as_slice(), [JoinPolicy::Custom(when)] if when.text() == "$ctx.branches.completed > 0")
    );
    let named =
        plan("flow: {graph: '(a & b) >> c'}\ntasks: {a: {}, b: {}, c: {join: {policy: ANY_SUCCESS}}}");
    assert!(edges(&named).contains(&"c < a|b".to_owned()));
}

#[test]
fn use_copies_another_task_with_changes() {
    let plan = plan(
        "flow: {graph: 'a >> b >> c'}\ntasks:\n  c: {use: b, fail_policy: stop}\n  b: {use: a, inputs: {y: 2}, outputs: [scratch.b], retries: 5}\n  a: {callable: 'm:a', inputs: {x: 1, y: 1}, outputs: [scratch.a], fail_policy: isolate}\n",
    );
    let names: Vec<&str> = plan.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let (b, c) = (&plan.tasks[1], &plan.tasks[2]);
    assert_eq!(b.runner, Runner::Callable("m:a".to_owned()));
    assert_eq!(b.inputs["y"], Input::Lit(serde_json::json!(2).into()));
    assert_eq!(b.outputs, ["scratch.a", "scratch.b"]);
    assert_eq!((b.policy.retries, b.policy.fail), (5, FailPolicy::Isolate));
    assert_eq!((c.policy.retries, c.policy.fail), (5, FailPolicy::Stop));
}

#[test]
fn a_copy_of_a_task_that_cannot_be_imported_is_missing_too() {
    let source = b"version: 2\nflow: {graph: d}\ntasks: {a: {callable: 'm:a'}, b: {use: a}, d: {}}";
    let workflow = parse(source, Limits::default()).unwrap();
    assert_eq!(workflow.callables().collect::<Vec<_>>(), [("a", "m:a"), ("b", "m:a")]);
    let loaded =
        Loaded { missing: [("a".to_owned(), "gone".to_owned())].into_iter().collect(), ..Loaded::default() };
    let plan = workflow.compile("main", &loaded).unwrap();
    assert_eq!(plan.tasks.len(), 1);
    assert_eq!(plan.warnings.len(), 2);
}

#[test]
fn a_native_graph_is_chosen_by_its_syntax() {
    let plan = plan(
        "flow:\n  syntax: native\n  graph: |\n    pipe(start)\n    >> switch(on=mode){ X: b; default: n: b }\npipes:\n  start: 'a >> a2: a'\ntasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}, unused: {}}\n",
    );
    assert_eq!(edges(&plan), ["a", "a2 < a", "switch < a2", "  b", "  n"]);
    let names: Vec<&str> = plan.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "a2", "b", "n"]);
}

#[test]
fn a_circle_is_refused_before_it_runs() {
    let error = build("flow:\n  graph: |\n    a >> b\n    b >> a\ntasks: {a: {}, b: {}}").unwrap_err();
    assert_eq!(error.to_string(), "these tasks wait for each other: a -> b -> a");
    assert_eq!(error.first().line(), Some(4));
}

#[test]
fn wrong_values_are_refused_by_name() {
    for (task, reason) in [
        ("{command: []}", "invalid_task_command: a"),
        ("{command: ls}", "invalid_task_command: a"),
        ("{command: [ls, 1]}", "invalid_task_command: a"),
        ("{wait: {}}", "invalid_task_wait: a"),
        ("{wait: {key: k, other: 1}}", "unknown_wait_keys: a: ['other']"),
        ("{retries: 101}", "invalid_task_retries: a"),
        ("{retries: true}", "invalid_task_retries: a"),
        ("{retry_delay_sec: -1}", "invalid_task_retry_delay_sec: a"),
        ("{timeout_sec: 0}", "invalid_task_timeout_sec: a"),
        ("{timeout_sec: .inf}", "invalid_task_timeout_sec: a"),
        ("{fail_policy: retry}", "invalid_task_fail_policy: a"),
        ("{join: SOME}", "invalid_task_join: a"),
        ("{join: {policy: CUSTOM}}", "invalid_task_join: a"),
        ("{join: {policy: CUSTOM, when: 'x +'}}", "invalid_task_join: a"),
        ("{use: nope}", "invalid_task_use: a"),
        ("{use: a}", "invalid_task_use: a"),
        ("{callable: 'm:a', command: [ls]}", "invalid_task_config: a"),
        ("{nope: 1}", "unknown_task_keys: a: ['nope']"),
    ] {
        let error = build(&format!("flow: {{graph: a}}\ntasks: {{a: {task}}}")).expect_err(task);
        assert_eq!(error.reason(), reason, "{task}: {error}");
        assert_eq!(error.first().line(), Some(3), "{task}");
    }
    let both = build("flow: {graph: a}\ntasks: {a: {callable: 'm:a', use: x}}").unwrap_err();
    assert_eq!(both.to_string(), "Invalid config: tasks.a cannot define both 'callable' and 'use'.");
    assert_eq!(build("flow: {graph: a, syntax: other}").unwrap_err().reason(), "invalid_flow_syntax");
    assert_eq!(
        build("flow: {graph: a}\npipes: {x: 1}").unwrap_err().to_string(),
        "Invalid config: pipes.x must be a string."
    );
}

#[test]
fn version_one_knows_none_of_it() {
    for rest in ["tasks: {a: {retries: 1}}", "pipes: {x: a}", "tasks: {a: {use: b}}"] {
        let source = format!("flow: {{graph: a}}\n{rest}");
        let error = parse(source.as_bytes(), Limits::default()).unwrap_err();
        assert!(error.reason().starts_with("unknown_"), "{error}");
    }
}

#[test]
fn exposed_names_of_the_environment_reach_the_plan() {
    let of = |version: u8, list: &str| {
        let source = format!(
            "version: {version}\nflow: {{graph: a}}\ntasks: {{a: {{callable: 'm:a'}}}}\nruntime: {{expose_env: {list}}}"
        );
        let workflow = parse(source.as_bytes(), Limits::default()).unwrap();
        workflow.compile("main", &Loaded::default()).unwrap().expose_env
    };
    assert_eq!(of(1, "[HOME]"), Some(vec!["HOME".to_owned()]));
    assert_eq!(of(1, "[]"), None);
    assert_eq!(of(2, "[]"), Some(Vec::new()));
}
