//! Three servers, made of `up` and two `join`s, and what becomes of them and of runs when one goes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod bootstrap;
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use bootstrap::{Home, Node, troubles, until};
use pyoco_client::api::{RunStatus, SubmitRequest};
use serde_json::{Value, json};
use support::{PATIENCE, Running, Site, is_alive, is_terminal};

const FLOW: &str = "version: 1\nflow: {graph: 'add'}\ntasks: {add: {callable: 'sum_tasks:add'}}\n";
const TASKS: &str = "def add(n):\n    return n + 1\n";

/// A cluster in which every server knows how to find the others.
fn three(home: &Home) -> [Node; 3] {
    let nodes = [Node::new("n1"), Node::new("n2"), Node::new("n3")];
    let [one, two, three] = &nodes;
    one.start(home, "up", &["--cluster", "demo"]);
    two.start(home, "join", &["--seed", &one.seed()]);
    three.start(home, "join", &["--seed", &one.seed(), "--seed", &two.seed()]);
    let https = http_urls(&nodes);
    until("a cluster of three", || {
        let status = home.json(&["status", "--http-url", &https]);
        let is_whole = status["servers"].as_array().unwrap().iter().all(|one| one["meta"]["size"] == 3);
        (is_whole && !status["leader"].is_null()).then_some(())
    });
    nodes
}

fn http_urls(nodes: &[Node]) -> String {
    nodes.iter().map(Node::http).collect::<Vec<_>>().join(",")
}

fn client_urls(nodes: &[Node]) -> String {
    nodes.iter().map(Node::url).collect::<Vec<_>>().join(",")
}

