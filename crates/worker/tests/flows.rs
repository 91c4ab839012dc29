//! Where plans come from: the text of a job, a folder, a resolver with the real pyoco package.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::mem_forget,
    reason = "a test stops at the first surprise"
)]

mod ground;

use std::sync::Arc;

use ground::*;
use pyoco_core::plan::{Plan, Runner};
use pyoco_core::state::{Phase, Root};
use pyoco_worker::{Flows as _, LoadError};
use serde_json::json;

async fn plan(ground: &Ground, flow: &str, yaml: Option<&str>) -> Result<Arc<Plan>, LoadError> {
    ground.runtime.flows().plan(&job(flow, yaml), None).await
}

#[tokio::test]
async fn a_callable_that_cannot_be_imported_is_left_out_with_a_warning_unless_the_graph_names_it() {
    let ground = Ground::new("def a():\n    return 1\n");
    let yaml = "flow: {graph: 'a'}\ntasks:\n  a: {callable: 'tasks:a'}\n  b: {callable: 'nowhere:b'}\n  c: {callable: 'tasks:c'}\n";
    let found = plan(&ground, "main", Some(yaml)).await.unwrap();
    assert_eq!(found.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(
        found.warnings,
        [
            "task 'b' was left out: No module named 'nowhere'",
            "task 'c' was left out: module 'tasks' has no attribute 'c'"
        ]
    );
    let error = plan(&ground, "main", Some(&yaml.replace("'a'", "'a >> b'"))).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("name 'b' is not defined (No module named 'nowhere')"), "{text}");
    let state = ground.flow(&yaml.replace("'a'", "'a >> b'"), json!({"kept": 1})).await;
    assert_eq!(state.phase, Phase::Failed);
    assert_eq!(state.context.root(Root::Params), &json!({"kept": 1}));
}

#[tokio::test]
async fn an_import_that_never_returns_or_dies_fails_the_run_and_not_the_worker() {
    let ground = Ground::with(
        &[
            ("dies.py", "import os, sys\nprint('here it ends', file=sys.stderr)\nos._exit(9)\n"),
            ("exits.py", "import sys\nsys.exit(1)\n"),
            ("tasks.py", "def a():\n    return 1\n"),
        ],
        |_| {},
    );
    let text = plan(&ground, "main", Some("flow: {graph: 'a'}\ntasks: {a: {callable: 'dies:a'}}\n")).await;
    let text = text.unwrap_err().to_string();
    assert!(text.contains("ended with exit code 9") && text.contains("here it ends"), "{text}");
    let text = plan(&ground, "main", Some("flow: {graph: 'a'}\ntasks: {a: {callable: 'exits:a'}}\n")).await;
    assert!(text.unwrap_err().to_string().contains("SystemExit"));
    let state = ground.flow("flow: {graph: 'a'}\ntasks: {a: {callable: 'tasks:a'}}\n", json!({})).await;
    assert_eq!(state.phase, Phase::Completed);
}

#[tokio::test]
async fn a_text_that_does_not_parse_fails_with_its_reason() {
    let ground = Ground::new("");
    let text = plan(&ground, "main", Some("flow: {graph: 'a >>'}\n")).await.unwrap_err().to_string();
    assert_eq!(text, "invalid syntax: the line ends where a task is expected");
}

#[tokio::test]
async fn modules_may_offer_tasks_that_the_file_need_not_define() {
    let offered = r#"
from pyoco import task
from pyoco.core.models import Task
@task
def hello(who="you"):
    return f"hello {who}"
later = Task(func=lambda x: x + 1, name="own_name", retries=2, inputs={"x": "$ctx.params.n"}, outputs=["scratch.later"])
hello >> later
"#;
    let ground = Ground::with(&[("offered.py", offered)], |options| {
        options.env.insert("PYOCO_DISCOVERY_MODULES".to_owned(), "offered, not_there".to_owned());
    });
    let yaml = "flow: {graph: 'later >> hello'}\ntasks: {hello: {inputs: {who: Ada}}}\n";
    let found = plan(&ground, "main", Some(yaml)).await.unwrap();
    assert_eq!(found.tasks[1].runner, Runner::Callable("offered:later".to_owned()));
    assert_eq!(found.tasks[1].policy.retries, 2);
    assert_eq!(
        found.warnings,
        ["discovery module 'not_there' was left out: ModuleNotFoundError: No module named 'not_there'"]
    );
    let state = ground.flow(yaml, json!({"n": 4})).await;
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    assert_eq!(state.context.root(Root::Results), &json!({"later": 5, "hello": "hello Ada"}));
    assert_eq!(state.context.root(Root::Scratch), &json!({"later": 5}));
}

