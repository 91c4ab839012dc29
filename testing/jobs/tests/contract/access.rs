//! Who may come in: 401 without a key, 403 with a wrong one, and nothing of another tenant anywhere; the same before a WebSocket is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{Access, Admitted, NotAdmitted, Settings};
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{Socket, ask, get, submitted, submitted_with, write};
use serde_json::json;

on_every_store!(
    who_shows_no_key_or_a_wrong_one_is_told_so,
    nobody_sees_what_is_anothers,
    a_page_of_another_site_gets_no_socket,
    what_is_no_request_for_a_socket_is_told_so,
    a_socket_is_closed_when_its_key_is_taken_back,
);

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

/// Every request there is, about this job.
fn requests(job: &str) -> Vec<(&'static str, String)> {
    vec![
        ("POST", "/jobs".to_owned()),
        ("GET", "/jobs".to_owned()),
        ("GET", "/tags".to_owned()),
        ("GET", format!("/jobs/{job}")),
        ("DELETE", format!("/jobs/{job}")),
        ("GET", format!("/jobs/{job}/logs")),
        ("HEAD", format!("/jobs/{job}/logs")),
        ("GET", format!("/jobs/{job}/logs/stream")),
        ("GET", format!("/jobs/{job}/ws")),
        ("GET", format!("/jobs/{job}/tags")),
        ("POST", format!("/jobs/{job}/tags")),
        ("DELETE", format!("/jobs/{job}/tags/t")),
        ("GET", format!("/runs/{job}/logs")),
        ("GET", format!("/runs/{job}/logs/stream")),
    ]
}

async fn who_shows_no_key_or_a_wrong_one_is_told_so(site: Site) {
    let nobody = site.for_one(Arc::new(Two), None).await;
    let stranger = site.for_one(Arc::new(Two), Some("eve")).await;
    let job = submitted(&site).await;
    for (method, path) in requests(&job) {
        for (who, status, code) in [(&nobody, 401, "UNAUTHENTICATED"), (&stranger, 403, "FORBIDDEN")] {
            let got = ask(who, method, &path, &[]).await;
            assert_eq!(got.status, status, "{method} {path}");
            match method {
                "HEAD" => {}
                _ if path.starts_with("/runs") => assert!(got.json()["detail"].is_string()),
                _ => assert_eq!(got.code(status), code, "{method} {path}"),
            }
        }
    }
    // A key in the address is none.
    let path = format!("/jobs/{job}/ws");
    assert_eq!(Socket::open(&nobody, &path, &[]).await.unwrap_err(), 401);
    assert_eq!(
        Socket::open(&nobody, &format!("{path}?api_key=ann&access_token=ann"), &[]).await.unwrap_err(),
        401
    );
    assert_eq!(Socket::open(&nobody, &path, &[("x-api-key", "eve")]).await.unwrap_err(), 403);
}

async fn nobody_sees_what_is_anothers(site: Site) {
    let ann = site.for_one(Arc::new(Two), Some("ann")).await;
    let bob = site.for_one(Arc::new(Two), Some("bob")).await;
    let job = submitted_with(&ann, &json!({"parameters": {}, "tags": ["t"]})).await;
    write(&ann, &job, &["a line"]).await;
    let before = ann.shown(&format!("/jobs/{job}")).await;
    for (method, path) in requests(&job) {
        let got = match method {
            "POST" => {
                let request = bob.client.post(bob.url(&path)).json(&json!({"tag": "x"}));
                pyoco_testing_executions::Answer::of(request.send().await.unwrap()).await.status
            }
            _ => ask(&bob, method, &path, &[]).await.status,
        };
        let wanted = match (method, path.as_str()) {
            ("DELETE", _) => 204,
            // What he posts there is wrong whoever he is.
            ("POST", "/jobs") => 422,
            ("GET", "/jobs" | "/tags") => 200,
            (_, _) => 404,
        };
        assert_eq!(got, wanted, "{method} {path}");
    }
    assert_eq!(bob.shown("/jobs").await, json!({"jobs": []}));
    assert_eq!(bob.shown("/jobs?tag=t").await, json!({"jobs": []}));
    assert_eq!(bob.shown("/tags").await, json!({"tags": []}));
    assert_eq!(
        Socket::open(&bob, &format!("/jobs/{job}/ws"), &[("x-api-key", "bob")]).await.unwrap_err(),
        404
    );
    assert_eq!(ann.shown(&format!("/jobs/{job}")).await, before, "nothing happened");
    let mut socket = Socket::open(&ann, &format!("/jobs/{job}/ws"), &[("x-api-key", "ann")]).await.unwrap();
    assert_eq!(socket.next_of("log").await["entry"]["message"], "a line");
    assert_eq!(ann.shown("/tags").await, json!({"tags": [{"tag": "t", "count": 1}]}));
    // A token of her list is none of his.
    submitted(&ann).await;
    let token = ann.shown("/jobs?limit=1").await["nextToken"].as_str().unwrap().to_owned();
    assert_eq!(get(&bob, &format!("/jobs?nextToken={token}"), &[]).await.code(400), "BAD_TOKEN");
}

async fn a_page_of_another_site_gets_no_socket(site: Site) {
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}/ws");
    let ours = format!("http://{}", site.address);
    let mut socket = Socket::open(&site, &path, &[("origin", &ours)]).await.unwrap();
    socket.next_of("status").await;
    for origin in ["http://evil.example", "http://localhost:1", "null", "https://127.0.0.1"] {
        assert_eq!(Socket::open(&site, &path, &[("origin", origin)]).await.unwrap_err(), 403, "{origin}");
    }
}

async fn what_is_no_request_for_a_socket_is_told_so(site: Site) {
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}/ws");
    let plain = get(&site, &path, &[]).await;
    assert_eq!(plain.code(426), "UPGRADE_REQUIRED");
    assert_eq!(
        (plain.header("upgrade"), plain.header("sec-websocket-version")),
        (Some("websocket"), Some("13"))
    );
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
    assert_eq!(get(&site, &path, &upgrade).await.code(426), "UPGRADE_REQUIRED");
    assert_eq!(Socket::open(&site, &path, &[("sec-websocket-version", "8")]).await.unwrap_err(), 426);
    let head = ask(&site, "HEAD", &path, &upgrade).await;
    assert_eq!((head.status, head.header("allow")), (405, Some("GET")));
    assert_eq!(Socket::open(&site, "/jobs/nothing/ws", &[]).await.unwrap_err(), 404);
}

/// One who may come in until the key is taken back.
#[derive(Default)]
struct One {
    is_taken_back: AtomicBool,
}

#[async_trait]
impl Access for One {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        match secret {
            Some("ann") if !self.is_taken_back.load(Ordering::SeqCst) => Ok(Admitted::default()),
            Some(_) | None => Err(NotAdmitted::Wrong),
        }
    }
}

async fn a_socket_is_closed_when_its_key_is_taken_back(site: Site) {
    let access = Arc::new(One::default());
    let often = Duration::from_millis(50);
    let settings = Settings { socket_ping: often, key_recheck: often, ..Settings::default() };
    let ann = site.for_one_with(access.clone(), Some("ann"), settings).await;
    let job = submitted(&ann).await;
    let mut socket = Socket::open(&ann, &format!("/jobs/{job}/ws"), &[("x-api-key", "ann")]).await.unwrap();
    for _ in 0..3 {
        // Asked for signs of life, and let be.
        socket.frame().await.expect("it stays open");
    }
    access.is_taken_back.store(true, Ordering::SeqCst);
    assert_eq!(socket.to_the_end().await.1, 1008);
}
