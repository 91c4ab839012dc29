//! Who may come in: 401 without a key, 403 with a wrong one, and nothing of another tenant anywhere.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{Access, Admitted, NotAdmitted};
use pyoco_testing_executions::{Site, on_every_store};
use serde_json::json;

on_every_store!(who_shows_no_key_or_a_wrong_one_is_told_so, nobody_sees_what_is_anothers);

/// Two people of two tenants.
struct Two;

#[async_trait]
impl Access for Two {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        match secret {
            None => Err(NotAdmitted::NothingShown),
            Some(name @ ("ann" | "bob")) => {
                let tenant = TenantId::new(&format!("{name}s-team")).unwrap();
                Ok(Admitted { tenant: Some(tenant), key: Some(name.to_owned()), ..Default::default() })
            }
            Some(_) => Err(NotAdmitted::Wrong),
        }
    }
}

const ASKING: &str = "flow: {graph: 'a >> ask'}\ntasks: {a: {}, ask: {wait: {key: k}}}\n";

/// Every request there is, about this execution.
fn requests(execution: &str) -> Vec<(&'static str, String)> {
    let mut requests: Vec<(&str, String)> = vec![
        ("GET", "/executions".to_owned()),
        ("POST", "/executions".to_owned()),
        ("POST", "/executions/bulk".to_owned()),
        ("GET", "/waits".to_owned()),
        ("GET", "/graphs".to_owned()),
        ("GET", "/graphs/g".to_owned()),
        ("PUT", "/graphs/g".to_owned()),
        ("DELETE", "/graphs/g".to_owned()),
        ("GET", format!("/executions/{execution}")),
        ("GET", format!("/executions/{execution}/events")),
        ("GET", format!("/executions/{execution}/events/stream")),
    ];
    let commands =
        ["start", "cancel", "archive", "retry"].map(|name| format!("/executions/{execution}/{name}"));
    let nodes = ["start", "progress", "wait", "resume", "success", "fail", "cancel"];
    let nodes = nodes.map(|name| format!("/executions/{execution}/nodes/a/{name}"));
    requests.extend(commands.into_iter().chain(nodes).map(|path| ("POST", path)));
    requests
}

async fn status(site: &Site, method: &str, path: &str) -> (u16, serde_json::Value) {
    let method = method.parse().unwrap();
    let request = site.client.request(method, site.url(path)).header("x-idempotency-key", "k");
    let response = request.json(&json!({"graphId": "g"})).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or_default())
}

async fn who_shows_no_key_or_a_wrong_one_is_told_so(site: Site) {
    let nobody = site.for_one(Arc::new(Two), None).await;
    let stranger = site.for_one(Arc::new(Two), Some("eve")).await;
    for (method, path) in requests("e-1") {
        let (refused, body) = status(&nobody, method, &path).await;
        assert_eq!((refused, &body["error"]["code"]), (401, &json!("UNAUTHENTICATED")), "{method} {path}");
        let (refused, body) = status(&stranger, method, &path).await;
        assert_eq!((refused, &body["error"]["code"]), (403, &json!("FORBIDDEN")), "{method} {path}");
    }
}

async fn nobody_sees_what_is_anothers(site: Site) {
    let ann = site.for_one(Arc::new(Two), Some("ann")).await;
    let bob = site.for_one(Arc::new(Two), Some("bob")).await;
    ann.graph("g", ASKING).await;
    let execution = ann.started("g").await;
    ann.run(&execution, "a").await;
    let before = ann.events(&execution).await;
    assert_eq!(before[0]["actor"], json!({"kind": "user", "id": "api_key:ann"}));
    for (method, path) in requests(&execution) {
        let (answered, body) = status(&bob, method, &path).await;
        match (method, path.as_str()) {
            ("GET", "/executions" | "/waits" | "/graphs") => {
                assert_eq!((answered, &body["items"]), (200, &json!([])), "{path}");
            }
            // What he puts under the same name is his own.
            ("PUT", _) => assert_eq!(answered, 422, "{body}"),
            // It names nothing of hers.
            ("POST", "/executions/bulk") => assert_eq!(answered, 422, "{body}"),
            (_, _) => assert_eq!(answered, 404, "{method} {path}: {body}"),
        }
    }
    assert_eq!(ann.events(&execution).await, before, "nothing happened");
    assert_eq!(ann.shown("/waits").await["items"][0]["executionId"], json!(execution));
    // The same key of two tenants names two executions.
    bob.graph("g", ASKING).await;
    let (hers, his) = (json!({"graphId": "g"}), json!({"graphId": "g"}));
    let hers = ann.send("/executions", "same", &hers).await.expect(202);
    let his = bob.send("/executions", "same", &his).await.expect(202);
    assert_ne!(hers["executionId"], his["executionId"]);
}
