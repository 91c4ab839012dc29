//! The door itself: what counts as a key, what is answered to whoever has none, and that nothing is looked at before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pyoco_core::access::Role;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{
    Access, Admitted, Gateway, HeaderName, NotAdmitted, Router, ServerLimits, Settings, serve,
};
use pyoco_ports::{ErrorKind, StoreError};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Answer, Server, logged, status_of};

/// Knows what `key-<role>` means, and what it was asked.
#[derive(Default)]
struct Keys {
    asked: AtomicUsize,
    heard: Mutex<Vec<Option<String>>>,
}

#[async_trait]
impl Access for Keys {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.heard.lock().unwrap().push(secret.map(str::to_owned));
        let away = || StoreError::plain(ErrorKind::Unavailable, "key");
        match secret {
            None => Err(NotAdmitted::NothingShown),
            Some("throttled") => Err(NotAdmitted::Throttled),
            Some("busy") => Err(NotAdmitted::Busy),
            Some("unknown") => Err(NotAdmitted::Unknown(away())),
            Some("broken") => panic!("as the test wants it"),
            Some(secret) => match secret.strip_prefix("key-").map(str::parse) {
                Some(Ok(role)) => {
                    let tenant = Some(TenantId::new("t").unwrap());
                    Ok(Admitted { tenant, key: Some(secret.to_owned()), role })
                }
                Some(Err(_)) | None => Err(NotAdmitted::Wrong),
            },
        }
    }
}

async fn guarded() -> (Server, Arc<Keys>) {
    guarded_with(Settings::default()).await
}

