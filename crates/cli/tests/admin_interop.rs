//! API keys of ours and of pyoco-server 0.5.1 from PyPI, on one nats-server: either tool makes them, either gateway is opened by them.
//! All of them are real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod interop;
mod support;

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};

use interop::{Gateway, PATIENCE, Site, Whose, members};

const BOTH: [Whose; 2] = [Whose::Ours, Whose::PyPI];

/// The longest that a revoked key may still open a gateway.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Whoever is let in is told that there is no such run.
const LET_IN: StatusCode = StatusCode::NOT_FOUND;

async fn locked(pepper: Option<&'static str>) -> Site {
    let mut site = Site::new().await;
    site.settings.push(("PYOCO_HTTP_AUTH_MODE", "api_key"));
    site.settings.extend(pepper.map(|pepper| ("PYOCO_AUTH_PEPPER", pepper)));
    site
}

/// Has a tool do something, and gives what it says.
#[track_caller]
fn ordered(site: &Site, whose: Whose, arguments: &[&str]) -> Value {
    let output = site.admin(whose, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{whose:?} {arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn create(site: &Site, whose: Whose, tenant: &str) -> Value {
    ordered(site, whose, &["api-key", "create", "--tenant", tenant])
}

fn text<'a>(key: &'a Value, member: &str) -> &'a str {
    key[member].as_str().unwrap()
}

/// What a gateway says to somebody who asks for a run that does not exist. The list of runs would be no good question: where there are
/// none, the gateway of PyPI fails.
async fn knock(gateway: &Gateway, key: Option<&str>) -> StatusCode {
    let request = reqwest::Client::new().get(format!("{}/runs/none", gateway.url));
    let request = match key {
        Some(key) => request.header("X-API-Key", key),
        None => request,
    };
    request.send().await.unwrap().status()
}

async fn until_refused(gateway: &Gateway, key: &str) -> Duration {
    let since = Instant::now();
    while knock(gateway, Some(key)).await != StatusCode::FORBIDDEN {
        assert!(since.elapsed() < PATIENCE, "{:?} never refuses it", gateway.whose);
    }
    since.elapsed()
}

async fn either_key_opens_either_gateway(pepper: Option<&'static str>) {
    let mut site = locked(pepper).await;
    let keys = BOTH.map(|whose| create(&site, whose, "team-a"));
    let gateways = [site.gateway(Whose::Ours).await, site.gateway(Whose::PyPI).await];
    for gateway in &gateways {
        for key in &keys {
            let (id, secret) = (text(key, "key_id"), text(key, "api_key"));
            assert_eq!(knock(gateway, Some(secret)).await, LET_IN, "{:?}", gateway.whose);
            let forged = format!("pyoco_{id}.{}", "A".repeat(43));
            assert_eq!(knock(gateway, Some(&forged)).await, StatusCode::FORBIDDEN, "{:?}", gateway.whose);
        }
        assert_eq!(knock(gateway, None).await, StatusCode::UNAUTHORIZED, "{:?}", gateway.whose);
    }
    // Either tool revokes what the other has made, and every gateway knows at once.
    for (key, other) in keys.iter().zip([Whose::PyPI, Whose::Ours]) {
        let revoked = ordered(&site, other, &["api-key", "revoke", "--key-id", text(key, "key_id")]);
        assert_eq!(members(&revoked), ["key_id", "revoked_at"]);
        for gateway in &gateways {
            let took = until_refused(gateway, text(key, "api_key")).await;
            assert!(took < AT_ONCE, "{:?} took {took:?}", gateway.whose);
        }
    }
    // Another pepper makes another key of it.
    let key = create(&site, Whose::PyPI, "team-a");
    site.settings.retain(|(name, _)| *name != "PYOCO_AUTH_PEPPER");
    site.settings.push(("PYOCO_AUTH_PEPPER", "of somebody else"));
    let foreign = site.gateway(Whose::Ours).await;
    assert_eq!(knock(&foreign, Some(text(&key, "api_key"))).await, StatusCode::FORBIDDEN);
    assert_eq!(knock(&gateways[0], Some(text(&key, "api_key"))).await, LET_IN);
}

#[tokio::test]
async fn a_key_of_either_make_opens_gateways_of_both() {
    either_key_opens_either_gateway(None).await;
}

#[tokio::test]
async fn a_key_of_either_make_opens_gateways_of_both_with_a_pepper() {
    // Blanks are part of it.
    either_key_opens_either_gateway(Some(" pfeffer & salz ✓ ")).await;
}

/// Both tools say the same of keys. A clock of Python's may tell fractions of a microsecond, which ours rounds.
#[track_caller]
fn assert_alike(ours: &Value, theirs: &Value) {
    let (ours, theirs) = (ours.as_array().unwrap(), theirs.as_array().unwrap());
    assert_eq!(ours.len(), theirs.len());
    for (our, their) in ours.iter().zip(theirs) {
        assert_eq!((&our["key_id"], &our["tenant_id"]), (&their["key_id"], &their["tenant_id"]));
        for time in ["created_at", "revoked_at"] {
            let is_same = match (our[time].as_f64(), their[time].as_f64()) {
                (Some(our), Some(their)) => (our - their).abs() < 2e-6,
                (None, None) => our[time].is_null() && their[time].is_null(),
                _ => false,
            };
            assert!(is_same, "{time}: {our} {their}");
        }
    }
}

#[tokio::test]
async fn both_tools_list_the_same_keys() {
    let site = locked(None).await;
    let before = ordered(&site, Whose::Ours, &["api-key", "list"]);
    assert_eq!(before, json!([]), "where there are none, that is no error");
    for (whose, tenant) in [(Whose::PyPI, "team-a"), (Whose::Ours, "team-b"), (Whose::PyPI, "team-a")] {
        create(&site, whose, tenant);
    }
    let named = ["--role", "read", "--expires", "30d", "--name", "Ada"];
    let arguments: Vec<&str> = ["api-key", "create", "--tenant", "team-c"].into_iter().chain(named).collect();
    let newest = ordered(&site, Whose::Ours, &arguments);
    let rotated = ordered(&site, Whose::Ours, &["api-key", "rotate", "--key-id", text(&newest, "key_id")]);
    assert_eq!((&rotated["role"], &rotated["name"]), (&json!("read"), &json!("Ada")));

    let theirs = ordered(&site, Whose::PyPI, &["api-key", "list"]);
    let ours = ordered(&site, Whose::Ours, &["api-key", "list"]);
    assert_eq!(theirs.as_array().unwrap().len(), 5);
    assert_alike(&ours, &theirs);
    assert_eq!((&ours[0]["key_id"], &ours[0]["name"]), (&rotated["key_id"], &json!("Ada")));
    let of_pypi = ours.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&of_pypi["role"], &of_pypi["expires_at"], &of_pypi["name"]),
        (&json!("submit"), &Value::Null, &Value::Null)
    );

    for whose in BOTH {
        let output = site.admin(whose, &["api-key", "revoke", "--key-id", "0123456789abcdef01234567"]);
        assert_eq!(output.status.code(), Some(2), "{whose:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer, json!({"error": "not_found", "key_id": "0123456789abcdef01234567"}), "{whose:?}");
    }
}

