//! Which key opens what, for how long, and on which address a server stands without keys.

use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::desk::{Key, knock, locked, ordered, texts, until_refused};
use crate::support::{Running, Site};

/// The longest that a revoked key may still open a gateway.
const AT_ONCE: Duration = Duration::from_secs(2);

async fn submit(running: &Running, key: &Key) -> (StatusCode, Value) {
    let request = reqwest::Client::new()
        .post(format!("{}/runs", running.url))
        .header("Authorization", format!("Bearer {}", key.text))
        .json(&json!({"flow_name": "hello", "params": {}}));
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_key_opens_the_server_whenever_it_was_made_and_nothing_else_does() {
    let site = locked();
    let before = Key::create(&site, &[]);
    let running = site.start();
    let during = Key::create(&site, &[]);
    for key in [&before, &during] {
        assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::OK);
        assert_eq!(knock(&running, Some(&key.forged())).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(knock(&running, None).await, StatusCode::UNAUTHORIZED);
    assert_eq!(knock(&running, Some("nonsense")).await, StatusCode::FORBIDDEN);
    let health = reqwest::get(format!("{}/health", running.url)).await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
    assert!(running.stop(Signal::SIGTERM).success());
    let running = site.start();
    assert_eq!(knock(&running, Some(&during.text)).await, StatusCode::OK);
}

#[tokio::test]
async fn the_header_of_a_key_can_be_chosen() {
    let site = locked().env("PYOCO_HTTP_API_KEY_HEADER", "X-Team-Key");
    let key = Key::create(&site, &[]);
    let running = site.start();
    assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::UNAUTHORIZED);
    let request = reqwest::Client::new().get(format!("{}/runs", running.url)).header("x-team-key", &key.text);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_key_that_is_revoked_or_replaced_is_refused_at_once() {
    let site = locked();
    let (lost, old) = (Key::create(&site, &[]), Key::create(&site, &[]));
    let running = site.start();
    for key in [&lost, &old] {
        assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::OK);
    }
    ordered(&site, &["api-key", "revoke", "--key-id", &lost.id]);
    let took = until_refused(&running, &lost.text).await;
    assert!(took < AT_ONCE, "{took:?}");
    let new = Key::of(&ordered(&site, &["api-key", "rotate", "--key-id", &old.id]));
    let took = until_refused(&running, &old.text).await;
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(knock(&running, Some(&new.text)).await, StatusCode::OK);
}

#[tokio::test]
async fn a_key_is_good_until_it_expires() {
    let site = locked();
    let running = site.start();
    let key = Key::create(&site, &["--expires", "5s"]);
    assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::OK);
    let took = until_refused(&running, &key.text).await;
    assert!(took < Duration::from_secs(7), "{took:?}");
    let state = ordered(&site, &["api-key", "list"]);
    assert_eq!(state[0]["revoked_at"], Value::Null, "it was not revoked: {state}");
}

#[tokio::test]
async fn a_key_opens_as_much_as_its_role_says() {
    let site = locked();
    let running = site.start();
    let read = Key::create(&site, &["--role", "read"]);
    let (status, said) = submit(&running, &read).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
    assert!(said.to_string().contains("submit"), "it says which role is needed: {said}");
    assert_eq!(knock(&running, Some(&read.text)).await, StatusCode::OK);
    for role in ["submit", "admin"] {
        let key = Key::create(&site, &["--role", role]);
        let (status, said) = submit(&running, &key).await;
        assert!(status.is_success(), "{role}: {said}");
        assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn keys_and_server_must_have_the_same_pepper() {
    let site = locked().env("PYOCO_AUTH_PEPPER", "salt of the team");
    let key = Key::create(&site, &[]);
    let running = site.start();
    assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::OK);
    assert!(running.stop(Signal::SIGTERM).success());
    let site = site.env("PYOCO_AUTH_PEPPER", "salt of somebody else");
    let running = site.start();
    assert_eq!(knock(&running, Some(&key.text)).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_run_belongs_to_the_tenant_of_its_key() {
    let site = locked();
    let running = site.start();
    let ours = Key::create(&site, &[]);
    let theirs = Key::of(&ordered(&site, &["api-key", "create", "--tenant", "team-b"]));
    let (status, submitted) = submit(&running, &ours).await;
    assert!(status.is_success(), "{submitted}");
    let run = submitted["run_id"].as_str().unwrap();
    for (key, wanted) in [(&ours, StatusCode::OK), (&theirs, StatusCode::NOT_FOUND)] {
        let request =
            reqwest::Client::new().get(format!("{}/runs/{run}", running.url)).header("X-API-Key", &key.text);
        assert_eq!(request.send().await.unwrap().status(), wanted);
    }
}

#[test]
fn an_auth_mode_that_nobody_knows_stops_everything() {
    let site = Site::new().env("PYOCO_HTTP_AUTH_MODE", "nonsense").env("PYOCO_HTTP_API_KEY_HEADER", "my key");
    let mut tool = crate::desk::tool(&site, &["api-key", "create", "--tenant", "a"]);
    for command in [&mut site.command(0), &mut tool] {
        let output = command.output().unwrap();
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for name in ["PYOCO_HTTP_AUTH_MODE", "PYOCO_HTTP_API_KEY_HEADER"] {
            assert!(said.contains(name), "{said}");
        }
    }
    assert!(!site.path("data").exists(), "nothing was made");
}

#[test]
fn an_address_that_others_reach_needs_keys_or_a_word() {
    for host in ["0.0.0.0", "::"] {
        let site = Site::new().argument("--host").argument(host).argument("--no-worker");
        let output = site.command(0).output().unwrap();
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for word in ["PYOCO_HTTP_AUTH_MODE=api_key", "--allow-unauthenticated", "pyoco-server-admin"] {
            assert!(said.contains(word), "{said}");
        }
        assert!(!site.path("data").exists(), "nothing was made");
    }
    let allowed = Site::new().argument("--host").argument("0.0.0.0").argument("--allow-unauthenticated");
    assert!(allowed.start().stop(Signal::SIGTERM).success());
    let keys = locked().argument("--host").argument("0.0.0.0");
    assert!(keys.start().stop(Signal::SIGTERM).success());
}

#[tokio::test]
async fn a_server_that_nobody_can_open_yet_says_how_keys_are_made() {
    let site = locked();
    let running = site.start();
    let line =
        running.logged(|line| line["message"].as_str().is_some_and(|text| text.contains("no API key"))).await;
    assert_eq!(line["level"], "WARNING", "{line}");
    assert!(line["message"].as_str().unwrap().contains("pyoco-server-admin api-key create"), "{line}");
}
