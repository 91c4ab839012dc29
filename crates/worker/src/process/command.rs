//! Tasks that are commands: an argument vector, run as a process. No shell, nothing is interpolated.
//!
//! Inputs become environment variables, exit code 0 is success, and the result holds what was written to stdout.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use nix::sys::signal::Signal;
use pyoco_core::event::{Encoding, ErrorInfo};
use pyoco_core::json::{Json, Object};
use pyoco_core::plan::Input;
use pyoco_core::state::Root;
use pyoco_engine::{Clock, Lines};
use pyoco_ports::{Blobs, LogStream};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{Group, Scribe, TaskLines, how_it_ended, pipe};
use crate::runtime::{Call, End, Stop};

/// So much of stdout is kept in the result: the end of it.
const KEPT_STDOUT: usize = 32 * 1024;
/// The kernel refuses a longer variable.
const LONGEST_VARIABLE: usize = 128 * 1024 - 1;

/// Why a command did not succeed.
type Refusal = Box<ErrorInfo>;

fn refusal(code: &str, message: impl Into<String>) -> Refusal {
    Box::new(ErrorInfo::new(code, message))
}

/// Runs commands.
pub struct CommandRuntime {
    logs: Lines,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    env: HashMap<String, String>,
}

impl std::fmt::Debug for CommandRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CommandRuntime({})", self.folder.display())
    }
}

impl CommandRuntime {
    /// Commands run in `folder` and see `env`.
    pub fn new(
        logs: Lines,
        blobs: Arc<dyn Blobs>,
        clock: Arc<dyn Clock>,
        folder: PathBuf,
        env: HashMap<String, String>,
    ) -> Self {
        Self { logs, blobs, clock, folder, env }
    }

    /// Runs one attempt. Dropping the future ends the process and everything it started.
    pub async fn run(&self, call: &Call, argv: &[String], stop: Stop) -> End {
        let inputs = match self.inputs(call).await {
            Ok(inputs) => inputs,
            Err(error) => return End::Failed { error: *error, inputs: None, changes: None },
        };
        let shown = (!inputs.is_empty()).then(|| Arc::new(Object(inputs.clone())));
        match self.run_process(call, argv, &inputs, stop).await {
            Ok(Some(output)) => End::Succeeded {
                output: Some(Arc::new(Json(output))),
                output_ref: None,
                inputs: shown,
                changes: None,
            },
            Ok(None) => End::Stopped,
            Err(error) => End::Failed { error: *error, inputs: shown, changes: None },
        }
    }

