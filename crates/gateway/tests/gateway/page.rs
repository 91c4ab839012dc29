//! The dashboard from outside: what is at `/` and under `/static/`, in which form and for whom, and what is there without it. The page
//! itself is not needed for that; any files will do.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_gateway::{
    Access, Admitted, DashboardSettings, HeaderName, Language, NotAdmitted, PageFile, ServerLimits, Settings,
};
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::support::{Server, status_of};

const INDEX: &str = r#"<meta name="pyoco-lang" content="__PYOCO_LANG__" /><meta name="pyoco-actions" content="__PYOCO_ACTIONS__" />
<meta name="pyoco-api-key-header" content="__PYOCO_API_KEY_HEADER__" /><script src="/static/app.0a1B_-c2.js"></script>"#;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "/static/app.0a1B_-c2.js";
const NOTES: &str = "/static/licenses.txt";

const fn plain(name: &'static str, plain: &'static str) -> PageFile {
    PageFile { name, plain: plain.as_bytes(), brotli: None, gzip: None }
}

const FILES: [PageFile; 6] = [
    plain("index.html", INDEX),
    PageFile { brotli: Some(b"b"), gzip: Some(b"gz"), ..plain("static/app.0a1B_-c2.js", "alert(1)") },
    PageFile { brotli: Some(b"B"), gzip: Some(b"GZ"), ..plain("static/licenses.txt", "theirs") },
    plain("static/app.0a1B_-c2.css", "a{}"),
    plain("static/icon.Df0K2uR5.svg", "<svg/>"),
    plain("static/odd.Df0K2uR5.bin", "?"),
];

fn with_page(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    settings.dashboard.files = FILES.to_vec();
    change(&mut settings);
    settings
}

async fn serving(settings: Settings) -> Server {
    Server::with(settings, ServerLimits::default()).await
}

