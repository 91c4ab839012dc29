//! `pyoco-client exec`, `node`, `graph` and `waits` against the real server: what they write, where, and their exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use support::client::{ask, err, out, program, refused, said};
use support::{Running, Site, free_port};

/// Four tasks that nobody runs.
const GRAPH: &str = "version: 2\nflow: {graph: 'a >> (b & c) >> d'}\ntasks: {a: {}, b: {}, c: {}, d: {}}\n";
/// One task, and one that waits for a person.
const ASKING: &str =
    "version: 2\nflow: {graph: 'a >> ask'}\ntasks: {a: {}, ask: {wait: {key: k-1, prompt: {q: 'Pay?'}}}}\n";

/// A server whose executions are driven by the test alone.
fn server() -> (Site, Running) {
    let site = Site::new().argument("--no-worker");
    let running = site.start();
    (site, running)
}

/// Keeps a graph and gives its answer.
fn put(running: &Running, site: &Site, name: &str, text: &str) -> Value {
    let path = site.path(&format!("{name}.yaml"));
    std::fs::write(&path, text).unwrap();
    ask(&running.url, &["graph", "put", name, path.to_str().unwrap()])
}

fn create(running: &Running, arguments: &[&str]) -> String {
    let answer = ask(&running.url, &[&["exec", "create"], arguments].concat());
    answer["executionId"].as_str().unwrap().to_owned()
}

fn drive(running: &Running, execution: &str, nodes: &[&str]) {
    for node in nodes {
        ask(&running.url, &["node", "start", execution, node]);
        ask(&running.url, &["node", "success", execution, node]);
    }
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split('\t').collect()).collect()
}

