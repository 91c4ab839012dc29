//! Secrets are shown to whoever they are for, and stand nowhere else.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::desk::{Key, knock, locked, ordered, texts, tool};
use crate::support::{PATIENCE, Site};

const PEPPER: &str = "canary-of-the-pepper";
const PASSWORD: &str = "canary-of-the-broker";

/// Every file below a folder that holds one of the texts.
fn found_in(folder: &Path, texts: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(found_in(&path, texts));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let holds = |text: &&String| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            found.extend(texts.iter().find(holds).map(|text| format!("{text} in {}", path.display())));
        }
    }
    found
}

#[tokio::test]
async fn neither_keys_nor_the_pepper_are_logged_or_stored() {
    let site = locked().env("PYOCO_AUTH_PEPPER", PEPPER).env("PYOCO_LOG_LEVEL", "TRACE").flow(
        "quick",
        "flow: {graph: 'a'}\ntasks: {a: {callable: 'quick_tasks:a'}}\n",
        "def a(): return 7\n",
    );
    let before = Key::create(&site, &[]);
    let mut running = site.start();
    let during = Key::create(&site, &["--name", "canary"]);
    let rotated = Key::of(&ordered(&site, &["api-key", "rotate", "--key-id", &before.id]));
    let client = reqwest::Client::new();
    for key in [&before.text, &during.text, &rotated.text, &during.forged(), &format!("{}x", during.text)] {
        knock(&running, Some(key)).await;
        let body = json!({"flow_name": "quick", "params": {}});
        let request = client.post(format!("{}/runs", running.url)).header("X-API-Key", key).json(&body);
        let _ = request.send().await.unwrap().text().await.unwrap();
        // In a query it is no key, and still a secret.
        let answer = client.get(format!("{}/runs?api_key={key}", running.url)).send().await.unwrap();
        assert_eq!(answer.status(), reqwest::StatusCode::UNAUTHORIZED);
        assert!(!answer.text().await.unwrap().contains(key.as_str()));
    }
    let mut secrets: Vec<String> =
        [&before, &during, &rotated].map(|key| key.text.split_once('.').unwrap().1.to_owned()).to_vec();
    secrets.extend(["A".repeat(43), PEPPER.to_owned()]);
    assert_eq!(found_in(&site.path("data"), &secrets), Vec::<String>::new());
    running.signal(Signal::SIGTERM);
    running.logged(|line| line["message"] == "pyoco-server stops").await;
    assert!(running.wait().success());
    assert_eq!(found_in(&site.path("data"), &secrets), Vec::<String>::new());
    let log: String = running.log().iter().map(Value::to_string).collect();
    assert!(log.contains("an API key was created"), "key changes are said: {log}");
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "{secret} is in the log");
    }
}

#[test]
fn a_start_that_fails_says_no_secret() {
    let site = Site::new()
        .env("PYOCO_AUTH_PEPPER", PEPPER)
        .env("PYOCO_NATS_PASSWORD", PASSWORD)
        .env("PYOCO_HTTP_AUTH_MODE", "nonsense")
        .env("PYOCO_DEFAULT_TAG", "a.b");
    let mut tool = tool(&site, &["api-key", "list"]);
    for command in [&mut site.command(0), &mut tool] {
        let output = command.output().unwrap();
        let (answer, said) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for secret in [PEPPER, PASSWORD] {
            assert!(!said.contains(secret) && !answer.contains(secret), "{said}");
        }
    }
}

