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

/// What to do about a run that failed for a reason.
pub(super) fn how_to_repeat(run_id: &str, reason: &str) -> String {
    let repeat = format!("pyoco-client exec retry {run_id}");
    if reason.starts_with("flow_not_found") {
        return format!("look at the name of the flow and at --flows of the workers, then: {repeat}");
    }
    repeat
}

fn unreachable(reason: String) -> Failure {
    Failure::new("ERR-PYOCO-HTTP: connection error")
        .note("reason", reason)
        .hint("start a server with pyoco-server up, or name another one with --server or PYOCO_SERVER_URL")
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
        (403, _) => "the key is wrong, has ended, or may not do this; pyoco-server-admin api-key list shows what keys may",
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
        (404, None) if refusal.err_id() == Some("ERR-PYOCO-0005") => "pyoco-client list shows what there is",
        (_, Some("GRAPH_NOT_FOUND")) => "pyoco-client graph list shows what there is",
        (_, Some("PRECONDITION_FAILED")) => "pyoco-client graph get NAME shows the newest version",
        (422, _) if !refusal.workflow_problems().is_empty() => {
            "mend the flow where detail says, and submit it again"
        }
        (400 | 422, _) => "mend what the reason names; --help of the command shows how it is meant",
        (503 | 507, _) => "try again in a moment; if it stays, pyoco-server status and pyoco-server doctor say more",
        _ => "check server status and request parameters",
    })
}
