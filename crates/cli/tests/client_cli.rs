//! `pyoco-client` as a user meets it: the real binary, its arguments, what it writes, and its exit codes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

#[path = "../../client/tests/support/mod.rs"]
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::json;
use support::{Gateway, HEARTBEAT, Piece, Reply, events, json, run, snapshot};

const BAD_ARGUMENTS: &str = "ERR-PYOCO-0018: CLI引数が不正です（入力形式を確認してください）\n";
const COMMANDS: [&str; 10] =
    ["submit", "submit-yaml", "get", "tasks", "list", "list-vnext", "watch", "cancel", "workers", "metrics"];

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    command
        .env_remove("PYOCO_SERVER_URL")
        .env_remove("PYOCO_API_KEY")
        .env_remove("HTTP_PROXY")
        .env_remove("http_proxy");
    command
}

fn client(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

fn ask(gateway: &Gateway, arguments: &[&str]) -> Output {
    program().args(["--server", &gateway.url()]).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn assert_done(output: &Output, stdout: &str) {
    assert_eq!((output.status.code(), out(output).as_str(), err(output).as_str()), (Some(0), stdout, ""));
}

#[track_caller]
fn assert_failed(output: &Output, stderr: &str) {
    assert_eq!((output.status.code(), out(output).as_str(), err(output).as_str()), (Some(1), "", stderr));
}

fn submitted() -> Gateway {
    Gateway::start(|_, _| json(200, r#"{"run_id":"r-1","status":"PENDING"}"#))
}

#[test]
fn every_help_shows_an_example_and_ends_well() {
    let help = client(&["--help"]);
    assert_eq!((help.status.code(), err(&help).as_str()), (Some(0), ""));
    for command in COMMANDS {
        assert!(out(&help).contains(&format!("\n  {command} ")), "{command}");
        let help = client(&[command, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{command}");
        let text = out(&help);
        let (_, examples) = text.split_once("\nExample").expect(command);
        assert!(examples.contains(&format!("  pyoco-client {command}")), "{text}");
        assert!(text.contains("PYOCO_SERVER_URL") && text.contains("PYOCO_API_KEY"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn the_version_is_told() {
    assert_done(&client(&["--version"]), concat!("pyoco-client ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_key_in_the_environment_is_not_shown_by_help() {
    let help = program().arg("--help").env("PYOCO_API_KEY", "pyoco_k.secret").output().unwrap();
    assert!(!out(&help).contains("secret"));
}

#[test]
fn wrong_arguments_say_what_is_wrong_how_it_is_used_and_what_to_try() {
    let cases: [(&[&str], &str, &str, &str); 10] = [
        (
            &[],
            "the following arguments are required: command",
            "pyoco-client [OPTIONS] <COMMAND>",
            "pyoco-client --help",
        ),
        (
            &["submitt"],
            "argument command: invalid choice: 'submitt'",
            "pyoco-client [OPTIONS] <COMMAND>",
            "did you mean",
        ),
        (
            &["get"],
            "the following arguments are required: run_id",
            "pyoco-client get [OPTIONS] <RUN_ID>",
            "pyoco-client get --help",
        ),
        (
            &["get", "a", "b"],
            "unrecognized arguments: b",
            "pyoco-client get [OPTIONS] <RUN_ID>",
            "pyoco-client get --help",
        ),
        (
            &["submit-yaml", "--tag", "x"],
            "the following arguments are required: --workflow-file, --flow-name",
            "pyoco-client submit-yaml [OPTIONS] --workflow-file <FILE> --flow-name <NAME> --tag <TAG>",
            "pyoco-client submit-yaml --help",
        ),
        (
            &["cancel"],
            "the following arguments are required: --run-id",
            "pyoco-client cancel [OPTIONS] --run-id <RUN_ID> pyoco-client cancel [OPTIONS] --where <NAME=VALUE>...",
            "pyoco-client cancel --help",
        ),
        (
            &["list", "--lmit", "3"],
            "unrecognized arguments: --lmit",
            "pyoco-client list [OPTIONS]",
            "did you mean --limit?",
        ),
        (
            &["list", "--output", "yaml"],
            "argument --output: invalid choice: 'yaml' (choose from json, table)",
            "pyoco-client list [OPTIONS]",
            "pyoco-client list --help",
        ),
        (
            &["submit", "--tag"],
            "argument --tag: expected one argument",
            "pyoco-client submit [OPTIONS]",
            "pyoco-client submit --help",
        ),
        (
            &["watch", "r", "--json", "--output", "status"],
            "argument --json: not allowed with argument --output",
            "pyoco-client watch [OPTIONS] <RUN_ID>",
            "pyoco-client watch --help",
        ),
    ];
    for (arguments, reason, usage, hint) in cases {
        let output = client(arguments);
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{arguments:?}");
        let text = err(&output);
        let start = format!("{BAD_ARGUMENTS}- reason: {reason}\n- usage: {usage}\n- hint: {hint}");
        assert!(text.starts_with(&start), "{arguments:?}\n{text}\n{start}");
    }
}

#[test]
fn a_value_that_is_no_number_is_named() {
    for (arguments, start) in [
        (["list", "--limit", "ten"], "argument --limit: invalid value: 'ten' ("),
        (["watch", "r", "--timeout-sec=-1"], "argument --timeout-sec: invalid value: '-1' ("),
        (["watch", "r", "--since=now"], "argument --since: invalid value: 'now' ("),
    ] {
        let output = client(&arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).starts_with(&format!("{BAD_ARGUMENTS}- reason: {start}")), "{}", err(&output));
    }
}

#[test]
fn submit_gathers_parameters_and_the_later_source_wins() {
    let gateway = submitted();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("params.yaml");
    std::fs::write(&file, "a: yes\nb: 0x10\nc: file\nd: [1, two]\n").unwrap();
    let output = ask(
        &gateway,
        &[
            "submit",
            "--params-file",
            file.to_str().unwrap(),
            "--params",
            r#"{"b": 2, "c": "params", "e": null}"#,
            "--param",
            "c=param",
            "--param",
            "f={\"x\": [1]}",
            "--param",
            "g=",
            "--param",
            "h= 1 ",
            "--tags",
            " a, ,b ",
            "--tag",
            "gpu",
        ],
    );
    assert_done(&output, "{\"run_id\": \"r-1\", \"status\": \"PENDING\"}\n");
    let sent = gateway.asked()[0].json();
    let params = json!({"a": true, "b": 2, "c": "param", "d": [1, "two"], "e": null, "f": {"x": [1]}, "g": "", "h": 1});
    assert_eq!(sent, json!({"flow_name": "main", "params": params, "tag": "gpu", "tags": ["a", "b"]}));
}

#[test]
fn submit_sends_no_more_than_was_given() {
    let gateway = submitted();
    assert_done(
        &ask(&gateway, &["submit", "--flow-name", "other", "--tags", ","]),
        "{\"run_id\": \"r-1\", \"status\": \"PENDING\"}\n",
    );
    assert_eq!(gateway.asked()[0].json(), json!({"flow_name": "other", "params": {}}));
}

#[test]
fn a_submission_is_sent_under_its_key() {
    let gateway = submitted();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let yaml = ["submit-yaml", "--workflow-file", path, "--flow-name", "m", "--tag", "t"];
    for arguments in [&["submit"][..], &yaml] {
        let done = "{\"run_id\": \"r-1\", \"status\": \"PENDING\"}\n";
        assert_done(&ask(&gateway, &[arguments, &["--idempotency-key", "k 1"]].concat()), done);
        assert_done(&ask(&gateway, arguments), done);
        let refused = ask(&gateway, &[arguments, &["--idempotency-key", "a\nb"]].concat());
        assert_eq!(refused.status.code(), Some(1));
        assert!(err(&refused).contains("the idempotency key"), "{}", err(&refused));
    }
    let asked = gateway.asked();
    let keys: Vec<Option<&str>> = asked.iter().map(|asked| asked.header("x-idempotency-key")).collect();
    assert_eq!(keys, [Some("k 1"), None, Some("k 1"), None]);
}

#[test]
fn parameters_that_cannot_be_read_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let list = write("list.json", b"[1]");
    let bad = write("bad.yaml", b"x: [1\n");
    let huge = write("huge.json", &vec![b' '; 1_100_000]);
    let cases: [(&[&str], String); 8] = [
        (&["--params", "[1]"], "- reason: --params must be JSON object\n".into()),
        (&["--params", "{"], "- reason: --params must be valid JSON object (".into()),
        (
            &["--param", "x"],
            "- reason: --param must be key=value ('x')\n- hint: pyoco-client submit --param x=1".into(),
        ),
        (
            &["--param", "=x"],
            "- reason: --param key is empty ('=x')\n- hint: pyoco-client submit --param x=1\n".into(),
        ),
        (
            &["--param", "x=123456789012345678901"],
            "- reason: --param has an integer of more than 64 bits (".into(),
        ),
        (
            &["--params-file", &list],
            format!("- reason: --params-file must contain object at top level ({list})\n- hint: "),
        ),
        (
            &["--params-file", &bad],
            format!("- reason: --params-file must be JSON/YAML object ({bad})\n- detail: json="),
        ),
        (
            &["--params-file", &huge],
            format!("- reason: failed to read --params-file: {huge} (the file has more than "),
        ),
    ];
    let gateway = submitted();
    for (arguments, start) in cases {
        let output = ask(&gateway, &[&["submit"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(err(&output).starts_with(&format!("{BAD_ARGUMENTS}{start}")), "{}", err(&output));
    }
    let missing = ask(&gateway, &["submit", "--params-file", "/no/such/file"]);
    assert_failed(
        &missing,
        &format!(
            "{BAD_ARGUMENTS}- reason: failed to read --params-file: /no/such/file (No such file or directory (os error 2))\n\
             - hint: check file path and read permission\n"
        ),
    );
    assert_eq!(gateway.asked().len(), 0);
}

#[test]
fn submit_yaml_sends_the_file() {
    let gateway = submitted();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.yaml");
    std::fs::write(&file, "flow: {graph: a}\n").unwrap();
    let path = file.to_str().unwrap();
    let arguments = ["submit-yaml", "--workflow-file", path, "--flow-name", "main", "--tag", "default"];
    assert_done(&ask(&gateway, &arguments), "{\"run_id\": \"r-1\", \"status\": \"PENDING\"}\n");
    assert!(String::from_utf8_lossy(&gateway.asked()[0].body).contains("flow: {graph: a}\n"));

    std::fs::write(&file, b"flow: \xff\n").unwrap();
    let reason =
        format!("{BAD_ARGUMENTS}- reason: {path}: byte 6 is not UTF-8\n- hint: save the file as UTF-8\n");
    assert_failed(&ask(&gateway, &arguments), &reason);
    std::fs::remove_file(&file).unwrap();
    let reason = format!(
        "ERR-PYOCO-0018: file I/O error\n- reason: {path}: No such file or directory (os error 2)\n\
         - hint: check file path and permission\n"
    );
    assert_failed(&ask(&gateway, &arguments), &reason);
}

#[test]
fn a_flow_that_is_refused_says_where_it_is_wrong() {
    let body = json!({
        "detail": "invalid workflow yaml",
        "errors": [{"line": 3, "column": 5, "reason": "unknown_flow_keys", "message": "unknown key 'grpah'"}],
    });
    let sent = body.to_string();
    let gateway = Gateway::start(move |_, _| json(422, sent.clone()));
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let output = ask(&gateway, &["submit-yaml", "--workflow-file", path, "--flow-name", "m", "--tag", "t"]);
    let text = format!(
        "ERR-PYOCO-HTTP: request failed\n- reason: HTTP 422 POST /runs/yaml: {body}\n- detail: 3:5: unknown key 'grpah'\n\
         - hint: mend the flow where detail says, and submit it again\n"
    );
    assert_failed(&output, &text);
}

#[test]
fn json_comes_on_one_line_of_ascii_with_every_field() {
    let body = r#"{"status":"FAILED","run_id":"r-1","error":"é日😀\n","updated_at":1763212345.25,"x":[1,1e16,{"a":null}]}"#;
    let gateway = Gateway::start(move |_, _| json(200, body));
    let line = "{\"status\": \"FAILED\", \"run_id\": \"r-1\", \"error\": \"\\u00e9\\u65e5\\ud83d\\ude00\\n\", \
                \"updated_at\": 1763212345.25, \"x\": [1, 1e+16, {\"a\": null}]}\n";
    assert_done(&ask(&gateway, &["get", "r-1"]), line);
    assert_done(&ask(&gateway, &["get", "r-1", "--records"]), line);
    assert_done(&ask(&gateway, &["tasks", "r-1"]), line);
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/runs/r-1", "/runs/r-1?include=records", "/runs/r-1/tasks"]);
}

#[test]
fn lists_are_json_or_tables() {
    let gateway = Gateway::start(|asked, _| match asked.target.as_str() {
        "/runs?flow=none" => json(200, "[]"),
        target if target.contains("cursor=") => {
            json(200, r#"{"items":[{"run_id":"r-1","status":"RUNNING"}],"next_cursor":"abc"}"#)
        }
        _ => json(
            200,
            r#"[{"run_id":"r-1","status":"RUNNING","flow_name":"a\u001b[2Jb","tag":"t","updated_at":12.0}]"#,
        ),
    });
    let row = "run_id  status   flow_name    tag  updated_at\n\
               r-1     RUNNING  a\\u{1b}[2Jb  t    12.0      \n";
    assert_done(&ask(&gateway, &["list", "--output", "table"]), row);
    assert_done(&ask(&gateway, &["list", "--flow", "none", "--output", "table"]), "(no items)\n");
    assert_done(&ask(&gateway, &["list", "--flow", "none", "--json"]), "[]\n");
    let page = "{\"items\": [{\"run_id\": \"r-1\", \"status\": \"RUNNING\"}], \"next_cursor\": \"abc\"}\n";
    assert_done(&ask(&gateway, &["list-vnext"]), page);
    let table = "run_id  status   flow_name  tag  updated_at\nr-1     RUNNING  -          -    -         \nnext_cursor: abc\n";
    let more = [
        "list-vnext",
        "--updated-after",
        "1.5",
        "--cursor",
        "x",
        "--workflow-yaml-sha256",
        "ff",
        "--output",
        "table",
    ];
    assert_done(&ask(&gateway, &more), table);
    assert_eq!(gateway.asked()[4].target, "/runs?updated_after=1.5&cursor=x&workflow_yaml_sha256=ff");
    let filters =
        ["list", "--status", "FAILED", "--tag", "t", "--full", "--limit", "3", "--limit", "4", "--json"];
    assert_eq!(ask(&gateway, &filters).status.code(), Some(0));
    assert_eq!(gateway.asked()[5].target, "/runs?status=FAILED&tag=t&include=full&limit=4");
}

#[test]
fn workers_are_json_or_tables() {
    let wheel = |name: &str| json!({"package_name": name, "package_version": "1.0", "wheel_name": format!("{name}.whl")});
    let body = json!([
        {"worker_id": "w-1", "state": "IDLE", "tags": ["a", "b"],
         "wheel_sync": {"installed_wheels": [wheel("p"), wheel("q"), {"wheel_name": "r.whl"}, wheel("s")]}},
        {"worker_id": "w-2", "state": "RUNNING", "tags": []},
    ]);
    let text = body.to_string();
    let gateway = Gateway::start(move |_, _| json(200, text.clone()));
    let json_line = out(&ask(&gateway, &["workers"]));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json_line).unwrap(), body);
    let table = "worker_id  state    tags  plugins  plugin_preview         \n\
                 w-1        IDLE     a,b   4        p@1.0, q@1.0, r.whl, +1\n\
                 w-2        RUNNING  -     0        -                      \n";
    assert_done(&ask(&gateway, &["workers", "--output", "table"]), table);
    let plugins = "worker_id  state    tags  package  version  wheel_name\n\
                   w-1        IDLE     a,b   p        1.0      p.whl     \n\
                   w-1        IDLE     a,b   q        1.0      q.whl     \n\
                   w-1        IDLE     a,b   -        -        r.whl     \n\
                   w-1        IDLE     a,b   s        1.0      s.whl     \n\
                   w-2        RUNNING  -     -        -        -         \n";
    let flags = [
        "workers",
        "--scope",
        "all",
        "--state",
        "IDLE",
        "--include-hidden",
        "--limit",
        "9",
        "--output",
        "plugins",
    ];
    assert_done(&ask(&gateway, &flags), plugins);
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    let last = "/workers?scope=all&state=IDLE&include_hidden=true&limit=9";
    assert_eq!(targets, ["/workers?scope=active", "/workers?scope=active", last]);
}

#[test]
fn metrics_are_printed_as_they_are() {
    let gateway = Gateway::start(|_, _| Reply::Whole(200, "text/plain", "# HELP é\nx 1\n".into()));
    assert_done(&ask(&gateway, &["metrics"]), "# HELP é\nx 1\n");
}

#[test]
fn the_gateway_and_the_key_may_stand_anywhere_or_in_the_environment() {
    let gateway = Gateway::start(|_, _| run("RUNNING"));
    let url = gateway.url();
    for arguments in [
        vec!["--server", &url, "--api-key", "k", "get", "r"],
        vec!["get", "--server", &url, "r", "--api-key", "k"],
        vec!["get", "r", "--server", &url, "--api-key", "k", "--api-key-header", "X-Other"],
    ] {
        assert_eq!(client(&arguments).status.code(), Some(0), "{arguments:?}");
    }
    let mut command = program();
    command.args(["get", "r"]).env("PYOCO_SERVER_URL", &url).env("PYOCO_API_KEY", "from-env");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let mut command = program();
    command.args(["get", "r", "--server", &url]).env("PYOCO_SERVER_URL", "").env("PYOCO_API_KEY", "");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let asked = gateway.asked();
    let keys: Vec<_> =
        asked.iter().map(|asked| asked.header("x-api-key").or_else(|| asked.header("x-other"))).collect();
    assert_eq!(keys, [Some("k"), Some("k"), Some("k"), Some("from-env"), None]);
}

#[test]
fn what_the_gateway_refuses_is_told_with_its_reason() {
    let gateway = Gateway::start(|asked, _| match asked.path() {
        "/metrics" => json(401, r#"{"detail":"api key required"}"#),
        _ => json(404, r#"{"detail":"run not found","err_id":"ERR-PYOCO-0005"}"#),
    });
    let hint = "- hint: pyoco-client list shows what there is\n";
    for (arguments, call) in [
        (["get", "r"].as_slice(), "GET /runs/r"),
        (&["tasks", "r"], "GET /runs/r/tasks"),
        (&["watch", "r"], "GET /runs/r/watch"),
        (&["cancel", "--run-id", "r"], "POST /runs/r/cancel"),
    ] {
        let text = "ERR-PYOCO-HTTP: request failed\n- reason: HTTP 404 ";
        assert_failed(
            &ask(&gateway, arguments),
            &format!("{text}{call}: {{\"detail\":\"run not found\",\"err_id\":\"ERR-PYOCO-0005\"}}\n{hint}"),
        );
    }
    let text = "ERR-PYOCO-HTTP: request failed\n- reason: HTTP 401 GET /metrics: {\"detail\":\"api key required\"}\n\
                - hint: pass --api-key or set PYOCO_API_KEY\n";
    assert_failed(&ask(&gateway, &["metrics"]), text);
}

#[test]
fn a_gateway_that_is_not_there_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = format!(
        "ERR-PYOCO-HTTP: connection error\n- reason: Connection refused (os error 111) ({address})\n\
         - hint: start a server with pyoco-server up, or name another one with --server or PYOCO_SERVER_URL\n"
    );
    assert_failed(&client(&["--server", &format!("http://{address}"), "list"]), &text);
    let text = format!(
        "{BAD_ARGUMENTS}- reason: the server URL 'localhost:8000' does not begin with http://\n\
         - hint: pyoco-client --server http://127.0.0.1:8000 get RUN_ID\n"
    );
    assert_failed(&client(&["--server", "localhost:8000", "list"]), &text);
}

#[test]
fn something_that_is_no_gateway_is_told() {
    let gateway = Gateway::start(|_, _| Reply::Whole(200, "text/html", "<html>".into()));
    let output = ask(&gateway, &["get", "r"]);
    let start = "ERR-PYOCO-HTTP: unexpected answer\n- reason: GET /runs/r: the answer is no JSON";
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).starts_with(start), "{}", err(&output));
}

#[test]
fn watch_writes_an_event_a_line() {
    let text = format!("{}{HEARTBEAT}{}", snapshot(Some(1), "RUNNING"), snapshot(Some(2), "COMPLETED"));
    let gateway = Gateway::start(move |_, _| events(text.as_str()));
    let output = ask(&gateway, &["watch", "r-1"]);
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    let text = out(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("{\"event\": \"snapshot\", \"data\": {\"run_id\": \"r-1\", \"snapshot\": {"),
        "{text}"
    );
    assert_eq!(lines[1], "{\"event\": \"heartbeat\", \"data\": {\"run_id\": \"r-1\", \"ts\": 14.0}}");
    let plain = "13.25\tsnapshot\tRUNNING\tr-1\n14.0\theartbeat\t-\tr-1\n13.25\tsnapshot\tCOMPLETED\tr-1\n";
    assert_done(&ask(&gateway, &["watch", "r-1", "--output", "status"]), plain);
    let flags = ["watch", "r-1", "--records", "--since", "-1.5", "--timeout-sec", "9"];
    assert_eq!(ask(&gateway, &flags).status.code(), Some(0));
    assert_eq!(gateway.asked()[2].target, "/runs/r-1/watch?include=records&since=-1.5&timeout_sec=9");
}

#[test]
fn watch_stops_where_it_was_told_to() {
    let text = format!("{}{}{HEARTBEAT}", snapshot(Some(1), "RUNNING"), snapshot(Some(2), "FAILED"));
    let gateway =
        Gateway::start(move |_, _| Reply::Events(vec![Piece::Bytes(text.clone().into_bytes()), Piece::Hang]));
    let count = |arguments: &[&str]| {
        let output = ask(&gateway, &[&["watch", "r-1", "--output", "status"], arguments].concat());
        assert_eq!(output.status.code(), Some(0));
        out(&output).lines().count()
    };
    assert_eq!(count(&["--max-events", "1"]), 1);
    assert_eq!(count(&["--max-events", "3"]), 3);
    assert_eq!(count(&["--until-terminal"]), 2);
    assert_eq!(count(&["--until-terminal", "--max-events", "0"]), 2);
}

#[test]
fn a_line_is_there_as_soon_as_its_event_is() {
    let (open, gate) = std::sync::mpsc::channel();
    let gate = std::sync::Mutex::new(Some(gate));
    let gateway = Gateway::start(move |_, _| {
        Reply::Events(vec![
            Piece::Bytes(snapshot(Some(1), "RUNNING").into_bytes()),
            Piece::Gate(gate.lock().unwrap().take().unwrap()),
            Piece::Bytes(snapshot(Some(2), "COMPLETED").into_bytes()),
        ])
    });
    let mut command = program();
    command.args(["--server", &gateway.url(), "watch", "r-1", "--until-terminal"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("RUNNING"));
    open.send(()).unwrap();
    assert!(lines.next().unwrap().unwrap().contains("COMPLETED"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn cancel_tells_what_became_of_the_run() {
    let gateway = Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/cancel" => run("CANCELLING"),
        "/runs/r-1/watch" => {
            events(format!("{}{}", snapshot(Some(1), "CANCELLING"), snapshot(Some(2), "CANCELLED")))
        }
        _ => run("CANCELLED"),
    });
    let line = |status: &str| {
        let fields = format!("\"status\": \"{status}\", \"tasks\": {{\"a\": \"SUCCEEDED\"}}");
        format!("{{\"run_id\": \"r-1\", \"flow_name\": \"main\", {fields}}}\n")
    };
    assert_done(&ask(&gateway, &["cancel", "--run-id", "r-1"]), &line("CANCELLING"));
    assert_done(&ask(&gateway, &["cancel", "--run-id", "r-1", "--wait"]), &line("CANCELLED"));
}

#[test]
fn a_cancel_that_takes_too_long_is_told() {
    let gateway = Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/watch" => {
            Reply::Events(vec![Piece::Bytes(snapshot(Some(1), "CANCELLING").into_bytes()), Piece::Hang])
        }
        _ => run("CANCELLING"),
    });
    let text = "ERR-PYOCO-CANCEL: wait timeout\n- reason: cancel wait timeout for run_id=r-1\n\
                - hint: retry cancel or inspect run/worker status\n";
    assert_failed(&ask(&gateway, &["cancel", "--run-id", "r-1", "--wait", "--timeout-sec", "1"]), text);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let gateway = Gateway::start(|_, _| {
        let many = snapshot(Some(1), "RUNNING").repeat(5_000);
        Reply::Events(vec![Piece::Bytes(many.into_bytes()), Piece::Hang])
    });
    let mut command = program();
    command.args(["--server", &gateway.url(), "watch", "r-1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
}

#[test]
fn abbreviated_options_are_understood() {
    let gateway = Gateway::start(|_, _| json(200, "[]"));
    assert_done(&ask(&gateway, &["list", "--out", "table", "--lim", "3"]), "(no items)\n");
    assert_eq!(gateway.asked()[0].target, "/runs?limit=3");
}
