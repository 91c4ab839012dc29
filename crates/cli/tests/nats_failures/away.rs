//! NATS is away for a while, dead or only silent: gateways say so in time, work again without help, and leave nothing behind that
//! was refused and nothing twice that should be there once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pyoco_client::Error;
use pyoco_client::api::RunStatus;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};

use crate::ground::{Ground, is_soak, until};
use crate::load::request;
use crate::support::Running;
use crate::wire::Wire;

/// A refusal must come so soon.
const SOON: Duration = Duration::from_secs(2);

async fn submit(gateway: &Running, ground: &Ground, id: &str) -> Result<String, Error> {
    let params = json!({"id": id, "ledger": ground.ledger_path()});
    gateway.client.submit_run(&request("quick", None, &params)).await.map(|answer| answer.run_id.clone())
}

async fn health(gateway: &Running) -> u16 {
    let answer = reqwest::get(format!("{}/health", gateway.url)).await.unwrap();
    answer.status().as_u16()
}

/// The one refusal of the contract for this.
#[track_caller]
fn says_so(refused: &Error) {
    let Error::Status(said) = refused else { panic!("{refused:?}") };
    assert_eq!((refused.status(), said.err_id()), (Some(503), Some("ERR-PYOCO-0003")), "{refused}");
}

/// What is asked while nobody can answer: refused in time and in the words of the contract.
async fn is_refused(gateway: &Running, ground: &Ground, known: &str, id: &str) -> Duration {
    let since = Instant::now();
    let (submitted, read, healthy) =
        tokio::join!(submit(gateway, ground, id), gateway.client.get_run(known), health(gateway));
    let took = since.elapsed();
    let refused = submitted.expect_err("nobody can have accepted it");
    says_so(&refused);
    // What a gateway knows by itself it may tell; what it does not, it may not make up.
    if let Err(refused) = read {
        says_so(&refused);
    }
    assert_eq!(healthy, 200);
    assert!(took < SOON, "{took:?}");
    took
}

/// The `id`s of the runs in every list of a gateway, whatever their status.
async fn listed(gateway: &Running) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for query in
        ["", "&status=PENDING", "&status=CANCELLED", "&status=COMPLETED", "&flow=quick", "&tag=default"]
    {
        let url = format!("{}/runs?include=full&limit=200{query}", gateway.url);
        let runs: Vec<Value> = reqwest::get(url).await.unwrap().json().await.unwrap();
        assert!(runs.len() < 200, "a longer list than this test can see");
        ids.extend(runs.iter().filter_map(|run| run["params"]["id"].as_str()).map(str::to_owned));
    }
    ids
}

/// The `id`s of the runs that have a snapshot.
async fn shown(wire: &Wire) -> BTreeSet<String> {
    let snapshots = wire.snapshots().await;
    snapshots.values().map(|run| run["params"]["id"].as_str().unwrap().to_owned()).collect()
}

/// One consumer of each gateway on each bucket, one on the queue for the tag, and none beside.
async fn consumers_are_one_of_each(wire: &Wire, gateways: usize) {
    for (stream, beginning, wanted) in [
        ("KV_pyoco_runs", "pyoco_index_", gateways),
        ("KV_pyoco_workers", "pyoco_index_", gateways),
        ("PYOCO_WORK", "pyoco_workers_default", 1),
        ("PYOCO_EVENTS", "", 0),
        ("PYOCO_LOGS", "", 0),
        ("PYOCO_DLQ", "", 0),
    ] {
        // One that is in doubt is removed before it is made again: there may be fewer for a moment, and never more.
        until("one consumer of each", async || {
            let names: Vec<String> = wire.consumers(stream).await.into_keys().collect();
            let is_right = names.len() <= wanted && names.iter().all(|name| name.starts_with(beginning));
            assert!(is_right, "{stream} has {names:?}");
            (names.len() == wanted).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_nats_a_gateway_refuses_in_time_and_works_again_by_itself() {
    let mut nats = NatsServer::start(&Options::default());
    let ground = Ground::new(&nats.url());
    let gateways = [ground.gateway(), ground.gateway()];
    let _worker = ground.worker("w0", "default", 2);
    let known = submit(&gateways[0], &ground, "before").await.unwrap();
    gateways[1].until_ended(&known).await;
    let mut accepted = BTreeSet::from(["before".to_owned()]);
    let mut slowest = Duration::ZERO;
    let rounds = if is_soak() { 6 } else { 4 };
    for round in 0..rounds {
        // Dead, and only silent, in turn: the second is what a lost machine looks like.
        let is_dead = round % 2 == 0;
        let away = Duration::from_secs(if is_soak() { 60 } else { 3 });
        let since = Instant::now();
        if is_dead {
            nats.kill()
        } else {
            nats.pause()
        }
        let (mut number, mut refused) = (0, 0);
        while since.elapsed() < away {
            let asked = gateways.iter().cycle().take(8).enumerate().map(|(place, gateway)| {
                let id = format!("refused-{round}-{number}-{place}");
                let (ground, known) = (&ground, &known);
                async move { is_refused(gateway, ground, known, &id).await }
            });
            slowest = futures_util::future::join_all(asked).await.into_iter().fold(slowest, Duration::max);
            refused += 8;
            number += 1;
        }
        if is_dead {
            nats.restart()
        } else {
            nats.resume()
        }
        let back = Instant::now();
        for (gateway, name) in gateways.iter().zip(["a", "b"]) {
            // It may refuse a little longer, until it has noticed.
            let (run, id) = until("the return", async || {
                number += 1;
                let id = format!("after-{round}-{name}-{number}");
                submit(gateway, &ground, &id).await.ok().map(|run| (run, id))
            })
            .await;
            accepted.insert(id);
            assert_eq!(gateway.until_ended(&run).await.status, RunStatus::Completed);
        }
        eprintln!(
            "away: round {round}, {refused} refusals, everything works again after {:?}",
            back.elapsed()
        );
        let wire = Wire::connect(&nats.url()).await;
        consumers_are_one_of_each(&wire, gateways.len()).await;
        // What was refused is nowhere: in no list, with nobody's worker, and has no snapshot.
        for gateway in &gateways {
            until("lists without what was refused", async || {
                (listed(gateway).await == accepted).then_some(())
            })
            .await;
        }
        assert_eq!(shown(&wire).await, accepted);
    }
    // Nor is it taken for something that lost its gateway: when all records were looked through for such runs, nothing has come of it.
    let wire = Wire::connect(&nats.url()).await;
    until("a look through all records", async || wire.is_looked_through().await.then_some(())).await;
    assert_eq!(shown(&wire).await, accepted);
    for gateway in &gateways {
        assert_eq!(listed(gateway).await, accepted);
    }
    let ran: BTreeSet<String> = ground.ledger().into_iter().map(|line| line.id).collect();
    assert_eq!(ran, accepted, "what was refused must not run");
    eprintln!("away: refused within {slowest:?}");
}
