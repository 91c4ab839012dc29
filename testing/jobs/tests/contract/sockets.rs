//! The WebSocket of a job: its state, its progress, its log, and what a client may say.

use std::time::Duration;

use pyoco_gateway::Settings;
use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{Socket, end, submitted, submitted_with, write};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

on_every_store!(
    a_socket_tells_everything_about_a_job_to_its_end,
    a_socket_goes_on_behind_a_token,
    a_client_cancels_the_job,
    a_job_that_has_ended_is_told_and_closed,
    what_is_not_understood_is_said_so,
    a_client_that_talks_too_much_is_let_go,
    a_client_is_asked_for_signs_of_life,
    a_server_that_stops_says_goodbye,
    a_long_log_is_told_at_the_pace_of_its_reader,
);

async fn a_socket_tells_everything_about_a_job_to_its_end(site: Site) {
    site.graph("analysis", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let job = submitted_with(&site, &json!({"parameters": {"secret": 1}, "tags": ["t"]})).await;
    let mut socket = Socket::of(&site, &job).await;
    let first = socket.next().await.unwrap();
    assert_eq!((&first["type"], &first["job"]["status"]), (&json!("status"), &json!("pending")));
    assert!(first["job"].get("parameters").is_none() && first["job"]["tags"] == json!(["t"]), "{first}");
    site.node(&job, "a", "start", json!({})).await;
    let told = socket.next_of("progress").await;
    let wanted = json!({"type": "progress", "completed": 0, "total": 2, "tasks": [{"task": "a", "status": "running"}]});
    if told != wanted {
        assert_eq!(told, json!({"type": "progress", "completed": 0, "total": 2, "tasks": []}));
        assert_eq!(socket.next_of("progress").await, wanted);
    }
    site.node(&job, "a", "progress", json!({"progress": 50.0, "message": "half"})).await;
    let told = socket.next_of("progress").await;
    let half = json!([{"task": "a", "status": "running", "progress": 50.0, "message": "half"}]);
    assert_eq!(told["tasks"], half);
    write(&site, &job, &["a line"]).await;
    loop {
        let told = socket.next_of("log").await;
        assert!(told["token"].is_string());
        if told["entry"]["message"] == "a line" {
            assert_eq!(
                (&told["entry"]["task"], &told["entry"]["stream"]),
                (&json!("load"), &json!("stdout"))
            );
            break;
        }
    }
    site.node(&job, "a", "success", json!({})).await;
    site.run(&job, "b").await;
    let (rest, code) = socket.to_the_end().await;
    assert_eq!(code, 1000);
    let last = rest.last().unwrap();
    assert_eq!((&last["type"], &last["job"]["status"]), (&json!("status"), &json!("completed")));
    let progress = rest.iter().rfind(|told| told["type"] == "progress").unwrap();
    assert_eq!((&progress["completed"], &progress["tasks"]), (&json!(2), &json!([])));
}

fn numbers(told: &[Value]) -> Vec<u64> {
    let logs = told.iter().filter(|told| told["type"] == "log");
    logs.map(|told| told["entry"]["seq"].as_u64().unwrap()).collect()
}

async fn a_socket_goes_on_behind_a_token(site: Site) {
    let job = submitted(&site).await;
    let mut told = Vec::new();
    let mut path = format!("/jobs/{job}/ws");
    // Whoever loses the connection again and again misses nothing and sees nothing twice.
    for _ in 0..5 {
        let mut socket = Socket::open(&site, &path, &[]).await.unwrap();
        write(&site, &job, &["a", "b", "c"]).await;
        for _ in 0..2 {
            let log = socket.next_of("log").await;
            path = format!("/jobs/{job}/ws?sinceToken={}", log["token"].as_str().unwrap());
            told.push(log);
        }
    }
    end(&site, &job).await;
    let mut socket = Socket::open(&site, &path, &[]).await.unwrap();
    let (rest, code) = socket.to_the_end().await;
    assert_eq!(code, 1000);
    told.extend(rest);
    let lines = numbers(&told);
    assert_eq!(lines, (1..=lines.len() as u64).collect::<Vec<_>>());
    assert_eq!(lines.len(), 17, "with what the engine said of the end");
    // The token of a page is as good.
    let token =
        site.shown(&format!("/jobs/{job}/logs?limit=16")).await["nextToken"].as_str().unwrap().to_owned();
    let mut socket = Socket::open(&site, &format!("/jobs/{job}/ws?sinceToken={token}"), &[]).await.unwrap();
    assert_eq!(numbers(&socket.to_the_end().await.0), [17]);
}

async fn a_client_cancels_the_job(site: Site) {
    let job = submitted(&site).await;
    let mut socket = Socket::of(&site, &job).await;
    socket.next_of("status").await;
    socket.say(&json!({"type": "cancel", "reason": "x".repeat(2_001)}).to_string()).await;
    assert_eq!(socket.next_of("error").await["code"], "INVALID_INPUT");
    socket.say(r#"{"type": "cancel", "reason": "seen enough"}"#).await;
    let (told, code) = socket.to_the_end().await;
    assert_eq!(code, 1000);
    let last = told.last().unwrap();
    assert_eq!((&last["type"], &last["job"]["status"]), (&json!("status"), &json!("canceled")));
    let logs: Vec<&str> = told.iter().filter_map(|told| told["entry"]["message"].as_str()).collect();
    assert!(logs.iter().any(|line| line.contains("seen enough")), "{logs:?}");
    assert_eq!(site.execution(&job).await["cancelReason"], "seen enough");
}

async fn a_job_that_has_ended_is_told_and_closed(site: Site) {
    let job = submitted(&site).await;
    write(&site, &job, &["a"]).await;
    end(&site, &job).await;
    let (told, code) = Socket::of(&site, &job).await.to_the_end().await;
    assert_eq!(code, 1000);
    assert_eq!(numbers(&told), [1, 2, 3]);
    assert_eq!(told.last().unwrap()["job"]["status"], "canceled");
}

async fn what_is_not_understood_is_said_so(site: Site) {
    let job = submitted(&site).await;
    let mut socket = Socket::of(&site, &job).await;
    for wrong in ["nonsense", "{}"] {
        socket.say(wrong).await;
        let error = socket.next_of("error").await;
        assert!(error["code"] == "BAD_REQUEST" && error["message"].is_string(), "{error}");
    }
    // What is understood lets the rest be forgotten.
    socket.say(r#"{"type": "ping"}"#).await;
    assert_eq!(socket.next_of("pong").await, json!({"type": "pong"}));
    socket.say(r#"{"type": "delete"}"#).await;
    socket.next_of("error").await;
    socket.send(Message::binary(vec![1, 2, 3])).await;
    socket.next_of("error").await;
    socket.say(r#"{"type": "ping", "more": 1}"#).await;
    assert_eq!(socket.to_the_end().await.1, 1008);
    assert_eq!(site.shown(&format!("/jobs/{job}")).await["status"], "pending");
}

async fn a_client_that_talks_too_much_is_let_go(site: Site) {
    let job = submitted(&site).await;
    for message in [Message::text(r#"{"type": "ping"}"#), Message::Ping(vec![0; 100].into())] {
        let mut socket = Socket::of(&site, &job).await;
        for _ in 0..100 {
            socket.send(message.clone()).await;
        }
        assert_eq!(socket.to_the_end().await.1, 1008);
    }
}

async fn a_client_is_asked_for_signs_of_life(site: Site) {
    let quick = site.again(Settings { socket_ping: Duration::from_millis(50), ..Settings::default() }).await;
    let job = submitted(&site).await;
    // One that answers stays: it is asked far more often than it may stay silent.
    let mut socket = Socket::of(&quick, &job).await;
    let mut pings = 0;
    while pings < 10 {
        pings += usize::from(matches!(socket.frame().await.expect("it stays open"), Message::Ping(_)));
    }
    // One that does not is let go.
    let silent = pyoco_testing_jobs::Raw::open(&quick, &job).await;
    assert_eq!(silent.closed().await, Some(1008));
}

async fn a_server_that_stops_says_goodbye(site: Site) {
    let job = submitted(&site).await;
    let other = site.again(Settings::default()).await;
    let mut socket = Socket::of(&other, &job).await;
    socket.next_of("status").await;
    drop(other);
    assert_eq!(socket.to_the_end().await.1, 1001);
}

/// More than fits into the buffers on the way, so that the server has to wait for its reader.
async fn a_long_log_is_told_at_the_pace_of_its_reader(site: Site) {
    let job = submitted(&site).await;
    let text = "x".repeat(4_000);
    let mut socket = Socket::of(&site, &job).await;
    for _ in 0..10 {
        write(&site, &job, &vec![text.as_str(); 500]).await;
    }
    end(&site, &job).await;
    let (told, code) = socket.to_the_end().await;
    assert_eq!((code, numbers(&told)), (1000, (1..=5_002).collect()));
}
