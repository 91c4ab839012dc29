//! What tasks write, with a real server, real tasks and real `curl`: floods, bytes that are no text, and downloads that go on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::process::Command;
use std::time::Duration;

use pyoco_client::api::RunStatus;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};
use support::{Running, Site};

const FLOW: &str = "version: 1\nflow: {graph: 'say'}\ntasks: {say: {callable: 'talk_tasks:say'}}\n";

/// A task that writes what its parameter names.
const MODULE: &str = r#"
import sys, time

def say(what):
    out = sys.stdout.buffer
    if what == "flood":
        block = b"".join(b"%07d a line of a task that has a lot to say, and says it again and again and again\n" % n for n in range(10_000))
        for _ in range(250):
            out.write(block)
        out.flush()
        return 250 * len(block)
    if what == "left over":
        import subprocess
        subprocess.Popen(["yes", ""])
        time.sleep(0.2)
        return what
    if what == "bytes":
        out.write(b"latin \xe9 \xff\xfe end\n")
        out.write(b"\x1b[31mred\x1b[0m \x1b[2J\x1b]0;title\x07 cleared?\n")
        out.write(b"nul \x00 here\n10%\r20%\rdone\n")
        out.write("x".encode() * 10_000_000)
        out.write(b"\nlast\n")
        out.flush()
    if what == "slow":
        for n in range(300):
            print(f"line {n}", flush=True)
            time.sleep(0.01)
    return what
"#;

fn site() -> Site {
    // What tasks write is also told to the operator; here it would only fill the test's memory.
    Site::new().flow("talk", FLOW, MODULE).env("PYOCO_LOG_LEVEL", "warning")
}

async fn said(running: &Running, what: &str) -> String {
    let run = running.submit("talk", json!({"what": what})).await;
    assert_eq!(running.until_ended(&run).await.status, RunStatus::Completed, "{what}");
    run
}

/// The highest memory of a process in MiB since the last question.
fn memory(running: &Running) -> u64 {
    let pid = running.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let highest = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    highest.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

async fn entries(running: &Running, run: &str, query: &str) -> Value {
    let url = format!("{}/jobs/{run}/logs?{query}", running.url);
    reqwest::get(url).await.unwrap().error_for_status().unwrap().json().await.unwrap()
}

async fn a_flood_is_cut_and_harms_nobody(site: Site) {
    let running = site.start();
    said(&running, "nothing").await;
    memory(&running);
    said(&running, "nothing").await;
    let before = memory(&running);
    let run = said(&running, "flood").await;
    let grown = memory(&running).saturating_sub(before);
    eprintln!("200 MB of output: {before} MiB before, {grown} MiB more");
    assert!(grown <= 64, "it grew by {grown} MiB");
    // The task had all its output taken off it: its result says so.
    let records = running.client.get_run_with_records(&run).await.unwrap().into_json();
    assert!(records["task_records"]["say"]["output"].as_u64().unwrap() > 200_000_000, "{records}");
    // The beginning is kept, and the end says that there was more.
    let first = entries(&running, &run, "limit=2").await;
    assert_eq!(first["entries"][0]["message"].as_str().unwrap().split(' ').next(), Some("started"));
    assert!(first["entries"][1]["message"].as_str().unwrap().starts_with("0000000 a line"), "{first}");
    let url = format!("{}/jobs/{run}/logs", running.url);
    let request =
        reqwest::Client::new().get(url).header("accept", "text/plain").header("range", "bytes=-300");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 206);
    let size: u64 =
        response.headers()["content-range"].to_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
    assert!(((64 << 20) - 200_000..(64 << 20) + 1_000).contains(&size), "{size} bytes");
    let tail = response.text().await.unwrap();
    assert!(tail.trim_end().ends_with("(PYOCO_RUN_LOG_MAX_BYTES)"), "{tail}");
    // And the worker goes on.
    said(&running, "nothing").await;
}

#[tokio::test]
async fn two_hundred_megabytes_of_output_are_cut_and_harm_nobody() {
    a_flood_is_cut_and_harms_nobody(site()).await;
}

