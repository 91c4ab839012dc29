//! A real browser follows a log: its EventSource comes back by itself and goes on where it was, and a WebSocket goes on from a token.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use pyoco_testing_browser::Browser;
use pyoco_testing_executions::{Kind, Site};
use pyoco_testing_jobs::{end, submitted, write};
use serde_json::{Value, json};

/// A page of the same origin, with an ear for a log.
async fn page(site: &Site, job: &str) -> Browser {
    let mut browser = Browser::open(&site.url("/health")).await;
    browser
        .run(&format!(
            "window.job = '{job}'; window.heard = []; window.until = async (ready) => {{
                 while (!ready()) await new Promise(later => setTimeout(later, 10)); return heard; }}; 1"
        ))
        .await;
    browser
}

fn messages(heard: &Value) -> Vec<&str> {
    heard.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect()
}

async fn an_event_source_follows_and_resumes(kind: Kind) {
    let site = Site::open(kind).await;
    let job = submitted(&site).await;
    write(&site, &job, &["one", "two"]).await;
    let mut browser = page(&site, &job).await;
    browser
        .run(
            "window.opened = 0; window.source = new EventSource(`/jobs/${job}/logs/stream`);
             source.onopen = () => opened++;
             source.addEventListener('logEntry', event => heard.push(JSON.parse(event.data).message));
             source.addEventListener('status', event => { window.ended = JSON.parse(event.data).status; }); 1",
        )
        .await;
    assert_eq!(messages(&browser.run("until(() => heard.length == 2)").await), ["one", "two"]);
    // The gateway hangs up on everybody, and listens again at the same address.
    let site = site.listening_again().await;
    write(&site, &job, &["three <script>alert(1)</script> \u{1b}[31m日本語"]).await;
    let heard = browser.run("until(() => heard.length == 3)").await;
    assert_eq!(messages(&heard)[2], "three <script>alert(1)</script> \u{1b}[31m日本語");
    assert_eq!(browser.run("opened").await, json!(2), "it was opened again");
    end(&site, &job).await;
    let heard = browser.run("until(() => window.ended)").await;
    assert!(messages(&heard).last().unwrap().starts_with("run cancelled"), "{heard}");
    assert_eq!(browser.run("ended").await, json!("canceled"));
    // It comes back once more, is told that there is nothing, and stays away.
    browser.run("until(() => source.readyState == EventSource.CLOSED)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_source_follows_and_resumes_on_sqlite() {
    an_event_source_follows_and_resumes(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_source_follows_and_resumes_on_nats() {
    an_event_source_follows_and_resumes(Kind::Nats).await;
}

async fn a_web_socket_follows_resumes_and_cancels(kind: Kind) {
    let site = Site::open(kind).await;
    let job = submitted(&site).await;
    write(&site, &job, &["one", "two"]).await;
    let mut browser = page(&site, &job).await;
    browser
        .run(
            "window.listen = (since) => {
                 window.socket = new WebSocket(`ws://${location.host}/jobs/${job}/ws` + (since ? `?sinceToken=${since}` : ''));
                 socket.onmessage = message => { const said = JSON.parse(message.data);
                     if (said.type == 'log') { heard.push(said.entry.message); window.token = said.token; }
                     if (said.type == 'status') window.status_ = said.job.status; };
                 socket.onclose = event => { window.ended = event.code; }; };
             listen(); 1",
        )
        .await;
    assert_eq!(messages(&browser.run("until(() => heard.length == 2)").await), ["one", "two"]);
    browser.run("socket.close(); until(() => window.ended)").await;
    write(&site, &job, &["three"]).await;
    browser.run("window.ended = 0; listen(token); 1").await;
    assert_eq!(messages(&browser.run("until(() => heard.length == 3)").await), ["one", "two", "three"]);
    browser.run("socket.send(JSON.stringify({type: 'cancel', reason: 'enough'})); 1").await;
    browser.run("until(() => window.ended)").await;
    assert_eq!(browser.run("[status_, ended]").await, json!(["canceled", 1000]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_socket_follows_resumes_and_cancels_on_sqlite() {
    a_web_socket_follows_resumes_and_cancels(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_socket_follows_resumes_and_cancels_on_nats() {
    a_web_socket_follows_resumes_and_cancels(Kind::Nats).await;
}
