//! `watch`.

use pyoco_pypi::Site;
use serde_json::{Value, json};

use crate::keys;

fn statuses(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["data"]["snapshot"]["status"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_watched_from_now_to_its_end() {
    let site = Site::start().await;
    let held = site.hold("hold").await;
    let now = site.client(&["watch", &held.run, "--max-events", "1"]).await.json();
    assert_eq!((keys(&now), &now["event"]), (["event", "data"].into(), &json!("snapshot")));
    assert_eq!(keys(&now["data"]), ["run_id", "snapshot", "ts"].into());
    assert_eq!(now["data"]["run_id"], json!(held.run));
    assert!(now["data"]["ts"].is_f64());
    let snapshot = &now["data"]["snapshot"];
    assert_eq!((&snapshot["status"], &snapshot["tasks"]["hold"]), (&json!("RUNNING"), &json!("RUNNING")));
    assert!(snapshot.get("task_records").is_none() && snapshot.get("worker_alive").is_none());

    let watch = ["watch", &held.run, "--until-terminal", "--records"];
    let (watched, ()) = tokio::join!(site.client(&watch), async { held.release() });
    let events = watched.lines();
    assert_eq!(statuses(&events).last(), Some(&"COMPLETED"));
    assert!(statuses(&events).iter().rev().skip(1).all(|status| *status == "RUNNING"), "{events:?}");
    let last = &events.last().unwrap()["data"]["snapshot"];
    assert_eq!(last["task_records"]["hold"]["output"], "released");
    let versions: Vec<_> =
        events.iter().filter_map(|event| event["data"]["snapshot"]["updated_at"].as_f64()).collect();
    assert!(versions.is_sorted(), "{versions:?}");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_ended_is_shown_once_and_the_watch_lasts_its_time() {
    let site = Site::start().await;
    let run = site.submit("sum", &[]).await;
    let ended = site.ended(&run).await;
    let events = site.client(&["watch", &run, "--timeout-sec", "1"]).await.lines();
    assert_eq!((events.len(), statuses(&events)), (1, vec!["COMPLETED"]));

    let updated = ended["updated_at"].as_f64().unwrap();
    let at =
        site.client(&["watch", &run, "--timeout-sec", "1", "--since", &updated.to_string()]).await.lines();
    assert_eq!(statuses(&at), ["COMPLETED"]);
    let after =
        site.client(&["watch", &run, "--timeout-sec", "1", "--since", &(updated + 1.0).to_string()]).await;
    assert_eq!(after.text(), "");

    let line = site.client(&["watch", &run, "--output", "status", "--until-terminal"]).await;
    let cells: Vec<_> = line.text().trim_end_matches('\n').split('\t').collect();
    assert_eq!(cells[1..], ["snapshot", "COMPLETED", &run]);
    assert!(cells[0].parse::<f64>().unwrap() > updated);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_a_run_that_does_not_change_is_kept_alive() {
    let site = Site::without_worker().await;
    let run = site.submit("sum", &[]).await;
    // The client gives up after 5 s without a word.
    let watch = ["watch", &run, "--timeout-sec", "8"];
    let status = ["watch", &run, "--timeout-sec", "8", "--output", "status"];
    let (watched, told) = tokio::join!(site.client(&watch), site.client(&status));
    let events = watched.lines();
    assert_eq!(events[0]["event"], "snapshot");
    assert!(events.len() >= 3, "{events:?}");
    for event in &events[1..] {
        assert_eq!((&event["event"], &event["data"]["run_id"]), (&json!("heartbeat"), &json!(run)));
    }
    let times: Vec<_> = events.iter().map(|event| event["data"]["ts"].as_f64().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] < 4.0), "{times:?}");
    assert!(times.last().unwrap() - times[0] > 4.5, "{times:?}");

    let lines: Vec<Vec<_>> = told.text().lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0][1..], ["snapshot", "PENDING", &run]);
    assert!(
        lines.len() >= 3 && lines[1..].iter().all(|cells| cells[1..] == ["heartbeat", "-", &run]),
        "{lines:?}"
    );
    site.stop().await;
}
