//! Wheels that are taken, and versions that are not.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::access::Role;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{Access, Admitted, NotAdmitted, Settings, WheelSettings};
use pyoco_testkit::{wheel, wheel_for};
use reqwest::multipart::Form;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Place, demo, file};
use crate::support::{Answer, START, Server, logged};

const SAME: &str = "wheel version already exists; bump version";
const OLDER: &str = "wheel version must be greater than existing latest version";

#[tokio::test]
async fn a_wheel_that_was_taken_is_shown_with_the_members_of_both_contracts() {
    let place = Place::start().await;
    let (name, bytes) = demo("demo", "1.2");
    let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let form = Form::new()
        .text("replace", "true")
        .text("tags", " gpu, ,linux,gpu ")
        .part("wheel", file(&name, bytes.clone()));
    let answer = place.post(form).await;
    assert_eq!(answer.status, 200, "{}", answer.json);
    let shown = answer.json.as_object().unwrap();
    let mut members: Vec<&str> = shown.keys().map(String::as_str).collect();
    members.sort_unstable();
    let wanted = [
        "bucket",
        "digest",
        "modified",
        "mtime",
        "name",
        "nuid",
        "sha256_b64",
        "sha256_hex",
        "size_bytes",
        "tags",
    ];
    assert_eq!(members, wanted);
    assert_eq!(shown["name"], json!(name));
    assert_eq!(shown["size_bytes"], json!(bytes.len()));
    assert_eq!((&shown["sha256_hex"], &shown["bucket"]), (&json!(hex), &json!("pyoco_wheels")));
    assert_eq!(shown["digest"], json!(format!("SHA-256={}", shown["sha256_b64"].as_str().unwrap())));
    assert_eq!(shown["tags"], json!(["gpu", "linux"]));
    let start = START as f64 / 1e6;
    assert!((start..start + 10.0).contains(&shown["modified"].as_f64().unwrap()), "{}", shown["modified"]);
    let mtime = shown["mtime"].as_str().unwrap();
    assert!(mtime.starts_with("2023-11-14T22:13:2") && mtime.ends_with("+00:00"), "{mtime}");
    // And so it is shown to everybody, the first of all names first.
    place.put("another", "1").await;
    let list = place.server.get("/wheels").await.json;
    assert_eq!(list[1], answer.json);
    assert_eq!(list[0]["name"], "another-1-py3-none-any.whl");
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(super::left_in(place.folder.path()), 0);
}

#[tokio::test]
async fn versions_of_a_package_only_grow() {
    let place = Place::start().await;
    let (lines, _guard) = logged();
    place.put("my-tool", "1.9").await;
    place.put("my-tool", "1.10").await;
    place.put("other", "0.1").await;
    for (tag, package, version, why) in [
        ("py3-none-any", "my-tool", "1.10", SAME),
        // The same version in other words, under another spelling of the package, for another interpreter.
        ("cp311-cp311-linux_x86_64", "My.Tool", "1.10.0", SAME),
        ("py3-none-any", "my-tool", "1.9", SAME),
        ("py3-none-any", "my-tool", "1.10rc1", OLDER),
        ("py3-none-any", "my-tool", "1.2", OLDER),
    ] {
        let (name, bytes) = wheel_for(tag, package, version, &[]);
        for replace in ["true", "false"] {
            let form = Form::new().text("replace", replace).part("wheel", file(&name, bytes.clone()));
            let answer = place.post(form).await;
            assert_eq!(answer.detail(409), why, "{name}");
            assert_eq!(
                (&answer.json["err_id"], &answer.json["msg_id"]),
                (&json!("ERR-PYOCO-0022"), &json!("MSG-PYOCO-0022"))
            );
        }
        let said = lines.take();
        assert!(
            said.contains("ERR-PYOCO-0022") && said.contains(&format!("wheel_name=\"{name}\"")),
            "{said}"
        );
    }
    assert_eq!(place.names().await.len(), 3);
    // What is gone does not count.
    assert_eq!(place.delete("my_tool-1.10-py3-none-any.whl").await.status, 200);
    place.put("my-tool", "1.10").await;
}

