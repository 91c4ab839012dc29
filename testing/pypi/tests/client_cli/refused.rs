//! What is refused: the status, the body and the words that the client makes of it.

use pyoco_pypi::{Site, client};
use serde_json::{Value, json};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// The only finding in a refusal of typed inputs.
fn finding(body: &Value) -> &Value {
    let findings = body["detail"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{body}");
    &findings[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_not_there_is_said_to_be_missing() {
    let site = Site::without_worker().await;
    for (arguments, request) in [
        (&["get", NOBODY][..], format!("404 GET /runs/{NOBODY}")),
        (&["get", NOBODY, "--records"], format!("404 GET /runs/{NOBODY}")),
        (&["tasks", NOBODY], format!("404 GET /runs/{NOBODY}/tasks")),
        (&["cancel", "--run-id", NOBODY, "--wait"], format!("404 POST /runs/{NOBODY}/cancel")),
        (&["get", "no such*key"], "404 GET /runs/no such*key".to_owned()),
    ] {
        let said = site.client(arguments).await;
        assert_eq!(said.refused(&request)["detail"], "run not found", "{arguments:?}");
        assert!(
            said.stderr.ends_with("\n- hint: check server status and request parameters\n"),
            "{}",
            said.stderr
        );
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_of_the_wrong_kind_is_named() {
    let site = Site::without_worker().await;
    let yaml = site.file("flow.yaml", "flow: {graph: a}\ntasks: {a: {callable: 'm:f'}}\n");
    let run = site.submit("sum", &[]).await;
    let least = json!({"ge": 1});
    for (arguments, request, kind, place, input, context) in [
        (
            &["submit", "--flow-name", ""][..],
            "422 POST /runs",
            "string_too_short",
            json!(["body", "flow_name"]),
            json!(""),
            json!({"min_length": 1}),
        ),
        (
            &["submit", "--tag", "a b"],
            "422 POST /runs",
            "string_pattern_mismatch",
            json!(["body", "tag"]),
            json!("a b"),
            json!({"pattern": "^[A-Za-z0-9_-]+$"}),
        ),
        (
            &["submit-yaml", "--workflow-file", &yaml, "--flow-name", "", "--tag", "t"],
            "422 POST /runs/yaml",
            "missing",
            json!(["body", "flow_name"]),
            Value::Null,
            Value::Null,
        ),
        (
            &["list", "--limit", "0"],
            "422 GET /runs",
            "greater_than_equal",
            json!(["query", "limit"]),
            json!("0"),
            least.clone(),
        ),
        (
            &["list", "--limit", "201"],
            "422 GET /runs",
            "less_than_equal",
            json!(["query", "limit"]),
            json!("201"),
            json!({"le": 200}),
        ),
        (
            &["list-vnext", "--limit", "-1"],
            "422 GET /runs",
            "greater_than_equal",
            json!(["query", "limit"]),
            json!("-1"),
            least.clone(),
        ),
        (
            &["workers", "--limit", "0"],
            "422 GET /workers",
            "greater_than_equal",
            json!(["query", "limit"]),
            json!("0"),
            least,
        ),
        (
            &["workers", "--limit", "501"],
            "422 GET /workers",
            "less_than_equal",
            json!(["query", "limit"]),
            json!("501"),
            json!({"le": 500}),
        ),
    ] {
        let body = site.client(arguments).await.refused(request);
        let found = finding(&body);
        assert_eq!(
            (&found["type"], &found["loc"], &found["input"]),
            (&json!(kind), &place, &input),
            "{arguments:?}"
        );
        assert_eq!(found["ctx"], context, "{arguments:?}");
        assert!(found["msg"].is_string());
    }
    // The client falls over the body of a refused stream, which it has not read; the status it knows.
    for (arguments, status) in [
        (["watch", &run, "--timeout-sec", "0"], 422),
        (["watch", &run, "--timeout-sec", "601"], 422),
        (["watch", NOBODY, "--timeout-sec", "1"], 404),
    ] {
        let said = site.client(&arguments).await;
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(said.stderr.contains(&format!("Client error '{status} ")), "{}", said.stderr);
    }
    assert_eq!(site.client(&["list"]).await.json().as_array().unwrap().len(), 1, "nothing refused was kept");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_or_a_page_that_makes_no_sense_is_refused_in_one_word() {
    let site = Site::without_worker().await;
    let good = site.file("good.yaml", "flow: {graph: a}\ntasks: {a: {callable: 'm:f'}}\n");
    let broken = site.file("broken.yaml", "flow: {graph: a}\ntasks: [\n");
    let refused_key = site.file("key.yaml", "flow: {graph: a}\nflows: {}\n");
    let most = 262_144;
    let comment = |length: usize| "#".repeat(length);
    let too_large = site.file("large.yaml", &comment(most + 1));
    let far_too_large = site.file("larger.yaml", &comment(20 * most));
    let no_larger = site.file("edge.yaml", &comment(most));
    for (file, flow, tag, status, detail) in [
        (&good, "  ", "t", 422, "missing flow_name"),
        (&good, "f", "a b", 422, "invalid tag"),
        (&broken, "f", "t", 422, "invalid workflow yaml"),
        (&refused_key, "f", "t", 422, "invalid workflow yaml"),
        (&no_larger, "f", "t", 422, "invalid workflow yaml"),
        (&too_large, "f", "t", 413, "workflow too large"),
        (&far_too_large, "f", "t", 413, "workflow too large"),
        (&too_large, "f", "a b", 422, "invalid tag"),
        (&broken, "  ", "t", 422, "invalid workflow yaml"),
    ] {
        let submit = ["submit-yaml", "--workflow-file", file, "--flow-name", flow, "--tag", tag];
        let body = site.client(&submit).await.refused(&format!("{status} POST /runs/yaml"));
        assert_eq!(body["detail"], detail, "{file} {flow:?} {tag:?}");
    }
    let body = site.client(&["list-vnext", "--cursor", "!"]).await.refused("422 GET /runs");
    assert_eq!(body["detail"], "invalid list query");
    let params = json!({"long": "x".repeat(8 << 20)}).to_string();
    let params = site.file("params.json", &params);
    site.client(&["submit", "--params-file", &params]).await.refused("413 POST /runs");
    assert_eq!(site.client(&["list"]).await.json(), json!([]), "nothing refused was kept");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_gone_is_a_connection_error() {
    let site = Site::without_worker().await;
    let url = site.url();
    site.stop().await;
    let said = client(&url, &["list"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
    assert!(said.stderr.starts_with("ERR-PYOCO-HTTP: connection error\n"), "{}", said.stderr);
}
