//! The work queue on a real server, in real time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;
mod site;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use pyoco_core::ids::ExecutionId;
use pyoco_core::time::Millis;
use pyoco_ports::{Delivery, ErrorKind, WorkQueue as _};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::{Cluster, Options};
use serde_json::json;

use site::{LEASE, Site, enqueue, job, now, run, tag, take, take_one, try_take, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_wait_at_any_moment_neither_loses_nor_delays_a_job() {
    let site = Site::new().await;
    let (worker, gateway) = (site.store().await, site.store().await);
    for round in 0..80_u64 {
        let name = format!("r{round}");
        let patience = Duration::from_micros(round * 40);
        let enqueued = async {
            tokio::time::sleep(Duration::from_micros((round % 10) * 300)).await;
            enqueue(&gateway, &name).await;
        };
        let waited = async {
            let tags = [tag("default")];
            // Whether it had an end or not: from here on there is no wait.
            let _ = tokio::time::timeout(patience, worker.wait(&tags, Duration::from_secs(1))).await;
        };
        tokio::join!(enqueued, waited);
        let since = Instant::now();
        let taken = take_one(&worker).await;
        assert_eq!((run(&taken), taken.number), (name, 1), "round {round}");
        assert!(since.elapsed() < Duration::from_millis(900), "round {round} took {:?}", since.elapsed());
        worker.ack(&taken).await.unwrap();
    }
    // Nobody waits for the answer to an acknowledgement.
    until("all are acknowledged", || async { site.messages().await == 0 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_take_at_any_moment_neither_loses_nor_delays_a_job() {
    let site = Site::new().await;
    let store = site.store().await;
    for round in 0..80_u64 {
        let name = format!("r{round}");
        enqueue(&store, &name).await;
        let patience = Duration::from_micros(round * 15);
        let first = tokio::time::timeout(patience, take(&store, 3)).await.unwrap_or_default();
        let taken = match first.into_iter().next() {
            Some(taken) => taken,
            None => take_one(&store).await,
        };
        assert_eq!((run(&taken), taken.number), (name, 1), "round {round}");
        store.ack(&taken).await.unwrap();
    }
    // Nobody waits for the answer to an acknowledgement.
    until("all are acknowledged", || async { site.messages().await == 0 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_came_to_a_worker_which_does_not_take_it_goes_to_another() {
    let site = Site::new().await;
    let (idle, busy) = (site.store().await, site.store().await);
    busy.wait(&[tag("default")], Duration::from_millis(5)).await.unwrap();
    let waiting = [tag("default")];
    let waiting = busy.wait(&waiting, Duration::from_secs(5));
    let (waited, ()) = tokio::join!(waiting, enqueue(&idle, "r"));
    waited.unwrap();
    let since = Instant::now();
    assert_eq!(take(&idle, 1).await, [], "it is in the other's hands");
    let taken = take_one(&idle).await;
    assert_eq!((run(&taken).as_str(), taken.number), ("r", 2));
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_gives_back_at_once_what_nobody_took() {
    let site = Site::new().await;
    let (idle, stopped) = (site.store().await, site.store().await);
    let tags = [tag("default")];
    let (waited, ()) = tokio::join!(stopped.wait(&tags, Duration::from_secs(5)), enqueue(&idle, "r"));
    waited.unwrap();
    let since = Instant::now();
    stopped.close().await;
    assert_eq!(run(&take_one(&idle).await), "r");
    assert!(since.elapsed() < Duration::from_millis(900), "{:?}", since.elapsed());
    let error = try_take(&stopped, 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_several_leases_is_delivered_once_while_it_is_extended() {
    let site = Site::new().await;
    let lease = Duration::from_secs(1);
    let store = site.store_with(|settings| settings.ack_wait = lease).await;
    let other = site.store().await;
    enqueue(&store, "long").await;
    let taken = take_one(&store).await;
    let since = Instant::now();
    while since.elapsed() < 4 * lease {
        store.extend(&taken, LEASE, now()).await.unwrap();
        other.wait(&[tag("default")], Duration::from_millis(250)).await.unwrap();
        assert_eq!(take(&other, 1).await, [], "after {:?}", since.elapsed());
    }
    store.ack(&taken).await.unwrap();
    assert_eq!((store.depth(&tag("default")).await.unwrap(), site.messages().await), (0, 0));

    // Without a word it is another's when the lease is over.
    enqueue(&store, "silent").await;
    let first = take_one(&store).await;
    let since = Instant::now();
    let second = take_one(&other).await;
    assert_eq!((&second.id, second.number), (&first.id, 2));
    assert!(since.elapsed() > lease / 2, "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_given_back_comes_again_when_its_pause_is_over() {
    let site = Site::new().await;
    let store = site.store().await;
    enqueue(&store, "r").await;
    let first = take_one(&store).await;
    let since = Instant::now();
    store.nak(&first, Millis(700), now()).await.unwrap();
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 1);
    let again = take_one(&store).await;
    assert!(since.elapsed() >= Duration::from_millis(700), "{:?}", since.elapsed());
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
    assert_eq!((&again.id, again.number, run(&again).as_str()), (&first.id, 2, "r"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_refused_is_gone() {
    let site = Site::new().await;
    let store = site.store_with(|settings| settings.ack_wait = Duration::from_millis(500)).await;
    enqueue(&store, "r").await;
    let taken = take_one(&store).await;
    store.refuse(&taken).await.unwrap();
    assert_eq!((store.depth(&tag("default")).await.unwrap(), site.messages().await), (0, 0));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(take(&store, 1).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_delivered_too_often_is_removed_and_not_counted() {
    let site = Site::new().await;
    let store = site
        .store_with(|settings| {
            settings.ack_wait = Duration::from_millis(300);
            settings.max_deliver = 2;
        })
        .await;
    enqueue(&store, "poison").await;
    assert_eq!(take_one(&store).await.number, 1);
    assert_eq!(take_one(&store).await.number, 2);
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 1, "in hand");
    until("it is removed", || async {
        assert_eq!(take(&store, 1).await, []);
        site.messages().await == 0
    })
    .await;
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 0);
    enqueue(&store, "next").await;
    assert_eq!(run(&take_one(&store).await), "next");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_parked_while_nobody_listened_is_found_when_jobs_are_listed() {
    let site = Site::new().await;
    let change = |settings: &mut Settings| {
        settings.ack_wait = Duration::from_millis(300);
        settings.max_deliver = 1;
    };
    let store = site.store_with(change).await;
    assert_eq!(store.queued(&tag("default")).await.unwrap(), []);
    for name in ["parked", "waiting"] {
        enqueue(&store, name).await;
    }
    assert_eq!(run(&take_one(&store).await), "parked");
    let name = |name| ExecutionId::new(name).unwrap();
    assert_eq!(
        store.queued(&tag("default")).await.unwrap(),
        [name("parked"), name("waiting")],
        "in hand or not"
    );
    store.close().await;
    // Only whoever pulls finds that its lease is over. Here it is somebody who does not care.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut pulled = site.other.0.subscribe("reply").await.unwrap();
    let next = "$JS.API.CONSUMER.MSG.NEXT.PYOCO_WORK.pyoco_workers_default";
    site.other.0.publish_with_reply(next, "reply", "".into()).await.unwrap();
    let waiting = pulled.next().await.unwrap();
    site.other.0.publish(waiting.reply.unwrap(), "+ACK".into()).await.unwrap();
    let store = site.store_with(change).await;
    enqueue(&store, "new").await;
    until("the parked one is removed", || async {
        let queued = store.queued(&tag("default")).await.unwrap();
        assert!(queued.contains(&name("new")), "{queued:?}");
        !queued.contains(&name("parked"))
    })
    .await;
    assert_eq!((store.depth(&tag("default")).await.unwrap(), site.messages().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_jobs_that_was_deleted_is_made_again_by_either_side() {
    let site = Site::new().await;
    let (worker, gateway) = (site.store().await, site.store().await);
    let tags = [tag("default")];
    enqueue(&gateway, "before").await;
    worker.ack(&take_one(&worker).await).await.unwrap();

    // The worker waits when it happens; the gateway is the first to need it.
    let deleted = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        site.delete_stream("PYOCO_WORK").await;
    };
    let since = Instant::now();
    let (waited, ()) = tokio::join!(worker.wait(&tags, Duration::from_secs(20)), deleted);
    waited.unwrap();
    assert!(since.elapsed() < Duration::from_secs(5), "the wait ends with its queue");
    enqueue(&gateway, "first").await;
    let first = take_that(&worker, "first").await;
    assert_eq!(first.number, 1);

    // The worker is the first to need it, with a job of the old stream in hand.
    site.delete_stream("PYOCO_WORK").await;
    take(&worker, 1).await;
    enqueue(&gateway, "second").await;
    let second = take_that(&worker, "second").await;
    assert_eq!(second.number, 1);
    assert_ne!(second.id, first.id, "the same number in another stream");

    // What is said about the old one does not touch the new one, whose number it has.
    worker.ack(&first).await.unwrap();
    worker.refuse(&first).await.unwrap();
    let name = ExecutionId::new("second").unwrap();
    assert!(worker.queued(&tag("default")).await.unwrap().contains(&name));
    worker.ack(&second).await.unwrap();
    assert!(!worker.queued(&tag("default")).await.unwrap().contains(&name));
}

/// Takes until it is this run's job. A server that is asked for a stream within milliseconds after it was deleted finds its
/// files before they are gone: then jobs of the old one are in the new one, too.
async fn take_that(store: &NatsStore, name: &str) -> Delivery {
    loop {
        let taken = take_one(store).await;
        if run(&taken) == name {
            return taken;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_was_deleted_is_made_again_and_its_jobs_come_again() {
    let site = Site::new().await;
    let store = site.store().await;
    enqueue(&store, "r").await;
    take_one(&store).await;
    site.other.api("CONSUMER.DELETE.PYOCO_WORK.pyoco_workers_default", &json!(null)).await;
    assert_eq!(store.depth(&tag("default")).await.unwrap(), 1, "counted in the stream");
    assert_eq!(run(&take_one(&store).await), "r");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_with_other_settings_stays_as_it_is() {
    let site = Site::new().await;
    let store = site.store().await;
    let config = json!({
        "name": "pyoco_workers_default", "durable_name": "pyoco_workers_default", "filter_subject": "pyoco.work.default",
        "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant",
        "ack_wait": 7_000_000_000_u64, "max_deliver": 5, "max_ack_pending": 1, "max_batch": 2, "max_waiting": 9,
    });
    let made = site
        .other
        .api(
            "CONSUMER.CREATE.PYOCO_WORK.pyoco_workers_default.pyoco.work.default",
            &json!({"stream_name": "PYOCO_WORK", "config": config}),
        )
        .await;
    for name in ["a", "b", "c"] {
        enqueue(&store, name).await;
    }
    // More may be asked for than its operator lets anybody have at once.
    let first = take(&store, 5).await;
    assert_eq!(first.iter().map(run).collect::<Vec<_>>(), ["a"]);
    let since = Instant::now();
    assert_eq!(take(&store, 1).await, [], "one at a time");
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
    store.ack(&first[0]).await.unwrap();
    let second = take_one(&store).await;
    assert_eq!((run(&second).as_str(), second.number), ("b", 1));
    let now = site.consumer("default").await;
    assert_eq!((&now["config"], &now["created"]), (&made["config"], &made["created"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_consumer_has_the_settings_of_the_contract() {
    let site = Site::new().await;
    let store = site.store().await;
    assert_eq!(take(&store, 1).await, []);
    let config = site.consumer("default").await["config"].clone();
    for (name, wanted) in [
        ("durable_name", json!("pyoco_workers_default")),
        ("filter_subject", json!("pyoco.work.default")),
        ("ack_policy", json!("explicit")),
        ("deliver_policy", json!("all")),
        ("replay_policy", json!("instant")),
        ("ack_wait", json!(30_000_000_000_u64)),
        ("max_deliver", json!(20)),
        ("max_ack_pending", json!(200)),
        ("max_waiting", json!(512)),
    ] {
        assert_eq!(config[name], wanted, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_share_the_consumer_of_a_tag() {
    let site = Site::new().await;
    let stores = [site.store().await, site.store().await];
    for number in 0..40 {
        enqueue(&stores[0], &format!("r{number}")).await;
    }
    let takers = stores.clone().map(|store| {
        tokio::spawn(async move {
            let mut runs = Vec::new();
            loop {
                let taken = take(&store, 3).await;
                if taken.is_empty() {
                    return runs;
                }
                for delivery in taken {
                    runs.push(run(&delivery));
                    store.ack(&delivery).await.unwrap();
                }
            }
        })
    });
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.unwrap());
    }
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (40, 40));
    let info = site.other.api("STREAM.INFO.PYOCO_WORK", &json!(null)).await;
    assert_eq!((&info["state"]["consumer_count"], &info["state"]["messages"]), (&json!(1), &json!(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tag_has_its_turn() {
    let site = Site::new().await;
    let store = site.store().await;
    for number in 0..6 {
        store.enqueue(job(&format!("a{number}"), "a"), now()).await.unwrap();
    }
    store.enqueue(job("b", "b"), now()).await.unwrap();
    let worker = pyoco_core::ids::WorkerId::new("w").unwrap();
    let mut runs = Vec::new();
    for _ in 0..3 {
        let taken = store.take(&[tag("a"), tag("b")], &worker, 1, LEASE, now()).await.unwrap();
        runs.push(run(&taken[0]));
    }
    assert!(runs.contains(&"b".to_owned()), "{runs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_waiting_job_of_this_very_stream_is_dropped() {
    let site = Site::new().await;
    let (gateway, worker) = (site.store().await, site.store().await);
    let name = |name: &str| ExecutionId::new(name).unwrap();
    for run in ["taken", "waiting"] {
        enqueue(&gateway, run).await;
    }
    assert_eq!(run(&take_one(&worker).await), "taken");
    gateway.drop_waiting(&name("taken")).await.unwrap();
    assert_eq!(site.messages().await, 2, "another process has it in hand");
    gateway.drop_waiting(&name("waiting")).await.unwrap();
    assert_eq!(site.messages().await, 1);

    // The number of a message says nothing in a stream that was made anew.
    for run in ["old", "older"] {
        enqueue(&gateway, run).await;
    }
    site.delete_stream("PYOCO_WORK").await;
    for number in 0..6 {
        enqueue(&worker, &format!("new{number}")).await;
    }
    gateway.drop_waiting(&name("old")).await.unwrap();
    gateway.drop_waiting(&name("older")).await.unwrap();
    let queued = worker.queued(&tag("default")).await.unwrap();
    assert!((0..6).all(|number| queued.contains(&name(&format!("new{number}")))), "{queued:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_store_is_closed_is_done() {
    let site = Site::new().await;
    for round in 0..20 {
        let store = site.store().await;
        enqueue(&store, &format!("r{round}")).await;
        let taken = take_one(&store).await;
        store.ack(&taken).await.unwrap();
        store.close().await;
        until("it is acknowledged", || async { site.messages().await == 0 }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_killed_is_missed_at_once_and_found_again() {
    let mut site = Site::new().await;
    let store = site.store().await;
    enqueue(&store, "r").await;
    site.server.kill();
    let since = Instant::now();
    let error = try_take(&store, 1).await.unwrap_err();
    assert!(error.kind.is_retryable(), "{error}");
    let error = store.enqueue(job("refused", "default"), now()).await.unwrap_err();
    assert!(error.kind.is_retryable(), "{error}");
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    site.server.restart();
    assert_eq!(run(&take_one(&store).await), "r");
    assert_eq!(site.messages().await, 1, "what was refused does not come later");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_speak_is_an_error_within_two_seconds() {
    let site = Site::new().await;
    let store = site.store().await;
    enqueue(&store, "r").await;
    let taken = take_one(&store).await;
    site.server.pause();
    let since = Instant::now();
    let error = store.extend(&taken, LEASE, now()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    assert!(try_take(&store, 1).await.unwrap_err().kind.is_retryable());
    site.server.resume();
    // Nobody waits for the answer to that one, and a second one hurts nobody.
    until("it is acknowledged", || async { store.ack(&taken).await.is_ok() && site.messages().await == 0 })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_no_job_is_lost_or_delayed_when_a_wait_is_dropped_or_a_server_dies() {
    let mut cluster = Cluster::start(3, &Options::default());
    let open = |number: usize| {
        // Each is on a server of its own at first, so that what a job needs goes from one to the other.
        let mut urls: Vec<String> = cluster.urls().split(',').map(str::to_owned).collect();
        urls.rotate_left(number);
        let mut settings = Settings::new(&urls.iter().map(String::as_str).collect::<Vec<_>>());
        settings.replicas = 3;
        async move { NatsStore::open(settings, None).await.unwrap() }
    };
    let (gateway, worker) = (open(0).await, open(1).await);
    for round in 0..40_u64 {
        let name = format!("r{round}");
        let waited = async {
            let patience = Duration::from_micros(round * 100);
            let _ =
                tokio::time::timeout(patience, worker.wait(&[tag("default")], Duration::from_secs(1))).await;
        };
        tokio::join!(waited, enqueue(&gateway, &name));
        let since = Instant::now();
        let taken = take_one(&worker).await;
        assert_eq!((run(&taken), taken.number), (name, 1), "round {round}");
        assert!(since.elapsed() < Duration::from_millis(900), "round {round} took {:?}", since.elapsed());
        worker.ack(&taken).await.unwrap();
    }
    // The one that leads the queue.
    let jsz = cluster[0].ask("/jsz?streams=true&accounts=true&config=true");
    let streams = jsz["account_details"][0]["stream_detail"].as_array().unwrap();
    let work = streams.iter().find(|stream| stream["name"] == "PYOCO_WORK").unwrap();
    let leader = work["cluster"]["leader"].as_str().unwrap().to_owned();
    let number: usize = leader.trim_start_matches('n').parse().unwrap();
    cluster[number].kill();
    let since = Instant::now();
    while let Err(error) = gateway.enqueue(job("after", "default"), now()).await {
        assert!(error.kind.is_retryable(), "{error}");
        assert!(since.elapsed() < Duration::from_secs(10), "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A try that nobody answered may have been heard: then there are two.
    let taken = take_one(&worker).await;
    assert_eq!(run(&taken), "after");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}