#[test]
fn everything_that_a_server_says_is_free_of_secrets_also_when_a_task_looks_for_them() {
    let module = "
import os
def look():
    return sorted(name for name, value in os.environ.items() if value.startswith('canary-of'))
";
    let mut site = locked().env("PYOCO_AUTH_PEPPER", PEPPER).env("PYOCO_NATS_TOKEN", PASSWORD).flow(
        "peek",
        "flow: {graph: 'look'}\ntasks: {look: {callable: 'peek_tasks:look'}}\n",
        module,
    );
    site.arguments.clear();
    let key = Key::create(&site, &[]);
    let mut child = site.command(0).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        out.read_to_string(&mut said).unwrap();
        said
    });
    let (sender, url) = std::sync::mpsc::channel();
    let greeted = std::thread::spawn(move || {
        let mut all = String::new();
        let mut part = [0; 1024];
        while let Ok(count @ 1..) = err.read(&mut part) {
            all.push_str(&String::from_utf8_lossy(&part[..count]));
            if let Some((url, _)) = all.split_once("is up: ").and_then(|(_, rest)| rest.split_once('\n')) {
                let _ = sender.send(url.to_owned());
            }
        }
        all
    });
    let url = url.recv_timeout(PATIENCE).unwrap();
    let client = |arguments: &[&str]| -> Value {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pyoco-client"))
            .args(["--server", &url])
            .args(arguments)
            .env("PYOCO_API_KEY", &key.text)
            .output()
            .unwrap();
        let (answer, said) = texts(&output);
        assert!(output.status.success(), "{said}");
        serde_json::from_str(&answer).unwrap()
    };
    let run = client(&["submit", "--flow-name", "peek"])["run_id"].as_str().unwrap().to_owned();
    let since = Instant::now();
    let ended = loop {
        let shown = client(&["get", &run, "--records"]);
        if ["COMPLETED", "FAILED"].iter().any(|status| shown["status"] == *status) {
            break shown;
        }
        assert!(since.elapsed() < PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(ended["task_records"]["look"]["output"], json!([]), "{ended}");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
    let said = said.join().unwrap() + &greeted.join().unwrap();
    for secret in [PEPPER, PASSWORD, key.text.split_once('.').unwrap().1] {
        assert!(!said.contains(secret), "{said}");
    }
}

/// What callers plant: in parameters, labels of a wrong type, a header, a flow that is no flow.
const PLANTED: &str = "canary-of-a-caller";

#[tokio::test]
async fn what_callers_send_in_confidence_is_in_no_log_error_letter_metric_trail_or_finding() {
    let module = "def fail(password): raise ValueError('it does not work')\n";
    let site = Site::new()
        .env("PYOCO_HTTP_AUTH_MODE", "api_key")
        .env("PYOCO_AUTH_PEPPER", PEPPER)
        .env("PYOCO_LOG_LEVEL", "TRACE")
        .flow("leaky", "flow: {graph: 'fail'}\ntasks: {fail: {callable: 'leaky_tasks:fail'}}\n", module);
    let key = Key::create(&site, &["--role", "admin"]);
    let mut running = site.start();
    let client = reqwest::Client::new();
    let mut said: Vec<(String, String)> = Vec::new();
    let send = async |what: &str, request: reqwest::RequestBuilder| {
        let request = request.header("X-API-Key", &key.text).header("Cookie", format!("session={PLANTED}"));
        let answer = request.send().await.unwrap();
        (format!("{what}: {}", answer.status()), answer.text().await.unwrap())
    };
    let url = |path: &str| format!("{}{path}", running.url);
    let body = json!({"flow_name": "leaky", "params": {"password": PLANTED}});
    let (status, answer) = send("submit", client.post(url("/runs")).json(&body)).await;
    assert_eq!(status, "submit: 200 OK", "{answer}");
    let run = serde_json::from_str::<Value>(&answer).unwrap()["run_id"].as_str().unwrap().to_owned();
    said.push((status, answer));
    // Requests that are refused, each with a secret where it does not belong.
    let wrong = json!({"flow_name": "leaky", "params": {"password": PLANTED}, "tag": {"a": 1}});
    said.push(send("wrong tag", client.post(url("/runs")).json(&wrong)).await);
    let wrong = json!({"flow_name": 1, "params": PLANTED});
    said.push(send("wrong types", client.post(url("/runs")).json(&wrong)).await);
    let torn = format!("{{\"flow_name\": \"leaky\", \"params\": {{\"password\": \"{PLANTED}\"");
    let torn = client.post(url("/runs")).header("Content-Type", "application/json").body(torn);
    said.push(send("torn", torn).await);
    let wrong = json!({"graphId": "leaky", "input": [PLANTED]});
    said.push(send("wrong input", client.post(url("/executions")).json(&wrong)).await);
    said.push(send("no such run", client.get(url("/runs/none")).header("X-Token", PLANTED)).await);
    let since = Instant::now();
    loop {
        let (_, shown) = send("get", client.get(url(&format!("/runs/{run}")))).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        if shown["status"] == "FAILED" {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "{shown}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for path in ["/metrics", "/audit", "/workers", "/health"] {
        said.push(send(path, client.get(url(path))).await);
    }
    for arguments in [&["dlq", "list", "--json"][..], &["api-key", "list"]] {
        let (answer, more) = texts(&tool(&site, arguments).output().unwrap());
        said.push((arguments.join(" "), answer + &more));
    }
    for arguments in [&["doctor", "--json"][..], &["config"], &["check-config"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
        command.args(arguments).envs(&site.env).env("PYOCO_NATS_PASSWORD", PASSWORD);
        command.env("PYOCO_DATA_DIR", site.path("data")).current_dir(site.path("flows"));
        let (answer, more) = texts(&command.output().unwrap());
        assert!(!answer.is_empty(), "{arguments:?} says nothing: {more}");
        said.push((arguments.join(" "), answer + &more));
    }
    running.signal(Signal::SIGTERM);
    assert!(running.wait().success());
    said.push(("log".to_owned(), running.log().iter().map(Value::to_string).collect()));
    let letters = said.iter().find(|(what, _)| what == "dlq list --json").unwrap();
    assert!(letters.1.contains(&run), "the run that failed has left a letter: {letters:?}");
    let secret = key.text.split_once('.').unwrap().1;
    for (what, text) in &said {
        for planted in [PLANTED, PEPPER, PASSWORD, secret] {
            assert!(!text.contains(planted), "{planted} is in what {what} says: {text}");
        }
    }
}
