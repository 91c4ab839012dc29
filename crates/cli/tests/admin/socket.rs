//! The socket of the data folder: who may use it, and what comes of nonsense.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::desk::{Key, locked, ordered};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// What the server says to some bytes, after which nothing more comes.
fn say(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may have heard enough before all is said.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn only_the_owner_may_use_it_and_it_goes_with_the_server() {
    let site = locked();
    // An operator may have made the folder for others to look at.
    std::fs::create_dir(site.path("data")).unwrap();
    std::fs::set_permissions(site.path("data"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = site.path("data").join("admin.sock");
    let running = site.start();
    assert!(std::fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    assert_eq!(mode(&socket), 0o600);
    assert!(running.stop(Signal::SIGTERM).success());
    assert!(!socket.exists());
    let left: Vec<_> = std::fs::read_dir(site.path("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("admin"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_folder_that_the_server_makes_is_closed_to_others() {
    let site = locked();
    let _running = site.start();
    assert_eq!(mode(&site.path("data")), 0o700);
}

#[test]
fn what_a_killed_server_left_stops_nobody() {
    let site = locked();
    let running = site.start();
    let before = Key::create(&site, &[]);
    running.kill();
    let socket = site.path("data").join("admin.sock");
    assert!(socket.exists());
    // One was killed while it made its socket.
    std::fs::create_dir(site.path("data").join("admin.new")).unwrap();
    std::fs::write(site.path("data").join("admin.new").join("admin.sock"), "").unwrap();
    let after = Key::create(&site, &[]);
    let _running = site.start();
    let third = Key::create(&site, &[]);
    assert_eq!(mode(&socket), 0o600);
    let listed = ordered(&site, &["api-key", "list"]);
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap()).collect();
    assert_eq!(listed, [third.id, after.id, before.id]);
}

#[test]
fn a_folder_too_deep_for_a_socket_is_said_and_the_server_runs_without() {
    let site = locked();
    let folder = site.path(&"d".repeat(60)).join("e".repeat(60));
    let mut server = Command::new(env!("CARGO_BIN_EXE_pyoco-server"))
        .args(["up", "--port", "0", "--no-worker", "--data-dir"])
        .arg(&folder)
        .envs(&site.env)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.find(|line| line.contains("the socket of pyoco-server-admin cannot be made"));
    lines.find(|line| line.contains("pyoco-server is up")).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(said.unwrap().contains("a shorter --data-dir may help"));
    let left = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name.to_str().unwrap().contains("admin")).count(), 0);
    let create = ["--data-dir", folder.to_str().unwrap(), "api-key", "create", "--tenant", "team-a"];
    let output =
        Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin")).args(create).envs(&site.env).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nonsense_is_refused_and_the_next_order_is_taken() {
    let site = locked();
    let running = site.start();
    let socket = site.path("data").join("admin.sock");
    for nonsense in [
        &b"hello\n"[..],
        b"\n",
        b"{}\n",
        b"{\"order\": \"drop_everything\"}\n",
        b"{\"order\": \"create_key\", \"tenant\": \"a.b\"}\n",
        b"{\"order\": \"revoke_key\", \"key_id\": \"x\"}\n",
        b"\xff\xfe\n",
    ] {
        let answer = say(&socket, nonsense);
        assert!(answer.contains("does not understand this order"), "{nonsense:?}: {answer}");
    }
    for cut_or_long in [&b"{\"order\": \"list_keys\"}"[..], &[b'x'; 70_000], &[b'['; 65_000]] {
        assert_eq!(say(&socket, cut_or_long), "");
    }
    let deep = [vec![b'['; 60_000], b"\n".to_vec()].concat();
    assert!(say(&socket, &deep).contains("does not understand this order"));
    assert!(say(&socket, b"{\"order\": \"list_keys\"}\n").starts_with("{\"done\":[]}"));
    // Those who say nothing keep nobody from being heard, nor the server from stopping.
    let silent: Vec<UnixStream> = (0..7).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    Key::create(&site, &[]);
    let since = Instant::now();
    assert!(running.stop(Signal::SIGTERM).success());
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    drop(silent);
}
