//! `POST /runs/yaml`.

use pyoco_gateway::{ServerLimits, Settings};
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::support::{Answer, Server, status_of};

const FLOW: &str = "flow:\n  graph: a >> b\n  defaults: {x: 1, when: 2024-01-02}\ntasks:\n  a: {callable: 'm:a'}\n  b: {callable: 'm:b'}\n";

fn file(text: impl Into<Vec<u8>>) -> Part {
    Part::bytes(text.into()).file_name("flow.yaml")
}

async fn post(server: &Server, form: Form) -> Answer {
    Answer::of(server.client.post(server.url("/runs/yaml")).multipart(form).send().await.unwrap()).await
}

#[tokio::test]
async fn a_submitted_flow_keeps_its_text_its_fingerprint_and_its_defaults() {
    let server = Server::start().await;
    let form = Form::new().text("flow_name", "  report ").text("tag", " gpu ").part("workflow", file(FLOW));
    let answer = post(&server, form).await;
    assert_eq!(answer.status, 200, "{}", answer.json);
    let run = answer.json["run_id"].as_str().unwrap().to_owned();
    assert_eq!(answer.json, json!({"run_id": run, "status": "PENDING"}));
    let shown = server.get(&format!("/runs/{run}")).await.json;
    let sha256 = pyoco_core::digest::Digest::of_bytes(FLOW.as_bytes()).to_string();
    for (name, wanted) in [
        ("flow_name", json!("report")),
        ("tag", json!("gpu")),
        ("tags", json!(["gpu"])),
        ("workflow_yaml_sha256", json!(sha256)),
        ("workflow_yaml_bytes", json!(FLOW.len())),
        ("params", json!({"x": 1, "when": "2024-01-02"})),
    ] {
        assert_eq!(shown[name], wanted, "{name}");
    }
    let state = server.engine.state(&pyoco_core::ids::ExecutionId::new(&run).unwrap()).await.unwrap();
    assert_eq!(state.workflow.as_deref(), Some(FLOW));
    let listed = server.get(&format!("/runs?workflow_yaml_sha256={sha256}")).await.json;
    assert_eq!(listed["items"][0]["run_id"], json!(run));
    assert_eq!(listed["items"][0].get("workflow_yaml_sha256"), None);
}

#[tokio::test]
async fn version_two_is_taken_too() {
    let server = Server::start().await;
    let text = "version: 2\nflow: {graph: a}\ntasks: {a: {command: [echo, hi]}}\n";
    let answer = post(&server, Form::new().text("flow_name", "m").part("workflow", file(text))).await;
    assert_eq!(answer.status, 200, "{}", answer.json);
}

#[tokio::test]
async fn parts_that_are_missing_are_named() {
    let server = Server::start().await;
    let missing = |name: &str| json!({"type": "missing", "loc": ["body", name], "msg": "Field required", "input": null});
    let none = post(&server, Form::new().text("other", "x")).await;
    assert_eq!(none.detail(422), &json!([missing("workflow"), missing("flow_name")]));
    for name in [None, Some("")] {
        let mut form = Form::new().part("workflow", file(FLOW));
        if let Some(name) = name {
            form = form.text("flow_name", name);
        }
        assert_eq!(post(&server, form).await.problem(), &missing("flow_name"));
    }
    let text = post(&server, Form::new().text("flow_name", "m").text("workflow", FLOW)).await;
    assert_eq!(text.problem()["type"], "value_error");
    assert_eq!(text.problem()["msg"], "Value error, Expected UploadFile, received: <class 'str'>");
    // A tag that is a file is not left out: the run would go to workers that nobody named.
    let whole = || Form::new().text("flow_name", "m").part("workflow", file(FLOW));
    let tag = post(&server, whole().part("tag", file("blue"))).await;
    assert_eq!(
        (&tag.problem()["type"], &tag.problem()["loc"]),
        (&json!("string_type"), &json!(["body", "tag"]))
    );
    let tags = post(&server, whole().text("tag", "blue").text("tag", "green")).await;
    assert_eq!(tags.detail(400), "a part is given twice");
    // Another kind of body is never read as if it were a form.
    let json = server.post("/runs/yaml", &json!({"flow_name": "m", "workflow": FLOW})).await;
    assert_eq!(json.detail(422), &json!([missing("workflow"), missing("flow_name")]));
    assert!(server.stored().await.0.is_empty());
}