#[tokio::test]
async fn of_two_uploads_at_once_one_wins_and_there_is_never_a_mix() {
    let place = Place::start().await;
    for round in 0..8 {
        let version = format!("1.{round}");
        let [one, other] =
            ["A", "B"].map(|who| wheel("race", &version, &[("race.py", &format!("WHO = '{who}'\n"))]));
        let name = one.0.clone();
        assert_eq!(name, other.0);
        let (first, second) =
            tokio::join!(place.send(&name, one.1.clone()), place.send(&name, other.1.clone()));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", first.json, second.json);
        let (winner, bytes) = if first.status == 200 { (first, one.1) } else { (second, other.1) };
        let response =
            place.server.client.get(place.server.url(&format!("/wheels/{name}"))).send().await.unwrap();
        assert_eq!(response.bytes().await.unwrap(), bytes);
        let history = place.server.get(&format!("/wheels/history?wheel_name={name}")).await.json;
        assert_eq!(history.as_array().unwrap().len(), 1);
        assert_eq!(history[0]["sha256_hex"], winner.json["sha256_hex"]);
    }
}

#[tokio::test]
async fn what_is_deleted_is_gone_and_what_is_not_there_cannot_be() {
    let place = Place::start().await;
    let (lines, _guard) = logged();
    let name = place.put("demo", "1").await["name"].as_str().unwrap().to_owned();
    let answer = place.delete(&name).await;
    assert_eq!((answer.status, &answer.json), (200, &json!({"name": name, "deleted": true})));
    assert_eq!(place.names().await, [""; 0]);
    lines.take();
    for name in [name.as_str(), "none-1-py3-none-any.whl", "odd.whl", "a%2Fb.whl", "%ff.whl", "x"] {
        let answer = place.delete(name).await;
        assert_eq!(answer.detail(404), "wheel not found", "{name}");
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0023");
        assert!(lines.take().contains("ERR-PYOCO-0023"), "{name}");
    }
}

/// Knows what `key-<role>` means.
struct Keys;

#[async_trait]
impl Access for Keys {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        let secret = secret.ok_or(NotAdmitted::NothingShown)?;
        let role =
            secret.strip_prefix("key-").and_then(|role| role.parse().ok()).ok_or(NotAdmitted::Wrong)?;
        let tenant = Some(TenantId::new("team").unwrap());
        Ok(Admitted { tenant, key: Some(secret.to_owned()), role })
    }
}

async fn guarded(upload_role: Role) -> Server {
    let wheels = WheelSettings { upload_role, ..WheelSettings::default() };
    Server::guarded(Arc::new(Keys), Settings { wheels, ..Settings::default() }).await
}

async fn upload_as(server: &Server, key: &str, version: &str) -> Answer {
    let (name, bytes) = demo("demo", version);
    let form = Form::new().text("tags", "gpu").part("wheel", file(&name, bytes));
    let request = server.client.post(server.url("/wheels")).header("x-api-key", key).multipart(form);
    let request = request.header("user-agent", "a test").header("x-forwarded-for", "192.0.2.7");
    Answer::of(request.header("x-real-ip", "i".repeat(1_000)).send().await.unwrap()).await
}

