//! Our gateway and worker beside those of pyoco-server 0.5.1 from PyPI, on one nats-server: whoever is asked and whoever runs it,
//! everybody shows the same. All of them are real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod interop;
mod support;

use pyoco_client::RunFilter;
use serde_json::{Value, json};

use interop::{Cell, Gateway, Site, Whose, members, yaml};

#[tokio::test]
async fn our_gateway_and_our_worker_are_understood_by_the_gateway_of_pypi() {
    every_kind_of_run(Whose::Ours, Whose::Ours).await;
}

#[tokio::test]
async fn our_gateway_is_served_by_the_worker_of_pypi() {
    every_kind_of_run(Whose::Ours, Whose::PyPI).await;
}

#[tokio::test]
async fn our_worker_serves_the_gateway_of_pypi() {
    every_kind_of_run(Whose::PyPI, Whose::Ours).await;
}

#[tokio::test]
async fn our_gateway_shows_what_is_between_the_gateway_and_the_worker_of_pypi() {
    every_kind_of_run(Whose::PyPI, Whose::PyPI).await;
}

async fn every_kind_of_run(via: Whose, worker: Whose) {
    let mut cell = Cell::start(via, worker).await;
    let mut all = canceled_before_there_is_a_worker(&mut cell).await;
    all.extend(named_flows(&mut cell).await);
    all.extend(yaml_flows(&mut cell).await);

    cell.site.wire.until_no_jobs().await;
    let mut listed = cell.lists_agree(&RunFilter { limit: Some(200), ..RunFilter::default() }).await;
    all.sort();
    assert_eq!(listed, all);
    listed.retain(|(_, status)| status == "FAILED");
    let failed = RunFilter { status: Some("FAILED".to_owned()), ..RunFilter::default() };
    assert_eq!(cell.lists_agree(&failed).await, listed);
    for (run, status) in all {
        let letters = cell.dead_letters(&run).await;
        assert_eq!(letters.len(), usize::from(status == "FAILED"), "{run}: {letters:#?}");
    }
}

type Ended = Vec<(String, String)>;

/// Runs that nobody has taken when they are cancelled.
async fn canceled_before_there_is_a_worker(cell: &mut Cell) -> Ended {
    let named = cell.via.submit("mark", json!({"token": "named"})).await;
    let along = cell.via.submit_yaml("along", &yaml(&["mark"], &json!({"token": "along"}))).await;
    for (run, gateway) in [(&named, &cell.via), (&along, &cell.other)] {
        let answer = gateway.cancel(run).await;
        let wanted = match gateway.whose {
            Whose::Ours => "CANCELLED",
            Whose::PyPI => "CANCELLING",
        };
        assert_eq!(answer["status"], wanted);
        assert!(answer["cancel_requested_at"].is_f64(), "{answer:#}");
    }
    let mut ended = Ended::new();
    for (run, by) in [(named, cell.via.whose), (along, cell.other.whose)] {
        cell.staff().await;
        let shown = cell.agreed(&run, interop::is_terminal).await;
        // The worker of PyPI may take the run without having seen the wish of its gateway.
        if by == Whose::Ours || cell.whose_worker == Whose::Ours {
            assert_eq!(shown["status"], "CANCELLED");
        }
        ended.push((run, shown["status"].as_str().unwrap().to_owned()));
    }
    cell.site.wire.until_no_jobs().await;
    // Our gateway takes its job back, and our worker looks first. The worker of PyPI runs every job that it finds.
    if cell.via.whose == Whose::Ours || cell.whose_worker == Whose::Ours {
        for token in ["named", "along"] {
            assert!(!cell.site.path(token).exists(), "{token} was run after its cancel");
        }
    }
    ended
}

