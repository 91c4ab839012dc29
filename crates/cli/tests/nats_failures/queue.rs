//! The queue is only a hint: what is lost with it comes back from the log.

use std::time::Instant;

use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};

use crate::ground::{Ground, count, is_soak, until};
use crate::load::{Accepted, request};
use crate::verdict::judge;
use crate::wire::Wire;

const RUNS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_runs_finish_after_the_queue_with_two_hundred_of_them_was_deleted() {
    let nats = NatsServer::start(&Options::default());
    let mut ground = Ground::new(&nats.url());
    if is_soak() {
        // As it is delivered.
        ground.site.env.remove("PYOCO_SWEEP_INTERVAL_SEC");
    }
    let (gateway, wire) = (ground.gateway(), Wire::connect(&nats.url()).await);
    let mut accepted = Vec::new();
    for number in 0..RUNS {
        let id = format!("queued-{number}");
        let params = json!({"id": id, "ledger": ground.ledger_path()});
        let answer = gateway.client.submit_run(&request("quick", None, &params)).await.unwrap();
        accepted.push(Accepted { run: answer.run_id.clone(), id, at: Instant::now() });
    }
    let deleted = wire.api("STREAM.DELETE.PYOCO_WORK", &Value::Null).await;
    assert_eq!(deleted["success"], true, "{deleted}");
    let since = Instant::now();
    let _worker = ground.worker("w0", "default", 2);
    until("the first of them", async || (count(&gateway, "COMPLETED").await > 0).then_some(())).await;
    let first = since.elapsed();
    let verdict = judge(&wire, &accepted, &ground).await;
    eprintln!(
        "queue: the first of {RUNS} ended after {first:?}, the last after {:?}: {verdict:?}",
        since.elapsed()
    );
    assert_eq!((verdict.accepted, verdict.lost_attempts), (RUNS, 0));
    assert_eq!(count(&gateway, "COMPLETED").await, RUNS as u64);
}
