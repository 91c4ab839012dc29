//! Every route of the gateway, walked by everybody who may not, and by its owner to see that there was something to find.

use std::collections::BTreeSet;

use pyoco_core::access::Role;
use pyoco_gateway::{DashboardSettings, Gateway, PageFile, Settings};
use pyoco_testing_access::{Others, Ring, Sample, Scene, samples};
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::Socket;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

on_every_store!(
    nobody_without_a_good_key_gets_past_the_door,
    a_key_of_another_tenant_finds_nothing_and_changes_nothing,
    a_key_that_may_only_read_sees_everything_and_changes_nothing,
    the_owner_is_answered_at_every_door,
    a_socket_is_refused_before_it_is_one,
);

/// What everybody may see. Nothing else, whatever the table says.
const PUBLIC: [&str; 7] =
    ["/", "/static/{*path}", "/health", "/openapi.json", "/docs", "/docs/", "/docs/{*path}"];

/// An answer; of a stream only its beginning.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

async fn send(site: &Site, sample: &Sample, headers: &[(&str, &str)]) -> Got {
    let mut request = sample.request(site);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let kind = headers.get("content-type").map_or("", |kind| kind.to_str().unwrap());
    let text =
        if kind.starts_with("text/event-stream") { String::new() } else { response.text().await.unwrap() };
    Got { status, headers, text }
}

async fn send_as(site: &Site, sample: &Sample, key: &str) -> Got {
    send(site, sample, &[("x-api-key", key)]).await
}

/// Ann with what she has, and a gateway that knows nobody who comes without a key.
async fn set(site: &Site) -> (Site, Site, Ring, Scene, Vec<Sample>) {
    let ring = Ring::at(site).await;
    let ann = site.for_one(ring.door(), Some(ring.of("ann"))).await;
    let guarded = site.for_one_with(ring.door(), None, with_page()).await;
    let scene = Scene::set(&ann).await;
    // Who looks at it now sees what she did.
    ann.engine.trail().flush().await;
    let samples = samples(&scene);
    let known: BTreeSet<(&str, &str)> = samples.iter().map(|sample| (sample.route, sample.method)).collect();
    let table = Gateway::routes();
    let wanted: BTreeSet<(&str, &str)> = table.iter().map(|line| (line.path, line.method.as_str())).collect();
    assert_eq!(known, wanted, "a sample for every route, and none for what is not there");
    assert_eq!(known.len(), samples.len());
    (ann, guarded, ring, scene, samples)
}

/// A dashboard of one page and one file, whether this machine has built the real one or not.
fn with_page() -> Settings {
    let file = |name| PageFile { name, plain: b"a page", brotli: None, gzip: None };
    let files = vec![file("index.html"), file("static/app.0a1B_-c2.js")];
    Settings { dashboard: DashboardSettings { files, ..Default::default() }, ..Default::default() }
}

fn needs(sample: &Sample) -> Option<Role> {
    let table = Gateway::routes();
    let mut lines = table.iter().filter(|line| line.path == sample.route);
    lines.find(|line| line.method.as_str() == sample.method).unwrap().needs
}

/// It is said in the words of its surface.
#[track_caller]
fn assert_said(sample: &Sample, got: &Got, status: u16, detail: &str, code: &str, err_id: Option<&str>) {
    let (method, path) = (sample.method, &sample.path);
    assert_eq!(got.status, status, "{method} {path}: {}", got.text);
    let body = got.json();
    let surface = path.split('/').nth(1).unwrap();
    if ["audit", "executions", "graphs", "jobs", "tags", "waits"].contains(&surface) {
        let said = &body["error"];
        assert_eq!((&said["code"], &said["details"]), (&json!(code), &json!({})), "{method} {path}: {body}");
        assert!(said["message"].as_str().unwrap().contains(detail), "{method} {path}: {body}");
    } else {
        assert!(body["detail"].as_str().unwrap_or_default().contains(detail), "{method} {path}: {body}");
        assert_eq!(body["err_id"].as_str(), err_id, "{method} {path}: {body}");
    }
}

