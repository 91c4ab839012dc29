//! `pyoco-client wheels` and its sisters against the real server: what they write, where, and their exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use nix::pty::openpty;
use pyoco_testkit::wheel;
use serde_json::{Value, json};

use support::client::{ask, done, err, out, program, refused, said};
use support::{Running, Site};

const ENTRY_POINTS: (&str, &str) = ("{dist_info}/entry_points.txt", "[pyoco.tasks]\nhello = demo:hello\n");

fn server() -> (Site, Running) {
    let site = Site::new();
    let running = site.start();
    (site, running)
}

/// Puts a wheel into a file.
fn built(folder: &Path, version: &str, files: &[(&str, &str)]) -> PathBuf {
    let (name, bytes) = wheel("demo", version, files);
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The arguments that upload a file, and what is tolerated of it.
fn upload<'a>(path: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["wheel-upload", "--wheel-file", path.to_str().unwrap()], more].concat()
}

const LENIENT: [&str; 2] = ["--allow-missing-usage-doc", "--allow-no-entry-points"];

#[test]
fn every_help_shows_an_example() {
    for name in ["wheels", "wheel-upload", "wheel-history", "wheel-delete", "wheel-download"] {
        let help = said("http://127.0.0.1:1", &[name, "--help"]);
        assert!(help.contains(&format!("  pyoco-client {name}")), "{help}");
    }
}

#[test]
fn a_wheel_is_uploaded_listed_fetched_and_deleted() {
    let (site, running) = server();
    let url = running.url.as_str();
    assert_eq!(ask(url, &["wheels"]), json!([]));
    assert_eq!(said(url, &["wheels", "--output", "table"]), "(no items)\n");
    let path = built(&site.path(""), "1.0", &[("demo.py", "x = 1\n"), ENTRY_POINTS]);
    let output =
        done(url, &upload(&path, &["--tags", "gpu,,linux", "--no-replace", "--allow-missing-usage-doc"]));
    let uploaded: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&uploaded["name"], &uploaded["tags"]),
        (&json!("demo-1.0-py3-none-any.whl"), &json!(["gpu", "linux"]))
    );
    assert_eq!(err(&output), "[pyoco-client][preflight][warn] usage documentation seems missing\n");
    assert_eq!(ask(url, &["wheels"]), json!([uploaded]));
    let table = said(url, &["wheels", "--output", "table"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["name", "size_bytes", "tags", "mtime"]);
    assert_eq!(
        lines[1][..3],
        ["demo-1.0-py3-none-any.whl", &uploaded["size_bytes"].to_string(), "gpu,linux"]
    );

    // Into a folder, into a file, and here.
    let name = "demo-1.0-py3-none-any.whl";
    let folder = site.path("fetched");
    std::fs::create_dir(&folder).unwrap();
    let fetch = ["wheel-download", "--name", name];
    let fetched = ask(url, &[&fetch[..], &["--output", folder.to_str().unwrap()]].concat());
    assert_eq!(
        fetched,
        json!({"name": name, "path": folder.join(name).to_str(), "size_bytes": uploaded["size_bytes"]})
    );
    let other = folder.join("other.bin");
    done(url, &[&fetch[..], &["--output", other.to_str().unwrap()]].concat());
    assert!(program(url, &fetch).current_dir(&folder).output().unwrap().status.success());
    for got in [folder.join(name), other] {
        assert!(std::fs::read(got).unwrap() == std::fs::read(&path).unwrap());
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left there");

    assert_eq!(ask(url, &["wheel-delete", "--name", name]), json!({"name": name, "deleted": true}));
    for command in [&["wheel-delete", "--name", name][..], &fetch] {
        let said = refused(url, command);
        assert!(said.contains("HTTP 404") && said.contains("ERR-PYOCO-0023"), "{said}");
        assert!(said.contains("- hint: pyoco-client wheels shows what there is"), "{said}");
    }
    assert!(!Path::new(name).exists());
    let history = ask(url, &["wheel-history"]);
    let actions: Vec<&Value> = history.as_array().unwrap().iter().map(|event| &event["action"]).collect();
    assert_eq!(actions, ["delete", "upload"]);
    assert_eq!(history[1]["replace"], json!(false));
    assert!(history[1]["source"]["user_agent"].as_str().unwrap().starts_with("pyoco-client/"), "{history}");
    let uploads = ask(url, &["wheel-history", "--limit", "1", "--wheel-name", name, "--action", "upload"]);
    assert_eq!(uploads, json!([history[1]]));
    let table = said(url, &["wheel-history", "--output", "table", "--action", "delete"]);
    assert!(
        table.contains("  delete  demo-1.0-py3-none-any.whl  gpu,linux  -           127.0.0.1"),
        "{table}"
    );
}

#[test]
fn what_would_be_refused_is_named_before_it_is_sent() {
    let (site, running) = server();
    let url = running.url.as_str();
    let folder = site.path("");
    let bare = built(&folder, "2.0", &[]);
    let said = refused(url, &upload(&bare, &[]));
    let reason = "- reason: wheel preflight failed: usage documentation is missing (need METADATA description>=80 chars or \
                  Project-URL: Documentation,...); entry_points are missing (dist-info/entry_points.txt)\n";
    assert!(said.starts_with("ERR-PYOCO-0018: ") && said.contains(reason), "{said}");
    assert!(
        said.ends_with("- hint: fix wheel metadata/entry_points or use --preflight warn/off\n"),
        "{said}"
    );
    assert_eq!(ask(url, &["wheels"]), json!([]));
    done(url, &upload(&bare, &LENIENT));

    // The same version, and an older one.
    let older = built(&folder, "1.9", &[]);
    for (path, why) in [
        (&bare, "wheel version already exists; bump version (demo-2.0-py3-none-any.whl is there)"),
        (
            &older,
            "wheel version must be greater than existing latest version (demo-2.0-py3-none-any.whl is there)",
        ),
    ] {
        let said = refused(url, &upload(path, &LENIENT));
        assert!(said.contains(&format!("- reason: wheel preflight failed: {why}\n")), "{said}");
        // Who does not want to hear it hears it from the gateway.
        let warned = refused(url, &upload(path, &["--preflight", "warn"]));
        assert!(warned.contains(&format!("[pyoco-client][preflight][warn] {why}\n")), "{warned}");
        let blind = refused(url, &upload(path, &["--preflight", "off"]));
        for said in [warned, blind] {
            assert!(
                said.contains("ERR-PYOCO-HTTP: request failed") && said.contains("HTTP 409 POST /wheels"),
                "{said}"
            );
            assert!(said.contains("- hint: give the package a greater version"), "{said}");
        }
    }
    assert_eq!(ask(url, &["wheel-history"]).as_array().unwrap().len(), 1);

    let broken = folder.join("demo-3-py3-none-any.whl");
    std::fs::write(&broken, "no zip").unwrap();
    let odd = folder.join("odd.whl");
    std::fs::write(&odd, "no zip").unwrap();
    for (path, more, why) in [
        (&broken, &[][..], "wheel preflight failed: the archive "),
        (&odd, &[], "wheel preflight failed: invalid wheel filename"),
        (&bare, &["--tags", "a.b"], "wheel preflight failed: invalid wheel tags; "),
        (&odd, &["--preflight", "off"], "invalid wheel filename"),
        (&broken, &["--preflight", "off"], "HTTP 422 POST /wheels"),
    ] {
        let said = refused(url, &upload(path, more));
        assert!(said.contains(why), "{more:?}: {said}");
    }
    let said = refused(url, &upload(&folder.join("none.whl"), &[]));
    assert!(said.starts_with("ERR-PYOCO-0018: file I/O error\n") && said.contains("none.whl"), "{said}");
    assert!(refused(url, &["wheel-upload"]).contains("the following arguments are required: --wheel-file"));
    let said = refused(url, &["wheel-history", "--action", "rename"]);
    assert!(said.contains("argument --action: invalid choice: 'rename'"), "{said}");
    assert!(refused(url, &["wheel-download", "--name", "../x"]).contains("'../x' is no name of a wheel"));
    let away = refused("http://127.0.0.1:1", &upload(&bare, &[]));
    assert!(away.starts_with("ERR-PYOCO-HTTP: connection error\n"), "{away}");
}

/// A wheel that is long enough to be told of.
fn long(folder: &Path) -> PathBuf {
    let mut state = 1_u64;
    let noise: String = (0..12 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + u8::try_from(state >> 58).unwrap())
        })
        .collect();
    let path = built(folder, "1.0", &[("noise.txt", &noise)]);
    assert!(path.metadata().unwrap().len() > 8 << 20);
    path
}

