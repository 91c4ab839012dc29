//! One cell of the matrix: the gateway that is asked, the other one that must show the same, and the workers of one make.

use serde_json::{Value, json};

use super::{Gateway, Letters, Process, Site, Whose, until};

/// What every snapshot has, whoever wrote it.
const SNAPSHOT: [&str; 15] = [
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "status",
    "params",
    "tasks",
    "task_records",
    "start_time",
    "end_time",
    "heartbeat_at",
    "updated_at",
    "error",
];
/// What it has once a worker has written it.
const SNAPSHOT_OF_A_WORKER: [&str; 4] =
    ["workflow_yaml_sha256", "workflow_yaml_bytes", "cancel_requested_at", "cancel_requested_by"];
/// What depends on the moment of the question, or on who is asked: the worker of PyPI does not say when a run ended that it has
/// no flow for, and our log knows.
const OWN: [&str; 3] = ["heartbeat_at", "updated_at", "end_time"];

/// Members of a job message, and those that it has as well when the flow comes along.
const JOB: [&str; 8] =
    ["run_id", "flow_name", "tag", "tags", "tenant_id", "api_key_id", "params", "submitted_at"];
const JOB_OF_A_YAML: [&str; 3] = ["workflow_yaml", "workflow_yaml_sha256", "workflow_yaml_bytes"];

/// Members of a dead letter about a run.
const LETTER: [&str; 10] = [
    "reason",
    "error",
    "timestamp",
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "worker_id",
];

/// On Python 3.11 the worker of PyPI hangs after a few runs, most of all short ones: so many are safe.
const RUNS_OF_A_FRAGILE_WORKER: usize = 2;

pub(crate) struct Cell {
    pub(crate) site: Site,
    /// The gateway that runs are submitted to.
    pub(crate) via: Gateway,
    /// The gateway of the other make.
    pub(crate) other: Gateway,
    pub(crate) whose_worker: Whose,
    crew: Option<(Process, String)>,
    workers_started: usize,
    runs_of_the_worker: usize,
    is_fragile: bool,
    jobs: Letters,
    snapshots: Letters,
}

impl Cell {
    /// Both gateways, and no worker yet.
    pub(crate) async fn start(via: Whose, worker: Whose) -> Self {
        let site = Site::new().await;
        let jobs = site.wire.listen("pyoco.work.>").await;
        let snapshots = site.wire.listen("$KV.pyoco_runs.>").await;
        let is_fragile = worker == Whose::PyPI && super::site::is_python_old();
        let other = match via {
            Whose::Ours => Whose::PyPI,
            Whose::PyPI => Whose::Ours,
        };
        let (via, other) = tokio::join!(site.gateway(via), site.gateway(other));
        Self {
            site,
            via,
            other,
            whose_worker: worker,
            crew: None,
            workers_started: 0,
            runs_of_the_worker: 0,
            is_fragile,
            jobs,
            snapshots,
        }
    }

    /// The name of a worker that takes the next run.
    pub(crate) async fn staff(&mut self) -> String {
        if self.is_fragile && self.runs_of_the_worker >= RUNS_OF_A_FRAGILE_WORKER {
            // It answers for its last run before it goes.
            self.site.wire.until_no_jobs().await;
            if let Some((worker, _)) = self.crew.take() {
                worker.stop().await;
            }
        }
        if self.crew.is_none() {
            self.workers_started += 1;
            let name = format!("{:?}-{}", self.whose_worker, self.workers_started).to_lowercase();
            self.crew = Some((self.site.worker(self.whose_worker, &name).await, name));
            self.runs_of_the_worker = 0;
        }
        self.runs_of_the_worker += 1;
        self.crew.as_ref().map(|(_, name)| name.clone()).unwrap()
    }

    /// The run as both gateways show it once both say so; `wanted` is what it has to become.
    pub(crate) async fn agreed(&self, run: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until("agreement about a run", async || {
            let (one, two) = (self.via.run(run).await, self.other.run(run).await);
            for at in [&one["updated_at"], &two["updated_at"], &one["heartbeat_at"], &two["heartbeat_at"]] {
                assert!(at.is_f64(), "{one:#} {two:#}");
            }
            let is_done = wanted(&one) && shared(&one) == shared(&two);
            if is_done { Ok(one) } else { Err(difference(&one, &two)) }
        })
        .await
    }

    /// The run once it has ended, as both gateways and the bucket show it. The worker of PyPI writes the end more than once.
    pub(crate) async fn ended(&self, run: &str, status: &str, error: &Value) -> Value {
        let (shown, snapshot) = until("agreement about an end", async || {
            let shown = self.agreed(run, |run| run["status"] == status && run["error"] == *error).await;
            let snapshot = self.site.wire.snapshot(run).await.unwrap();
            let is_done = shared(&snapshot) == shared(&shown)
                && (snapshot["end_time"].is_null() || snapshot["end_time"] == shown["end_time"]);
            if is_done { Ok((shown, snapshot)) } else { Err(difference(&shown, &snapshot)) }
        })
        .await;
        for name in SNAPSHOT.iter().chain(&SNAPSHOT_OF_A_WORKER) {
            assert!(snapshot.get(name).is_some(), "{name} is not in {snapshot:#}");
        }
        for gateway in [&self.via, &self.other] {
            let tasks = gateway.tasks(run).await;
            assert_eq!(
                members(&tasks),
                ["flow_name", "run_id", "status", "task_records", "task_records_truncated", "tasks"]
            );
            for name in ["run_id", "flow_name", "status", "tasks", "task_records"] {
                assert_eq!(tasks[name], shown[name], "{name} of {:?}", gateway.whose);
            }
            assert_eq!(tasks["task_records_truncated"], false);
        }
        self.check_what_was_sent(run);
        shown
    }

