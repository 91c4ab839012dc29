//! The index of a process hears everything that others write, whatever happens to the line and the server, and snapshots never
//! go back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use ground::{Other, execution, open, server, timed, until};
use pyoco_core::ids::{Version, WorkerId};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::{ErrorKind, Filter, Heard, News, RunIndex as _, WorkerRecord, WorkerRegistry as _};
use pyoco_store_nats::{Listener, NatsStore, Settings};
use pyoco_testing_nats::{Cluster, NatsServer, Options};
use runs::{Cable, Gateway, consumers, publish, publish_many, row, snapshot};
use serde_json::{Value, json};

async fn all_runs_are_in_the_index_of_a_new_process(count: u64) -> Duration {
    let server = server();
    let writer = open(&server).await;
    let ((), took) = timed(publish_many(&writer, (0..count).map(|number| format!("r{number:032}")))).await;
    println!("{count} snapshots written in {took:?}");
    let (gateway, took) = timed(Gateway::start_and_catch_up(&server.url())).await;
    println!("{count} runs in the index after {took:?}");
    assert_eq!(gateway.store.counts(None).await.unwrap(), [(RunStatus::Running, count)]);
    let last = format!("r{:032}", count - 1);
    assert_eq!(gateway.store.get(&execution(&last)).await.unwrap(), Some(row(&last, 1)));
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_has_every_run_in_its_index() {
    let took = all_runs_are_in_the_index_of_a_new_process(5_000).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// A measurement, for `cargo test --release -- --ignored`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn a_new_process_has_a_hundred_thousand_runs_in_its_index_within_twenty_seconds() {
    let took = all_runs_are_in_the_index_of_a_new_process(100_000).await;
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_has_one_consumer_a_bucket_and_follows_once() {
    let server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    let second = Gateway::start_and_catch_up(&server.url()).await;
    struct Nobody;
    #[async_trait::async_trait]
    impl Listener for Nobody {
        async fn heard(&self, _heard: Heard) {}
    }
    let again = gateway.store.follow(Arc::new(Nobody)).unwrap_err();
    assert_eq!(again.kind, ErrorKind::Internal);
    for bucket in ["pyoco_runs", "pyoco_workers"] {
        let names = consumers(&server, bucket);
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with("pyoco_index_")), "{names:?}");
    }
    drop(second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_publishes_all_others_find_and_hear_once() {
    let server = server();
    let mut reader = Gateway::start_and_catch_up(&server.url()).await;
    let mut writer = Gateway::start_and_catch_up(&server.url()).await;
    publish(&writer.store, row("e", 1)).await;
    reader.has("e", 1).await;
    assert_eq!(reader.hears().await.news, News::Ours(Version(1)));
    publish(&reader.store, row("e", 2)).await;
    writer.has("e", 2).await;
    // Nobody is told what it wrote itself.
    assert_eq!(writer.hears().await.news, News::Ours(Version(2)));
    publish(&writer.store, row("f", 1)).await;
    assert_eq!(reader.hears().await.execution, execution("f"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_in_floods_is_fetched_many_at_a_time_and_afterwards_each_as_it_comes() {
    const COUNT: u64 = 3_000;
    let server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    let other = Other::connect(&server).await;
    let mut requests = other.0.subscribe("$JS.API.CONSUMER.MSG.NEXT.KV_pyoco_runs.>").await.unwrap();
    other.0.flush().await.unwrap();
    let writer = open(&server).await;
    publish_many(&writer, (0..COUNT).map(|number| format!("r{number}"))).await;
    for number in 0..COUNT {
        gateway.has(&format!("r{number}"), 1).await;
    }
    // A request that asks for what is there, and in the end one that stands until something comes.
    let mut asked = Vec::new();
    while !(asked.contains(&true) && asked.last() == Some(&false)) {
        let request = tokio::time::timeout(runs::SOON, requests.next()).await.unwrap().unwrap();
        let request: Value = serde_json::from_slice(&request.payload).unwrap();
        asked.push(request["no_wait"] == true);
    }
    publish(&writer, row("later", 1)).await;
    gateway.has("later", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_that_this_process_alone_writes_is_not_fetched_and_others_are_heard_in_its_midst() {
    let server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    let writer = open(&server).await;
    let other = Other::connect(&server).await;
    let mut removed = other.0.subscribe("$JS.API.CONSUMER.DELETE.KV_pyoco_runs.>").await.unwrap();
    other.0.flush().await.unwrap();
    let flood = async {
        for number in 0_u64.. {
            publish_many(&gateway.store, (0..1_000).map(|run| format!("r{number}-{run}"))).await;
        }
    };
    let others = async {
        for number in 0..5 {
            // Nobody needs the consumer, so it goes.
            tokio::time::timeout(runs::SOON, removed.next()).await.expect("it goes soon").unwrap();
            let name = format!("other-{number}");
            publish(&writer, row(&name, 1)).await;
            gateway.has(&name, 1).await;
        }
    };
    tokio::select! {
        () = flood => {}
        () = others => {}
    }
    publish(&writer, row("later", 1)).await;
    gateway.has("later", 1).await;
    until("one consumer", || consumers(&server, "pyoco_runs").len() == 1).await;
}

/// Publishes while something happens, and looks whether a gateway has it all.
async fn nothing_is_missed(
    server: &mut NatsServer,
    gateway: &Gateway,
    happens: impl AsyncFnOnce(&mut NatsServer),
) {
    let names = |from: u32| (from..from + 300).map(|number| format!("r{number}"));
    {
        let writer = open(server).await;
        publish_many(&writer, names(0)).await;
    }
    happens(server).await;
    let writer = open(server).await;
    publish_many(&writer, names(300)).await;
    for name in names(0) {
        publish(&writer, row(&name, 2)).await;
    }
    for number in 0..600 {
        gateway.has(&format!("r{number}"), if number < 300 { 2 } else { 1 }).await;
    }
    let page = gateway.store.list(&Filter::default(), 1_000).await.unwrap();
    assert_eq!(page.rows.len(), 600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_the_server_one_consumer_remains_and_nothing_was_missed() {
    let mut server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    nothing_is_missed(&mut server, &gateway, async |server| {
        for _ in 0..3 {
            server.kill();
            gateway.is_connected(false).await;
            server.restart();
        }
    })
    .await;
    for bucket in ["pyoco_runs", "pyoco_workers"] {
        until("one consumer", || consumers(&server, bucket).len() == 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_line_was_cut_the_old_consumer_is_gone_and_nothing_was_missed() {
    let mut server = server();
    let cable = Cable::to(&server).await;
    let gateway = Gateway::start_and_catch_up(&cable.address).await;
    let before = consumers(&server, "pyoco_runs");
    nothing_is_missed(&mut server, &gateway, async |server| {
        for round in 0..5 {
            cable.cut();
            gateway.is_connected(false).await;
            // Written while nobody hears it.
            let writer = open(server).await;
            publish(&writer, row("r0", 1)).await;
            publish(&writer, row(&format!("r{}", 300 + round), 1)).await;
            cable.mend();
            gateway.is_connected(true).await;
        }
    })
    .await;
    // One of the same name: there was never a second.
    assert_eq!((before.len(), consumers(&server, "pyoco_runs")), (1, before));
    // Nothing is written there, so nothing tells that it goes on.
    until("one consumer", || consumers(&server, "pyoco_workers").len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_somebody_deletes_is_made_again() {
    let mut server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    nothing_is_missed(&mut server, &gateway, async |server| {
        let other = Other::connect(server).await;
        for name in consumers(server, "pyoco_runs") {
            let answer = other.api(&format!("CONSUMER.DELETE.KV_pyoco_runs.{name}"), &Value::Null).await;
            assert_eq!(answer["success"], true, "{answer}");
        }
    })
    .await;
    assert_eq!(consumers(&server, "pyoco_runs").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_made_anew_is_followed_from_its_beginning() {
    let mut server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    // In the old bucket this gateway knows a later number than the new one will have for long.
    for version in 1..=50 {
        publish(&gateway.store, row("r0", version)).await;
    }
    publish(&gateway.store, row("gone", 1)).await;
    let other = Other::connect(&server).await;
    let answer = other.api("STREAM.DELETE.KV_pyoco_runs", &Value::Null).await;
    assert_eq!(answer["success"], true, "{answer}");
    // The log says that it exists, not its snapshot.
    gateway.has("gone", 1).await;
    publish(&gateway.store, row("r0", 51)).await;
    publish(&gateway.store, row("mine", 1)).await;
    let writer = open(&server).await;
    publish(&writer, row("theirs", 1)).await;
    gateway.has("theirs", 1).await;
    publish(&writer, row("r0", 52)).await;
    gateway.has("r0", 52).await;
    assert_eq!(consumers(&server, "pyoco_runs").len(), 1);
    server.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_that_are_too_large_for_one_request_come_all_the_same() {
    const COUNT: u64 = 40;
    let server = server();
    let writer = open(&server).await;
    for number in 0..COUNT {
        let row = row(&format!("large{number}"), 1);
        let mut large: Value = serde_json::from_slice(&snapshot(&row)).unwrap();
        large["params"] = json!({"text": "x".repeat(500_000)});
        writer.publish_row(row, serde_json::to_vec(&large).unwrap()).await.unwrap();
    }
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    assert_eq!(gateway.store.counts(None).await.unwrap(), [(RunStatus::Running, COUNT)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_knows_the_workers_of_all_processes_also_those_that_have_vanished() {
    let server = server();
    let settings = || Settings { workers_ttl: Duration::from_secs(1), ..Settings::new(&[&server.url()]) };
    let worker = NatsStore::open(settings(), None).await.unwrap();
    let report = |name: &str| {
        let body = json!({"worker_id": name, "state": "IDLE", "hidden": false, "last_seen_at": 1.5});
        let body = serde_json::to_vec(&body).unwrap();
        let seen_at = Timestamp::from_micros(1_500_000);
        WorkerRecord { worker: WorkerId::new(name).unwrap(), seen_at, hidden: false, body }
    };
    worker.report(report("early")).await.unwrap();
    let gateway = Gateway::start_with(settings()).await;
    gateway.catch_up().await;
    worker.report(report("late")).await.unwrap();
    let known = async || {
        let mut names: Vec<String> =
            gateway.store.workers().await.unwrap().iter().map(|record| record.worker.to_string()).collect();
        names.sort();
        names
    };
    let heard = async {
        while known().await != ["early", "late"] {
            tokio::time::sleep(Duration::from_millis(5)).await
        }
    };
    tokio::time::timeout(runs::SOON, heard).await.expect("both are heard");
    let other = Other::connect(&server).await;
    let gone = async {
        while other.messages("KV_pyoco_workers").await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await
        }
    };
    tokio::time::timeout(runs::SOON, gone).await.expect("records vanish");
    assert_eq!(known().await, ["early", "late"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_the_server_that_has_the_consumer_is_overcome_soon_after_the_cluster_has_its_leaders_again()
 {
    let mut cluster = Cluster::start(3, &Options::default());
    let urls = cluster.urls();
    let settings = || Settings { replicas: 3, ..Settings::new(&urls.split(',').collect::<Vec<_>>()) };
    let gateway = Gateway::start_with(settings()).await;
    gateway.catch_up().await;
    let writer = NatsStore::open(settings(), None).await.unwrap();
    publish(&writer, row("e", 1)).await;
    gateway.has("e", 1).await;
    // Which server it is, only the consumer itself can tell.
    let other = Other::connect(&cluster[0]).await;
    let leader = async {
        loop {
            let names = other.api("CONSUMER.NAMES.KV_pyoco_runs", &Value::Null).await;
            if let Some(name) = names["consumers"][0].as_str() {
                let info = other.api(&format!("CONSUMER.INFO.KV_pyoco_runs.{name}"), &Value::Null).await;
                if let Some(leader) = info["cluster"]["leader"].as_str() {
                    break leader.to_owned();
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A server that was asked may not know of it yet.
    let leader = tokio::time::timeout(runs::SOON, leader).await.expect("it has a leader");
    let number: usize = leader.trim_start_matches('n').parse().unwrap();
    cluster[number].kill();
    // The stream may need another leader too; how long that takes is the cluster's affair.
    let ((), elected) = timed(async {
        loop {
            let row = row("e", 2);
            let text = snapshot(&row);
            if writer.publish_row(row, text).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let ((), heard) = timed(gateway.has("e", 2)).await;
    println!("written after {elected:?}, heard {heard:?} later");
    // It may have been the cluster's own leader as well: until there is another, which takes the servers up to ten seconds, nobody is
    // given a consumer.
    let bound = Duration::from_secs(15).saturating_sub(elected).max(Duration::from_secs(10));
    assert!(heard < bound, "written after {elected:?}, heard {heard:?} later");
}

/// A snapshot as a worker of the original writes it.
fn foreign(name: &str, status: &str) -> Value {
    json!({
        "run_id": name, "flow_name": "main", "tag": "default", "tags": [], "tenant_id": null, "api_key_id": null,
        "workflow_yaml_sha256": null, "workflow_yaml_bytes": null, "status": status, "params": {}, "tasks": {},
        "task_records": {}, "start_time": 1.5, "end_time": null, "heartbeat_at": 2.5, "updated_at": 2.5, "error": null,
        "cancel_requested_at": null, "cancel_requested_by": null,
    })
}

async fn put(other: &Other, name: &str, snapshot: &Value) {
    other.publish(&format!("$KV.pyoco_runs.{name}"), &[], &snapshot.to_string()).await;
}

async fn stored(other: &Other, name: &str) -> Value {
    let subject = format!("$KV.pyoco_runs.{name}");
    let answer = other.api("STREAM.MSG.GET.KV_pyoco_runs", &json!({"last_by_subj": subject})).await;
    let data = answer["message"]["data"].as_str().unwrap_or_else(|| panic!("{answer}"));
    use base64::Engine as _;
    serde_json::from_slice(&base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_snapshot_is_told_and_stays_until_the_log_has_taken_it_in() {
    let server = server();
    let other = Other::connect(&server).await;
    drop(open(&server).await);
    put(&other, "early", &foreign("early", "PENDING")).await;
    let mut gateway = Gateway::start_and_catch_up(&server.url()).await;
    let first = gateway.hears().await;
    assert_eq!(first.execution, execution("early"));
    assert!(
        matches!(&first.news, News::Foreign { snapshot, .. } if *snapshot == foreign("early", "PENDING"))
    );
    assert_eq!(gateway.version("early").await, Some(0), "lists show it, behind any row of ours");

    publish(&gateway.store, row("e", 1)).await;
    put(&other, "e", &foreign("e", "RUNNING")).await;
    let heard = gateway.hears().await;
    let News::Foreign { revision, .. } = heard.news else { panic!("{heard:?}") };
    // A result or a cancel may stand in it that is nowhere else.
    publish(&gateway.store, row("e", 2)).await;
    assert_eq!(stored(&other, "e").await, foreign("e", "RUNNING"));
    assert_eq!(gateway.version("e").await, Some(2));
    assert!(matches!(gateway.store.snapshot(&execution("e")).await.unwrap(), Some(News::Foreign { .. })));
    gateway.store.settle(&execution("e"), revision);
    publish(&gateway.store, row("e", 2)).await;
    assert_eq!(stored(&other, "e").await["version"], 2);
    // The next one is news again.
    put(&other, "e", &foreign("e", "COMPLETED")).await;
    let heard = gateway.hears().await;
    assert!(
        matches!(&heard.news, News::Foreign { snapshot, .. } if snapshot["status"] == "COMPLETED"),
        "{heard:?}"
    );
    // What has ended in the log is not changed by anything.
    let mut ended = row("e", 3);
    ended.summary.status = RunStatus::Failed;
    publish(&gateway.store, ended).await;
    assert_eq!(stored(&other, "e").await["status"], "FAILED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_snapshot_that_was_met_while_publishing_is_still_told() {
    let server = server();
    let other = Other::connect(&server).await;
    let mut gateway = Gateway::start_and_catch_up(&server.url()).await;
    for round in 0..200 {
        let name = format!("e{round}");
        publish(&gateway.store, row(&name, 1)).await;
        let cancel = foreign(&name, "CANCELLING");
        tokio::join!(put(&other, &name, &cancel), publish(&gateway.store, row(&name, 2)));
        publish(&gateway.store, row(&name, 3)).await;
        loop {
            let heard = gateway.hears().await;
            match heard.news {
                // An echo that came late says nothing new.
                News::Ours(_) | News::Gone => {}
                News::Foreign { snapshot, .. } => {
                    assert_eq!((heard.execution, snapshot), (execution(&name), cancel));
                    break;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_a_foreign_gateway_writes_into_our_snapshot_is_heard() {
    let server = server();
    let other = Other::connect(&server).await;
    let mut gateway = Gateway::start_and_catch_up(&server.url()).await;
    publish(&gateway.store, row("e", 4)).await;
    let mut cancelled = stored(&other, "e").await;
    assert_eq!(cancelled["version"], 4);
    cancelled["status"] = json!("CANCELLING");
    cancelled["cancel_requested_at"] = json!(1.5);
    put(&other, "e", &cancelled).await;
    let heard = gateway.hears().await;
    let News::Foreign { snapshot, .. } = heard.news else { panic!("{heard:?}") };
    assert_eq!((&snapshot["status"], &snapshot["cancel_requested_at"]), (&json!("CANCELLING"), &json!(1.5)));
    // It is never lost to a row that knows nothing of it, of this process or another.
    let late = open(&server).await;
    for store in [&gateway.store, &late] {
        publish(store, row("e", 5)).await;
        assert_eq!(stored(&other, "e").await["cancel_requested_at"], 1.5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_in_the_bucket_is_passed_over() {
    let server = server();
    let other = Other::connect(&server).await;
    drop(open(&server).await);
    for (key, text) in
        [("a", ""), ("b", "{"), ("c", "[]"), ("d", "\u{0}"), ("e.f", "{}"), ("g", r#"{"run_id":"h"}"#)]
    {
        other.publish(&format!("$KV.pyoco_runs.{key}"), &[], text).await;
    }
    other.publish("$KV.pyoco_runs.i", &[("KV-Operation", "DEL")], "").await;
    put(&other, "last", &foreign("last", "PENDING")).await;
    let mut gateway = Gateway::start_and_catch_up(&server.url()).await;
    let deleted = gateway.hears().await;
    assert_eq!((deleted.execution, deleted.news), (execution("i"), News::Gone));
    assert_eq!(gateway.hears().await.execution, execution("last"));
    // A run whose key was deleted is published all the same.
    for name in ["i", "a", "g"] {
        publish(&gateway.store, row(name, 1)).await;
        assert_eq!(stored(&other, name).await["version"], 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_snapshot_never_takes_the_place_of_a_newer_one_when_processes_race() {
    const VERSIONS: u64 = 120;
    const RUNS: usize = 4;
    let server = server();
    let mut watcher = Gateway::start_and_catch_up(&server.url()).await;
    let mut writers = Vec::new();
    for process in 0..3_u64 {
        let store = open(&server).await;
        writers.push(tokio::spawn(async move {
            for version in 1..=VERSIONS {
                for run in 0..RUNS {
                    // Each comes with another delay, so each is behind another at times.
                    if (version + process + run as u64).is_multiple_of(3) {
                        tokio::task::yield_now().await;
                    }
                    let row = row(&format!("e{run}"), version);
                    let text = snapshot(&row);
                    store.publish_row(row, text).await.unwrap();
                    let stands = store.snapshot(&execution(&format!("e{run}"))).await.unwrap();
                    let Some(News::Ours(found)) = stands else { panic!("{stands:?}") };
                    assert!(found >= Version(version), "{found} stands after {version} was published");
                }
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let mut seen = [0; RUNS];
    while seen != [VERSIONS; RUNS] {
        let heard = watcher.hears().await;
        let run: usize = heard.execution.as_str().trim_start_matches('e').parse().unwrap();
        let News::Ours(version) = heard.news else { panic!("{heard:?}") };
        assert!(version.0 >= seen[run], "{version} came after {}", seen[run]);
        seen[run] = version.0;
    }
    for run in 0..RUNS {
        watcher.has(&format!("e{run}"), VERSIONS).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_a_run_in_hand_hears_of_a_cancel_at_once() {
    let server = server();
    let other = Other::connect(&server).await;
    let (worker, gateway) = (open(&server).await, open(&server).await);
    publish(&gateway, row("e", 1)).await;
    let mut hearing = worker.hear(&execution("e"), Timestamp::from_micros(0));
    let mut next = async || tokio::time::timeout(runs::SOON, hearing.next()).await.unwrap().unwrap().news;
    assert_eq!(next().await, News::Ours(Version(1)), "what stands there already");
    // Of a gateway of ours.
    let (news, took) = timed(async {
        let (news, ()) = tokio::join!(next(), publish(&gateway, row("e", 2)));
        news
    })
    .await;
    assert_eq!(news, News::Ours(Version(2)));
    assert!(took < Duration::from_millis(500), "{took:?}");
    // Of a gateway of the original, which reads, changes and writes.
    let mut cancelled = stored(&other, "e").await;
    cancelled["cancel_requested_at"] = json!(1.5);
    let (news, took) = timed(async {
        let (news, ()) = tokio::join!(next(), put(&other, "e", &cancelled));
        news
    })
    .await;
    let News::Foreign { snapshot, revision } = news else { panic!("{news:?}") };
    assert_eq!(snapshot["cancel_requested_at"], 1.5);
    assert!(took < Duration::from_millis(500), "{took:?}");
    // Once it is in the log the snapshot is put right.
    worker.settle(&execution("e"), revision);
    publish(&worker, row("e", 3)).await;
    assert_eq!(stored(&other, "e").await["version"], 3);
    assert_eq!(next().await, News::Ours(Version(3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_a_run_in_hand_hears_what_was_written_before_and_while_the_line_was_cut() {
    let server = server();
    let other = Other::connect(&server).await;
    let cable = Cable::to(&server).await;
    let worker = NatsStore::open(Settings::new(&[&cable.address]), None).await.unwrap();
    put(&other, "e", &foreign("e", "PENDING")).await;
    let mut hearing = worker.hear(&execution("e"), Timestamp::from_micros(0));
    let mut status = async || {
        let heard = tokio::time::timeout(runs::SOON, hearing.next()).await.unwrap().unwrap();
        let News::Foreign { snapshot, .. } = heard.news else { panic!("{heard:?}") };
        snapshot["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status().await, "PENDING");
    cable.cut();
    until("the connection is lost", || !worker.is_connected()).await;
    put(&other, "e", &foreign("e", "CANCELLING")).await;
    cable.mend();
    assert_eq!(status().await, "CANCELLING");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_an_index_publishes_and_says_that_it_has_none() {
    let server = server();
    let worker = open(&server).await;
    publish(&worker, row("e", 1)).await;
    worker.put(row("e", 2)).await.unwrap();
    assert_eq!(worker.get(&execution("e")).await.unwrap_err().kind, ErrorKind::Internal);
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    gateway.has("e", 1).await;
}