#[test]
fn a_pipe_gets_lines_and_a_terminal_a_bar() {
    let (site, running) = server();
    let path = long(&site.path(""));
    let output = done(&running.url, &upload(&path, &LENIENT));
    let said = err(&output);
    let steps: Vec<&str> = said.lines().filter(|line| line.starts_with("uploading demo-1.0")).collect();
    assert_eq!(steps.len(), 10, "{said}");
    assert!(steps[9].contains(": 100% ("), "{said}");
    assert_eq!(out(&output).lines().count(), 1, "only the answer is on standard output");

    let terminal = openpty(None, None).unwrap();
    let target = site.path("fetched.whl");
    let mut fetch = program(
        &running.url,
        &["wheel-download", "--name", "demo-1.0-py3-none-any.whl", "--output", target.to_str().unwrap()],
    );
    fetch.env("TERM", "xterm").stderr(File::from(terminal.slave)).stdout(std::process::Stdio::null());
    let mut child = fetch.spawn().unwrap();
    drop(fetch);
    let (mut shown, mut part, mut master) = (Vec::new(), [0; 4_096], File::from(terminal.master));
    // The end of the last program on a terminal reads as an error.
    while let Ok(count @ 1..) = master.read(&mut part) {
        shown.extend_from_slice(&part[..count]);
    }
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("fetching fetched.whl") && shown.contains("MiB"), "{shown}");
    assert!(std::fs::read(target).unwrap() == std::fs::read(path).unwrap());
}