async fn ask_as(server: &Server, method: &str, key: &str, path: &str) -> Answer {
    let request = server.client.request(method.parse().unwrap(), server.url(path)).header("x-api-key", key);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn changing_wheels_takes_the_role_that_the_operator_chose() {
    let server = guarded(Role::Submit).await;
    assert_eq!(upload_as(&server, "key-read", "1").await.status, 403);
    assert_eq!(upload_as(&server, "key-submit", "1").await.status, 200);
    assert_eq!(ask_as(&server, "GET", "key-read", "/wheels").await.status, 200);

    let server = guarded(Role::Admin).await;
    let refused = upload_as(&server, "key-submit", "1").await;
    assert_eq!(refused.detail(403), "the role admin is needed; this key has the role submit");
    assert_eq!(upload_as(&server, "key-admin", "1").await.status, 200);
    let path = "/wheels/demo-1-py3-none-any.whl";
    assert_eq!(ask_as(&server, "DELETE", "key-submit", path).await.status, 403);
    assert_eq!(
        ask_as(&server, "GET", "key-read", "/wheels").await.json[0]["name"],
        "demo-1-py3-none-any.whl"
    );
    assert_eq!(ask_as(&server, "DELETE", "key-admin", path).await.status, 200);
}

#[tokio::test]
async fn the_history_and_the_audit_trail_say_who_did_it() {
    let server = guarded(Role::Submit).await;
    let wheel = upload_as(&server, "key-submit", "1").await.json;
    let name = wheel["name"].as_str().unwrap();
    // At once: the entry of a change is written before it is answered.
    let trail = ask_as(&server, "GET", "key-admin", "/audit?action=wheels").await.json;
    let entry = &trail["items"][0];
    assert_eq!((&entry["action"], &entry["target"]), (&json!("wheels.upload"), &json!(name)));
    assert_eq!(
        (&entry["outcome"], &entry["actor"]["keyId"]),
        (&json!("ok"), &json!("key-submit")),
        "{entry}"
    );
    assert_eq!(entry["details"]["sha256"], wheel["sha256_hex"]);

    assert_eq!(upload_as(&server, "key-admin", "1").await.status, 409);
    // A refusal is written when there is time.
    server.engine.trail().flush().await;
    assert_eq!(ask_as(&server, "DELETE", "key-admin", &format!("/wheels/{name}")).await.status, 200);
    let trail = ask_as(&server, "GET", "key-admin", "/audit?action=wheels").await.json;
    let said: Vec<_> = trail["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| [&entry["action"], &entry["target"], &entry["status"]].map(ToString::to_string))
        .collect();
    let quoted = json!(name).to_string();
    assert_eq!(
        said,
        [
            ["\"wheels.delete\"", &quoted, "200"],
            ["\"wheels.upload\"", &quoted, "409"],
            ["\"wheels.upload\"", &quoted, "200"],
        ]
    );

    let history = ask_as(&server, "GET", "key-read", "/wheels/history").await.json;
    let events: Vec<&Value> = history.as_array().unwrap().iter().collect();
    let [deleted, uploaded] = events[..] else { panic!("{history}") };
    assert_eq!((&deleted["action"], &deleted["replace"]), (&json!("delete"), &Value::Null));
    assert_eq!(deleted["actor"], json!({"tenant_id": "team", "api_key_id": "key-admin"}));
    assert_eq!((&uploaded["action"], &uploaded["replace"]), (&json!("upload"), &json!(true)));
    for event in events {
        assert_eq!((&event["wheel_name"], &event["tags"]), (&json!(name), &json!(["gpu"])));
        assert_eq!(
            (&event["size_bytes"], &event["sha256_hex"]),
            (&wheel["size_bytes"], &wheel["sha256_hex"])
        );
        assert_eq!(event["event_id"].as_str().unwrap().len(), 32);
    }
    let source = &uploaded["source"];
    assert_eq!(
        (&source["remote_addr"], &source["x_forwarded_for"]),
        (&json!("127.0.0.1"), &json!("192.0.2.7"))
    );
    assert_eq!((&source["user_agent"], &source["scheme"]), (&json!("a test"), &json!("http")));
    assert_eq!(source["host"], json!(server.address.to_string()));
    assert_eq!(source["x_real_ip"].as_str().unwrap().len(), 256, "what anybody may say is not kept for ever");
}