async fn guarded_with(settings: Settings) -> (Server, Arc<Keys>) {
    let keys = Arc::new(Keys::default());
    (Server::guarded(keys.clone(), settings).await, keys)
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = server.client.get(server.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_key_is_read_from_either_header_and_asked_for_once_a_request() {
    let (server, keys) = guarded().await;
    for header in [
        ("x-api-key", "key-read"),
        ("X-API-Key", "  key-read "),
        ("authorization", "Bearer key-read"),
        ("authorization", "bEARER   key-read"),
    ] {
        let before = keys.asked.load(Ordering::SeqCst);
        assert_eq!(get(&server, "/runs", &[header]).await.status, 200, "{header:?}");
        assert_eq!(keys.asked.load(Ordering::SeqCst), before + 1, "{header:?}");
    }
    assert!(keys.heard.lock().unwrap().iter().all(|heard| heard.as_deref() == Some("key-read")));
}

#[tokio::test]
async fn whoever_shows_nothing_is_told_that_a_key_is_needed() {
    let (server, _) = guarded().await;
    let nothing: [&[(&str, &str)]; 6] = [
        &[],
        &[("x-api-key", "")],
        &[("x-api-key", " "), ("authorization", "Bearer ")],
        &[("authorization", "Basic key-read")],
        &[("authorization", "key-read")],
        &[("authorization", "Bearerkey-read")],
    ];
    for headers in nothing {
        let answer = get(&server, "/runs?api_key=key-read&X-API-Key=key-read", headers).await;
        assert_eq!(answer.detail(401), "api key required", "{headers:?}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(
            (&answer.json["err_id"], &answer.json["msg_id"]),
            (&json!("ERR-PYOCO-0014"), &json!("MSG-PYOCO-0014"))
        );
    }
}

#[tokio::test]
async fn two_credentials_are_refused_even_if_they_are_equal() {
    let (server, keys) = guarded().await;
    for headers in [
        [("x-api-key", "key-read"), ("authorization", "Bearer key-read")],
        [("x-api-key", "key-read"), ("x-api-key", "key-read")],
        [("authorization", "Bearer key-read"), ("authorization", "Bearer key-admin")],
    ] {
        let answer = get(&server, "/runs", &headers).await;
        assert!(answer.detail(400).as_str().unwrap().starts_with("two credentials"), "{}", answer.json);
    }
    assert_eq!(keys.asked.load(Ordering::SeqCst), 0, "nobody chose between them");
    // What is no key of ours does not count.
    let proxied = [("authorization", "Basic YTpi"), ("x-api-key", "key-read")];
    assert_eq!(get(&server, "/runs", &proxied).await.status, 200);
}

#[tokio::test]
async fn what_cannot_be_a_key_is_refused_without_a_look() {
    let (server, keys) = guarded().await;
    for secret in [vec![b'k'; 513], vec![b'k'; 8_000], b"key-\xff\xfe".to_vec()] {
        let request = server.client.get(server.url("/runs")).header("x-api-key", secret.as_slice());
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.detail(403), "invalid api key");
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0015");
    }
    assert_eq!(keys.asked.load(Ordering::SeqCst), 0);
    assert_eq!(get(&server, "/runs", &[("x-api-key", &"k".repeat(512))]).await.status, 403);
    assert_eq!(keys.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_header_has_the_name_that_the_operator_chose() {
    let named = |name| Settings { api_key_header: HeaderName::from_static(name), ..Settings::default() };
    let (server, _) = guarded_with(named("x-our-key")).await;
    assert_eq!(get(&server, "/runs", &[("X-Our-Key", "key-read")]).await.status, 200);
    assert_eq!(get(&server, "/runs", &[("authorization", "Bearer key-read")]).await.status, 200);
    assert_eq!(get(&server, "/runs", &[("x-api-key", "key-read")]).await.status, 401);
    let described = get(&server, "/openapi.json", &[]).await.json;
    assert_eq!(described["components"]["securitySchemes"]["apiKey"]["name"], "x-our-key");
    let (server, _) = guarded_with(named("authorization")).await;
    for value in ["key-read", "Bearer key-read"] {
        assert_eq!(get(&server, "/runs", &[("authorization", value)]).await.status, 200, "{value}");
    }
    let two = [("authorization", "key-read"), ("authorization", "Bearer key-read")];
    assert_eq!(get(&server, "/runs", &two).await.status, 400);
}

#[tokio::test]
async fn why_somebody_is_not_admitted_is_told_by_the_status() {
    let (server, _) = guarded().await;
    for (secret, status, code, retry) in [
        ("throttled", 429, "TOO_MANY_REQUESTS", Some("60")),
        ("busy", 503, "UNAVAILABLE", Some("1")),
        ("unknown", 503, "UNAVAILABLE", Some("1")),
        ("wrong", 403, "FORBIDDEN", None),
    ] {
        let answer = get(&server, "/runs", &[("x-api-key", secret)]).await;
        answer.detail(status);
        let told = |answer: &Answer| {
            answer.headers.get("retry-after").map(|seconds| seconds.to_str().unwrap().to_owned())
        };
        assert_eq!(told(&answer).as_deref(), retry, "{secret}");
        let answer = get(&server, "/jobs", &[("x-api-key", secret)]).await;
        assert_eq!((answer.status, &answer.json["error"]["code"]), (status, &json!(code)), "{secret}");
        assert_eq!(told(&answer).as_deref(), retry, "{secret}");
    }
    // Whoever keeps the keys may break; the request gets no further.
    let broken = server.client.get(server.url("/runs")).header("x-api-key", "broken").send().await.unwrap();
    assert_eq!(broken.status(), 500);
    assert_eq!(get(&server, "/runs", &[("x-api-key", "key-read")]).await.status, 200);
}

#[tokio::test]
async fn nothing_of_a_request_is_looked_at_before_its_key() {
    let (server, _) = guarded().await;
    let post = |path: &str| server.client.post(server.url(path)).header("content-type", "application/json");
    for request in [
        post("/runs").body("{"),
        post("/runs").header("content-encoding", "gzip").body("x"),
        post("/executions").body("{}"),
        post("/jobs").body(vec![b' '; 4 << 20]),
        post("/nothing").body("x"),
        server.client.get(server.url("/runs?limit=nothing")),
        server.client.get(server.url("/jobs/%00")),
        server.client.put(server.url("/runs")),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401, "{}", response.url());
    }
    // Also a body that never comes.
    let head = "POST /runs HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 10\r\nConnection: close\r\n\r\n";
    assert_eq!(status_of(&server.raw(head.as_bytes()).await), 401);
    assert_eq!(server.stored().await.0.len(), 0);
}

#[tokio::test]
async fn a_role_opens_what_it_includes() {
    let (server, _) = guarded().await;
    let submit = |role: Role| {
        let request = server.client.post(server.url("/runs")).header("x-api-key", format!("key-{role}"));
        async { Answer::of(request.json(&json!({"flow_name": "main"})).send().await.unwrap()).await }
    };
    let refused = submit(Role::Read).await;
    assert_eq!(refused.detail(403), "the role submit is needed; this key has the role read");
    for role in [Role::Submit, Role::Admin] {
        assert_eq!(submit(role).await.status, 200, "{role}");
    }
    for role in Role::ALL {
        let key = format!("key-{role}");
        let shown = get(&server, "/runs", &[("x-api-key", &key)]).await;
        assert_eq!((shown.status, shown.json.as_array().unwrap().len()), (200, 2), "{role}");
        // That there is no such thing is told to whoever may ask.
        assert_eq!(get(&server, "/nothing", &[("x-api-key", &key)]).await.status, 404);
        assert_eq!(get(&server, "/runs/a/cancel", &[("x-api-key", &key)]).await.status, 405);
    }
}

#[tokio::test]
async fn a_path_with_a_slash_leads_on_for_those_who_may_come_in() {
    let (server, _) = guarded().await;
    let ask = |path| server.client.get(server.url(path));
    assert_eq!(ask("/runs/").send().await.unwrap().status(), 401);
    let response = ask("/runs/").header("x-api-key", "key-read").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
        (307, "/runs")
    );
}

#[tokio::test]
async fn the_door_holds_where_the_gateway_is_part_of_another_program() {
    let (server, keys) = guarded().await;
    let gateway =
        Gateway::with_access(server.engine.clone(), server.hands.clone(), Settings::default(), keys);
    let deep = Router::new().nest("/{house}", Router::new().nest("/api", gateway.router()));
    for (nested, base) in [
        (Router::new().nest("/pyoco", gateway.router()), "/pyoco"),
        (Router::new().nest_service("/pyoco", gateway.router()), "/pyoco"),
        (deep.fallback(|| async { "of the other program" }), "/ours/api"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, nested, ServerLimits::default(), server.shutdown.clone()));
        let status = async |method: &str, path: &str, key: &str| {
            let request =
                server.client.request(method.parse().unwrap(), format!("http://{address}{base}{path}"));
            let request = request.json(&json!({"flow_name": "main"})).header("x-api-key", key);
            request.send().await.unwrap().status().as_u16()
        };
        assert_eq!(status("GET", "/health", "").await, 200, "{base}");
        assert_eq!(status("GET", "/docs", "").await, 200, "{base}");
        assert_eq!(status("GET", "/runs", "").await, 401, "{base}");
        assert_eq!(status("GET", "/runs", "key-read").await, 200, "{base}");
        assert_eq!(status("POST", "/runs", "key-read").await, 403, "{base}");
        assert_eq!(status("POST", "/runs", "key-submit").await, 200, "{base}");
    }
}

