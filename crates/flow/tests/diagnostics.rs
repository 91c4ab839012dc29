//! How typical mistakes are shown to their author.
#![expect(clippy::expect_used, reason = "a failure in a helper fails the test")]

use pyoco_flow::{Limits, Loaded, parse, parse_native};

fn shown(source: &str) -> String {
    let result = parse(source.as_bytes(), Limits::default());
    let error = result.and_then(|workflow| workflow.compile("main", &Loaded::default())).expect_err(source);
    error.render("flow.yaml", source)
}

/// A flow whose graph is a block scalar, with three tasks.
fn with_graph(graph: &str) -> String {
    let graph = graph.replace('\n', "\n    ");
    format!(
        "version: 1\nflow:\n  graph: |\n    {graph}\ntasks:\n  extract: {{callable: 'etl:extract'}}\n  transform: {{callable: 'etl:transform'}}\n  load: {{callable: 'etl:load'}}\n"
    )
}

macro_rules! mistakes {
    ($($name:ident: $source:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), shown(&String::from($source)));
        }
    )*};
}

mistakes! {
    a_misspelt_task: with_graph("extract >> tranform >> load");
    an_unknown_task: with_graph("extract >> publish");
    a_list_on_the_left: with_graph("[extract, transform] >> load");
    a_loop_outside_the_flow: with_graph("extract\ntransform[3] >> load");
    a_case_without_parentheses: with_graph("flow >> switch(\"$ctx.params.mode\")[\"X\" >> extract >> load]");
    a_parameter_without_its_path: with_graph("flow >> load[\"items as item\"]");
    a_call_in_a_condition: with_graph("flow >> load % \"len($ctx.params.items) > 1\"");
    a_line_that_ends_with_an_operator: with_graph("extract >>\ntransform");
    a_name_with_a_hyphen: with_graph("my-task >> load");
    a_missing_bracket: with_graph("(extract & transform >> load");
    a_group_in_a_program: with_graph("flow >> (extract & transform) >> load[2]");
    a_graph_folded_into_one_line: "flow:\n  graph: >\n    a >> b\n    c >> d\n";
    an_unknown_key: "flow:\n  graph: a\n  default: {x: 1}\n";
    a_task_without_a_colon: "flow: {graph: a}\ntasks:\n  a:\n    callable: module.function\n";
    broken_yaml: "flow:\n  graph: 'a >> b\ntasks: {}\n";
    a_tab: "flow:\n\tgraph: a\n";
    a_number_json_cannot_hold: "flow:\n  graph: a\n  defaults:\n    limits:\n      - 1\n      - .inf\n";
    a_missing_flow: "tasks: {}\n";
}

#[test]
fn a_mistake_inside_a_pipe() {
    let source = "flow: {graph: 'pipe(load)'}\npipes:\n  load: |\n    a >> repeat(){ b }\n";
    let error = parse_native(source.as_bytes(), Limits::default()).unwrap_err();
    insta::assert_snapshot!("a_mistake_inside_a_pipe", error.render("flow.yaml", source));
}
