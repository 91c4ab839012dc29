//! `pyoco-client logs`, `job` and `tags` against the real server: what they write, where, and their exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use support::client::{ask, done, err, out, program, refused, said};
use support::{PATIENCE, Running, Site, free_port};

/// What a job runs that names no flow.
const FLOW: &str = "version: 2\nflow: {graph: 'load >> report', defaults: {input: data.csv, mode: fast, fails: false}}\ntasks:\n  \
                    load: {callable: 'analysis_tasks:load'}\n  report: {callable: 'analysis_tasks:report'}\n";
const TASKS: &str = r#"
import sys

def load(input, mode):
    print(f"reading {input} ({mode})")
    print("row 3 is odd", file=sys.stderr)

def report(fails):
    print("日本語 \x1b[31mred\x1b[0m\x1b[2J\x07")
    if fails:
        raise ValueError("no luck")
"#;

/// A flow that goes on until a file appears, and says so line by line.
const LONG: &str = "version: 2\nflow: {graph: 'talk'}\ntasks: {talk: {callable: 'long_tasks:talk'}}\n";
const TALK: &str = r#"
import os, time

def talk(end, ctx):
    number = 0
    while not os.path.exists(end) and not ctx.is_cancelled:
        number += 1
        print(f"line {number}")
        time.sleep(0.002)
"#;

/// More lines than the gateway gives, or looks at, for one answer, and one among them that is not like the others.
const FLOOD: &str = "version: 2\nflow: {graph: 'pour'}\ntasks: {pour: {callable: 'flood_tasks:pour'}}\n";
const POUR: &str = r#"
import sys

def pour():
    for number in range(25_000):
        print(f"drop {number}")
    print("the last drop", file=sys.stderr, flush=True)
"#;

fn site() -> Site {
    Site::new().flow("analysis", FLOW, TASKS).flow("long", LONG, TALK).flow("flood", FLOOD, POUR)
}

fn server() -> (Site, Running) {
    let site = site();
    let running = site.start();
    (site, running)
}

#[track_caller]
fn submit(running: &Running, arguments: &[&str]) -> String {
    let job = ask(&running.url, &[&["job", "submit"], arguments].concat());
    job["id"].as_str().unwrap().to_owned()
}

/// Submits a job and stays until it has completed.
#[track_caller]
fn complete(running: &Running, arguments: &[&str]) -> String {
    let job = submit(running, arguments);
    done(&running.url, &["logs", "--run-id", &job, "--follow"]);
    job
}

/// A job that goes on until the file appears that is given along.
fn long_job(running: &Running, site: &Site) -> (String, std::path::PathBuf) {
    let end = site.path("end");
    let job = submit(running, &["--flow", "long", "--param", &format!("end={}", end.display())]);
    (job, end)
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split('\t').collect()).collect()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The log as the gateway gives it to `curl -H 'Accept: text/plain'`.
async fn text_of(running: &Running, job: &str) -> String {
    let url = format!("{}/jobs/{job}/logs", running.url);
    let answer = reqwest::Client::new().get(url).header("accept", "text/plain").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}

/// The token that a command showed beside its output.
#[track_caller]
fn token(output: &Output) -> String {
    let said = err(output);
    said.strip_prefix("nextToken: ").unwrap_or_else(|| panic!("{said}")).trim_end().to_owned()
}

