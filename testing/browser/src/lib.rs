//! A real browser for tests: headless Chromium, driven through its own debugging protocol. What a page does with our
//! server is then what it does for a person. Not here: pages, and what is expected of them.

#![allow(clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Nothing here takes that long on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    /// Ends with this.
    _process: Child,
    _profile: TempDir,
    line: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    asked: u64,
}

impl Browser {
    /// Starts one and opens an address. Panics where there is no Chromium: `make` installs it.
    pub async fn open(address: &str) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(program());
        command
            // Tests may be run by root, whom the sandbox refuses; the pages are our own.
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            // What it leaves behind goes with the profile.
            .env("TMPDIR", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().expect("a browser that starts");
        let mut said = BufReader::new(process.stderr.take().expect("its words")).lines();
        let listening = async {
            while let Ok(Some(line)) = said.next_line().await {
                if let Some(address) = line.strip_prefix("DevTools listening on ") {
                    return address.to_owned();
                }
            }
            panic!("the browser ended before it listened");
        };
        let control = tokio::time::timeout(PATIENCE, listening).await.expect("a browser that listens");
        // What it says later is nobody's business, but it must be able to say it.
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        let (line, _) = tokio_tungstenite::connect_async(control).await.expect("a connection to the browser");
        let mut browser =
            Self { _process: process, _profile: profile, line, session: String::new(), asked: 0 };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", attach).await;
        attached["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        browser.go(address).await;
        browser
    }

    /// Opens another address in the same page.
    pub async fn go(&mut self, address: &str) {
        let gone = self.ask("Page.navigate", json!({"url": address})).await;
        assert!(gone.get("errorText").is_none(), "{address}: {gone}");
        let loaded = "new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', () => done(1)))";
        self.run(loaded).await;
    }

    /// What an expression of JavaScript gives; a promise is waited for.
    pub async fn run(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.ask("Runtime.evaluate", asked).await;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// A picture of the page, as PNG.
    pub async fn picture(&mut self) -> Vec<u8> {
        let taken = self.ask("Page.captureScreenshot", json!({"format": "png"})).await;
        let data = taken["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(data).expect("a picture")
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut request = json!({"id": self.asked, "method": method, "params": params});
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        self.line.send(Message::text(request.to_string())).await.expect("a browser that hears");
        let answer = async {
            loop {
                let message = self.line.next().await.expect("a browser that answers").expect("an answer");
                let Ok(answer) = serde_json::from_str::<Value>(message.to_text().unwrap_or_default()) else {
                    continue;
                };
                if answer["id"] == json!(self.asked) {
                    return answer;
                }
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.expect("a browser that answers in time");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }
}

/// Debian calls it chromium; others have other names.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program: &PathBuf| Path::is_file(program));
    found.expect("there is no Chromium: install Debian's package `chromium`, or name one in CHROMIUM")
}
