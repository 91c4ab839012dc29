//! Who made and took away keys, and what people did with them, as `pyoco-client audit` shows it; also what a server that stops had
//! still to write.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::desk::{Key, locked, ordered, texts};
use crate::support::Running;

/// What the command line shows to the holder of a key.
fn audit(running: &Running, key: &Key, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    command.args(["--server", &running.url, "audit"]).args(arguments).env("PYOCO_API_KEY", &key.text);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (answer, said) = texts(&output);
    (output.status.code(), answer, said)
}

/// Every entry, newest first, without those of the door.
#[track_caller]
fn entries(running: &Running, key: &Key) -> Vec<(String, Value)> {
    let (code, answer, said) = audit(running, key, &["--all", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let entries = answer.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.map(|entry| (entry["action"].as_str().unwrap().to_owned(), entry["target"].clone())).collect()
}

#[tokio::test]
async fn changes_of_keys_are_in_the_trail_whoever_had_the_store_and_no_secret_is() {
    let site = locked();
    // Before there is a server, while there is one, and after it was stopped at once behind a command.
    let boss = Key::create(&site, &["--role", "admin"]);
    let running = site.start();
    let lost = Key::create(&site, &[]);
    let new = Key::of(&ordered(&site, &["api-key", "rotate", "--key-id", &lost.id]));
    ordered(&site, &["api-key", "revoke", "--key-id", &new.id]);
    let request =
        reqwest::Client::new().post(format!("{}/runs", running.url)).header("X-API-Key", &boss.text);
    let answer = request.json(&json!({"flow_name": "hello"})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let run = answer.json::<Value>().await.unwrap()["run_id"].clone();
    assert!(running.stop(Signal::SIGTERM).success());
    let running = site.start();
    let wanted = [
        ("runs.submit", run),
        ("api_key.revoke", json!(new.id)),
        ("api_key.create", json!(new.id)),
        ("api_key.rotate", json!(lost.id)),
        ("api_key.create", json!(lost.id)),
        ("api_key.create", json!(boss.id)),
    ];
    assert_eq!(entries(&running, &boss), wanted.map(|(action, target)| (action.to_owned(), target)));
    let (_, lines, _) = audit(&running, &boss, &["--action", "api_key.rotate", "--since", "1h"]);
    let cells: Vec<&str> = lines.trim_end().split('\t').collect();
    let [_, action, outcome, _, actor, tenant, source, target, details] = cells.as_slice() else {
        panic!("{lines}")
    };
    assert_eq!((*action, *outcome, *actor), ("api_key.rotate", "ok", "-"), "{lines}");
    assert_eq!((*tenant, *source, *target), ("team-a", "pyoco-server-admin", lost.id.as_str()), "{lines}");
    assert_eq!(*details, format!("made={}", new.id));
    let (_, whole, _) = audit(&running, &boss, &["--all", "--json"]);
    for key in [&boss, &lost, &new] {
        let (_, secret) = key.text.split_once('.').unwrap();
        assert!(!whole.contains(secret), "{whole}");
    }
    // Who may not see it is told why.
    let reader = Key::create(&site, &["--role", "submit"]);
    let (code, _, said) = audit(&running, &reader, &[]);
    assert!(code == Some(1) && said.contains("admin"), "{code:?} {said}");
    let (code, _, said) = audit(&running, &boss, &["--since", "soon"]);
    assert!(code != Some(0) && said.contains("12h"), "{code:?} {said}");
}