async fn submitted(running: &Running, number: usize) -> String {
    let request = SubmitRequest {
        flow_name: "sum".to_owned(),
        params: [("n".to_owned(), json!(number))].into_iter().collect(),
        ..SubmitRequest::default()
    };
    let since = std::time::Instant::now();
    loop {
        // While a leader is elected a run is refused, and nothing of it is left.
        match running.client.submit_run(&request).await {
            Ok(answer) => return answer.run_id.clone(),
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn all_complete(running: &Running, count: usize) {
    let mut runs = Vec::new();
    for number in 0..count {
        runs.push(submitted(running, number).await);
    }
    for run in runs {
        assert_eq!(ended(running, &run).await, RunStatus::Completed);
    }
}

/// How a run ended. While a leader is elected nobody is told, as nothing is taken.
async fn ended(running: &Running, run: &str) -> RunStatus {
    let since = std::time::Instant::now();
    loop {
        match running.client.get_run(run).await {
            Ok(answer) if is_terminal(answer.status) => return answer.status,
            Ok(answer) => assert!(since.elapsed() < PATIENCE, "it stays {:?}", answer.status),
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_lose_one_and_runs_go_on() {
    let home = Home::new();
    let nodes = three(&home);
    let (urls, https) = (client_urls(&nodes), http_urls(&nodes));
    let site =
        Site::new().flow("sum", FLOW, TASKS).argument("--nats-url").argument(&urls).argument("--with-worker");
    let site = site.env("PYOCO_CONSUMER_ACK_WAIT_SEC", "2").env("PYOCO_SWEEP_INTERVAL_SEC", "2");
    let running = site.start();
    all_complete(&running, 5).await;
    // Everything stands on one server each so far, and the doctor says what to do.
    let report = home.json(&["doctor", "--nats-url", &urls, "--http-url", &https]);
    assert!(troubles(&report).iter().any(|(id, _)| id == "replicas"), "{report}");
    let raised = home.json(&["raise", "--replicas", "3", "--nats-url", &urls]);
    assert_eq!(raised["raised"].as_array().unwrap().len(), 13, "{raised}");
    assert_eq!(home.json(&["raise", "--replicas", "3", "--nats-url", &urls])["raised"], json!([]));
    let report = home.json(&["doctor", "--nats-url", &urls, "--http-url", &https]);
    assert_eq!((troubles(&report), &report["worst"]), (Vec::new(), &json!("ok")), "{report}");

    // The one that leads: the worst to lose.
    let leader = report["leader"].as_str().unwrap().to_owned();
    let (lost, left): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| node.name == leader);
    lost[0].kill(&home);
    all_complete(&running, 5).await;
    let left_urls = left.iter().map(|node| node.url()).collect::<Vec<_>>().join(",");
    let report = until("a doctor that sees it", || {
        let report = home.json(&["doctor", "--nats-url", &left_urls, "--http-url", &https]);
        let is_elected =
            !report["leader"].is_null() && report["leader"] != *leader && report["jetstream_error"].is_null();
        is_elected.then_some(report)
    });
    let found = troubles(&report);
    assert_eq!(report["worst"], "error", "{report}");
    assert!(found.iter().any(|(id, what)| id == "server" && what.contains(&leader)), "{found:?}");
    assert!(found.iter().any(|(id, what)| id == "server" && what.contains(&lost[0].http())), "{found:?}");
    let status = home.refused(1, &["status", "--nats-url", &left_urls, "--http-url", &https]);
    assert!(status.contains(&format!("away: {leader}")) && status.contains("PYOCO_EVENTS"), "{status}");

    // It comes back on its folder, and the doctor is content.
    let own: Vec<String> = left.iter().flat_map(|node| ["--seed".to_owned(), node.seed()]).collect();
    lost[0].start(&home, "join", &own.iter().map(String::as_str).collect::<Vec<_>>());
    until("a doctor that is content", || {
        let report = home.json(&["doctor", "--nats-url", &urls, "--http-url", &https]);
        (report["worst"] == "ok").then_some(())
    });
    all_complete(&running, 5).await;
}

#[test]
fn what_would_join_only_half_is_refused_or_said() {
    let home = Home::new();
    let (one, two) = (Node::new("n1"), Node::new("n2"));
    assert!(two.refused(&home, 2, "join", &[]).contains("--seed is required"));
    let said = two.refused(&home, 1, "join", &["--seed", &one.seed()]);
    assert!(said.contains("no seed is there") && said.contains("nothing was started"), "{said}");
    one.start(&home, "up", &["--cluster", "demo"]);
    let said = two.refused(&home, 1, "join", &["--seed", &one.seed(), "--cluster", "other"]);
    assert!(said.contains("demo, not other"), "{said}");
    let said = two.refused(&home, 1, "join", &["--seed", &one.url()]);
    assert!(said.contains("where clients come"), "{said}");
    let said = two.refused(&home, 1, "join", &["--seed", &one.seed(), "--server-name", "n1"]);
    assert!(said.contains("--server-name"), "{said}");
    assert!(!home.path("n2.pid").exists() && !home.path("n2").exists());
    // One of two stores nothing, and says so.
    let report = home.json(&["doctor", "--http-url", &one.http()]);
    assert!(
        troubles(&report).iter().any(|(id, what)| id == "leader" && what.contains("nobody leads")),
        "{report}"
    );
    // A server on its own has a folder that a cluster would not see, and the other way round.
    home.done(&["down", "--confirm", "--pid-file", "n1.pid"]);
    let said = one.refused(&home, 1, "up", &[]);
    assert!(said.contains("belongs to a server of a cluster"), "{said}");
}

#[test]
fn servers_with_users_join_with_the_same_passwords_and_no_others() {
    let home = Home::new();
    let [one, two, three] = [Node::new("n1"), Node::new("n2"), Node::new("n3")];
    one.start(&home, "up", &["--cluster", "demo", "--with-users"]);
    let seeds = [one.seed(), two.seed()];
    let join = ["--with-users", "--seed", &seeds[0]];
    let said = two.refused(&home, 1, "join", &join);
    assert!(said.contains("credentials.env") && said.contains("copy it"), "{said}");
    for node in [&two, &three] {
        std::fs::create_dir_all(home.path(&node.name)).unwrap();
        let name = format!("{}/credentials.env", node.name);
        std::fs::copy(home.path("n1/credentials.env"), home.path(&name)).unwrap();
    }
    two.start(&home, "join", &join);
    three.start(
        &home,
        "join",
        &["--with-users", "--seed", &seeds[0], "--seed", &seeds[1], "--raise-replicas", "3"],
    );
    // All of them answer over the system account.
    until("a cluster of three", || {
        let status = home.json(&["status", "--nats-url", &three.url(), "--credentials-of", "n3"]);
        let names: Vec<&str> =
            status["servers"].as_array()?.iter().filter_map(|one| one["name"].as_str()).collect();
        (names == ["n1", "n2", "n3"] && status["jetstream_error"].is_null()).then_some(())
    });
    // Whoever does not know the passwords stays outside, and says that it has joined only half.
    let stranger = Node::new("n4");
    let said = stranger.refused(&home, 1, "join", &["--seed", &one.seed(), "--wait-sec", "5"]);
    assert!(said.contains("only half"), "{said}");
    let status = home.json(&["status", "--nats-url", &one.url(), "--credentials-of", "n1"]);
    assert_eq!(status["servers"].as_array().unwrap().len(), 3, "{status}");
    home.done(&["down", "--confirm", "--pid-file", "n4.pid"]);
}

/// A controller in the foreground. It ends with this value.
struct Controller {
    child: Child,
    url: String,
}

impl Controller {
    fn start(home: &Home, node: &Node) -> Self {
        let url = node.url();
        let arguments = [
            "controller",
            "start",
            "--nats-url",
            &url,
            "--credentials-of",
            &node.name,
            "--listen",
            "127.0.0.1:0",
            "--state-dir",
            "controller",
        ];
        let mut child = home.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("controller: ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, url }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_leaves_when_nothing_is_lost_with_it() {
    let home = Home::new();
    let nodes = three(&home);
    let client = async_nats::connect(nodes[0].url()).await.unwrap();
    // A stream that only one of them has.
    let config = json!({"name": "ALONE", "subjects": ["alone"], "num_replicas": 1});
    let placed = until_placed(&client, &config).await;
    let holder = placed["cluster"]["leader"].as_str().unwrap().to_owned();
    let node = nodes.iter().find(|node| node.name == holder).unwrap();
    let other = nodes.iter().find(|node| node.name != holder).unwrap();
    let controller = Controller::start(&home, other);
    let health: Value =
        reqwest::get(format!("{}/health", controller.url)).await.unwrap().json().await.unwrap();
    assert_eq!(health, json!({"status": "ok"}));
    let bad =
        reqwest::Client::new().post(format!("{}/v1/leave", controller.url)).body("{}").send().await.unwrap();
    assert_eq!(
        (bad.status().as_u16(), bad.json::<Value>().await.unwrap()),
        (400, json!({"error": "invalid_request"}))
    );

    let (pid, file, at) = (node.pid(&home), node.pid_file(), controller.url.clone());
    let leave = ["leave", "--controller", &at, "--datafolder", &holder, "--pid-file", &file];
    let confirmed: Vec<&str> = leave.iter().copied().chain(["--confirm", "--request-id", "r1"]).collect();
    assert!(home.refused(2, &leave).contains("--confirm"));
    let said = home.refused(1, &confirmed);
    assert!(said.contains("ALONE") && said.contains("would be lost"), "{said}");
    assert!(is_alive(pid));
    // The file of another server: neither of them is stopped, and nobody is asked.
    let wrong = other.pid_file();
    let mistaken = ["leave", "--controller", &at, "--datafolder", &holder, "--pid-file", &wrong, "--confirm"];
    let said = home.refused(1, &mistaken);
    assert!(said.contains("was not started with") && said.contains("--pid-file"), "{said}");
    assert!(is_alive(pid) && is_alive(other.pid(&home)));
    // Without it, nothing is lost.
    let deleted = client.request("$JS.API.STREAM.DELETE.ALONE", "".into()).await.unwrap();
    assert!(String::from_utf8_lossy(&deleted.payload).contains("\"success\":true"));
    until("a leave", || {
        // The servers tell of a deletion one after the other.
        let output = home.command(&confirmed).output().unwrap();
        output.status.success().then(|| assert!(bootstrap::said(&output).contains("leave: ok")))
    });
    assert!(!is_alive(pid));
    let left: Vec<&Node> = nodes.iter().filter(|node| node.name != holder).collect();
    until("a cluster of two", || {
        let https = left.iter().map(|node| node.http()).collect::<Vec<_>>().join(",");
        let status = home.json(&["status", "--http-url", &https]);
        status["servers"].as_array().unwrap().iter().all(|one| one["meta"]["size"] == 2).then_some(())
    });
    // Said again it is done already; a controller that is away is named.
    let again = home.command(&confirmed).output().unwrap();
    assert!(bootstrap::said(&again).contains("leave: already done"), "{}", bootstrap::said(&again));
    drop(controller);
    assert!(home.refused(2, &confirmed).contains("controller unavailable"));
    let anyway: Vec<&str> = confirmed.iter().copied().chain(["--stop-anyway"]).collect();
    let output = home.command(&anyway).output().unwrap();
    assert!(output.status.success() && bootstrap::said(&output).contains("warning"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_is_taken_out_and_no_other_while_it_is_silent() {
    let home = Home::new();
    let nodes = three(&home);
    let client = async_nats::connect(nodes[0].url()).await.unwrap();
    let config = json!({"name": "ALONE", "subjects": ["alone"], "num_replicas": 3});
    until_placed(&client, &config).await;
    // One that does not lead: the others have known it for a while.
    let leader = home.json(&["status", "--http-url", &http_urls(&nodes)])["leader"].clone();
    let (others, leading): (Vec<&Node>, Vec<&Node>) =
        nodes.iter().partition(|node| leader.as_str() != Some(&node.name));
    let (dead, well, leading) = (others[0], others[1], leading[0]);
    let controller = Controller::start(&home, leading);
    dead.kill(&home);
    let leave = |name: &str| {
        let arguments = ["leave", "--controller", &controller.url, "--confirm", "--server-name", name];
        home.command(&arguments).output().unwrap()
    };
    let refused = leave(&well.name);
    let said = bootstrap::said(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{} did not tell", dead.name)), "{said}");
    // The others have to miss it first.
    let said = until("a leave", || {
        let output = leave(&dead.name);
        output.status.success().then(|| bootstrap::said(&output))
    });
    assert!(said.contains("leave: ok") && said.contains("no server of this folder was stopped"), "{said}");
    let https = [well.http(), leading.http()].join(",");
    until("a cluster of two", || {
        let status = home.json(&["status", "--http-url", &https]);
        status["servers"].as_array().unwrap().iter().all(|one| one["meta"]["size"] == 2).then_some(())
    });
    let client = async_nats::connect(leading.url()).await.unwrap();
    let told = client.request("$JS.API.STREAM.INFO.ALONE", "".into()).await.unwrap();
    let told: Value = serde_json::from_slice(&told.payload).unwrap();
    let kept_by = told["cluster"]["leader"].as_str();
    assert!([&well.name, &leading.name].into_iter().any(|name| kept_by == Some(name)), "{told}");
}

/// Makes a stream as soon as the cluster does.
async fn until_placed(client: &async_nats::Client, config: &Value) -> Value {
    let since = std::time::Instant::now();
    loop {
        let answer = client.request("$JS.API.STREAM.CREATE.ALONE", config.to_string().into()).await;
        if let Ok(answer) = answer {
            let told: Value = serde_json::from_slice(&answer.payload).unwrap();
            if told.get("error").is_none() {
                return told;
            }
        }
        assert!(since.elapsed() < PATIENCE, "no stream is made");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
