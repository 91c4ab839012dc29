//! A gateway that dies behind the first record of a submission without a key: nobody was told of the run, nobody can ask for it again,
//! and yet it is seen and ends.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyoco_chaos::fleet::{Fleet, Kind};
use pyoco_chaos::site::{Programs, Site};
use pyoco_chaos::{PATIENCE, flows, look};
use serde_json::{Value, json};

async fn listed(url: &str) -> Vec<Value> {
    let answer = reqwest::get(format!("{url}/runs?include=full&limit=200")).await.unwrap();
    answer.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_lost_its_gateway_behind_its_first_record_is_seen_and_ends() {
    let site = Site::new(Programs::Own(PathBuf::from(env!("CARGO_BIN_EXE_pyoco-chaos"))));
    let mut fleet = Fleet::new(site, Kind::Nats, None).await;
    fleet.more = vec![("PYOCO_FAULTS".to_owned(), "start.after_append:crash".to_owned())];
    fleet.mend().await;
    fleet.more.clear();
    let urls = fleet.urls();
    let body = json!({"flow_name": flows::NAMED, "params": {"label": "begun", "seconds": 0.0}});
    let answer = reqwest::Client::new().post(format!("{}/runs", urls[0])).json(&body).send().await;
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(look::unseen(&fleet).await.len(), 1);
    // The other gateway was there all the time, and the one that died is there again.
    fleet.mend().await;
    let since = Instant::now();
    loop {
        let mut ended = 0;
        for url in &urls {
            let runs = listed(url).await;
            assert!(runs.len() <= 1, "{runs:?}");
            ended += runs.iter().filter(|run| run["status"] == "COMPLETED").count();
        }
        if ended == urls.len() {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "nobody has found it");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(look::unseen(&fleet).await, []);
    let run = &listed(&urls[0]).await[0];
    assert_eq!(run["params"]["label"], "begun");
}