#[tokio::test]
async fn without_keys_nothing_that_is_shown_counts() {
    let server = Server::start().await;
    for headers in [
        &[("x-api-key", "a"), ("authorization", "Bearer b")][..],
        &[("x-api-key", ""), ("x-api-key", "a")],
        &[("authorization", "Bearer wrong")],
    ] {
        assert_eq!(get(&server, "/runs", headers).await.status, 200, "{headers:?}");
    }
}

#[tokio::test]
async fn the_description_says_how_a_key_is_shown_and_where_it_is_needed() {
    let (server, _) = guarded().await;
    let described = get(&server, "/openapi.json", &[]).await.json;
    let schemes = &described["components"]["securitySchemes"];
    assert_eq!(
        (&schemes["apiKey"]["in"], &schemes["apiKey"]["name"]),
        (&json!("header"), &json!("x-api-key"))
    );
    assert_eq!(
        (&schemes["bearer"]["type"], &schemes["bearer"]["scheme"]),
        (&json!("http"), &json!("bearer"))
    );
    let either = json!([{"apiKey": []}, {"bearer": []}]);
    for route in Gateway::routes() {
        let operation = &described["paths"][route.path][route.method.as_str().to_lowercase()];
        if operation.is_null() {
            continue;
        }
        let wanted = if route.needs.is_some() { &either } else { &json!([]) };
        assert_eq!(&operation["security"], wanted, "{} {}", route.method, route.path);
        if let Some(role) = route.needs {
            let said = operation["responses"]["403"]["description"].as_str().unwrap();
            assert!(said.contains(&format!("`{role}`")), "{} {}: {said}", route.method, route.path);
        }
    }
    // Where no keys are asked for, nobody is told to bring one.
    let open = Server::start().await.get("/openapi.json").await.json;
    assert_eq!(open["paths"]["/runs"]["get"]["security"], Value::Null);
}

#[tokio::test(flavor = "current_thread")]
async fn what_was_shown_is_never_logged() {
    let (lines, _guard) = logged();
    let (server, _) = guarded().await;
    let shown: [&[(&str, &str)]; 5] = [
        &[("x-api-key", "hunter2")],
        &[("authorization", "Bearer hunter2")],
        &[("authorization", "Basic hunter2")],
        &[("x-api-key", "hunter2"), ("x-api-key", "hunter2")],
        &[("x-api-key", "unknown")],
    ];
    for headers in shown {
        let answer = get(&server, "/runs?api_key=hunter2", headers).await;
        assert!(!answer.json.to_string().contains("hunter2"), "{}", answer.json);
    }
    let text = lines.take();
    for wanted in [
        "ERR-PYOCO-0014",
        "ERR-PYOCO-0015",
        "API key が必要です",
        "API key が無効です",
        "status=401",
        "status=403",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.lines().count(), shown.len(), "{text}");
}