async fn named_flows(cell: &mut Cell) -> Ended {
    let params = json!({"a": 7, "text": "ünï", "deep": {"list": [1, 2.5, null, true]}});
    let mut ended = Ended::new();

    let worker = cell.staff().await;
    let run = cell.via.submit("ok", params.clone()).await;
    let shown = cell.ended(&run, "COMPLETED", &Value::Null).await;
    assert_eq!(shown["tasks"], json!({"give": "SUCCEEDED", "take": "SUCCEEDED"}));
    assert_eq!(shown["task_records"]["give"]["output"], json!({"x": 7, "name": "ünï"}));
    assert_eq!(shown["task_records"]["take"]["output"], json!([7, 1.5, null, true]));
    assert_eq!((&shown["flow_name"], &shown["params"]), (&json!("ok"), &params));
    assert_eq!((&shown["tag"], &shown["tags"]), (&json!("default"), &json!(["blue", "ünï"])));
    ended.push((run.clone(), "COMPLETED".to_owned()));

    let record = cell.worker_shown(&run).await;
    let lacks: Vec<_> = WORKER.iter().filter(|name| record.get(name).is_none()).collect();
    assert!(lacks.is_empty(), "{lacks:?} in {record:#}");
    assert_eq!((&record["worker_id"], &record["state"]), (&json!(worker), &json!("IDLE")));
    assert_eq!((&record["last_run_status"], &record["tags"]), (&json!("COMPLETED"), &json!(["default"])));

    let worker = cell.staff().await;
    let run = cell.via.submit("bad", params.clone()).await;
    let shown = cell.ended(&run, "FAILED", &json!("no luck: ünï")).await;
    assert_eq!(shown["tasks"]["give"], "SUCCEEDED");
    assert_eq!(shown["tasks"]["fail"], "FAILED");
    assert_eq!(shown["task_records"]["fail"]["error"], "no luck: ünï");
    assert!(shown["task_records"]["fail"]["traceback"].as_str().unwrap().contains("ValueError"));
    let letter = cell.dead_letter(&run).await;
    assert_eq!((&letter["reason"], &letter["error"]), (&json!("execution_error"), &json!("no luck: ünï")));
    assert_eq!((&letter["flow_name"], &letter["tag"]), (&json!("bad"), &json!("default")));
    assert_eq!((&letter["tags"], &letter["worker_id"]), (&json!(["blue", "ünï"]), &json!(worker)));
    ended.push((run, "FAILED".to_owned()));

    let worker = cell.staff().await;
    let run = cell.via.submit("nowhere", params).await;
    let shown = cell.ended(&run, "FAILED", &json!("flow_not_found: 'nowhere'")).await;
    assert_eq!(shown["tasks"], json!({}));
    let letter = cell.dead_letter(&run).await;
    assert_eq!(letter["reason"], "flow_not_found");
    assert_eq!(
        (&letter["error"], &letter["worker_id"]),
        (&json!("flow_not_found: 'nowhere'"), &json!(worker))
    );
    ended.push((run, "FAILED".to_owned()));

    cell.staff().await;
    let run = cell.via.submit("slow", json!({})).await;
    cell.until_at_work(&run, "wait", cell.via.whose).await;
    assert_eq!(cell.via.cancel(&run).await["status"], "CANCELLING");
    check_canceled(&cell.ended(&run, "CANCELLED", &Value::Null).await);
    ended.push((run, "CANCELLED".to_owned()));
    ended
}

async fn yaml_flows(cell: &mut Cell) -> Ended {
    let mut ended = Ended::new();

    cell.staff().await;
    let text = yaml(&["give", "take"], &json!({"a": 8}));
    let run = cell.via.submit_yaml("along", &text).await;
    let shown = cell.ended(&run, "COMPLETED", &Value::Null).await;
    assert_eq!(shown["tasks"], json!({"give": "SUCCEEDED", "take": "SUCCEEDED"}));
    assert_eq!(shown["task_records"]["take"]["output"], json!([8, 1.5, null, true]));
    assert_eq!((&shown["flow_name"], &shown["params"]), (&json!("along"), &json!({"a": 8})));
    assert_eq!((&shown["tag"], &shown["tags"]), (&json!("default"), &json!(["default"])));
    assert_eq!(shown["workflow_yaml_bytes"], text.len());
    ended.push((run, "COMPLETED".to_owned()));

    let worker = cell.staff().await;
    let run = cell.via.submit_yaml("along", &yaml(&["give", "fail", "after"], &json!({}))).await;
    let shown = cell.ended(&run, "FAILED", &json!("no luck: ünï")).await;
    assert_eq!(shown["tasks"]["fail"], "FAILED");
    let letter = cell.dead_letter(&run).await;
    assert_eq!((&letter["reason"], &letter["worker_id"]), (&json!("execution_error"), &json!(worker)));
    ended.push((run, "FAILED".to_owned()));

    // The worker of PyPI tells nobody of a flow that it cannot build, and forgets whose it was.
    if cell.whose_worker == Whose::Ours {
        cell.staff().await;
        let run = cell.via.submit_yaml("along", &yaml(&["nothing"], &json!({"a": 9}))).await;
        let error = "name 'nothing' is not defined (module 'interop_flows' has no attribute 'nothing')";
        let shown = cell.ended(&run, "FAILED", &json!(error)).await;
        assert_eq!((&shown["tag"], &shown["params"]), (&json!("default"), &json!({"a": 9})));
        assert_eq!(cell.dead_letter(&run).await["error"], error);
        ended.push((run, "FAILED".to_owned()));
    }

    // Cancelled through the gateway that it was not submitted to.
    cell.staff().await;
    let run = cell.via.submit_yaml("along", &yaml(&["wait", "after"], &json!({}))).await;
    cell.until_at_work(&run, "wait", cell.other.whose).await;
    assert_eq!(cell.other.cancel(&run).await["status"], "CANCELLING");
    check_canceled(&cell.ended(&run, "CANCELLED", &Value::Null).await);
    ended.push((run, "CANCELLED".to_owned()));
    ended
}