    /// Every snapshot of a run that was written, and its job.
    fn check_what_was_sent(&self, run: &str) {
        for snapshot in self.snapshots.of(run) {
            for name in SNAPSHOT {
                assert!(snapshot.get(name).is_some(), "{name} is not in {snapshot:#}");
            }
        }
        let jobs = self.jobs.of(run);
        assert_eq!(jobs.len(), 1, "one job a run: {jobs:#?}");
        for job in jobs {
            let mut wanted = JOB.to_vec();
            if job.get("workflow_yaml").is_some() {
                wanted.extend(JOB_OF_A_YAML);
                let text = job["workflow_yaml"].as_str().unwrap();
                assert_eq!(job["workflow_yaml_bytes"], text.len());
                assert_eq!(job["workflow_yaml_sha256"].as_str().unwrap().len(), 64);
            }
            wanted.sort_unstable();
            assert_eq!(members(&job), wanted);
            assert!(job["submitted_at"].is_f64(), "{job:#}");
            assert!(job["params"].is_object() && job["tags"].is_array(), "{job:#}");
        }
    }

    /// The one dead letter of a run.
    pub(crate) async fn dead_letter(&self, run: &str) -> Value {
        let letter = until("a dead letter", async || {
            let letters = self.dead_letters(run).await;
            letters.first().cloned().ok_or(letters)
        })
        .await;
        let mut wanted = LETTER;
        wanted.sort_unstable();
        assert_eq!(members(&letter), wanted);
        assert!(letter["timestamp"].is_f64(), "{letter:#}");
        letter
    }

    /// All dead letters of a run.
    pub(crate) async fn dead_letters(&self, run: &str) -> Vec<Value> {
        let letters = self.site.wire.messages("PYOCO_DLQ").await;
        letters.into_iter().filter(|letter| letter["run_id"] == run).collect()
    }

    /// Waits until a task of a run is at work, so that the run can be cancelled. Between a gateway and a worker of PyPI a cancel
    /// can be lost: the worker writes what it has in mind over what it finds for a quarter of a second after each event, and
    /// reads first from then on. Ours insists.
    pub(crate) async fn until_at_work(&self, run: &str, task: &str, canceled_by: Whose) {
        let may_be_lost = self.whose_worker == Whose::PyPI && canceled_by == Whose::PyPI;
        self.agreed(run, |run| {
            let started = run["task_records"][task]["started_at"].as_f64();
            let beaten = run["heartbeat_at"].as_f64();
            let is_quiet = started.zip(beaten).is_some_and(|(started, beaten)| beaten > started + 0.5);
            run["tasks"][task] == "RUNNING" && (is_quiet || !may_be_lost)
        })
        .await;
    }

    /// Whether both gateways list the same runs in the same states.
    pub(crate) async fn lists_agree(&self, filter: &pyoco_client::RunFilter) -> Vec<(String, String)> {
        until("agreement about a list", async || {
            let (one, two) = (brief(&self.via.list(filter).await), brief(&self.other.list(filter).await));
            if one == two { Ok(one) } else { Err([one, two]) }
        })
        .await
    }

    /// The record of the worker that is there, as both gateways show it.
    pub(crate) async fn worker_shown(&self, last_run: &str) -> Value {
        let (_, name) = self.crew.as_ref().unwrap();
        until("agreement about a worker", async || {
            let (one, two) =
                (named(&self.via.workers().await, name), named(&self.other.workers().await, name));
            let is_done = one == two && one["last_run_id"] == last_run && one["current_run_id"].is_null();
            if is_done { Ok(one) } else { Err([one, two]) }
        })
        .await
    }
}

/// What two gateways must say alike about a run.
fn shared(run: &Value) -> Value {
    let names = SNAPSHOT.iter().chain(&SNAPSHOT_OF_A_WORKER).filter(|name| !OWN.contains(name));
    names
        .map(|name| ((*name).to_owned(), run.get(name).cloned().unwrap_or_default()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// What to say when two gateways do not agree: the state of the run, and every member that differs.
fn difference(one: &Value, two: &Value) -> String {
    let (shown, other) = (shared(one), shared(two));
    let differs =
        |name: &&&str| shown.get(**name) != other.get(**name) || ["status", "error", "tasks"].contains(*name);
    let line = |name: &&str| format!("\n{name}: {} | {}", shown[*name], other[*name]);
    SNAPSHOT
        .iter()
        .chain(&SNAPSHOT_OF_A_WORKER)
        .filter(|name| shown.get(**name).is_some())
        .filter(differs)
        .map(line)
        .collect()
}

/// The record of a worker without what changes with each heartbeat.
fn named(workers: &[Value], name: &str) -> Value {
    let mut found = workers.iter().find(|worker| worker["worker_id"] == name).cloned().unwrap_or(json!({}));
    for momentary in ["last_seen_at", "last_heartbeat_at", "heartbeat_at", "updated_at"] {
        if let Some(at) = found.get_mut(momentary) {
            assert!(at.is_f64(), "{momentary}: {at}");
            *at = Value::Null;
        }
    }
    found
}

fn brief(runs: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut runs: Vec<_> = runs.iter().map(|run| (text(&run["run_id"]), text(&run["status"]))).collect();
    runs.sort();
    runs
}

/// The names of the members of an object, sorted.
pub(crate) fn members(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}
