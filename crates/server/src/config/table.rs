//! Every setting, once: the reference (docs/reference/configuration.md), the help of the programs and the validation come from here.
//!
//! To add one: a row here, a reader in `Config`, and docs/reference/configuration.md anew with `pyoco-server config --markdown`.

use super::variable::Program::{Admin, Client, Server, Task, Worker};
use super::variable::{Group, Kind, Program, Variable};

const EVERYWHERE: &[Program] = &[Server, Worker, Admin];
const RUNNING: &[Program] = &[Server, Worker];
const GATEWAY: &[Program] = &[Server];

/// Every setting, in the order of the reference.
pub const TABLE: &[Variable] = &[
    Variable::new("PYOCO_LOAD_DOTENV", Group::Files, Kind::Flag, "whether a `.env` file is read; only the environment of the process says so")
        .default("1")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_ENV_FILE", Group::Files, Kind::Path, "that file; `~/` is the home folder; only the environment of the process says so. One that cannot be read counts as empty")
        .default(".env")
        .read_by(EVERYWHERE)
        .known(),
    // The store.
    Variable::new("PYOCO_DATA_DIR", Group::Store, Kind::Path, "the folder of the embedded store; only one process may use it. Beside NATS: where workers keep artifacts")
        .default(".pyoco")
        .read_by(EVERYWHERE),
    Variable::new("PYOCO_MAX_RUN_SNAPSHOT_BYTES", Group::Store, Kind::Whole(0), "largest snapshot of a run; task records are left out beyond")
        .default("262144")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_RUN_LOG_MAX_BYTES", Group::Store, Kind::Whole(0), "longest log of a run, as text; its beginning is kept, and the last line says that it was cut")
        .default("67108864")
        .read_by(RUNNING),
    // Reaching NATS.
    Variable::new("PYOCO_NATS_URL", Group::Nats, Kind::Url, "where NATS is, several servers separated by commas; without it `pyoco-server` uses the embedded store, and `pyoco-worker` looks at nats://127.0.0.1:4222")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_NATS_USER", Group::Nats, Kind::Text, "the user to be, with `PYOCO_NATS_PASSWORD`").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_PASSWORD", Group::Nats, Kind::Secret, "that user's password").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_TOKEN", Group::Nats, Kind::Secret, "a token, instead of a user").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_CREDS", Group::Nats, Kind::Path, "a credentials file, instead of a user").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_INBOX_PREFIX", Group::Nats, Kind::Text, "where answers of NATS come, where a server lets this user listen only there; `nats-bootstrap up --with-users` writes it")
        .read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_TLS", Group::Nats, Kind::Flag, "whether servers without TLS are refused")
        .default("false")
        .read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_TLS_CA", Group::Nats, Kind::Path, "the certificates to trust, beside those of the system").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_TLS_CERT", Group::Nats, Kind::Path, "the certificate to show, with `PYOCO_NATS_TLS_KEY`").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_TLS_KEY", Group::Nats, Kind::Path, "the key of that certificate").read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_REPLICAS", Group::Nats, Kind::Choice(&["1", "3"]), "on how many servers what is created here stands; what exists keeps its number")
        .default("1")
        .read_by(EVERYWHERE),
    Variable::new("PYOCO_NATS_MONITOR_URL", Group::Nats, Kind::Url, "the monitoring port of a server, `http://HOST:PORT`: only there it tells whether it syncs before it answers").read_by(EVERYWHERE),
    Variable::new("PYOCO_DURABILITY", Group::Nats, Kind::Choice(&["relaxed", "strict"]), "`strict` refuses servers that do not sync before they answer, or do not say; `relaxed` warns")
        .default("relaxed")
        .read_by(EVERYWHERE),
    // What stands in NATS.
    Variable::new("PYOCO_WORK_SUBJECT_PREFIX", Group::NatsNames, Kind::Text, "the subjects of jobs: this, a dot, the tag")
        .default("pyoco.work")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_RUNS_KV_BUCKET", Group::NatsNames, Kind::Text, "the bucket of the runs' snapshots")
        .default("pyoco_runs")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_WORKERS_KV_BUCKET", Group::NatsNames, Kind::Text, "the bucket of workers")
        .default("pyoco_workers")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_WORKERS_KV_TTL_SEC", Group::NatsNames, Kind::Seconds, "how long an entry of a worker stands without a word of it, when the bucket is created here")
        .default("15.0")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_AUTH_KV_BUCKET", Group::NatsNames, Kind::Text, "the bucket of API keys")
        .default("pyoco_auth")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_CONSUMER_MAX_DELIVER", Group::NatsNames, Kind::Whole(-1), "how often a job is handed out, at most; -1: without end")
        .default("20")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_CONSUMER_MAX_ACK_PENDING", Group::NatsNames, Kind::Whole(-1), "runs of a tag that are in hand in all workers together, at most; -1: any number")
        .default("200")
        .read_by(EVERYWHERE)
        .known(),
    // The HTTP surface.
    Variable::new("PYOCO_HTTP_AUTH_MODE", Group::Http, Kind::Choice(&["none", "api_key"]), "`api_key`: requests need an API key (docs/guides/security.md)")
        .default("none")
        .read_by(GATEWAY)
        .known(),
    Variable::new("PYOCO_HTTP_API_KEY_HEADER", Group::Http, Kind::Header, "the header of a key; `Authorization: Bearer` means the same")
        .default("X-API-Key")
        .read_by(GATEWAY)
        .known(),
    Variable::new("PYOCO_AUTH_PEPPER", Group::Http, Kind::Secret, "hashed along with every key's secret; the same for all gateways and the admin tool; blanks around it count")
        .read_by(&[Server, Admin])
        .known(),
    Variable::new("PYOCO_DEFAULT_TAG", Group::Http, Kind::Tag, "the tag of runs that name none, and of workers that are told none")
        .default("default")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WORKFLOW_YAML_MAX_BYTES", Group::Http, Kind::Whole(0), "largest flow.yaml, and largest graph")
        .default("262144")
        .read_by(GATEWAY)
        .known(),
    Variable::new("PYOCO_IDEMPOTENCY_KEY_REQUIRED", Group::Http, Kind::Flag, "whether every command to `/executions` needs an `X-Idempotency-Key`; with `false` one is made up where there is none")
        .default("true")
        .read_by(GATEWAY),
    Variable::new("PYOCO_JOBS_FLOW", Group::Http, Kind::Text, "the flow of a job that names none")
        .default("analysis")
        .read_by(GATEWAY),
    Variable::new("PYOCO_DASHBOARD_LANG", Group::Http, Kind::Choice(&["auto", "ja", "en"]), "the language that the dashboard begins with; `auto`: that of `LC_ALL`, `LANGUAGE`, `LC_MESSAGES` or `LANG` in the environment of the process, else English")
        .default("auto")
        .read_by(GATEWAY)
        .known(),
    Variable::new("PYOCO_DASHBOARD_ACTIONS", Group::Http, Kind::Flag, "whether the dashboard offers to cancel, retry and answer runs and to hide workers; the API does so in any case")
        .default("0")
        .read_by(GATEWAY),
    // Runs.
    Variable::new("PYOCO_CANCEL_GRACE_PERIOD_SEC", Group::Runs, Kind::Seconds, "how long a cancelled task may take to stop by itself; with 0 it is only ever asked, never ended")
        .default("30.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_RUN_HEARTBEAT_INTERVAL_SEC", Group::Runs, Kind::SomeSeconds, "how often the `heartbeat_at` of a running run moves; no oftener than ten times a second")
        .default("1.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_SWEEP_INTERVAL_SEC", Group::Runs, Kind::SomeSeconds, "how often queues are compared with the runs that should be in them; what is missing twice is put back")
        .default("15.0")
        .read_by(RUNNING),
    // Workers.
    Variable::new("PYOCO_PYTHON", Group::Workers, Kind::Path, "the Python that runs tasks")
        .default("python3")
        .read_by(RUNNING),
    Variable::new("PYOCO_DISCOVERY_MODULES", Group::Workers, Kind::Text, "Python modules whose `@task` functions flows may use without naming a callable, separated by commas; only the environment of the process says so")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC", Group::Workers, Kind::SomeSeconds, "how often a worker reports; no oftener than ten times a second")
        .default("5.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC", Group::Workers, Kind::Seconds, "a worker unheard for so long is DISCONNECTED")
        .default("20.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_CONSUMER_ACK_WAIT_SEC", Group::Workers, Kind::SomeSeconds, "how long a job is a worker's own without a word")
        .default("30.0")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_ACK_PROGRESS_INTERVAL_SEC", Group::Workers, Kind::Seconds, "how often a worker says that it still works on a job; 0, or no less than the wait, means half of the wait")
        .default("10.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_DRAIN_TIMEOUT_SEC", Group::Workers, Kind::Seconds, "how long running tasks may go on after the worker was told to stop")
        .default("25.0")
        .read_by(RUNNING),
    // How long things are kept.
    Variable::new("PYOCO_RUNS_RETENTION_SEC", Group::Retention, Kind::Seconds, "how long a finished run is kept, with its log and its events; 0: for ever. Archived ones are kept")
        .default("2592000")
        .read_by(EVERYWHERE),
    Variable::new("PYOCO_AUDIT_RETENTION_SEC", Group::Retention, Kind::Seconds, "how long entries of the audit are kept; 0: for ever")
        .default("7776000")
        .read_by(RUNNING),
    Variable::new("PYOCO_AUDIT_MAX_BYTES", Group::Retention, Kind::Whole(1_048_576), "how many bytes of the audit NATS keeps, when the stream is created here; it sets them aside at once")
        .default("268435456")
        .read_by(RUNNING),
    Variable::new("PYOCO_TOMBSTONE_RETENTION_SEC", Group::Retention, Kind::SomeSeconds, "how long the idempotency key of a run that was removed is remembered")
        .default("31536000")
        .read_by(RUNNING),
    Variable::new("PYOCO_RETENTION_FOREIGN", Group::Retention, Kind::Flag, "whether runs are removed too that no gateway of this product has created")
        .default("false")
        .read_by(EVERYWHERE),
    Variable::new("PYOCO_RETENTION_INTERVAL_SEC", Group::Retention, Kind::SomeSeconds, "how often it is looked for what has been kept for long enough; no oftener than ten times a second")
        .default("60.0")
        .read_by(RUNNING),
    // Dead letters.
    Variable::new("PYOCO_DLQ_PUBLISH_EXECUTION_ERROR", Group::DeadLetters, Kind::Flag, "whether a failed run leaves a dead letter")
        .default("true")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_DLQ_STREAM", Group::DeadLetters, Kind::Text, "the stream of dead letters in NATS")
        .default("PYOCO_DLQ")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_DLQ_SUBJECT_PREFIX", Group::DeadLetters, Kind::Text, "their subjects: this, a dot, the tag")
        .default("pyoco.dlq")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_DLQ_MAX_AGE_SEC", Group::DeadLetters, Kind::Seconds, "how long NATS keeps one, when the stream is created here")
        .default("604800")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_DLQ_MAX_MSGS", Group::DeadLetters, Kind::Whole(-1), "how many NATS keeps, when the stream is created here; -1: any number")
        .default("100000")
        .read_by(EVERYWHERE)
        .known(),
    Variable::new("PYOCO_DLQ_MAX_BYTES", Group::DeadLetters, Kind::Whole(-1), "how many bytes of them NATS keeps, when the stream is created here; -1: any number")
        .default("536870912")
        .read_by(EVERYWHERE)
        .known(),
    // Observing.
    Variable::new("PYOCO_LOG_LEVEL", Group::Observing, Kind::Choice(LEVELS), "the least important log lines to show")
        .default("INFO")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_LOG_FORMAT", Group::Observing, Kind::Choice(&["json", "text"]), "JSON lines, or lines for people")
        .default("json")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_LOG_UTC", Group::Observing, Kind::Flag, "whether log lines tell the time in UTC")
        .default("true")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_LOG_INCLUDE_TRACEBACK", Group::Observing, Kind::Flag, "whether log lines tell the causes of an error")
        .default("true")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WORKER_METRICS_ADDR", Group::Observing, Kind::Address, "where `pyoco-worker` answers `/metrics` and `/health`; without it nowhere. Nobody is asked for a key there: use a loopback address")
        .read_by(&[Worker]),
    Variable::new("OTEL_EXPORTER_OTLP_ENDPOINT", Group::Observing, Kind::Url, "where traces are sent: the collector's base address; without it, and without the next one, nowhere (docs/traces.md)")
        .read_by(&[Server, Worker, Task])
        .opentelemetry(),
    Variable::new("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Group::Observing, Kind::Url, "the whole address to send traces to; it wins over the base address")
        .read_by(&[Server, Worker, Task])
        .opentelemetry(),
    Variable::new("OTEL_EXPORTER_OTLP_PROTOCOL", Group::Observing, Kind::Text, "how traces are written: `http/protobuf` or `http/json`")
        .default("http/protobuf")
        .read_by(&[Server, Worker, Task])
        .opentelemetry(),
    Variable::new("OTEL_EXPORTER_OTLP_HEADERS", Group::Observing, Kind::Secret, "headers to send along, `name=value` with commas between")
        .read_by(&[Server, Worker, Task])
        .opentelemetry(),
    Variable::new("OTEL_SERVICE_NAME", Group::Observing, Kind::Text, "the name of the service in traces")
        .default("pyoco-server")
        .read_by(&[Server, Worker, Task])
        .opentelemetry(),
    Variable::new("OTEL_RESOURCE_ATTRIBUTES", Group::Observing, Kind::Text, "what else to say about it, `name=value` with commas between")
        .read_by(&[Server, Worker, Task])
        .opentelemetry(),
    // Wheels.
    Variable::new("PYOCO_WHEEL_OBJECT_STORE_BUCKET", Group::Wheels, Kind::Text, "the bucket of wheels in NATS")
        .default("pyoco_wheels")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WHEEL_MAX_BYTES", Group::Wheels, Kind::Whole(0), "the longest wheel, and in NATS all of them together; 0: no bound")
        .default("536870912")
        .read_by(GATEWAY)
        .known(),
    Variable::new("PYOCO_WHEEL_UPLOAD_ROLE", Group::Wheels, Kind::Choice(&["submit", "admin"]), "the smallest role of a key that may upload and delete wheels: whoever may runs code on every worker that installs them")
        .default("submit")
        .read_by(GATEWAY),
    Variable::new("PYOCO_WHEEL_SYNC_ENABLED", Group::Wheels, Kind::Flag, "whether a worker installs wheels; the worker inside `pyoco-server up` does unless this says no")
        .default("0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WHEEL_SYNC_DIR", Group::Wheels, Kind::Path, "where it keeps them; the worker inside `pyoco-server up`: `wheels` in its data folder")
        .default(".pyoco/wheels")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WHEEL_SYNC_INTERVAL_SEC", Group::Wheels, Kind::Seconds, "how often it looks for new ones that it has not heard of")
        .default("10.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WHEEL_INSTALL_TIMEOUT_SEC", Group::Wheels, Kind::SomeSeconds, "how long an installation may take")
        .default("180.0")
        .read_by(RUNNING)
        .known(),
    Variable::new("PYOCO_WHEEL_HISTORY_KV_BUCKET", Group::Wheels, Kind::Text, "the bucket of what happened to wheels in NATS")
        .default("pyoco_wheel_history")
        .read_by(GATEWAY)
        .known(),
    Variable::new("PYOCO_WHEEL_HISTORY_TTL_SEC", Group::Wheels, Kind::Seconds, "how long that is kept; 0: for ever")
        .default("7776000")
        .read_by(GATEWAY)
        .known(),
    // The command line. `pyoco-client` reads no `.env` file.
    Variable::new("PYOCO_SERVER_URL", Group::Client, Kind::Url, "where the gateway is")
        .default("http://127.0.0.1:8000")
        .read_by(&[Client, Server]),
    Variable::new("PYOCO_API_KEY", Group::Client, Kind::Secret, "the key to show").read_by(&[Client, Server, Task]),
    // What tasks find in their environment.
    Variable::new("PYOCO_RUN_ID", Group::Tasks, Kind::Text, "the run that a command is a task of").read_by(&[Task]),
    Variable::new("PYOCO_NODE_ID", Group::Tasks, Kind::Text, "its node").read_by(&[Task]),
    Variable::new("PYOCO_TASK", Group::Tasks, Kind::Text, "its task").read_by(&[Task]),
    Variable::new("PYOCO_ATTEMPT", Group::Tasks, Kind::Text, "which attempt it is, from 1").read_by(&[Task]),
];

const LEVELS: &[&str] = &["TRACE", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL"];

/// The setting of a name.
pub fn variable(name: &str) -> Option<&'static Variable> {
    TABLE.iter().find(|variable| variable.name == name)
}

/// The settings that a program reads, in the order of the table.
pub fn read_by(program: Program) -> impl Iterator<Item = &'static Variable> {
    TABLE.iter().filter(move |variable| variable.is_read_by(program))
}