#[tokio::test]
async fn plugins_register_tasks_under_their_names() {
    let plugin = "def register(registry):\n    @registry.task(name='shout', inputs={'text': 'hey'})\n    def shout(text):\n        return text.upper()\n\ndef broken(registry):\n    raise RuntimeError('no licence')\n";
    let ground = Ground::with(
        &[
            ("my_plugin.py", plugin),
            ("my_plugin-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n"),
            (
                "my_plugin-1.0.dist-info/entry_points.txt",
                "[pyoco.tasks]\nmine = my_plugin:register\nbad = my_plugin:broken\n",
            ),
        ],
        |_| {},
    );
    let yaml = "flow: {graph: 'shout'}\n";
    let found = plan(&ground, "main", Some(yaml)).await.unwrap();
    assert_eq!(found.tasks[0].runner, Runner::Registered("plugin:shout".to_owned()));
    assert_eq!(found.warnings, ["plugin 'bad' was left out: RuntimeError: no licence"]);
    let state = ground.flow(yaml, json!({})).await;
    assert_eq!(state.context.root(Root::Results), &json!({"shout": "HEY"}), "{:?}", state.last_error);
}

fn with_flows(files: &[(&str, &str)]) -> Ground {
    let mut all = vec![("tasks.py", "def where():\n    return 'the folder of the worker'\n")];
    all.extend_from_slice(files);
    Ground::with(&all, |options| options.flows_dir = Some(options.folder.join("flows")))
}

const WHERE: &str = "flow: {graph: 'where'}\ntasks: {where: {callable: 'tasks:where'}}\n";

#[tokio::test]
async fn a_named_flow_is_a_file_or_a_folder_whose_modules_are_its_own() {
    let here = |name: &str| format!("import helper\ndef where():\n    return '{name} ' + helper.NAME\n");
    let ground = with_flows(&[
        ("flows/plain.yaml", WHERE),
        ("flows/one/flow.yaml", WHERE),
        ("flows/one/tasks.py", &here("one")),
        ("flows/one/helper.py", "NAME = '1'\n"),
        ("flows/two/flow.yaml", WHERE),
        ("flows/two/tasks.py", &here("two")),
        ("flows/two/helper.py", "NAME = '2'\n"),
    ]);
    // Both have a module `tasks`; warm processes must not mix them up.
    for (flow, answer) in
        [("one", "one 1"), ("two", "two 2"), ("one", "one 1"), ("plain", "the folder of the worker")]
    {
        let state = ground.job(flow, None, json!({})).await;
        assert_eq!(state.context.root(Root::Results), &json!({"where": answer}), "{:?}", state.last_error);
    }
    // The same text in the job finds the same modules: the name decides.
    let state = ground.job("two", Some(WHERE), json!({})).await;
    assert_eq!(state.context.root(Root::Results)["where"], json!("two 2"));
}

#[tokio::test]
async fn a_name_cannot_leave_the_folder_and_an_unknown_one_is_not_found() {
    let ground =
        with_flows(&[("flows/known.yaml", WHERE), ("secret.yaml", WHERE), ("secret/flow.yaml", WHERE)]);
    for name in ["../secret", "..", ".", "", "/etc/passwd", "known.yaml", "a/../known", "nul\0", "unknown"] {
        let error = plan(&ground, name, None).await.unwrap_err();
        assert_eq!(error, LoadError::NotFound(name.to_owned()));
    }
    assert!(plan(&ground, "known", None).await.is_ok());
    assert_eq!(
        plan(&Ground::new(""), "known", None).await.unwrap_err().to_string(),
        "flow_not_found: 'known'"
    );
}