#[tokio::test]
async fn a_key_of_pypi_is_rotated_by_our_tool() {
    let site = locked(None).await;
    let gateway = site.gateway(Whose::Ours).await;
    let old = create(&site, Whose::PyPI, "team-a");
    assert_eq!(knock(&gateway, Some(text(&old, "api_key"))).await, LET_IN);
    let new = ordered(&site, Whose::Ours, &["api-key", "rotate", "--key-id", text(&old, "key_id")]);
    assert_eq!((&new["tenant_id"], &new["replaces"]), (&json!("team-a"), &old["key_id"]));
    assert!(until_refused(&gateway, text(&old, "api_key")).await < AT_ONCE);
    assert_eq!(knock(&gateway, Some(text(&new, "api_key"))).await, LET_IN);
}

#[tokio::test]
async fn tenants_are_the_same_to_both_gateways() {
    let site = locked(None).await;
    let (ada, bob) = (create(&site, Whose::Ours, "team-a"), create(&site, Whose::PyPI, "team-b"));
    let gateways = [site.gateway(Whose::Ours).await, site.gateway(Whose::PyPI).await];
    for submitter in &gateways {
        let request = reqwest::Client::new()
            .post(format!("{}/runs", submitter.url))
            .header("X-API-Key", text(&ada, "api_key"))
            .json(&json!({"flow_name": "ok", "params": {}}));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let run = answer["run_id"].as_str().unwrap_or_else(|| panic!("{answer}"));
        for gateway in &gateways {
            for (key, wanted) in [(&ada, StatusCode::OK), (&bob, StatusCode::NOT_FOUND)] {
                let url = format!("{}/runs/{run}", gateway.url);
                let look = async || {
                    let request = reqwest::Client::new().get(&url).header("X-API-Key", text(key, "api_key"));
                    let answer = request.send().await.unwrap();
                    (answer.status(), answer.json::<Value>().await.unwrap_or_default())
                };
                let shown = interop::until("the answer", async || match look().await {
                    (status, shown) if status == wanted => Ok(shown),
                    other => Err(other),
                })
                .await;
                if wanted == StatusCode::OK {
                    assert_eq!(
                        (&shown["tenant_id"], &shown["api_key_id"]),
                        (&json!("team-a"), &ada["key_id"]),
                        "{:?} of {:?}",
                        gateway.whose,
                        submitter.whose
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn the_bucket_of_keys_is_what_pypi_would_have_made() {
    let (ours, theirs) = (locked(None).await, locked(None).await);
    create(&ours, Whose::Ours, "team-a");
    create(&theirs, Whose::PyPI, "team-a");
    let (ours, theirs) = (ours.wire.streams().await, theirs.wire.streams().await);
    assert_eq!(ours["KV_pyoco_auth"], theirs["KV_pyoco_auth"]);
}