fn check_canceled(shown: &Value) {
    assert_eq!(shown["tasks"], json!({"wait": "SUCCEEDED", "after": "CANCELLED"}));
    assert_eq!(shown["task_records"]["wait"]["output"], "stopped");
    assert!(shown["cancel_requested_at"].is_f64(), "{shown:#}");
}

#[tokio::test]
async fn a_team_that_moves_to_our_gateway_finds_all_its_runs_there() {
    let site = Site::new().await;
    let theirs = site.gateway(Whose::PyPI).await;
    let worker = site.worker(Whose::PyPI, "old").await;
    let ok = theirs.submit("ok", json!({"a": 3})).await;
    until_ended(&theirs, &ok).await;
    let bad = theirs.submit_yaml("along", &yaml(&["give", "fail"], &json!({"a": 4}))).await;
    until_ended(&theirs, &bad).await;
    site.wire.until_no_jobs().await;
    worker.stop().await;
    let waiting = theirs.submit_yaml("along", &yaml(&["give", "take"], &json!({"a": 5}))).await;
    let old = [theirs.run(&ok).await, theirs.run(&bad).await];
    let old_list = theirs.list(&RunFilter::default()).await;
    assert_eq!(old_list.len(), 3);
    theirs.process.stop().await;

    let ours = site.gateway(Whose::Ours).await;
    let list = ours.list(&RunFilter::default()).await;
    assert_eq!(list.len(), 3);
    for (new, old) in list.iter().zip(&old_list) {
        assert_contains(new, old);
    }
    for (run, old) in [&ok, &bad].into_iter().zip(old) {
        assert_contains(&ours.run(run).await, &old);
        let tasks = ours.tasks(run).await;
        assert_eq!((&tasks["tasks"], &tasks["task_records"]), (&old["tasks"], &old["task_records"]));
        // What has ended stays as it is.
        assert_eq!(ours.cancel(run).await["status"], old["status"]);
        assert_eq!(site.wire.snapshot(run).await.unwrap()["status"], old["status"]);
    }

    let _worker = site.worker(Whose::Ours, "new").await;
    until_ended(&ours, &waiting).await;
    let done = ours.run(&waiting).await;
    assert_eq!((&done["status"], &done["worker_id"]), (&json!("COMPLETED"), &json!("new")));
    assert_eq!(done["task_records"]["take"]["output"], json!([5, 1.5, null, true]));
}

#[tokio::test]
async fn what_pypi_and_its_operator_have_set_up_is_left_as_it_is() {
    let mut site = Site::new().await;
    let theirs = site.gateway(Whose::PyPI).await;
    site.worker(Whose::PyPI, "old").await.stop().await;
    let consumer = "pyoco_workers_default";
    site.wire
        .change_consumer("PYOCO_WORK", consumer, &json!({"ack_wait": 45_000_000_000_u64, "max_deliver": 7}))
        .await;
    site.wire.change_stream("PYOCO_DLQ", &json!({"max_msgs": 5_000})).await;
    site.wire.change_stream("KV_pyoco_workers", &json!({"max_age": 60_000_000_000_u64})).await;
    let streams = site.wire.streams().await;
    let consumers = site.wire.durables("PYOCO_WORK").await;

    // Settings of ours are for what we make ourselves.
    site.settings.extend([("PYOCO_CONSUMER_ACK_WAIT_SEC", "9"), ("PYOCO_WORKERS_KV_TTL_SEC", "20")]);
    site.settings.extend([("PYOCO_CONSUMER_MAX_DELIVER", "3"), ("PYOCO_DLQ_MAX_MSGS", "10")]);
    let ours = site.gateway(Whose::Ours).await;
    let _worker = site.worker(Whose::Ours, "new").await;
    let run = ours.submit("bad", json!({})).await;
    until_ended(&ours, &run).await;
    assert_eq!(theirs.run(&run).await["status"], "FAILED");

    let now = site.wire.streams().await;
    for (name, config) in streams {
        assert_eq!(now.get(&name), Some(&config), "{name}");
    }
    assert_eq!(site.wire.durables("PYOCO_WORK").await, consumers);
}

