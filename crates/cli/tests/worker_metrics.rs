//! `pyoco-worker --metrics-addr`: a real worker process, asked as Prometheus asks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn worker(folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-worker"));
    command.arg("--data-dir").arg(folder.path().join("data")).env("PYOCO_LOAD_DOTENV", "0");
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Where it says that it tells its figures.
fn address(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).find_map(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        line.to_string().contains("figures of this worker").then(|| find(&line, "address")).flatten()
    });
    told.unwrap_or_else(|| panic!("it does not say where"))
}

/// A text of that name, however deep.
fn find(value: &Value, name: &str) -> Option<String> {
    let object = value.as_object()?;
    let here = object.get(name).and_then(Value::as_str).map(str::to_owned);
    here.or_else(|| object.values().find_map(|inner| find(inner, name)))
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_worker_process_tells_its_figures_where_the_flag_or_the_variable_says() {
    for by_flag in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = worker(&folder);
        let mut child = if by_flag {
            command.args(["--metrics-addr", "127.0.0.1:0"]).spawn().unwrap()
        } else {
            command.env("PYOCO_WORKER_METRICS_ADDR", "127.0.0.1:0").spawn().unwrap()
        };
        let address = address(&mut child);
        let text = get(&address, "/metrics");
        assert!(text.contains("pyoco_build_info{version=\""), "{text}");
        assert!(text.contains("store=\"embedded\"} 1\n"), "{text}");
        assert!(get(&address, "/health").ends_with("{\"status\":\"ok\"}"));
        kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn an_address_that_cannot_be_listened_on_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = worker(&folder).args(["--metrics-addr", &address]).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(!said.status.success());
    assert!(text.contains("--metrics-addr") && text.contains(&address), "{text}");
}