#[tokio::test]
async fn checks_come_in_the_contracts_order() {
    let settings = Settings { workflow_yaml_max_bytes: 400, ..Settings::default() };
    let server = Server::with(settings, ServerLimits::default()).await;
    let large = format!("# {}\n", "x".repeat(500));
    let form = |name: &'static str, tag: &'static str, text: &str| {
        Form::new().text("flow_name", name).text("tag", tag).part("workflow", file(text))
    };
    assert_eq!(post(&server, form(" ", "a.b", &large)).await.detail(422), "invalid tag");
    let too_large = post(&server, form(" ", "a", &large)).await;
    assert_eq!(too_large.detail(413), "workflow too large");
    assert_eq!(too_large.json["err_id"], "ERR-PYOCO-0016");
    assert_eq!(post(&server, form(" ", "a", "flow: [")).await.detail(422), "invalid workflow yaml");
    assert_eq!(post(&server, form(" ", "a", FLOW)).await.detail(422), "missing flow_name");
    assert!(server.stored().await.0.is_empty());
    // A blank tag is none.
    assert_eq!(post(&server, form("m", " ", FLOW)).await.status, 200);
}

#[tokio::test]
async fn the_size_limit_is_exact() {
    let server = Server::start().await;
    let fill = |bytes: usize| {
        let mut text = FLOW.to_owned();
        let rest = bytes - text.len();
        // Comment lines of at most 1,000 bytes.
        for at in (0..rest).step_by(1_000) {
            let line = (rest - at).min(1_000);
            text.push_str(&"#".repeat(line - 1));
            text.push('\n');
        }
        assert_eq!(text.len(), bytes);
        text
    };
    let form = |text: String| Form::new().text("flow_name", "m").part("workflow", file(text));
    assert_eq!(post(&server, form(fill(262_144))).await.status, 200);
    assert_eq!(post(&server, form(fill(262_145))).await.detail(413), "workflow too large");
    assert_eq!(server.stored().await.0.len(), 1);
}