async fn nobody_without_a_good_key_gets_past_the_door(site: Site) {
    let (ann, guarded, ring, scene, samples) = set(&site).await;
    let before = scene.state(&ann).await;
    let long = "k".repeat(513);
    let good = ring.of("ann");
    let bearer = format!("Bearer {good}");
    // Of somebody who is there, with another secret.
    let mut forged = good.to_owned();
    let last = if forged.pop() == Some('0') { '1' } else { '0' };
    forged.push(last);
    let one = samples.iter().find(|sample| sample.route == "/runs" && sample.method == "POST").unwrap();
    let got = send_as(&guarded, one, &forged).await;
    assert_said(one, &got, 403, "invalid api key", "FORBIDDEN", Some("ERR-PYOCO-0015"));
    for sample in &samples {
        let what = format!("{} {}", sample.method, sample.path);
        let bare = send(&guarded, sample, &[]).await;
        assert_eq!(needs(sample).is_none(), PUBLIC.contains(&sample.route), "{what}");
        if PUBLIC.contains(&sample.route) {
            // For everybody, whatever they show.
            for headers in [&[][..], &[("x-api-key", "eve")], &[("x-api-key", "a"), ("x-api-key", "b")]] {
                assert_eq!(send(&guarded, sample, headers).await.status, sample.owner, "{what} {headers:?}");
            }
            continue;
        }
        assert_said(sample, &bare, 401, "api key required", "UNAUTHENTICATED", Some("ERR-PYOCO-0014"));
        assert_eq!(bare.headers["www-authenticate"], "Bearer", "{what}");
        for nothing in
            [("x-api-key", ""), ("x-api-key", "  "), ("authorization", "Basic YTpi"), ("cookie", "ann")]
        {
            assert_eq!(send(&guarded, sample, &[nothing]).await.status, 401, "{what} {nothing:?}");
        }
        for wrong in [("x-api-key", "eve"), ("authorization", "Bearer eve"), ("x-api-key", &long)] {
            let got = send(&guarded, sample, &[wrong]).await;
            assert_said(sample, &got, 403, "invalid api key", "FORBIDDEN", Some("ERR-PYOCO-0015"));
        }
        for two in [
            [("x-api-key", good), ("authorization", &bearer)],
            [("x-api-key", good), ("x-api-key", good)],
            [("authorization", &bearer), ("authorization", "Bearer eve")],
        ] {
            let got = send(&guarded, sample, &two).await;
            assert_said(sample, &got, 400, "two credentials", "BAD_REQUEST", Some("ERR-PYOCO-0002"));
        }
        // A key in the address is none; nor is the way with a slash, or in other words, another way in.
        let path = &sample.path;
        let mut ways =
            vec![format!("{path}?api_key={good}&x-api-key={good}"), format!("{path}/"), format!("/{path}")];
        ways.extend([format!("/health/..{path}"), format!("{path}/health"), format!("{path};/health")]);
        for way in ways {
            let method = sample.method.parse().unwrap();
            let got = guarded.client.request(method, format!("http://{}{way}", guarded.address)).send().await;
            assert_eq!(got.unwrap().status(), 401, "{} {way}", sample.method);
        }
        for method in ["HEAD", "OPTIONS", "TRACE", "BREW", "DELETE", "PUT"] {
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let got = guarded.client.request(method.clone(), guarded.url(path)).send().await.unwrap();
            assert_eq!(got.status(), 401, "{method} {path}");
        }
    }
    for path in [
        "/nothing",
        "/health/",
        "/health/x",
        "/static",
        "/static/",
        "/HEALTH",
        "/audit",
        "/%68ealth",
        "/docsx",
    ] {
        let got = guarded.client.get(format!("http://{}{path}", guarded.address)).send().await.unwrap();
        assert_eq!(got.status(), 401, "{path}");
    }
    assert_eq!(scene.state(&ann).await, before, "nothing happened");
}

async fn a_key_of_another_tenant_finds_nothing_and_changes_nothing(site: Site) {
    let (ann, guarded, ring, scene, samples) = set(&site).await;
    let before = scene.state(&ann).await;
    // What they make of their own comes last, so that the lists are empty when they look.
    let (own, others): (Vec<_>, Vec<_>) = samples.iter().partition(|sample| sample.others == Others::Own);
    for sample in others.into_iter().chain(own) {
        // In their own house a role counts; in hers it counts for nothing.
        for who in ["bob", "bob-rules"] {
            let got = send_as(&guarded, sample, ring.of(who)).await;
            let what = format!("{who}: {} {}: {} {}", sample.method, sample.path, got.status, got.text);
            match sample.others {
                Others::Hidden => assert_eq!(got.status, 404, "{what}"),
                Others::Silent => assert_eq!((got.status, got.text.as_str()), (204, ""), "{what}"),
                Others::Shared => assert_eq!(got.status, sample.owner, "{what}"),
                Others::Apart if who == "bob" => {
                    assert_said(sample, &got, 403, "admin", "FORBIDDEN", Some("ERR-PYOCO-0015"));
                }
                Others::Apart => assert!(got.status == 200 && got.json()["items"].is_array(), "{what}"),
                Others::Own => assert!((200..300).contains(&got.status), "{what}"),
                Others::Empty => assert!(got.status == 200 && is_empty(&got.json()), "{what}"),
                Others::Unmoved => {
                    assert_eq!((got.status, &got.json()["matched"]), (200, &json!(0)), "{what}");
                }
            }
            assert!(!got.text.contains("anns"), "{what}");
        }
    }
    assert_eq!(scene.state(&ann).await, before, "nothing happened");
}

