//! Two gateways on one NATS: what one has answered, the other knows at once, and neither ever goes back.

use std::time::Duration;

use pyoco_client::api::{RunSnapshot, RunStatus};
use pyoco_testing_nats::{Cluster, NatsServer, Options};
use rand::Rng as _;
use serde_json::json;

use crate::ground::{Ground, is_soak, random};
use crate::load::request;
use crate::support::Running;
use crate::wire::Wire;

/// How far a run has come.
fn rank(status: RunStatus) -> u8 {
    match status {
        RunStatus::Pending => 0,
        RunStatus::Running => 1,
        RunStatus::Cancelling => 2,
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => 3,
    }
}

/// A client that remembers the newest it has seen of a run.
#[derive(Default)]
struct Memory {
    rank: u8,
    version: u64,
}

impl Memory {
    async fn read(&mut self, gateway: &Running, run: &str) -> RunSnapshot {
        let seen = match gateway.client.get_run(run).await {
            Ok(answer) => answer.into_value(),
            Err(error) => panic!("{run} was accepted and is not found: {error}"),
        };
        let version = seen.version.expect("a version");
        assert!(version >= self.version, "{run} went back from {} to {version}", self.version);
        assert!(rank(seen.status) >= self.rank, "{run} went back to {}", seen.status);
        (self.rank, self.version) = (rank(seen.status), version);
        seen
    }
}

/// Writes through one gateway and reads through the other, in turn.
async fn pairs(ground: &Ground, pairs: usize, test: &str) {
    let mut random = random(test);
    let gateways = [ground.gateway(), ground.gateway()];
    let _worker = ground.worker("w0", "default", 2);
    let mut made = 0;
    while made < pairs {
        let one = random.random_range(0..2);
        let (writer, reader) = (&gateways[one], &gateways[1 - one]);
        let flow = if random.random_bool(0.5) { "quick" } else { "slow" };
        let params = json!({"id": format!("pair-{made}"), "ledger": ground.ledger_path(), "seconds": 0.02});
        let run = writer.client.submit_run(&request(flow, None, &params)).await.unwrap().run_id.clone();
        let mut memory = Memory::default();
        memory.read(reader, &run).await;
        made += 1;
        // What the worker writes meanwhile, seen through both in turn.
        for number in 0..random.random_range(0..6) {
            memory.read(&gateways[number % 2], &run).await;
        }
        if random.random_bool(0.5) {
            // A cancel is a write like any other: through the one that did not accept the run.
            let answer = reader.client.cancel_run(&run, None).await.unwrap();
            let answered = answer.json()["status"].as_str().unwrap_or_default().to_owned();
            let seen = memory.read(writer, &run).await;
            let is_known = seen.cancel_requested_at.is_some()
                || matches!(seen.status, RunStatus::Completed | RunStatus::Cancelled);
            assert!(is_known, "{run}: the cancel was answered with {answered}, the other shows {seen:?}");
            made += 1;
        }
        for number in 0..random.random_range(0..4) {
            memory.read(&gateways[number % 2], &run).await;
        }
    }
    eprintln!("{test}: {made} pairs, none of them stale");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_gateway_has_answered_the_other_shows_at_once() {
    let nats = NatsServer::start(&Options::default());
    pairs(&Ground::new(&nats.url()), if is_soak() { 20_000 } else { 500 }, "reads").await;
}

/// The same with three replicas, one of which lags behind because it is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while; `make soak` runs it"]
async fn a_replica_that_lags_behind_shows_nothing_old() {
    let cluster = Cluster::start(3, &Options::default());
    let urls = cluster.urls();
    // Connected to the two that go on; the third is only a replica.
    let connected = urls.rsplit_once(',').unwrap().0;
    let ground = Ground::new(connected).env("PYOCO_NATS_REPLICAS", "3");
    let (gateway, worker) = (ground.gateway(), ground.worker("first", "default", 1));
    let params = json!({"id": "first", "ledger": ground.ledger_path()});
    let first = gateway.client.submit_run(&request("quick", None, &params)).await.unwrap().run_id.clone();
    gateway.until_ended(&first).await;
    drop((gateway, worker));
    Wire::connect(connected).await.spare("n2", "n0").await;
    let lagging = async {
        loop {
            cluster[2].pause();
            tokio::time::sleep(Duration::from_millis(500)).await;
            cluster[2].resume();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = pairs(&ground, 2_000, "lagging reads") => {}
        () = lagging => {}
    }
}
