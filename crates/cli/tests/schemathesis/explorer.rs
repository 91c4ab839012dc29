//! The program itself: how it is started, and what it reports.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// What has to hold for every answer.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
const SEED: &str = "5";
/// A server that does not answer is wrong, too. In seconds.
const PATIENCE: &str = "20";
/// More of them say nothing new.
const MOST_FAILURES: &str = "20";

/// What an operation is given: its method, its path, and values of its parameters.
pub(crate) type Given = (&'static str, &'static str, Vec<(&'static str, String)>);

/// Schemathesis, about to explore a server.
pub(crate) struct Explorer {
    url: String,
    folder: TempDir,
}

impl Explorer {
    pub(crate) fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // There is one always: it would look for one in the folders above.
        std::fs::write(folder.path().join("settings.toml"), "").unwrap();
        Self { url: url.to_owned(), folder }
    }

    /// Gives it values that it could not know.
    #[must_use]
    pub(crate) fn knowing(self, all: &[Given]) -> Self {
        let mut text = String::new();
        for (method, path, values) in all {
            let values = values.iter().map(|(name, value)| format!("{name:?} = {value:?}"));
            let values = values.collect::<Vec<_>>().join(", ");
            let name = format!("{method} {path}");
            writeln!(text, "[[operations]]\ninclude-name = {name:?}\nparameters = {{ {values} }}\n").unwrap();
        }
        std::fs::write(self.folder.path().join("settings.toml"), text).unwrap();
        self
    }

    /// Explores all that the server describes.
    pub(crate) fn run(&self, arguments: &[&str]) -> Report {
        self.start(&format!("{}/openapi.json", self.url), arguments)
    }

    /// Takes the server at another word.
    pub(crate) fn run_with(&self, description: &Value, arguments: &[&str]) -> Report {
        let file = self.folder.path().join("description.json");
        std::fs::write(&file, description.to_string()).unwrap();
        self.start(&file.to_string_lossy(), arguments)
    }

    fn start(&self, description: &str, arguments: &[&str]) -> Report {
        let file = self.folder.path().join("report.json");
        let mut command = Command::new(program());
        command.current_dir(self.folder.path());
        command.args([
            "--config-file",
            "settings.toml",
            "run",
            description,
            "--url",
            &self.url,
            "--no-color",
        ]);
        command.args(["--seed", SEED, "--checks", CHECKS, "--generation-database", "none", "--no-shrink"]);
        command.args(["--request-timeout", PATIENCE, "--max-failures", MOST_FAILURES]);
        // A busy machine is no reason to stop.
        command.args(["--suppress-health-check", "all"]);
        command.args(["--continue-on-failure", "--report", "json", "--report-json-path"]).arg(&file);
        let output = command.args(arguments).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let json = std::fs::read(&file).unwrap_or_else(|error| panic!("no report ({error}): {said}"));
        let json: Value = serde_json::from_slice(&json).unwrap();
        let report = Report { json, said };
        assert_eq!(output.status.success(), report.failures().is_empty(), "{}", report.said);
        report
    }
}

/// What came of it.
pub(crate) struct Report {
    json: Value,
    /// For whoever has to find out why.
    pub(crate) said: String,
}

impl Report {
    /// What did not hold, and what kept it from looking.
    pub(crate) fn failures(&self) -> Vec<String> {
        let list = |name: &str| self.json[name].as_array().unwrap().clone();
        list("failures").iter().chain(&list("errors")).map(Value::to_string).collect()
    }

    /// It looked at all that it was asked to look at.
    pub(crate) fn is_complete(&self) -> bool {
        let operations = &self.json["operations"];
        let is_tested =
            operations["tested"] == operations["selected"] && operations["tested"].as_u64() > Some(25);
        self.json["complete"] == true && is_tested
    }

    /// How many requests it made up.
    pub(crate) fn cases(&self) -> u64 {
        self.json["test_cases"]["generated"].as_u64().unwrap()
    }

    /// How often each operation took, in each phase, what fitted the description.
    pub(crate) fn rates(&self) -> &Value {
        &self.json["valid_rates"]
    }

    /// The operations that refused all that fitted the description.
    pub(crate) fn never_accepted(&self) -> Vec<String> {
        let rates = self.rates().as_object().unwrap();
        let accepted = |phases: &Value| -> u64 {
            phases.as_object().unwrap().values().map(|rate| rate["accepted"].as_u64().unwrap()).sum()
        };
        rates.iter().filter(|(_, phases)| accepted(phases) == 0).map(|(name, _)| name.clone()).collect()
    }
}

/// `PYOCO_TEST_SCHEMATHESIS`, else the one that `make test` has installed.
fn program() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-schemathesis/bin/schemathesis");
    let program = std::env::var("PYOCO_TEST_SCHEMATHESIS").map_or_else(|_| own(), PathBuf::from);
    assert!(program.exists(), "there is no {}; `make test` installs schemathesis", program.display());
    program
}