#[test]
fn every_help_shows_an_example() {
    let commands: [(&str, &[&str]); 4] = [
        ("exec", &["create", "start", "cancel", "archive", "get", "list", "events", "retry"]),
        ("node", &["start", "progress", "wait", "resume", "success", "fail", "cancel"]),
        ("graph", &["put", "get", "list", "delete"]),
        ("waits", &[]),
    ];
    let help = |arguments: &[&str]| {
        let output = program("http://127.0.0.1:1", &[arguments, &["--help"]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        out(&output)
    };
    for (group, names) in commands {
        let text = help(&[group]);
        assert!(text.contains(&format!("  pyoco-client {group}")), "{text}");
        for name in names {
            assert!(text.contains(&format!("\n  {name} ")), "{group} {name}: {text}");
            let text = help(&[group, name]);
            let (_, examples) = text.split_once("\nExample").expect(name);
            assert!(examples.contains(&format!("pyoco-client {group} {name}")), "{text}");
        }
    }
}

#[test]
fn wrong_arguments_name_the_command_that_was_meant() {
    let cases: [(&[&str], &str, &str); 6] = [
        (&["exec"], "the following arguments are required: command", "pyoco-client exec [OPTIONS] <COMMAND>"),
        (
            &["exec", "creat"],
            "argument command: invalid choice: 'creat'",
            "pyoco-client exec [OPTIONS] <COMMAND>",
        ),
        (
            &["exec", "get"],
            "the following arguments are required: execution_id",
            "pyoco-client exec get [OPTIONS] <EXECUTION_ID>",
        ),
        (
            &["node", "start", "e"],
            "the following arguments are required: node_id",
            "pyoco-client node start [OPTIONS] <EXECUTION_ID> <NODE_ID>",
        ),
        (
            &["exec", "list", "--status", "DONE"],
            "argument --status: invalid choice: 'DONE' (choose from ACTIVE, COMPLETED, FAILED, CANCELED)",
            "pyoco-client exec list [OPTIONS]",
        ),
        (
            &["exec", "events", "e", "--follow", "--limit", "1"],
            "argument --follow: not allowed with argument --limit",
            "pyoco-client exec events [OPTIONS] <EXECUTION_ID>",
        ),
    ];
    for (arguments, reason, usage) in cases {
        let output = program("http://127.0.0.1:1", arguments).output().unwrap();
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{arguments:?}");
        let text = err(&output);
        assert!(text.starts_with("ERR-PYOCO-0018: "), "{text}");
        assert!(text.contains(&format!("\n- reason: {reason}\n- usage: {usage}")), "{arguments:?}: {text}");
    }
}

#[test]
fn values_that_are_no_json_are_refused_before_anything_is_sent() {
    let cases: [(&[&str], &str); 6] = [
        (&["exec", "create", "g", "--input", "[]"], "--input must be JSON object"),
        (&["exec", "create", "g", "--param", "x"], "--param must be key=value ('x')"),
        (&["node", "success", "e", "n", "--output", "yes please"], "--output must be valid JSON ("),
        (&["node", "resume", "e", "n", "--output", "{"], "--output must be valid JSON ("),
        (&["node", "wait", "e", "n", "--prompt", "1"], "--prompt must be JSON object"),
        (&["node", "fail", "e", "n", "--detail", "no"], "--detail must be valid JSON object ("),
    ];
    for (arguments, reason) in cases {
        let output = program("http://127.0.0.1:1", arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let text = err(&output);
        assert!(text.contains(&format!("- reason: {reason}")) && text.contains("- hint: "), "{text}");
        assert!(!text.contains("idempotency-key"), "{text}");
    }
}

#[test]
fn graphs_are_kept_in_versions() {
    let (site, running) = server();
    let first = put(&running, &site, "fork", GRAPH);
    assert_eq!(
        (&first["graphId"], &first["version"], &first["flowVersion"]),
        (&json!("fork"), &json!(1), &json!(2))
    );
    let runner = |name: &str| {
        let nodes = first["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["nodeId"] == name).unwrap()["runner"].clone()
    };
    assert_eq!((runner("a"), runner("d")), (json!("external"), json!("external")));
    assert_eq!(put(&running, &site, "fork", GRAPH)["version"], 1, "the same text is the same version");

    // The second comes through standard input, as JSON.
    let text = r#"{"version": 2, "flow": {"graph": "a"}, "tasks": {"a": {}}}"#;
    let mut command = program(&running.url, &["graph", "put", "fork", "-", "--if-version", "1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["version"], 2);

    assert_eq!(said(&running.url, &["graph", "get", "fork", "--source"]), text);
    assert_eq!(said(&running.url, &["graph", "get", "fork", "--version", "1", "--source"]), GRAPH);
    let newest = ask(&running.url, &["graph", "get", "fork"]);
    assert_eq!(
        (&newest["version"], &newest["format"], &newest["source"]),
        (&json!(2), &json!("json"), &json!(text))
    );

    put(&running, &site, "asking", ASKING);
    let list = said(&running.url, &["graph", "list"]);
    let names: Vec<_> = rows(&list).into_iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(names, [("asking", "1"), ("fork", "2")]);
    let table = said(&running.url, &["graph", "list", "--output", "table"]);
    assert!(table.starts_with("graphId  version  createdAt"), "{table}");
    let page = ask(&running.url, &["graph", "list", "--json", "--limit", "1"]);
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = ask(&running.url, &["graph", "list", "--json", "--cursor", cursor]);
    assert_eq!((&rest["items"][0]["graphId"], &rest["nextCursor"]), (&json!("fork"), &Value::Null));
    let output = program(&running.url, &["graph", "list", "--limit", "1"]).output().unwrap();
    assert_eq!((out(&output).lines().count(), err(&output)), (1, format!("nextCursor: {cursor}\n")));

    let changed = refused(&running.url, &["graph", "delete", "fork", "--if-version", "1"]);
    assert!(changed.contains("HTTP 412 DELETE /graphs/fork: PRECONDITION_FAILED: "), "{changed}");
    assert_eq!(said(&running.url, &["graph", "delete", "fork"]), "");
    let gone = refused(&running.url, &["graph", "get", "fork"]);
    assert!(gone.contains("HTTP 404 GET /graphs/fork: GRAPH_NOT_FOUND: "), "{gone}");
    assert!(gone.contains("\n- hint: pyoco-client graph list"), "{gone}");
}

#[test]
fn a_graph_that_is_wrong_is_shown_where_it_is_wrong() {
    let (site, running) = server();
    let path = site.path("bad.yaml");
    std::fs::write(&path, "version: 2\nflow:\n  graph: a >> nobody\ntasks: {a: {}}\n").unwrap();
    let said = refused(&running.url, &["graph", "put", "bad", path.to_str().unwrap()]);
    assert!(said.contains("HTTP 422 PUT /graphs/bad: INVALID_GRAPH: "), "{said}");
    assert!(said.contains("\n- detail: 3:"), "{said}");
    std::fs::write(&path, b"version: \xff\n").unwrap();
    let said = refused(&running.url, &["graph", "put", "bad", path.to_str().unwrap()]);
    assert!(said.contains("byte 9 is not UTF-8"), "{said}");
    let said = refused(&running.url, &["graph", "put", "bad", "/no/such/file.yaml"]);
    assert!(said.contains("file I/O error") && said.contains("/no/such/file.yaml"), "{said}");
}

#[test]
fn an_execution_is_driven_by_hand_to_its_end() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    let execution = &create(
        &running,
        &["fork", "--input", r#"{"x": 1, "y": 2}"#, "--param", "y=two", "--tags", "hand, made"],
    );
    let seen = ask(&running.url, &["exec", "get", execution]);
    assert_eq!((&seen["input"], &seen["tags"]), (&json!({"x": 1, "y": "two"}), &json!(["hand", "made"])));
    assert_eq!((&seen["status"], &seen["graphVersion"]), (&json!("ACTIVE"), &json!(1)));
    let created = seen["seq"].as_u64().unwrap();

    let answer = ask(&running.url, &["exec", "start", execution]);
    assert_eq!((&answer["command"], &answer["accepted"]), (&json!("StartExecution"), &json!(true)));
    ask(&running.url, &["node", "start", execution, "a", "--worker-id", "me", "--attempt", "1"]);
    let progress = ["--progress", "42", "--message", "half of it", "--metrics", r#"{"rows": 7}"#];
    ask(&running.url, &[&["node", "progress", execution, "a"], &progress[..]].concat());
    let node = |name: &str| {
        let seen = ask(&running.url, &["exec", "get", execution, "--json"]);
        seen["nodes"].as_array().unwrap().iter().find(|node| node["nodeId"] == name).unwrap().clone()
    };
    let a = node("a");
    assert_eq!(
        (&a["workerId"], &a["progress"], &a["message"]),
        (&json!("me"), &json!(42.0), &json!("half of it"))
    );
    ask(&running.url, &["node", "success", execution, "a", "--output", r#"{"rows": 7}"#, "--attempt", "1"]);
    assert_eq!(node("a")["output"], json!({"rows": 7}));
    drive(&running, execution, &["b", "c", "d"]);

    let lines = said(&running.url, &["exec", "events", execution]);
    let lines = rows(&lines);
    let numbers: Vec<u64> = lines.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<&str> = lines.iter().map(|row| row[2]).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("EXECUTION_CREATED", "EXECUTION_COMPLETED"));
    for kind in ["FORK_OPENED", "JOIN_GATE_UPDATED", "JOIN_PASSED"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let reported = lines.iter().find(|row| row[2] == "NODE_PROGRESS_REPORTED").unwrap();
    assert_eq!(reported[3], "a");

    let some = said(&running.url, &["exec", "events", execution, "--after", "2", "--limit", "3", "--json"]);
    let some: Vec<Value> = some.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(some.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(some[0]["executionId"], execution.as_str());
    let table = said(&running.url, &["exec", "events", execution, "--output", "table"]);
    assert!(table.starts_with("seq  occurredAt"), "{table}");
    assert_eq!(said(&running.url, &["exec", "events", execution, "--follow"]).lines().count(), lines.len());
    let last = (lines.len() - 1).to_string();
    let end = said(&running.url, &["exec", "events", execution, "--follow", "--after", &last, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&end).unwrap()["type"], "EXECUTION_COMPLETED");
    // Everything was seen before: how it ended is told all the same.
    assert_eq!(
        said(&running.url, &["exec", "events", execution, "--follow", "--after", &lines.len().to_string()]),
        ""
    );

    let then = ask(&running.url, &["exec", "get", execution, "--at", &created.to_string()]);
    assert_eq!((&then["seq"], &then["startedAt"]), (&json!(created), &Value::Null));
    let table = said(&running.url, &["exec", "get", execution, "--output", "table"]);
    assert!(table.starts_with(&format!("COMPLETED  fork v1  {execution}\n")), "{table}");
    assert!(table.lines().any(|line| line.starts_with("a ") && line.contains("{\"rows\":7}")), "{table}");

    ask(&running.url, &["exec", "archive", execution, "--reason", "kept long enough"]);
    assert_ne!(ask(&running.url, &["exec", "get", execution])["archivedAt"], Value::Null);
}

#[test]
fn a_node_waits_until_somebody_with_its_key_answers() {
    let (site, running) = server();
    put(&running, &site, "asking", ASKING);
    let execution = &create(&running, &["asking", "--start", "--tags", "finance"]);
    ask(&running.url, &["node", "start", execution, "a"]);
    ask(&running.url, &["node", "wait", execution, "a", "--key", "k-0", "--prompt", r#"{"q": "really?"}"#]);
    let waits = said(&running.url, &["waits"]);
    let wait = &rows(&waits)[0];
    assert_eq!((wait[0], wait[1], wait[2]), (execution.as_str(), "a", "k-0"));
    assert_eq!((wait[4], wait[5]), ("asking", r#"{"q":"really?"}"#));
    let wrong = refused(&running.url, &["node", "resume", execution, "a", "--key", "k-1"]);
    assert!(
        wrong.contains("HTTP 409 ") && wrong.contains(": COMMAND_REJECTED: ResumeNode rejected "),
        "{wrong}"
    );
    ask(&running.url, &["node", "resume", execution, "a", "--key", "k-0"]);
    ask(&running.url, &["node", "success", execution, "a"]);

    // A wait task waits by itself.
    let page = ask(&running.url, &["waits", "--json", "--tag", "finance"]);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!((&page["items"][0]["nodeId"], &page["items"][0]["waitKey"]), (&json!("ask"), &json!("k-1")));
    for none in [&["waits", "--json", "--tag", "sales"][..], &["waits", "--json", "--older-than-sec", "3600"]]
    {
        assert_eq!(ask(&running.url, none)["items"], json!([]));
    }
    assert!(said(&running.url, &["waits", "--output", "table"]).starts_with("executionId "));
    ask(&running.url, &["node", "resume", execution, "ask", "--key", "k-1", "--output", r#"{"paid": true}"#]);
    let ended = ask(&running.url, &["exec", "get", execution]);
    assert_eq!(ended["status"], "COMPLETED");
    let nodes = ended["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().find(|node| node["nodeId"] == "ask").unwrap()["output"], json!({"paid": true}));
    assert_eq!(
        (said(&running.url, &["waits"]), said(&running.url, &["waits", "--output", "table"])),
        (String::new(), "(no items)\n".to_owned())
    );
}

#[test]
fn what_failed_is_told_and_repeated_from_where_it_failed() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    let execution = &create(&running, &["fork", "--start", "--param", "x=1"]);
    drive(&running, execution, &["a", "b"]);
    let early = refused(&running.url, &["exec", "retry", execution]);
    assert!(
        early.contains("HTTP 409 ") && early.contains("COMMAND_REJECTED: RetryExecution rejected "),
        "{early}"
    );
    ask(&running.url, &["node", "start", execution, "c"]);
    let why = ["--code", "ERR_TIMEOUT", "--message", "no answer", "--detail", r#"{"host": "h"}"#];
    ask(&running.url, &[&["node", "fail", execution, "c"], &why[..]].concat());

    let followed = program(&running.url, &["exec", "events", execution, "--follow"]).output().unwrap();
    assert_eq!(followed.status.code(), Some(1));
    assert!(
        out(&followed).trim_end().lines().last().unwrap().contains("\tEXECUTION_FAILED\t"),
        "{}",
        out(&followed)
    );
    let told = format!(
        "ERR-PYOCO-EXEC: execution failed\n- reason: no answer\n- hint: pyoco-client exec retry {execution}\n"
    );
    assert_eq!(err(&followed), told);

    let answer = ask(&running.url, &["exec", "retry", execution]);
    let again = answer["executionId"].as_str().unwrap();
    assert_ne!(again, execution);
    assert_eq!(ask(&running.url, &["exec", "get", execution])["retriedBy"], again);
    let seen = ask(&running.url, &["exec", "get", again]);
    assert_eq!((&seen["retryOf"], &seen["input"]), (&json!(execution), &json!({"x": 1})));
    drive(&running, again, &["c", "d"]);
    assert_eq!(ask(&running.url, &["exec", "get", again])["status"], "COMPLETED");

    let answer =
        ask(&running.url, &["exec", "retry", execution, "--from-node", "a", "--input", r#"{"x": 2}"#]);
    let third = answer["executionId"].as_str().unwrap();
    assert_eq!(ask(&running.url, &["exec", "get", third])["input"], json!({"x": 2}));
    drive(&running, third, &["a", "b", "c", "d"]);
    assert_eq!(ask(&running.url, &["exec", "get", third])["status"], "COMPLETED");
    let unknown = refused(&running.url, &["exec", "retry", execution, "--from-node", "nobody"]);
    assert!(unknown.contains("HTTP 404 ") && unknown.contains(": NODE_NOT_FOUND: "), "{unknown}");
}

#[test]
fn what_was_canceled_ends_its_followers_with_130() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    let execution = &create(&running, &["fork", "--start"]);
    drive(&running, execution, &["a"]);
    let mut command = program(&running.url, &["exec", "events", execution, "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\tNODE_SUCCEEDED\ta\t")));
    ask(&running.url, &["node", "cancel", execution, "b", "--reason", "not this one"]);
    assert!(lines.any(|line| line.contains("\tNODE_CANCELED\tb\t")));
    ask(&running.url, &["exec", "cancel", execution, "--reason", "no longer needed"]);
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("\tEXECUTION_CANCEL_REQUESTED\t")), "{rest:?}");
    let output = follower.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(130), ""));
    assert_eq!(ask(&running.url, &["exec", "get", execution])["cancelReason"], "no longer needed");
    let late = refused(&running.url, &["node", "start", execution, "c"]);
    assert!(late.contains(": COMMAND_REJECTED: StartNode rejected because "), "{late}");
}

#[test]
fn a_command_without_a_key_gets_one_and_says_which() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    let output = program(&running.url, &["exec", "create", "fork"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let key = answer["idempotencyKey"].as_str().unwrap();
    assert_eq!(err(&output), format!("idempotency-key: {key}\n"));
    assert_eq!(key.len(), 36, "a UUID: {key}");
    // Whoever lost the answer repeats the command under the key that was shown.
    let again = ask(&running.url, &["exec", "create", "fork", "--idempotency-key", key]);
    assert_eq!(again, answer);
    assert_eq!(ask(&running.url, &["exec", "list", "--json"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_key_and_a_thread_can_be_chosen() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    let chosen = ["--idempotency-key", "order 77", "--correlation-id", "thread-1"];
    let output = program(&running.url, &[&["exec", "create", "fork", "--start"], &chosen[..]].concat())
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(err(&output), "", "what was given is not shown again");
    assert_eq!(
        (&answer["idempotencyKey"], &answer["correlationId"]),
        (&json!("order 77"), &json!("thread-1"))
    );
    let execution = answer["executionId"].as_str().unwrap();
    let events = said(&running.url, &["exec", "events", execution, "--json"]);
    assert!(events.lines().all(|line| line.contains(r#""correlationId": "thread-1""#)), "{events}");
    let again = ask(&running.url, &[&["exec", "create", "fork", "--start"], &chosen[..]].concat());
    assert_eq!(again, answer);
    let other = refused(&running.url, &[&["exec", "create", "fork", "--param", "x=1"], &chosen[..]].concat());
    assert!(other.contains("HTTP 409 POST /executions: IDEMPOTENCY_KEY_REUSED: "), "{other}");
    assert!(other.contains("\n- hint: choose another --idempotency-key"), "{other}");
    for empty in ["--idempotency-key=", "--idempotency-key=é"] {
        let said = refused(&running.url, &["exec", "start", execution, empty]);
        assert!(said.contains("INVALID_IDEMPOTENCY_KEY"), "{said}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    let execution = &create(&running, &["fork", "--start"]);
    let cases: [(&[&str], &str); 8] = [
        (&["exec", "get", "nobody"], "HTTP 404 GET /executions/nobody: EXECUTION_NOT_FOUND: "),
        (&["exec", "start", "nobody"], "HTTP 404 POST /executions/nobody/start: EXECUTION_NOT_FOUND: "),
        (&["exec", "events", "nobody"], "HTTP 404 GET /executions/nobody/events: EXECUTION_NOT_FOUND: "),
        (
            &["exec", "events", "nobody", "--follow"],
            "HTTP 404 GET /executions/nobody/events/stream: EXECUTION_NOT_FOUND: ",
        ),
        (&["exec", "create", "no-graph"], "HTTP 404 POST /executions: GRAPH_NOT_FOUND: "),
        (&["exec", "create", "fork", "--graph-version", "9"], "HTTP 404 POST /executions: GRAPH_NOT_FOUND: "),
        (&["node", "start", execution, "nobody"], "/nodes/nobody/start: NODE_NOT_FOUND: "),
        (&["exec", "get", execution, "--at", "999"], ": INVALID_INPUT: at: "),
    ];
    for (arguments, wanted) in cases {
        let said = refused(&running.url, arguments);
        assert!(said.contains("ERR-PYOCO-HTTP: request failed\n- reason: HTTP "), "{said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
    let wrong = refused(&running.url, &["node", "progress", execution, "a", "--progress", "101"]);
    assert!(wrong.contains("HTTP 422 ") && wrong.contains(": INVALID_INPUT: progress: "), "{wrong}");
    let twice = refused(&running.url, &["exec", "start", execution]);
    assert!(
        twice.contains("HTTP 409 ") && twice.contains(": COMMAND_REJECTED: StartExecution rejected "),
        "{twice}"
    );
    assert!(twice.contains("\n- hint: pyoco-client exec get EXECUTION_ID"), "{twice}");
}

#[test]
fn executions_are_listed_by_what_they_are() {
    let (site, running) = server();
    put(&running, &site, "fork", GRAPH);
    put(&running, &site, "asking", ASKING);
    let first = create(&running, &["fork", "--tags", "x,y"]);
    let second = create(&running, &["asking"]);
    ask(&running.url, &["exec", "cancel", &first]);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = said(&running.url, &[&["exec", "list"], arguments].concat());
        rows(&list).iter().map(|row| row[0].to_owned()).collect()
    };
    assert_eq!(ids(&[]), [first.as_str(), &second]);
    assert_eq!(ids(&["--status", "CANCELED"]), [first.as_str()]);
    assert_eq!(ids(&["--graph", "asking"]), [second.as_str()]);
    assert_eq!(ids(&["--tag", "y"]), [first.as_str()]);
    assert_eq!(ids(&["--created-after", "2999-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(
        ids(&["--updated-before", "2999-01-01T00:00:00Z", "--created-before", "2999-01-01T00:00:00Z"]).len(),
        2
    );
    assert_eq!(ids(&["--updated-after", "2999-01-01T00:00:00Z"]), [""; 0]);
    let lines = said(&running.url, &["exec", "list", "--tag", "x"]);
    let row = &rows(&lines)[0];
    assert_eq!((row[1], row[2], row[3]), ("CANCELED", "fork", "x,y"));
    let page = ask(&running.url, &["exec", "list", "--limit", "1", "--json"]);
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(ids(&["--limit", "1", "--cursor", cursor]), [second.as_str()]);
    let table = said(&running.url, &["exec", "list", "--output", "table"]);
    assert!(table.starts_with("executionId ") && table.lines().count() == 3, "{table}");
    let wrong = refused(&running.url, &["exec", "list", "--created-after", "yesterday"]);
    assert!(wrong.contains("HTTP 422 GET /executions: INVALID_INPUT: createdAfter: "), "{wrong}");
}

#[test]
fn following_lives_through_a_restart_of_the_server() {
    let site = Site::new().argument("--no-worker");
    let port = free_port();
    let running = site.start_on(port);
    put(&running, &site, "fork", GRAPH);
    let execution = create(&running, &["fork", "--start"]);
    let mut command = program(&running.url, &["exec", "events", &execution, "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = vec![lines.next().unwrap()];
    running.kill();
    let running = site.start_on(port);
    drive(&running, &execution, &["a", "b", "c", "d"]);
    seen.extend(lines);
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    assert_eq!(
        seen.join("\n") + "\n",
        said(&running.url, &["exec", "events", &execution]),
        "no gap, no repeat"
    );
    assert!(running.stop(Signal::SIGTERM).success());
}

/// Workers run the first and the last task, somebody outside the one between them; the last one fails until a file is there.
const MIXED: &str = "version: 2\nflow: {graph: 'first >> outside >> last'}\ntasks:\n  first: {command: [echo, ran]}\n  outside: {}\n  \
                     last: {command: [test, -e, MARK]}\n";

#[test]
fn a_graph_is_run_by_workers_and_driven_from_outside_and_a_retry_keeps_both() {
    let site = Site::new();
    let running = site.start();
    let mark = site.path("mark");
    put(&running, &site, "mixed", &MIXED.replace("MARK", mark.to_str().unwrap()));
    let execution = create(&running, &["mixed", "--start"]);
    let ready = |execution: &str, node: &str| {
        // The stream tells when it is the caller's turn: nobody looks again and again.
        let mut follow = program(&running.url, &["exec", "events", execution, "--follow"]);
        let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
        let is_ready = lines.into_iter().any(|line| line.contains("NODE_READY") && line.contains(node));
        follow.kill().unwrap();
        follow.wait().unwrap();
        assert!(is_ready, "{node} was never reached");
    };
    ready(&execution, "outside");
    drive(&running, &execution, &["outside"]);
    let followed = program(&running.url, &["exec", "events", &execution, "--follow"]).output().unwrap();
    assert_eq!(followed.status.code(), Some(1), "{}", out(&followed));
    let shown = ask(&running.url, &["exec", "get", &execution]);
    assert_eq!(shown["failedNodeId"], "last");
    std::fs::write(&mark, "").unwrap();
    let repeat =
        ask(&running.url, &["exec", "retry", &execution])["executionId"].as_str().unwrap().to_owned();
    let followed = program(&running.url, &["exec", "events", &repeat, "--follow"]).output().unwrap();
    assert_eq!(followed.status.code(), Some(0), "{}", out(&followed));
    let shown = ask(&running.url, &["exec", "get", &repeat]);
    let attempts = |node: &str| {
        let nodes = shown["nodes"].as_array().unwrap();
        nodes.iter().find(|shown| shown["nodeId"] == node).unwrap()["attempt"].as_u64().unwrap()
    };
    assert_eq!(["first", "outside", "last"].map(attempts), [0, 0, 1], "only what failed runs again");
}