const RESOLVER: &str = r#"
import os
from pyoco import Flow, task
from pyoco.core.models import Task

class Opaque:
    def __repr__(self): return "<an object>"

def resolve_flow(name):
    if name == "broken":
        raise RuntimeError("no database")
    if name != "built":
        raise KeyError(name)
    secret = 40
    first = Task(func=lambda ctx, n: ctx.params["n"] + secret, name="first", inputs={"n": "$ctx.params.n"})
    second = Task(func=lambda first, thing: [first, repr(thing)], name="second", retries=1, inputs={"thing": Opaque()})
    third = Task(func=lambda ctx: ctx.loop.index, name="third")
    from pyoco.dsl.syntax import TaskWrapper
    flow = Flow(name="calls itself otherwise")
    flow >> TaskWrapper(first) >> TaskWrapper(second) >> TaskWrapper(third)[3]
    return flow
"#;

#[tokio::test]
async fn a_resolver_builds_flows_and_its_tasks_run_in_any_process() {
    for address in ["resolver:resolve_flow", "resolver.py:resolve_flow"] {
        let ground = Ground::with(
            &[
                ("resolver.py", RESOLVER),
                ("flows/filed.yaml", "flow: {graph: 'a'}\ntasks: {a: {callable: 'tasks:a'}}\n"),
                ("tasks.py", "def a():\n    return 'from the file'\n"),
            ],
            |options| {
                options.flow_resolver = Some(address.to_owned());
                options.flows_dir = Some(options.folder.join("flows"));
            },
        );
        let found = plan(&ground, "built", None).await.unwrap();
        assert_eq!(found.flow, "built");
        assert_eq!(found.tasks[0].runner, Runner::Registered("flow:first".to_owned()));
        let state = ground.job("built", None, json!({"n": 2})).await;
        assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
        let results = json!({"first": 42, "second": [42, "<an object>"], "third": 2});
        assert_eq!(state.context.root(Root::Results), &results);
        // What the resolver does not know may be in the folder, and what nobody knows is not found.
        let state = ground.job("filed", None, json!({})).await;
        assert_eq!(state.context.root(Root::Results)["a"], json!("from the file"), "{:?}", state.last_error);
        assert_eq!(plan(&ground, "who", None).await.unwrap_err(), LoadError::NotFound("who".to_owned()));
        assert_eq!(
            plan(&ground, "broken", None).await.unwrap_err(),
            LoadError::Failed("no database".to_owned())
        );
        // A text in the job comes first.
        let text = "flow: {graph: 'a'}\ntasks: {a: {callable: 'tasks:a'}}\n";
        assert_eq!(plan(&ground, "built", Some(text)).await.unwrap().tasks[0].name, "a");
        // An edited resolver is asked again.
        ground.write("resolver.py", &RESOLVER.replace("secret = 40", "secret = 50"));
        let state = ground.job("built", None, json!({"n": 2})).await;
        assert_eq!(state.context.root(Root::Results)["first"], json!(52), "{:?}", state.last_error);
    }
}

#[tokio::test]
async fn a_plan_of_a_resolver_runs_on_another_worker_that_has_it_and_says_so_on_one_that_has_not() {
    let with_resolver = || {
        Ground::with(&[("resolver.py", RESOLVER)], |options| {
            options.flow_resolver = Some("resolver:resolve_flow".to_owned());
        })
    };
    let planned = plan(&with_resolver(), "built", None).await.unwrap();
    let mut call = call_of(planned.tasks[1].clone(), None);
    call.plan = planned;
    call.task
        .inputs
        .insert("first".to_owned(), pyoco_core::plan::Input::Lit(pyoco_core::json::Json(json!(1))));
    let other = with_resolver();
    let end = pyoco_worker::Runtime::run(&*other.runtime, call.clone(), quiet()).await;
    assert_eq!(value(&end), json!([1, "<an object>"]));
    let without = Ground::new("");
    let end = pyoco_worker::Runtime::run(&*without.runtime, call, quiet()).await;
    assert_eq!(error(&end).text(), "this worker was started without --flow-resolver");
}