    async fn run_process(
        &self,
        call: &Call,
        argv: &[String],
        inputs: &Map<String, Value>,
        stop: Stop,
    ) -> Result<Option<Value>, Refusal> {
        let program = argv.first().map(String::as_str).unwrap_or_default();
        let cannot = |error: std::io::Error| {
            refusal("COMMAND_NOT_STARTED", format!("command '{program}' cannot be started: {error}"))
        };
        let ((out, mut stdout), (err, mut stderr)) = (pipe().map_err(cannot)?, pipe().map_err(cannot)?);
        let mut command = Command::new(program);
        command
            .args(argv.get(1..).unwrap_or_default())
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment(call, inputs)?)
            .stdin(Stdio::null())
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err));
        let mut group = Group::start_guarded(&mut command).map_err(cannot)?;
        // The write ends of the pipes live in the command.
        drop(command);
        let lines = TaskLines {
            logs: self.logs.clone(),
            clock: self.clock.clone(),
            task: call.task.name.clone(),
            attempt: Some((call.execution.clone(), call.node.clone(), call.attempt)),
        };
        let mut out = Scribe::new(&lines, LogStream::Stdout).keeping(KEPT_STDOUT);
        let mut err = Scribe::new(&lines, LogStream::Stderr);
        let done = CancellationToken::new();
        let ending = async {
            let ended = see_it_end(&mut group, stop).await;
            done.cancel();
            ended
        };
        let (ended, (), ()) =
            tokio::join!(ending, stdout.pump(&mut out, &done), stderr.pump(&mut err, &done));
        let Some((status, was_told)) = ended else {
            return Err(refusal("COMMAND_LOST", format!("how '{program}' ended cannot be read")));
        };
        if was_told {
            return Ok(None);
        }
        let (text, is_cut) = out.kept();
        if status.success() {
            let mut output = json!({"exit_code": 0, "stdout": text});
            if is_cut {
                output["stdout_truncated"] = json!(true);
            }
            return Ok(Some(output));
        }
        let last = err.last_lines();
        let mut message = format!("command '{program}' {}", how_it_ended(status));
        if let Some(line) = last.lines().last() {
            message = format!("{message}: {line}");
        }
        let mut error = refusal("COMMAND_FAILED", message);
        let detail = json!({"exit_code": status.code(), "stderr": last});
        error.detail = detail.as_object().cloned().map(Object);
        Err(error)
    }

    /// The environment of the process: what the plan lets it see, its inputs, and who it is.
    fn environment(
        &self,
        call: &Call,
        inputs: &Map<String, Value>,
    ) -> Result<HashMap<String, String>, Refusal> {
        let env = visible(&self.env, call.plan.expose_env.as_deref());
        let mut env = with_wheels(env, call.wheels.as_ref().map(|wheels| wheels.path()));
        for (name, value) in inputs {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let refuse = |why: &str| {
                let message = format!("input '{name}' cannot become an environment variable: {why}");
                Err(refusal("INVALID_INPUT", message))
            };
            if name.is_empty() || name.contains(['=', '\0']) {
                return refuse("its name is not one");
            }
            if text.contains('\0') {
                return refuse("its value holds a NUL character");
            }
            if name.len() + text.len() > LONGEST_VARIABLE {
                return refuse("it is longer than 128 KiB; pass a path instead");
            }
            env.insert(name.clone(), text);
        }
        env.insert("PYOCO_RUN_ID".to_owned(), call.execution.to_string());
        env.insert("PYOCO_NODE_ID".to_owned(), call.node.to_string());
        env.insert("PYOCO_TASK".to_owned(), call.task.name.clone());
        env.insert("PYOCO_ATTEMPT".to_owned(), call.attempt.0.to_string());
        if let Some(trace) = &call.trace {
            // An input of that name is what the author wants.
            env.entry("TRACEPARENT".to_owned()).or_insert_with(|| trace.to_string());
        }
        Ok(env)
    }

    /// The configured inputs with their values. The texts of errors are those of a Python task.
    async fn inputs(&self, call: &Call) -> Result<Map<String, Value>, Refusal> {
        let mut inputs = Map::new();
        for (name, input) in &call.task.inputs {
            let value = match input {
                Input::Lit(value) => value.0.clone(),
                Input::Param(key) => self
                    .value(call, Root::Params, key)
                    .await?
                    .ok_or_else(|| refusal("KeyError", format!("\"Param '{key}' not found in context.\"")))?,
                Input::Env(key) => json!(self.variable(call, key).ok_or_else(|| {
                    refusal("KeyError", format!("\"Environment variable '{key}' not found.\""))
                })?),
                Input::Invalid { message, .. } => return Err(refusal("ValueError", message.as_str())),
                Input::Node { node, path } => {
                    let mut value = self.value(call, Root::Results, node).await?.ok_or_else(|| {
                        refusal("KeyError", format!("\"Node '{node}' result not found in context.\""))
                    })?;
                    for key in path {
                        let member = value.get_mut(key.as_str()).map(Value::take);
                        value = member.ok_or_else(|| refusal("KeyError", format!("'{key}'")))?;
                    }
                    value
                }
            };
            inputs.insert(name.clone(), value);
        }
        Ok(inputs)
    }

    fn variable(&self, call: &Call, name: &str) -> Option<&String> {
        let exposed = call.plan.expose_env.as_ref();
        self.env.get(name).filter(|_| exposed.is_none_or(|names| names.iter().any(|known| known == name)))
    }

    /// A value of the context, also one that stands outside the log.
    async fn value(&self, call: &Call, root: Root, key: &str) -> Result<Option<Value>, Refusal> {
        let Some(value) = call.context.member(root, key) else { return Ok(None) };
        let place = match root {
            Root::Params => "params",
            Root::Results => "results",
            Root::Scratch => "scratch",
            Root::Artifacts => "artifacts",
        };
        let Some(reference) = call.context.refs.get(&format!("{place}.{key}")) else {
            return Ok(Some(value.clone()));
        };
        let refuse =
            |why: String| refusal("INVALID_INPUT", format!("the value of '{key}' cannot be read: {why}"));
        if reference.encoding == Encoding::Pickle {
            return Err(refuse("it is a Python object, and commands are given JSON only".to_owned()));
        }
        let bytes =
            self.blobs.get_blob(&reference.digest).await.map_err(|error| refuse(error.to_string()))?;
        let bytes = bytes.ok_or_else(|| refuse("its bytes are not in the store".to_owned()))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| refuse(error.to_string()))
    }
}

/// How the process ended, and whether that was because it was told to.
async fn see_it_end(group: &mut Group, mut stop: Stop) -> Option<(std::process::ExitStatus, bool)> {
    let mut was_told = false;
    loop {
        tokio::select! {
            biased;
            status = group.ended() => return status.map(|status| (status, was_told)),
            // A command hears of a cancel by the signal only, so it is told as soon as it is asked.
            () = stop.requested(), if !was_told => {
                was_told = true;
                group.tell(Signal::SIGTERM);
            }
        }
    }
}

/// What Python, or a program, needs of the environment although a flow does not expose it.
const NEEDED: [&str; 14] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
];

/// The variables that a task may see: all, or the exposed ones and what is needed to start.
pub(crate) fn visible(env: &HashMap<String, String>, exposed: Option<&[String]>) -> HashMap<String, String> {
    let may_see = |name: &str| match exposed {
        // The trace that this process was started in is none of a task's.
        _ if name == "TRACEPARENT" || name == "TRACESTATE" => false,
        None => true,
        Some(names) => NEEDED.contains(&name) || names.iter().any(|exposed| exposed == name),
    };
    env.iter().filter(|(name, _)| may_see(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Where programs are looked for when nobody says where.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The same variables with the modules and the programs of wheels found first, also by whatever a task starts.
pub(crate) fn with_wheels(
    mut env: HashMap<String, String>,
    wheels: Option<&Path>,
) -> HashMap<String, String> {
    let Some(wheels) = wheels else { return env };
    let mut put_first = |name: &str, first: String, usual: &str| {
        let rest = env.get(name).map_or(usual, String::as_str);
        let joined = if rest.is_empty() { first } else { format!("{first}:{rest}") };
        env.insert(name.to_owned(), joined);
    };
    put_first("PYTHONPATH", wheels.display().to_string(), "");
    put_first("PATH", wheels.join("bin").display().to_string(), USUAL_PATH);
    env
}