struct Got {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Got {
    /// A header, or nothing.
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = server.client.request(method.parse().unwrap(), server.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Got { status, headers, text: response.text().await.unwrap() }
}

async fn get(server: &Server, path: &str) -> Got {
    ask(server, "GET", path, &[]).await
}

#[tokio::test]
async fn without_its_files_there_is_no_page_and_the_api_answers() {
    // A part of a page is none.
    let parts = DashboardSettings { files: FILES[2..3].to_vec(), ..Default::default() };
    for dashboard in [DashboardSettings::default(), parts] {
        let server = serving(Settings { dashboard, ..Settings::default() }).await;
        let answer = server.get("/").await;
        assert_eq!((answer.status, answer.json), (404, json!({"detail": "dashboard not found"})));
        assert_eq!(server.get(SCRIPT).await.json, json!({"detail": "Not Found"}));
        assert_eq!(server.get("/health").await.status, 200);
        assert_eq!(get(&server, "/docs").await.status, 200);
        server.submit().await;
    }
}

#[tokio::test]
async fn the_page_is_told_its_language_what_it_may_do_and_the_header_of_a_key() {
    let told = |lang: &str, actions: &str, header: &str| {
        let html = INDEX.replace("__PYOCO_LANG__", lang).replace("__PYOCO_ACTIONS__", actions);
        html.replace("__PYOCO_API_KEY_HEADER__", header)
    };
    let got = get(&serving(with_page(|_| {})).await, "/").await;
    assert_eq!((got.status, got.text), (200, told("en", "0", "x-api-key")));
    let settings = with_page(|settings| {
        settings.dashboard.language = Language::Japanese;
        settings.dashboard.has_actions = true;
        settings.api_key_header = HeaderName::from_static("a&b'c");
    });
    let got = get(&serving(settings).await, "/").await;
    assert_eq!((got.status, got.text), (200, told("ja", "1", "a&amp;b'c")));
}

#[tokio::test]
async fn every_file_comes_under_the_policy_with_its_type() {
    let server = serving(with_page(|_| {})).await;
    let forever = "public, max-age=31536000, immutable";
    for (path, kind, keep) in [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/?lang=ja", "text/html; charset=utf-8", "no-cache"),
        (SCRIPT, "text/javascript; charset=utf-8", forever),
        ("/static/app.0a1B_-c2.css", "text/css; charset=utf-8", forever),
        ("/static/icon.Df0K2uR5.svg", "image/svg+xml", forever),
        ("/static/odd.Df0K2uR5.bin", "application/octet-stream", forever),
        (NOTES, "text/plain; charset=utf-8", "public, max-age=3600"),
    ] {
        let got = get(&server, path).await;
        assert_eq!(got.status, 200, "{path}");
        let wanted = [
            ("content-type", kind),
            ("cache-control", keep),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ];
        for (name, value) in wanted {
            assert_eq!(got.header(name), value, "{path} {name}");
        }
        let head = ask(&server, "HEAD", path, &[]).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{path}");
        assert_eq!(head.header("content-length"), got.text.len().to_string(), "{path}");
        for name in ["content-type", "cache-control", "etag", "content-security-policy"] {
            assert_eq!(head.header(name), got.header(name), "{path} {name}");
        }
        let posted = ask(&server, "POST", path, &[]).await;
        assert_eq!((posted.status, posted.header("allow")), (405, "GET,HEAD"), "{path}");
    }
}

#[tokio::test]
async fn a_file_comes_in_the_form_that_the_client_likes_best() {
    let server = serving(with_page(|_| {})).await;
    for (accepted, encoding, body) in [
        ("gzip, deflate, br, zstd", "br", "b"),
        ("gzip, deflate", "gzip", "gz"),
        ("br;q=0.1, gzip", "gzip", "gz"),
        ("identity", "", "alert(1)"),
        ("br;q=0, gzip;q=0", "", "alert(1)"),
        ("*;q=0", "", "alert(1)"),
    ] {
        let got = ask(&server, "GET", SCRIPT, &[("accept-encoding", accepted)]).await;
        assert_eq!((got.header("content-encoding"), got.text.as_str()), (encoding, body), "{accepted}");
        assert_eq!((got.status, got.header("vary")), (200, "accept-encoding"), "{accepted}");
        assert_eq!(got.header("content-type"), "text/javascript; charset=utf-8", "{accepted}");
    }
    let got = get(&server, SCRIPT).await;
    assert_eq!((got.header("content-encoding"), got.text.as_str()), ("", "alert(1)"), "nothing was said");
    // There is only one form of these.
    for path in ["/", "/static/app.0a1B_-c2.css"] {
        let got = ask(&server, "GET", path, &[("accept-encoding", "br, gzip")]).await;
        assert_eq!((got.status, got.header("content-encoding"), got.header("vary")), (200, "", ""), "{path}");
    }
}

#[tokio::test]
async fn a_client_that_has_the_page_is_not_sent_it_again() {
    let server = serving(with_page(|_| {})).await;
    let mark = get(&server, "/").await.header("etag").to_owned();
    for known in [mark.clone(), format!("W/{mark}"), format!("\"x\", {mark}"), "*".to_owned()] {
        let got = ask(&server, "GET", "/", &[("if-none-match", &known)]).await;
        assert_eq!((got.status, got.text.as_str()), (304, ""), "{known}");
        assert_eq!((got.header("etag"), got.header("cache-control")), (mark.as_str(), "no-cache"), "{known}");
        assert_eq!(got.header("content-security-policy"), POLICY);
    }
    let got = ask(&server, "GET", "/", &[("if-none-match", "\"x\"")]).await;
    assert_eq!(got.status, 200);
    // Other settings are another page.
    let other = serving(with_page(|settings| settings.dashboard.has_actions = true)).await;
    let got = ask(&other, "GET", "/", &[("if-none-match", &mark)]).await;
    assert_eq!(got.status, 200);
    assert_ne!(got.header("etag"), mark);
    // Another form has other bytes.
    let forms = ["br", "gzip", "identity"].map(|form| [("accept-encoding", form)]);
    let mut marks = std::collections::BTreeSet::new();
    for form in &forms {
        let got = ask(&server, "GET", NOTES, form).await;
        let mark = got.header("etag").to_owned();
        let again = ask(&server, "GET", NOTES, &[form[0], ("if-none-match", &mark)]).await;
        assert_eq!((again.status, again.header("vary")), (304, "accept-encoding"), "{form:?}");
        assert!(marks.insert(mark), "{form:?}");
    }
}

#[tokio::test]
async fn no_path_leads_to_anything_but_the_files() {
    let server = serving(with_page(|_| {})).await;
    for path in [
        "/index.html",
        "/static",
        "/static/",
        "/static//",
        "/static/index.html",
        "/static/../index.html",
        "/static/%2e%2e/index.html",
        "/static/..%2findex.html",
        "/static/static/app.0a1B_-c2.js",
        "/static/app.0a1B_-c2.js/",
        "/static//app.0a1B_-c2.js",
        "/static/./app.0a1B_-c2.js",
        "/static/APP.0a1B_-c2.js",
        "/static/app.0a1B_-c2.js%00",
        "/static/app.0a1B_-c2.js.br",
        "/static/%ff",
        "/static/etc/passwd",
        "//static/app.0a1B_-c2.js",
    ] {
        // As it stands: a client would put some of them right.
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = server.raw(request.as_bytes()).await;
        assert_eq!(status_of(&answer), 404, "{path}: {answer}");
        assert!(answer.ends_with(r#"{"detail":"Not Found"}"#), "{path}: {answer}");
    }
}

/// Lets nobody in.
struct Nobody;

#[async_trait]
impl Access for Nobody {
    async fn admit(&self, _secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        Err(NotAdmitted::NothingShown)
    }
}

#[tokio::test]
async fn the_page_is_for_everybody_and_what_it_shows_is_not() {
    let server = Server::guarded(Arc::new(Nobody), with_page(|_| {})).await;
    for path in ["/", SCRIPT, NOTES] {
        assert_eq!(get(&server, path).await.status, 200, "{path}");
    }
    assert_eq!(get(&server, "/static/nothing.js").await.status, 404);
    for path in ["/runs", "/metrics", "/static", "/index.html"] {
        assert_eq!(get(&server, path).await.status, 401, "{path}");
    }
    let bare = Server::guarded(Arc::new(Nobody), Settings::default()).await;
    assert_eq!(*bare.get("/").await.detail(404), json!("dashboard not found"));
}