/// A list, or a page, with nothing in it.
fn is_empty(list: &Value) -> bool {
    match list {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().any(Value::is_array) && members.values().all(is_nothing),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_nothing(member: &Value) -> bool {
    member.is_null() || member.as_array().is_some_and(Vec::is_empty)
}

async fn a_key_that_may_only_read_sees_everything_and_changes_nothing(site: Site) {
    let (ann, guarded, ring, scene, samples) = set(&site).await;
    let before = scene.state(&ann).await;
    for sample in &samples {
        let got = send_as(&guarded, sample, ring.of("ann-reads")).await;
        if needs(sample) == Some(Role::Admin) {
            assert_said(sample, &got, 403, "admin", "FORBIDDEN", Some("ERR-PYOCO-0015"));
        } else if sample.method == "GET" {
            assert_eq!(got.status, sample.owner, "GET {}: {}", sample.path, got.text);
        } else {
            assert_eq!(needs(sample), Some(Role::Submit), "{} {}", sample.method, sample.path);
            assert_said(sample, &got, 403, "submit", "FORBIDDEN", Some("ERR-PYOCO-0015"));
        }
    }
    // Over a socket that she may open there is a command, too.
    let path = format!("/jobs/{}/ws", scene.job);
    let mut socket = Socket::open(&guarded, &path, &[("x-api-key", ring.of("ann-reads"))]).await.unwrap();
    socket.say(r#"{"type":"cancel","reason":"no"}"#).await;
    let told = socket.next_of("error").await;
    assert_eq!(told["code"], "FORBIDDEN", "{told}");
    assert_eq!(scene.state(&ann).await, before, "nothing happened");
}

async fn the_owner_is_answered_at_every_door(site: Site) {
    let (_ann, guarded, ring, _scene, samples) = set(&site).await;
    // A colleague who rules may look wherever she may.
    for sample in samples.iter().filter(|sample| sample.method == "GET") {
        let got = send_as(&guarded, sample, ring.of("ann-rules")).await;
        assert_eq!(got.status, sample.owner, "GET {}: {}", sample.path, got.text);
    }
    for sample in &samples {
        let is_ruling = needs(sample) == Some(Role::Admin);
        let bearer = format!("bearer {}", ring.of(if is_ruling { "ann-rules" } else { "ann" }));
        let got = send(&guarded, sample, &[("authorization", &bearer)]).await;
        assert!(!is_ruling || got.text.contains("anns-team"), "what she did is told: {}", got.text);
        assert_eq!(got.status, sample.owner, "{} {}: {}", sample.method, sample.path, got.text);
        let is_list = sample.others == Others::Empty;
        assert!(!is_list || !is_empty(&got.json()), "there is something to find: {}", got.text);
        let is_bulk = sample.others == Others::Unmoved;
        assert!(!is_bulk || got.json()["done"] != json!([]), "there is something to do: {}", got.text);
    }
}

async fn a_socket_is_refused_before_it_is_one(site: Site) {
    let (_ann, guarded, ring, scene, _samples) = set(&site).await;
    let path = format!("/jobs/{}/ws", scene.job);
    let (good, other) = (ring.of("ann"), format!("Bearer {}", ring.of("bob-rules")));
    let refused: [(&[(&str, &str)], u16); 5] = [
        (&[], 401),
        (&[("x-api-key", "eve")], 403),
        (&[("x-api-key", good), ("authorization", "Bearer ann")], 400),
        (&[("x-api-key", ring.of("bob"))], 404),
        (&[("authorization", &other)], 404),
    ];
    for (headers, status) in refused {
        assert_eq!(Socket::open(&guarded, &path, headers).await.unwrap_err(), status, "{headers:?}");
    }
    for way in [format!("?api_key={good}"), format!("?access_token={good}"), "/".to_owned()] {
        assert_eq!(Socket::open(&guarded, &format!("{path}{way}"), &[]).await.unwrap_err(), 401, "{way}");
    }
    let mut socket = Socket::open(&guarded, &path, &[("x-api-key", good)]).await.unwrap();
    socket.next_of("status").await;
}