#[test]
fn every_help_shows_an_example() {
    let commands: [(&str, &[&str]); 3] =
        [("logs", &[]), ("job", &["submit", "get", "list", "delete", "tags", "tag", "untag"]), ("tags", &[])];
    let help = |arguments: &[&str]| {
        let output = program("http://127.0.0.1:1", &[arguments, &["--help"]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        out(&output)
    };
    for (group, names) in commands {
        let text = help(&[group]);
        assert!(text.contains(&format!("  pyoco-client {group}")), "{text}");
        for name in names {
            assert!(text.contains(&format!("\n  {name} ")), "{group} {name}: {text}");
            let text = help(&[group, name]);
            let (_, examples) = text.split_once("\nExample").expect(name);
            assert!(examples.contains(&format!("pyoco-client {group} {name}")), "{text}");
        }
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sent() {
    let cases: [(&[&str], &str); 8] = [
        (&["logs"], "the following arguments are required: --run-id"),
        (
            &["logs", "--run-id", "r", "--stream", "stdin"],
            "argument --stream: invalid choice: 'stdin' (choose from stdout, stderr, engine)",
        ),
        (
            &["logs", "--run-id", "r", "--json", "--no-timestamps"],
            "argument --json: not allowed with argument --no-timestamps",
        ),
        (&["job"], "the following arguments are required: command"),
        (&["job", "tag", "j"], "the following arguments are required: label"),
        (
            &["job", "list", "--status", "DONE"],
            "argument --status: invalid choice: 'DONE' (choose from pending, running, completed, failed, canceled)",
        ),
        (&["job", "list", "--all", "--limit", "3"], "argument --all: not allowed with argument --limit"),
        (&["job", "submit", "--params", "[]"], "--params must be JSON object"),
    ];
    for (arguments, reason) in cases {
        let output = program("http://127.0.0.1:1", arguments).output().unwrap();
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{arguments:?}");
        let text = err(&output);
        assert!(text.starts_with("ERR-PYOCO-0018: "), "{text}");
        assert!(text.contains(&format!("\n- reason: {reason}\n")), "{arguments:?}: {text}");
    }
}

#[tokio::test]
async fn a_job_is_submitted_with_all_that_was_given_and_followed_to_its_end() {
    let (site, running) = server();
    let file = site.path("params.yaml");
    std::fs::write(&file, "input: from-file.csv\nmode: slow\nx: 1\n").unwrap();
    let output = done(
        &running.url,
        &[
            &[
                "job",
                "submit",
                "--params-file",
                file.to_str().unwrap(),
                "--params",
                r#"{"mode": "fast", "x": 2}"#,
            ],
            &["--param", "x=[3]", "--tag", "urgent", "--tag", "Q3 売上", "--follow"][..],
        ]
        .concat(),
    );
    let said = err(&output);
    let job = said.strip_prefix("job: ").unwrap().trim_end();
    assert_eq!(out(&output), text_of(&running, job).await, "a pipe gets the bytes of the server");
    assert!(out(&output).contains(" load stdout | reading from-file.csv (fast)\n"), "{}", out(&output));
    assert!(
        out(&output).contains(" report stdout | 日本語 \u{1b}[31mred\u{1b}[0m\\x1b[2J\\x07\n"),
        "{}",
        out(&output)
    );

    let shown = ask(&running.url, &["job", "get", job]);
    assert_eq!((&shown["status"], &shown["flow"]), (&json!("completed"), &json!("analysis")));
    assert_eq!(
        (&shown["parameters"], &shown["tags"]),
        (&json!({"input": "from-file.csv", "mode": "fast", "x": [3]}), &json!(["urgent", "Q3 売上"]))
    );
    let table = self::said(&running.url, &["job", "get", job, "--output", "table"]);
    assert!(
        table.starts_with(&format!("completed  analysis  {job}\ntags        urgent,Q3 売上\ncreated     ")),
        "{table}"
    );

    let output = done(&running.url, &["job", "submit", "--follow", "--no-timestamps"]);
    assert!(out(&output).contains("\nload stdout | reading data.csv (fast)\n"), "{}", out(&output));
    let output = done(&running.url, &["job", "submit", "--follow", "--json"]);
    assert!(
        lines(&out(&output))
            .iter()
            .any(|line| line["message"] == "row 3 is odd" && line["stream"] == "stderr")
    );
}

#[test]
fn a_job_can_name_its_flow_its_workers_and_a_key() {
    let (site, running) = server();
    let elsewhere = submit(&running, &["--flow", "long", "--routing-tag", "gpu", "--param", "end=x"]);
    let run = ask(&running.url, &["get", &elsewhere]);
    assert_eq!(
        (&run["flow_name"], &run["tag"], &run["status"]),
        (&json!("long"), &json!("gpu"), &json!("PENDING"))
    );

    let first = submit(&running, &["--idempotency-key", "nightly 1", "--param", "x=1"]);
    assert_eq!(submit(&running, &["--idempotency-key", "nightly 1", "--param", "x=1"]), first);
    let other = refused(&running.url, &["job", "submit", "--idempotency-key", "nightly 1", "--param", "x=2"]);
    assert!(other.contains("HTTP 409 POST /jobs: IDEMPOTENCY_KEY_REUSED: "), "{other}");
    let long = "x".repeat(129);
    let wrong = refused(&running.url, &["job", "submit", "--tag", &long]);
    assert!(wrong.contains("HTTP 422 POST /jobs: INVALID_INPUT: tags"), "{wrong}");

    drop(running);
    let mut site = site.env("PYOCO_JOBS_FLOW", "long");
    site.arguments.push("--no-worker".to_owned());
    let running = site.start();
    let job = submit(&running, &[]);
    assert_eq!(ask(&running.url, &["job", "get", &job])["flow"], "long", "the operator says what a job runs");
}

#[tokio::test]
async fn a_log_is_shown_as_it_is_in_part_and_as_json() {
    let (_site, running) = server();
    let job = &complete(&running, &[]);
    let whole = text_of(&running, job).await;
    let shown = done(&running.url, &["logs", "--run-id", job]);
    assert_eq!(out(&shown), whole);
    let end = token(&shown);

    let short = said(&running.url, &["logs", "--run-id", job, "--no-timestamps"]);
    let cut: Vec<&str> = whole.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(short.lines().collect::<Vec<_>>(), cut);

    let only = |options: &[&str], wanted: &str| {
        let shown = said(&running.url, &[&["logs", "--run-id", job, "--no-timestamps"], options].concat());
        let wanted: Vec<&str> =
            cut.iter().copied().filter(|line| format!(" {line}").contains(wanted)).collect();
        assert!(!wanted.is_empty(), "{whole}");
        assert_eq!(shown.lines().collect::<Vec<_>>(), wanted, "{options:?}");
    };
    only(&["--stream", "stderr"], " load stderr | ");
    only(&["--stream", "stdout"], " stdout | ");
    only(&["--stream", "engine"], " engine | ");
    only(&["--task", "report", "--stream", "stdout"], " report stdout | ");
    only(&["--task", "load", "--follow"], " load ");
    assert_eq!(said(&running.url, &["logs", "--run-id", job, "--task", "nobody"]), "");

    let entries = lines(&said(&running.url, &["logs", "--run-id", job, "--json"]));
    let numbers: Vec<u64> = entries.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=whole.lines().count() as u64).collect::<Vec<_>>());
    let odd = entries.iter().find(|line| line["stream"] == "stderr").unwrap();
    assert_eq!(
        (&odd["message"], &odd["task"], &odd["attempt"]),
        (&json!("row 3 is odd"), &json!("load"), &json!(1))
    );
    assert!(entries.last().unwrap()["task"].is_null(), "{entries:?}");

    let again = done(&running.url, &["logs", "--run-id", job, "--since", &end]);
    assert_eq!((out(&again).as_str(), token(&again)), ("", end.clone()));
    let none = done(&running.url, &["logs", "--run-id", job, "--since", &end, "--follow"]);
    assert_eq!((out(&none), err(&none)), (String::new(), String::new()));
}

#[tokio::test]
async fn a_long_log_is_shown_whole_and_searched_to_its_end() {
    let (_site, running) = server();
    let output = done(&running.url, &["job", "submit", "--flow", "flood", "--follow"]);
    let said_beside = err(&output);
    let job = said_beside.strip_prefix("job: ").unwrap().trim_end();
    let whole = text_of(&running, job).await;
    assert!(whole.lines().count() > 25_000, "{}", whole.lines().count());
    assert!(out(&output) == whole, "followed");
    assert!(said(&running.url, &["logs", "--run-id", job]) == whole, "page by page");
    let errors = said(&running.url, &["logs", "--run-id", job, "--stream", "stderr", "--no-timestamps"]);
    assert_eq!(errors, "pour stderr | the last drop\n");
}

#[test]
fn a_token_goes_on_where_it_was_given_and_nowhere_else() {
    let (site, running) = server();
    let (job, end) = long_job(&running, &site);
    let since = std::time::Instant::now();
    let (mut seen, mut from) = (String::new(), Vec::new());
    while seen.lines().count() < 100 {
        assert!(since.elapsed() < PATIENCE, "{seen}");
        let part = done(
            &running.url,
            &[&["logs", "--run-id", &job], &from.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat(),
        );
        seen.push_str(&out(&part));
        from = vec!["--since".to_owned(), token(&part)];
    }
    std::fs::write(&end, "").unwrap();
    let rest = done(&running.url, &["logs", "--run-id", &job, "--follow", "--since", &from[1]]);
    seen.push_str(&out(&rest));
    assert_eq!(seen, said(&running.url, &["logs", "--run-id", &job]), "no gap, no repeat");

    let other = submit(&running, &[]);
    for (token, options) in [(from[1].as_str(), &[][..]), ("garbage", &[]), (&from[1], &["--follow"])] {
        let refusal =
            refused(&running.url, &[&["logs", "--run-id", &other, "--since", token], options].concat());
        assert!(refusal.contains("- reason: HTTP 400 GET /runs/"), "{refusal}");
    }
    let unknown = refused(&running.url, &["logs", "--run-id", "nobody"]);
    assert!(unknown.contains("- reason: HTTP 404 GET /runs/nobody/logs"), "{unknown}");
    let unknown = refused(&running.url, &["logs", "--run-id", "nobody", "--follow"]);
    assert!(unknown.contains("- reason: HTTP 404 GET /runs/nobody/logs/stream"), "{unknown}");
}

#[test]
fn whoever_follows_is_told_how_it_ended() {
    let (site, running) = server();
    let failed =
        program(&running.url, &["job", "submit", "--param", "fails=true", "--follow"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let said_beside = err(&failed);
    let (first, rest) = said_beside.split_once('\n').unwrap();
    let job = first.strip_prefix("job: ").unwrap();
    assert!(rest.starts_with("ERR-PYOCO-RUN: run failed\n- reason: ") && rest.contains("no luck"), "{rest}");
    assert!(rest.ends_with(&format!("- hint: pyoco-client exec retry {job}\n")), "{rest}");
    assert!(out(&failed).lines().last().unwrap().contains(" - engine | run failed"), "{}", out(&failed));
    let again = program(&running.url, &["logs", "--run-id", job, "--follow"]).output().unwrap();
    assert_eq!((again.status.code(), out(&again)), (Some(1), out(&failed)));

    let (job, _) = long_job(&running, &site);
    let mut command = program(&running.url, &["logs", "--run-id", &job, "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with(" talk stdout | line 5")));
    assert_eq!(said(&running.url, &["job", "delete", &job]), "");
    let rest: Vec<String> = lines.collect();
    assert!(rest.last().unwrap().contains(" - engine | run cancelled"), "{rest:?}");
    let output = follower.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(130), ""));
}

#[test]
fn a_reader_that_has_enough_ends_the_following() {
    let (site, running) = server();
    let (job, end) = long_job(&running, &site);
    let mut command = program(&running.url, &["logs", "--run-id", &job, "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    assert_eq!(follower.wait().unwrap().code(), Some(0), "as | head means it");
    std::fs::write(end, "").unwrap();
}

#[test]
fn jobs_are_found_by_what_they_are() {
    let (_site, running) = server();
    let first = complete(&running, &["--tag", "x", "--tag", "both"]);
    let second = submit(
        &running,
        &["--flow", "long", "--routing-tag", "nobody", "--param", "end=x", "--tag", "y", "--tag", "both"],
    );
    let third = submit(&running, &["--routing-tag", "nobody", "--tag", "z 語"]);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = said(&running.url, &[&["job", "list"], arguments].concat());
        rows(&list).iter().map(|row| row[0].to_owned()).collect()
    };
    assert_eq!(ids(&[]), [third.as_str(), &second, &first]);
    assert_eq!(ids(&["--tag", "both"]), [second.as_str(), &first]);
    assert_eq!(ids(&["--tag", "both", "--tag", "x"]), [first.as_str()]);
    assert_eq!(ids(&["--any-tag", "x", "--any-tag", "z 語"]), [third.as_str(), &first]);
    assert_eq!(ids(&["--tag", "both", "--any-tag", "y", "--any-tag", "z 語"]), [second.as_str()]);
    assert_eq!(ids(&["--status", "completed"]), [first.as_str()]);
    assert_eq!(ids(&["--status", "completed", "--status", "pending"]).len(), 3);
    assert_eq!(ids(&["--flow", "long"]), [second.as_str()]);
    assert_eq!(ids(&["--created-after", "2999-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(ids(&["--created-before", "2999-01-01T00:00:00Z"]).len(), 3);

    let lines = said(&running.url, &["job", "list", "--tag", "x"]);
    let row = &rows(&lines)[0];
    assert_eq!((row[1], row[2]), ("completed", "x,both"));
    assert!(row[3] < row[4], "created, then ended: {row:?}");
    let table = said(&running.url, &["job", "list", "--output", "table"]);
    assert!(table.starts_with("id ") && table.lines().count() == 4, "{table}");

    let page = ask(&running.url, &["job", "list", "--limit", "1", "--json"]);
    assert_eq!(page["jobs"][0]["id"], third.as_str());
    let next = page["nextToken"].as_str().unwrap();
    let output = done(&running.url, &["job", "list", "--limit", "1"]);
    assert_eq!((out(&output).lines().count(), token(&output).as_str()), (1, next));
    assert_eq!(ids(&["--limit", "1", "--next-token", next]), [second.as_str()]);
    let rest = ask(&running.url, &["job", "list", "--json", "--next-token", next]);
    assert_eq!((rest["jobs"].as_array().unwrap().len(), rest.get("nextToken")), (2, None));
    let all = self::lines(&said(&running.url, &["job", "list", "--all", "--json"]));
    assert_eq!(
        all.iter().map(|job| job["id"].as_str().unwrap()).collect::<Vec<_>>(),
        [&third[..], &second, &first]
    );

    let wrong = refused(&running.url, &["job", "list", "--limit", "201"]);
    assert!(wrong.contains("HTTP 422 GET /jobs: INVALID_INPUT: limit"), "{wrong}");
    let wrong = refused(&running.url, &["job", "list", "--tag", "x", "--next-token", next]);
    assert!(
        wrong.contains("HTTP 400 GET /jobs: BAD_TOKEN: ") && wrong.contains("\n- hint: a token counts for"),
        "{wrong}"
    );
}

#[test]
fn a_list_is_shown_whole_however_many_pages_it_has() {
    let site = site().argument("--no-worker");
    let running = site.start();
    let jobs: Vec<String> =
        (0..203).map(|number| submit(&running, &["--tag", &format!("n {number:03}")])).collect();
    let all = said(&running.url, &["job", "list", "--all"]);
    let ids: Vec<&str> = rows(&all).iter().map(|row| row[0]).collect();
    assert_eq!(ids, jobs.iter().rev().map(String::as_str).collect::<Vec<_>>());
    let table = said(&running.url, &["job", "list", "--all", "--output", "table"]);
    assert_eq!(table.lines().count(), 204);

    let first = done(&running.url, &["tags"]);
    assert_eq!(rows(&out(&first)).len(), 100);
    let rest = said(&running.url, &["tags", "--limit", "1000", "--next-token", &token(&first)]);
    assert_eq!(rows(&rest)[0][0], "n 100");
    assert_eq!(said(&running.url, &["tags", "--all"]), out(&first) + &rest);
}

#[test]
fn a_job_that_has_ended_is_hidden_and_its_history_stays() {
    let (_site, running) = server();
    let job = &complete(&running, &["--tag", "gone"]);
    assert_eq!(said(&running.url, &["job", "delete", job]), "");
    assert_eq!(said(&running.url, &["job", "list", "--tag", "gone"]), "");
    let gone = refused(&running.url, &["job", "get", job]);
    assert!(gone.contains(&format!("HTTP 404 GET /jobs/{job}: JOB_NOT_FOUND: ")), "{gone}");
    assert!(gone.contains("\n- hint: pyoco-client job list shows what there is"), "{gone}");
    assert!(said(&running.url, &["exec", "events", job]).contains("EXECUTION_COMPLETED"));
    assert!(said(&running.url, &["logs", "--run-id", job]).contains(" load stdout | reading "));
    assert_eq!(said(&running.url, &["job", "delete", job]), "", "again is no error");
    assert_eq!(said(&running.url, &["job", "delete", "nobody"]), "");
}

#[test]
fn labels_are_any_text_of_a_person() {
    let (_site, running) = server();
    let job = &submit(&running, &["--routing-tag", "nobody", "--tag", "first"]);
    let labels = ["Q3 report", "売上", "a/b?c#d%2F", "🚀 go", "cafe\u{301}"];
    let now = said(&running.url, &[&["job", "tag", job], &labels[..]].concat());
    let expected = ["first", "Q3 report", "売上", "a/b?c#d%2F", "🚀 go", "caf\u{e9}"];
    assert_eq!(now.lines().collect::<Vec<_>>(), expected);
    assert_eq!(said(&running.url, &["job", "tags", job]), now);
    assert_eq!(
        ask(&running.url, &["job", "tag", job, "売上", "--json"]),
        json!(expected),
        "twice is no error"
    );
    assert!(said(&running.url, &["job", "tags", job, "--output", "table"]).starts_with("tag "));
    assert_eq!(ask(&running.url, &["job", "tags", job, "--json"]), json!(expected));

    let list = said(&running.url, &["job", "list", "--tag", "🚀 go", "--tag", "cafe\u{301}"]);
    assert_eq!(rows(&list)[0][0], job);
    let removed =
        said(&running.url, &["job", "untag", job, "a/b?c#d%2F", "売上", "cafe\u{301}", "never there"]);
    assert_eq!(removed, "");
    assert_eq!(ask(&running.url, &["job", "tags", job, "--json"]), json!(["first", "Q3 report", "🚀 go"]));

    for (wrong, label) in [("", ""), ("a\nb", "a\nb"), ("long", &*"x".repeat(129))] {
        let said = refused(&running.url, &["job", "tag", job, label]);
        assert!(said.contains("/tags: INVALID_INPUT: tag"), "{wrong}: {said}");
    }
    let unknown = refused(&running.url, &["job", "tag", "nobody", "x"]);
    assert!(unknown.contains("HTTP 404 POST /jobs/nobody/tags: JOB_NOT_FOUND: "), "{unknown}");
    let unknown = refused(&running.url, &["job", "tags", "nobody"]);
    assert!(unknown.contains("HTTP 404 GET /jobs/nobody/tags: JOB_NOT_FOUND: "), "{unknown}");
    assert_eq!(said(&running.url, &["job", "untag", "nobody", "x"]), "");
}

#[test]
fn labels_are_listed_with_how_many_jobs_have_them() {
    let (_site, running) = server();
    for labels in [&["--tag", "Q3 a", "--tag", "Q3 b"][..], &["--tag", "Q3 b", "--tag", "Q4"]] {
        submit(&running, &[labels, &["--routing-tag", "nobody"]].concat());
    }
    assert_eq!(said(&running.url, &["tags"]), "Q3 a\t1\nQ3 b\t2\nQ4\t1\n");
    assert_eq!(said(&running.url, &["tags", "--prefix", "Q3"]), "Q3 a\t1\nQ3 b\t2\n");
    assert_eq!(said(&running.url, &["tags", "--output", "table"]).lines().next(), Some("tag   count"));
    let page = ask(&running.url, &["tags", "--json", "--limit", "2"]);
    assert_eq!(page["tags"], json!([{"tag": "Q3 a", "count": 1}, {"tag": "Q3 b", "count": 2}]));
    let next = page["nextToken"].as_str().unwrap();
    assert_eq!(said(&running.url, &["tags", "--next-token", next]), "Q4\t1\n");
    let all = lines(&said(&running.url, &["tags", "--all", "--json"]));
    assert_eq!(all.len(), 3);
    assert_eq!(said(&running.url, &["tags", "--prefix", "none"]), "");
}

#[test]
fn following_lives_through_restarts_of_the_server() {
    let site = site().env("PYOCO_DRAIN_TIMEOUT_SEC", "0.2");
    let port = free_port();
    let mut running = site.start_on(port);
    let (job, end) = long_job(&running, &site);
    let mut command = program(&running.url, &["logs", "--run-id", &job, "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    for round in 0..4 {
        seen.extend(lines.by_ref().take(200));
        // Once as a power switch would, once as an operator would.
        if round % 2 == 0 {
            running.kill();
        } else {
            assert!(running.stop(Signal::SIGTERM).success());
        }
        running = site.start_on(port);
    }
    seen.extend(lines.by_ref().take(200));
    std::fs::write(end, "").unwrap();
    seen.extend(lines);
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    let whole = said(&running.url, &["logs", "--run-id", &job]);
    assert_eq!(seen.join("\n") + "\n", whole, "no gap, no repeat");
    assert!(
        seen.iter().filter(|line| line.contains(" talk engine | started")).count() >= 2,
        "it began again: {whole}"
    );
}
