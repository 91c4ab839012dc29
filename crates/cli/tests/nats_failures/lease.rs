//! A run that takes longer than a lease is still delivered once: its worker says in time that it is at work.

use std::time::Duration;

use pyoco_client::api::RunStatus;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::json;

use crate::ground::{Ground, is_soak, until};
use crate::load::request;
use crate::wire::Wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_three_times_as_long_as_a_lease_is_delivered_once() {
    let nats = NatsServer::start(&Options::default());
    // The long form with the lease of the contract.
    let (lease, seconds) = if is_soak() { ("30", 90.0) } else { ("2", 6.2) };
    let ground = Ground::new(&nats.url()).env("PYOCO_CONSUMER_ACK_WAIT_SEC", lease);
    let (gateway, wire) = (ground.gateway(), Wire::connect(&nats.url()).await);
    let answers = wire.answers().await;
    // The second one would take it at once.
    let _workers = [ground.worker("w0", "default", 1), ground.worker("w1", "default", 1)];
    let params = json!({"id": "long", "ledger": ground.ledger_path(), "seconds": seconds});
    let run = gateway.client.submit_run(&request("slow", None, &params)).await.unwrap().run_id.clone();
    // Longer than anything else may take.
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let ended = gateway.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    for (task, record) in ended.task_records.unwrap() {
        assert_eq!(record.attempts.len(), 1, "{task}: {record:?}");
    }
    let claims = wire.records(&run).await.iter().filter(|record| record.claim.is_some()).count();
    assert_eq!(claims, 1);
    assert_eq!(ground.ledger().len(), 4, "each of the two tasks began and ended once");
    let acked =
        until("the answer", async || answers.heard().into_iter().find(|answer| answer.word == "+ACK"));
    assert_eq!(acked.await.delivery, 1);
    let consumer = wire.consumers("PYOCO_WORK").await["pyoco_workers_default"].clone();
    assert_eq!(consumer["delivered"]["consumer_seq"], 1, "{consumer}");
    assert_eq!(
        (&consumer["num_redelivered"], &consumer["num_ack_pending"]),
        (&json!(0), &json!(0)),
        "{consumer}"
    );
}