#[tokio::test]
async fn what_we_set_up_is_what_pypi_would_have_and_stays_so() {
    const SHARED: [&str; 5] =
        ["PYOCO_WORK", "PYOCO_DLQ", "KV_pyoco_runs", "KV_pyoco_workers", "KV_pyoco_auth"];
    let site = Site::new().await;
    let ours = site.gateway(Whose::Ours).await;
    let _ours = site.worker(Whose::Ours, "ours").await;
    let streams = site.wire.streams().await;
    let consumers = site.wire.durables("PYOCO_WORK").await;

    let elsewhere = Site::new().await;
    let _theirs = elsewhere.worker(Whose::PyPI, "theirs").await;
    let theirs = elsewhere.wire.streams().await;
    for name in SHARED {
        assert_eq!(streams[name], theirs[name], "{name}");
    }
    assert_eq!(consumers, elsewhere.wire.durables("PYOCO_WORK").await);

    let _theirs = site.worker(Whose::PyPI, "theirs").await;
    let theirs = site.gateway(Whose::PyPI).await;
    let run = theirs.submit("ok", json!({})).await;
    until_ended(&theirs, &run).await;
    until_ended(&ours, &run).await;
    for gateway in [&ours, &theirs] {
        let workers = gateway.workers().await;
        let mut names: Vec<_> = workers.iter().map(|worker| worker["worker_id"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["ours", "theirs"], "{:?}", gateway.whose);
    }
    let now = site.wire.streams().await;
    for (name, config) in streams {
        assert_eq!(now.get(&name), Some(&config), "{name}");
    }
    assert_eq!(site.wire.durables("PYOCO_WORK").await, consumers);
}

/// Whether one object says everything that another does.
#[track_caller]
fn assert_contains(object: &Value, all: &Value) {
    for (name, value) in all.as_object().unwrap() {
        assert_eq!(object.get(name), Some(value), "{name} in {object:#}");
    }
}

async fn until_ended(gateway: &Gateway, run: &str) {
    interop::until("the end of a run", async || {
        let shown = gateway.run(run).await;
        if interop::is_terminal(&shown) { Ok(()) } else { Err(shown) }
    })
    .await;
}

/// Members of the record of a worker, sorted.
const WORKER: [&str; 17] = [
    "current_run_id",
    "heartbeat_at",
    "hidden",
    "instance_id",
    "last_heartbeat_at",
    "last_run_finished_at",
    "last_run_id",
    "last_run_started_at",
    "last_run_status",
    "last_seen_at",
    "state",
    "stop_reason",
    "stopped_at",
    "tags",
    "updated_at",
    "wheel_sync",
    "worker_id",
];

/// Jobs that nobody can use, and the reason that the contract has for them, if it has one.
fn poison() -> Vec<(Vec<u8>, Option<&'static str>)> {
    let job = |job: Value| job.to_string().into_bytes();
    let mut poison = vec![
        (Vec::new(), Some("invalid_json")),
        (br#"{"run_id": "a", "flow_na"#.to_vec(), Some("invalid_json")),
        (b"\xff\xfe{}".to_vec(), Some("invalid_json")),
        (vec![b'x'; 900_000], Some("invalid_json")),
        (vec![b'['; 900_000], Some("invalid_json")),
        (b"[1, 2]".to_vec(), Some("invalid_schema")),
        (b"null".to_vec(), Some("invalid_schema")),
        (b"{}".to_vec(), Some("missing_fields")),
        (job(json!({"run_id": "a"})), Some("missing_fields")),
        (job(json!({"flow_name": "ok"})), Some("missing_fields")),
        (job(json!({"run_id": 7, "flow_name": "ok"})), None),
        (job(json!({"run_id": "a", "flow_name": ["ok"]})), None),
        (job(json!({"run_id": "a", "flow_name": "ok", "params": [1]})), None),
        (job(json!({"run_id": "a", "flow_name": "ok", "tags": 5})), None),
        (job(json!({"run_id": "a", "flow_name": "ok", "submitted_at": {"a": 1}})), None),
        (job(json!({"run_id": "a", "flow_name": "ok", "workflow_yaml": {"a": 1}})), None),
    ];
    let too_long = "a".repeat(5_000);
    for run in ["", "a.b", "*", "a.*", ">", "a.>", "a b", "a\r\nb", "a\0", "ü", "../a", "$KV", &too_long] {
        poison.push((job(json!({"run_id": run, "flow_name": "ok"})), None));
    }
    poison
}

#[tokio::test]
async fn a_job_that_nobody_can_use_is_put_aside_at_once_and_nobody_waits_behind_it() {
    let site = Site::new().await;
    let ours = site.gateway(Whose::Ours).await;
    let _worker = site.worker(Whose::Ours, "anna").await;
    let ended =
        site.wire.listen("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.PYOCO_WORK.pyoco_workers_default").await;
    let poison = poison();
    let mut sent = Vec::new();
    for (job, _) in &poison {
        sent.push(site.wire.publish("pyoco.work.default", job.clone()).await);
    }
    let run = ours.submit("ok", json!({})).await;
    until_ended(&ours, &run).await;
    assert_eq!(ours.run(&run).await["status"], "COMPLETED");
    site.wire.until_no_jobs().await;

    let mut terminated: Vec<_> = ended.all().iter().map(|one| one["stream_seq"].as_u64().unwrap()).collect();
    terminated.sort_unstable();
    assert_eq!(terminated, sent);
    let letters = site.wire.messages("PYOCO_DLQ").await;
    assert_eq!(letters.len(), poison.len());
    for (job, reason) in poison {
        let shown = String::from_utf8_lossy(job.get(..4096).unwrap_or(&job)).into_owned();
        let letter = letters.iter().find(|letter| letter["payload"] == shown).expect(&shown);
        assert_eq!(
            members(letter),
            ["error", "num_delivered", "payload", "reason", "subject", "timestamp", "worker_id"]
        );
        assert_eq!(
            (&letter["reason"], &letter["subject"]),
            (&json!("invalid_job"), &json!("pyoco.work.default"))
        );
        assert_eq!((&letter["num_delivered"], &letter["worker_id"]), (&json!(1), &json!("anna")));
        if let Some(reason) = reason {
            assert_eq!(letter["error"], reason, "{shown}");
        }
    }
    // None of their names has become a subject.
    assert_eq!(site.wire.subjects("KV_pyoco_runs").await, [format!("$KV.pyoco_runs.{run}")]);
    assert_eq!(site.wire.subjects("PYOCO_EVENTS").await, [format!("pyoco.events.{run}")]);
}

#[tokio::test]
async fn a_job_from_elsewhere_is_run_whatever_else_it_says_and_failed_if_it_cannot_be() {
    let site = Site::new().await;
    let ours = site.gateway(Whose::Ours).await;
    let _worker = site.worker(Whose::Ours, "anna").await;
    // As PyPI's own client does it, without a gateway, and with members that nobody knows yet.
    let accepted = |run: &str| {
        json!({"run_id": run, "flow_name": "ok", "tag": "default", "tags": ["default"], "status": "PENDING", "params": {"a": 2},
               "tasks": {}, "task_records": {}, "start_time": null, "end_time": null, "heartbeat_at": 1.5, "updated_at": 1.5,
               "error": null})
    };
    for run in ["newer", "broken"] {
        site.wire.publish(&format!("$KV.pyoco_runs.{run}"), accepted(run).to_string().into_bytes()).await;
    }
    let newer = json!({"run_id": "newer", "flow_name": "ok", "tag": "default", "tags": ["default"], "params": {"a": 2},
                       "submitted_at": 1, "version": 99, "more": {"deep": [1]}});
    let broken = json!({"run_id": "broken", "flow_name": "ok", "tags": 5});
    let bare = json!({"run_id": "bare", "flow_name": "ok"});
    for job in [newer, broken, bare] {
        site.wire.publish("pyoco.work.default", job.to_string().into_bytes()).await;
    }
    for (run, status) in [("newer", "COMPLETED"), ("broken", "FAILED"), ("bare", "COMPLETED")] {
        interop::until("the first snapshot of a run", async || site.wire.snapshot(run).await.ok_or(run))
            .await;
        interop::until("the end of a run", async || match ours.client.get_run(run).await {
            Ok(shown) if interop::is_terminal(shown.json()) => Ok(()),
            other => Err(other.map(pyoco_client::Answer::into_json)),
        })
        .await;
        let shown = ours.run(run).await;
        assert_eq!(shown["status"], status, "{shown:#}");
        assert_eq!(site.wire.snapshot(run).await.unwrap()["status"], status);
    }
    assert_eq!(ours.run("newer").await["task_records"]["give"]["output"]["x"], 2);
    let letters = site.wire.messages("PYOCO_DLQ").await;
    assert_eq!(letters.len(), 1, "{letters:#?}");
    assert_eq!(letters[0]["reason"], "invalid_job");
}
