//! The unit for systemd. Where systemd does not run it can only be printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod bootstrap;
mod support;

use std::path::Path;

use bootstrap::Home;

#[test]
fn a_unit_runs_this_very_program_and_is_printed_everywhere() {
    let home = Home::new();
    let text = home.done(&["service", "print", "--", "--datafolder", "my data", "--cluster", "demo"]);
    let program = env!("CARGO_BIN_EXE_nats-bootstrap");
    assert!(
        text.contains(&format!("ExecStart={program} up --datafolder \"my data\" --cluster demo\n")),
        "{text}"
    );
    assert!(text.contains("Restart=on-failure\n") && text.contains("[Install]\n"), "{text}");
    let join =
        home.done(&["service", "print", "--bin-dir", "/opt", "--", "join", "--seed", "nats://n1:6222"]);
    assert!(join.contains("ExecStart=/opt/nats-bootstrap join --seed nats://n1:6222\n"), "{join}");
    let unit = home.json(&["service", "print", "--service-name", "n1", "--nats-config", "/etc/nats.conf"]);
    assert!(unit["path"].as_str().unwrap().ends_with("/n1.service"), "{unit}");
    assert!(unit["unit"].as_str().unwrap().contains("up --nats-config /etc/nats.conf"), "{unit}");
    for name in ["../x", "", "a b"] {
        assert!(home.refused(2, &["service", "print", "--service-name", name]).contains("no name"));
    }
}

#[test]
fn without_systemd_nothing_is_installed() {
    // Where it runs, installing would change the machine of whoever tests.
    if Path::new("/run/systemd/system").is_dir() {
        return;
    }
    let home = Home::new();
    for command in [&["service", "install"][..], &["service", "uninstall"], &["up", "--service"]] {
        let said = home.refused(2, command);
        assert!(said.contains("systemd"), "{said}");
    }
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 0);
    let report = home.json(&["doctor", "--service-name", "nats-server"]);
    assert!(report["service"].as_str().unwrap().contains("not installed"), "{report}");
}