#[tokio::test]
async fn two_hundred_megabytes_of_output_are_cut_and_harm_nobody_on_nats() {
    let server = NatsServer::start(&Options::default());
    let site = site().env("PYOCO_NATS_URL", &server.url()).argument("--with-worker");
    a_flood_is_cut_and_harms_nobody(site).await;
}

#[tokio::test]
async fn a_child_that_goes_on_writing_short_lines_harms_nobody() {
    let site = site();
    let running = site.start();
    said(&running, "nothing").await;
    memory(&running);
    said(&running, "nothing").await;
    let before = memory(&running);
    said(&running, "left over").await;
    let grown = memory(&running).saturating_sub(before);
    eprintln!("a child that says nothing again and again: {before} MiB before, {grown} MiB more");
    assert!(grown <= 64, "it grew by {grown} MiB");
    said(&running, "nothing").await;
}

#[tokio::test]
async fn bytes_that_are_no_text_and_endless_lines_are_stored_and_shown_safely() {
    let site = site();
    let running = site.start();
    let run = said(&running, "bytes").await;
    let mut lines: Vec<Value> = Vec::new();
    let mut token = String::new();
    loop {
        let query = if token.is_empty() {
            "stream=stdout".to_owned()
        } else {
            format!("stream=stdout&sinceToken={token}")
        };
        let page = entries(&running, &run, &query).await;
        let found = page["entries"].as_array().unwrap();
        let next = page["nextToken"].as_str().unwrap();
        if next == token {
            break;
        }
        lines.extend(found.iter().cloned());
        next.clone_into(&mut token);
    }
    let texts: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(
        texts[..6],
        [
            "latin \u{fffd} \u{fffd}\u{fffd} end",
            "\u{1b}[31mred\u{1b}[0m \u{1b}[2J\u{1b}]0;title\u{7} cleared?",
            "nul \0 here",
            "10%",
            "20%",
            "done"
        ]
    );
    let long: usize = texts.iter().filter(|text| text.starts_with("xx")).map(|text| text.len()).sum();
    assert_eq!(long, 10_000_000);
    assert!(texts.iter().all(|text| text.len() <= 64 * 1024), "no line is longer than 64 KiB");
    assert_eq!(texts.last(), Some(&"last"));
    let request =
        reqwest::Client::new().get(format!("{}/runs/{run}/logs", running.url)).header("accept", "text/plain");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(
        text.contains("\u{1b}[31mred\u{1b}[0m \\x1b[2J\\x1b]0;title\\x07 cleared?"),
        "colours are kept, nothing else"
    );
    assert!(!text.contains('\0') && !text.contains('\r'));
}

#[tokio::test]
async fn curl_goes_on_with_a_download_that_was_interrupted() {
    let site = site();
    let running = site.start();
    let run = running.submit("talk", json!({"what": "slow"})).await;
    let file = site.path("job.log");
    let curl = |url: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--header", "Accept: text/plain"]);
        curl.args(["--continue-at", "-", "--output"]).arg(&file).arg(url);
        let done = curl.output().expect("curl");
        let why = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), why)
    };
    let url = format!("{}/jobs/{run}/logs", running.url);
    let mut sizes = Vec::new();
    while !support::is_terminal(running.client.get_run(&run).await.unwrap().into_value().status) {
        let (code, why) = curl(&url);
        // 33: there is nothing behind what it has, which is also a right answer.
        assert!(code == Some(0) || code == Some(22) || code == Some(33), "{code:?} {why}");
        sizes.push(std::fs::metadata(&file).map_or(0, |file| file.len()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // The end of a run is in its log a moment later.
    let whole = loop {
        let text = reqwest::Client::new().get(&url).header("accept", "text/plain").send().await.unwrap();
        let text = text.text().await.unwrap();
        if text.contains("run completed") {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    curl(&url);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    sizes.dedup();
    assert!(sizes.len() > 5, "it grew in pieces: {sizes:?}");
    assert_eq!(whole.lines().filter(|line| line.contains(" say stdout | line ")).count(), 300);
}
