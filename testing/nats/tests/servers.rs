//! The servers themselves: they start, answer, come back, and never stay behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, measures its own patience, and talks to its copy"
)]

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pyoco_testing_nats::{Cluster, NatsServer, Options};

/// In the environment of a copy of this test program: it starts a server and waits to be killed.
const COPY: &str = "PYOCO_TEST_NATS_COPY";

fn answers(server: &NatsServer) -> bool {
    let Ok(stream) = TcpStream::connect(("127.0.0.1", server.port())) else { return false };
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ")
}

/// Who leads, as soon as a server knows of one that is looked for. During an election it knows of nobody.
fn leader_known_to(server: &NatsServer, is_wanted: impl Fn(&str) -> bool) -> String {
    let since = Instant::now();
    loop {
        let told = server.ask("/jsz");
        if let Some(leader) = told["meta_cluster"]["leader"].as_str().filter(|leader| is_wanted(leader)) {
            return leader.to_owned();
        }
        assert!(since.elapsed() < Duration::from_secs(30), "no such leader: {told}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_alive(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
}

#[test]
fn a_server_comes_back_where_it_was() {
    let options = Options { sync_always: true, conf: "max_payload: 64KB".to_owned() };
    let mut server = NatsServer::start(&options);
    assert!(answers(&server));
    let settings = server.ask("/varz");
    assert_eq!(settings["max_payload"], 65_536);
    assert_eq!(server.ask("/jsz")["config"]["sync_always"], true);
    let (url, folder) = (server.url(), server.ask("/jsz")["config"]["store_dir"].clone());
    server.kill();
    assert!(!answers(&server));
    server.restart();
    assert_eq!((server.url(), &server.ask("/jsz")["config"]["store_dir"]), (url, &folder));
    assert!(answers(&server));
}

#[test]
fn a_paused_server_says_nothing_until_it_goes_on() {
    let server = NatsServer::start(&Options::default());
    server.pause();
    assert!(!answers(&server));
    server.resume();
    assert!(answers(&server));
}

#[test]
fn a_cluster_has_a_leader_also_without_one_of_its_servers() {
    let mut cluster = Cluster::start(3, &Options::default());
    assert_eq!((cluster.len(), cluster.urls().split(',').count()), (3, 3));
    let first = leader_known_to(&cluster[0], |_| true);
    let number = (0..3).find(|number| format!("n{number}") == first).unwrap();
    cluster[number].kill();
    leader_known_to(&cluster[(number + 1) % 3], |leader| leader != first);
    cluster.restart(number);
    assert!((0..3).all(|number| answers(&cluster[number])));
    cluster.restart_all();
    assert!((0..3).all(|number| answers(&cluster[number])));
}

#[test]
fn a_server_does_not_outlive_a_test_that_was_killed() {
    if std::env::var_os(COPY).is_some() {
        let server = NatsServer::start(&Options::default());
        eprintln!("server {}", server.process_id().unwrap());
        loop {
            std::thread::park();
        }
    }
    let mut copy = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_server_does_not_outlive_a_test_that_was_killed", "--nocapture"])
        .env(COPY, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(copy.stderr.take().unwrap()).lines().map_while(Result::ok);
    let server: i32 = said.filter_map(|line| line.strip_prefix("server ")?.parse().ok()).next().unwrap();
    assert!(is_alive(server));
    copy.kill().unwrap();
    copy.wait().unwrap();
    let since = Instant::now();
    while is_alive(server) {
        assert!(since.elapsed() < Duration::from_secs(10), "it stays behind");
        std::thread::sleep(Duration::from_millis(5));
    }
}