#[tokio::test]
async fn a_flow_that_is_wrong_is_told_where() {
    let server = Server::start().await;
    let cases = [
        ("flow: [", "syntax"),
        ("- 1", "root"),
        ("flow: {graph: 'a >>'}\ntasks: {a: {callable: 'm:a'}}", "graph"),
        ("flow: {graph: a, extra: 1}", "unknown key"),
        ("flows: {}", "refused key"),
        ("flow: {graph: a}\ntasks: {a: {callable: nocolon}}", "callable"),
        ("a: &a [*a]", "recursive alias"),
        ("flow: !!python/object:os.system {graph: a}", "tag"),
        ("flow: {graph: a}\n---\nflow: {graph: b}", "two documents"),
        (
            "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]",
            "alias bomb",
        ),
    ];
    for (text, what) in cases {
        let answer = post(&server, Form::new().text("flow_name", "m").part("workflow", file(text))).await;
        assert_eq!(answer.detail(422), "invalid workflow yaml", "{what}");
        let errors = answer.json["errors"].as_array().unwrap_or_else(|| panic!("{what}: {}", answer.json));
        assert!(errors.iter().all(|error| error["reason"].is_string()), "{what}: {}", answer.json);
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0002", "{what}");
    }
    let answer = post(
        &server,
        Form::new().text("flow_name", "m").part("workflow", file("flow:\n  graph: a\n  extra: 1\n")),
    )
    .await;
    let error = &answer.json["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&json!(3), &json!(3)), "{}", answer.json);
    assert_eq!(error["reason"], "unknown_flow_keys: ['extra']");
    let not_utf8 =
        post(&server, Form::new().text("flow_name", "m").part("workflow", file(vec![0xff_u8, 0xfe]))).await;
    assert_eq!(not_utf8.detail(422), "invalid workflow yaml");
    assert!(server.stored().await.0.is_empty());
}

#[tokio::test]
async fn a_repeat_under_the_same_key_makes_no_second_run() {
    let server = Server::start().await;
    let send = |text: &str| {
        let form = Form::new().text("flow_name", "m").part("workflow", file(text));
        let request =
            server.client.post(server.url("/runs/yaml")).header("x-idempotency-key", "k").multipart(form);
        async move { Answer::of(request.send().await.unwrap()).await }
    };
    let first = send(FLOW).await;
    assert_eq!((first.status, send(FLOW).await.json), (200, first.json.clone()));
    assert_eq!(send(&format!("{FLOW}# other\n")).await.status, 409);
    assert_eq!(server.stored().await.0.len(), 1);
    // A key counts for its own door.
    let request = server.client.post(server.url("/runs")).header("x-idempotency-key", "k");
    let named = Answer::of(request.json(&json!({"flow_name": "m"})).send().await.unwrap()).await;
    assert_eq!(named.status, 200);
    assert_ne!(named.json, first.json);
}

#[tokio::test]
async fn forms_that_are_none_are_refused_and_leave_nothing() {
    let server = Server::start().await;
    let send = |content_type: &'static str, body: Vec<u8>| {
        let request =
            server.client.post(server.url("/runs/yaml")).header("content-type", content_type).body(body);
        async move { Answer::of(request.send().await.unwrap()).await }
    };
    let part = |name: &str, file: bool, text: &str| {
        let file = if file { "; filename=\"../../f\"" } else { "" };
        format!("--B\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n{text}\r\n")
    };
    let whole =
        [part("flow_name", false, "m"), part("workflow", true, FLOW), "--B--\r\n".to_owned()].concat();
    assert_eq!(send("multipart/form-data; boundary=B", whole.clone().into_bytes()).await.status, 200);
    let before = server.stored().await;

    let no_boundary = send("multipart/form-data", whole.clone().into_bytes()).await;
    assert_eq!(no_boundary.detail(400), "Missing boundary in multipart.");
    let cut = whole.as_bytes()[..whole.len() - 20].to_vec();
    assert_eq!(send("multipart/form-data; boundary=B", cut).await.status, 400);
    assert_eq!(send("multipart/form-data; boundary=B", b"no form at all".to_vec()).await.status, 400);
    let many = [part("x", false, "y").repeat(17), whole.clone()].concat();
    assert_eq!(
        send("multipart/form-data; boundary=B", many.into_bytes()).await.detail(400),
        "too many parts"
    );
    let twice = [part("workflow", true, FLOW), whole.clone()].concat();
    assert_eq!(
        send("multipart/form-data; boundary=B", twice.into_bytes()).await.detail(400),
        "a part is given twice"
    );
    let long_header = format!(
        "--B\r\nx-long: {}\r\ncontent-disposition: form-data; name=\"x\"\r\n\r\ny\r\n{whole}",
        "h".repeat(9_000)
    );
    assert_eq!(send("multipart/form-data; boundary=B", long_header.into_bytes()).await.status, 400);
    let long_field =
        [part("flow_name", false, &"n".repeat(9_000)), part("workflow", true, FLOW), "--B--\r\n".to_owned()]
            .concat();
    assert_eq!(send("multipart/form-data; boundary=B", long_field.into_bytes()).await.status, 400);
    let not_utf8 = whole.replace("\r\n\r\nm\r\n", "\r\n\r\n?\r\n").into_bytes();
    let not_utf8 = not_utf8.iter().map(|byte| if *byte == b'?' { 0xff } else { *byte }).collect();
    assert_eq!(send("multipart/form-data; boundary=B", not_utf8).await.status, 400);
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn a_file_without_end_is_refused_when_it_crosses_the_limit() {
    let settings = Settings { workflow_yaml_max_bytes: 10_000, ..Settings::default() };
    let server = Server::with(settings, ServerLimits::default()).await;
    let mut stream = server.connect().await;
    let head = "POST /runs/yaml HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=B\r\ntransfer-encoding: chunked\r\n\r\n";
    let part = "--B\r\ncontent-disposition: form-data; name=\"workflow\"; filename=\"f\"\r\n\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let mut sent = format!("{head}{}", chunk(part));
    for _ in 0..12 {
        sent.push_str(&chunk(&"x".repeat(1_000)));
    }
    tokio::io::AsyncWriteExt::write_all(&mut stream, sent.as_bytes()).await.unwrap();
    // The file has not ended; the answer comes all the same.
    let mut buffer = vec![0; 4096];
    let read = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer);
    let count = tokio::time::timeout(std::time::Duration::from_secs(5), read).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&buffer[..count]).into_owned();
    assert_eq!(status_of(&answer), 413);
    assert!(answer.contains("workflow too large"), "{answer}");
    assert_eq!(server.stored().await.0.len(), 0);
}
