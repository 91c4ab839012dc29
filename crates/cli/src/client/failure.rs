//! What is said when the gateway cannot be asked, or does not do what was asked.

use pyoco_client::{Error, StatusError};

use crate::errors::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidArgument { .. } => Self::arguments(error.to_string())
                .hint("pyoco-client --server http://127.0.0.1:8000 get RUN_ID"),
            Error::File { path, source } => Self::file(&path.to_string_lossy(), &source),
            Error::Connection { problem, .. } => unreachable(problem),
            Error::Timeout { limit, .. } => unreachable(format!("timed out after {} s", limit.as_secs_f64())),
            Error::Status(refusal) => refused(&refusal),
            Error::BadAnswer { .. } => Self::new("ERR-PYOCO-HTTP: unexpected answer")
                .note("reason", error.to_string())
                .hint("check that --server is the URL of a pyoco gateway"),
            Error::WaitTimeout { run_id, .. } => Self::new("ERR-PYOCO-CANCEL: wait timeout")
                .note("reason", format!("cancel wait timeout for run_id={run_id}"))
                .hint("retry cancel or inspect run/worker status"),
        }
    }
}

fn unreachable(reason: String) -> Failure {
    Failure::new("ERR-PYOCO-HTTP: connection error")
        .note("reason", reason)
        .hint("check --server URL and gateway availability")
}

fn refused(refusal: &StatusError) -> Failure {
    let mut failure = Failure::new("ERR-PYOCO-HTTP: request failed").note("reason", refusal.to_string());
    for problem in refusal.workflow_problems() {
        let place = problem.line.zip(problem.column);
        let place = place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default();
        let text = problem.message.as_ref().unwrap_or(&problem.reason);
        failure = failure.note("detail", format!("{place}{text}"));
    }
    failure.hint(match (refusal.status, refusal.code()) {
        (401, _) => "pass --api-key or set PYOCO_API_KEY",
        (403, _) => "check the API key",
        (409, None) if refusal.err_id() == Some("ERR-PYOCO-0022") => {
            "give the package a greater version; pyoco-client wheels shows what there is"
        }
        (404, None) if refusal.err_id() == Some("ERR-PYOCO-0023") => {
            "pyoco-client wheels shows what there is"
        }
        (_, Some("COMMAND_REJECTED")) => "pyoco-client exec get EXECUTION_ID shows where it stands",
        (_, Some("IDEMPOTENCY_KEY_REUSED")) => "choose another --idempotency-key, or none",
        (_, Some("EXECUTION_NOT_FOUND")) => "pyoco-client exec list shows what there is",
        (_, Some("NODE_NOT_FOUND")) => "pyoco-client exec get EXECUTION_ID shows its nodes",
        (_, Some("JOB_NOT_FOUND")) => "pyoco-client job list shows what there is",
        (_, Some("BAD_TOKEN")) => {
            "a token counts for the list or log that gave it; leave it out to begin anew"
        }
        (_, Some("GRAPH_NOT_FOUND")) => "pyoco-client graph list shows what there is",
        (_, Some("PRECONDITION_FAILED")) => "pyoco-client graph get NAME shows the newest version",
        _ => "check server status and request parameters",
    })
}
