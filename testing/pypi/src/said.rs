//! What a command said, and how it ended.

use std::process::Output;

use serde_json::Value;

/// What the client of PyPI said to one command line.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it answered.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What it answered, when it is content.
    #[track_caller]
    pub fn text(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        &self.stdout
    }

    /// The JSON of every line that it answered.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Its answer, one line of JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{}", self.stdout);
        lines.remove(0)
    }

    /// The cells of a table, its head first. No cell may have two blanks in a row.
    #[track_caller]
    pub fn table(&self) -> Vec<Vec<String>> {
        let cells = |line: &str| {
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
        };
        self.text().lines().map(cells).collect()
    }

    /// The body of the answer that it was refused with, e.g. `404 GET /runs/x`.
    #[track_caller]
    pub fn refused(&self, with: &str) -> Value {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{}", self.stderr);
        let start = format!("ERR-PYOCO-HTTP: request failed\n- reason: HTTP {with}: ");
        let body = self.stderr.strip_prefix(&start).and_then(|rest| rest.split_once("\n- hint: "));
        let (body, _) = body.unwrap_or_else(|| panic!("not refused with {with}: {}", self.stderr));
        serde_json::from_str(body).expect(body)
    }
}
