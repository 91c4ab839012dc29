//! The example does what its text says.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[test]
fn the_example_runs_its_flow_without_python() {
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rust-worker"))
        .arg(folder.path().join("data"))
        .env("PYOCO_PYTHON", "/there/is/no/python")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Completed") && said.contains("\"HELLO FERRIS (2 words)\""), "{said}");
    assert!(said.contains("left in the queue: None"), "{said}");
}
