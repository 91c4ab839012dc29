//! A worker is stopped in the middle of a task, for longer than its lease, and goes on later: it must change nothing any more.

use pyoco_client::api::RunStatus;
use pyoco_core::event::EventType;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::json;

use crate::ground::{Ground, is_soak, random, until};
use crate::load::request;
use crate::support::Running;
use crate::verdict::end;
use crate::wire::Wire;

/// When the stopped worker goes on.
#[derive(Debug, Clone, Copy)]
enum Resumed {
    /// While its successor is in the middle of the same task.
    Meanwhile,
    /// After its successor has ended the run.
    Afterwards,
}

async fn submit(gateway: &Running, ground: &Ground, flow: &str, tag: &str, id: &str, seconds: f64) -> String {
    let params = json!({"id": id, "ledger": ground.ledger_path(), "seconds": seconds});
    gateway.client.submit_run(&request(flow, Some(tag), &params)).await.unwrap().run_id.clone()
}

async fn round(number: usize, resumed: Resumed) {
    let nats = NatsServer::start(&Options::default());
    let ground = Ground::new(&nats.url());
    let (gateway, wire) = (ground.gateway(), Wire::connect(&nats.url()).await);
    let answers = wire.answers().await;
    let id = format!("zombie-{number}");
    // One run at a time: when it has done another one, it is through with this one.
    let zombie = ground.worker("zombie", "shared,own", 1);
    let run = submit(&gateway, &ground, "slow", "shared", &id, 1.0).await;
    let began = async || ground.ledger().iter().filter(|line| line.task == "slow" && line.id == id).count();
    until("the task", async || (began().await == 1).then_some(())).await;
    zombie.pause();
    let heir = ground.worker("heir", "shared", 1);
    // The task itself is not stopped: it ends, and its result waits for the worker.
    until("the successor", async || {
        let records = wire.records(&run).await;
        let claims: Vec<&str> = records
            .iter()
            .filter_map(|record| record.claim.as_ref())
            .map(|claim| claim.worker.as_str())
            .collect();
        assert!(claims.len() < 3, "{claims:?}");
        (claims == ["zombie", "heir"]).then_some(())
    })
    .await;
    if matches!(resumed, Resumed::Afterwards) {
        gateway.until_ended(&run).await;
    }
    let heard = answers.heard().len();
    zombie.resume();
    let ended = gateway.until_ended(&run).await;
    let marker = submit(&gateway, &ground, "quick", "own", "marker", 0.0).await;
    assert_eq!(gateway.until_ended(&marker).await.status, RunStatus::Completed);
    assert_eq!(gateway.until_ended(&marker).await.worker_id.as_deref(), Some("zombie"));

    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    assert_eq!(ended.worker_id.as_deref(), Some("heir"));
    let records = wire.records(&run).await;
    assert_eq!(end(&run, &records), Some(EventType::ExecutionCompleted));
    let taken_over = records.iter().position(|record| record.epoch.0 == 2).expect("a second claim");
    let stale = records[taken_over..].iter().filter(|record| record.epoch.0 < 2).count();
    assert_eq!(stale, 0, "the first holder has written after the second: {records:#?}");
    // Two attempts at the task that was interrupted, one at the other, and every one is a body that ran.
    let bodies = |task: &str| {
        ground
            .ledger()
            .iter()
            .filter(|line| line.id == id && line.task == task && line.word == "begins")
            .count()
    };
    assert_eq!((bodies("slow"), bodies("after")), (2, 1));
    // The message was taken out of the queue by its second holder, and the first said nothing at all about it.
    let first = answers.heard().iter().find(|answer| answer.delivery == 2).expect("a redelivery").sequence;
    let of_zombie: Vec<_> = answers.heard()[heard..]
        .iter()
        .filter(|answer| answer.sequence == first && answer.delivery == 1)
        .cloned()
        .collect();
    assert_eq!(of_zombie, [], "the first holder has answered a message that is not its own any more");
    let acks = until("the answer of the second holder", async || {
        let heard = answers.heard();
        let acks: Vec<_> = heard
            .iter()
            .filter(|answer| answer.sequence == first && answer.word == "+ACK")
            .cloned()
            .collect();
        (!acks.is_empty()).then_some(acks)
    })
    .await;
    assert_eq!(acks.len(), 1, "{acks:?}");
    assert_eq!(acks[0].delivery, 2);
    drop(heir);
    eprintln!(
        "zombie: resumed {resumed:?}: {} records, the zombie said {:?}",
        records.len(),
        warnings(&zombie.said())
    );
}

/// What a worker complained about.
fn warnings(said: &[String]) -> Vec<String> {
    let lines = said.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|line| line["level"] != "INFO").map(|line| line["message"].to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_stopped_past_its_lease_changes_nothing_when_it_goes_on() {
    let _ = random("zombie");
    for number in 0..if is_soak() { 20 } else { 1 } {
        round(number, Resumed::Meanwhile).await;
        round(number, Resumed::Afterwards).await;
    }
}
