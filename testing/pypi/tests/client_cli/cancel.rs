//! `cancel`.

use pyoco_pypi::Site;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_is_cancelled_at_once() {
    let site = Site::without_worker().await;
    for wait in [&[][..], &["--wait"]] {
        let run = site.submit("sum", &[]).await;
        let answer = site.client(&[&["cancel", "--run-id", &run], wait].concat()).await.json();
        assert_eq!((&answer["run_id"], &answer["status"]), (&json!(run), &json!("CANCELLED")));
        assert!(answer["cancel_requested_at"].is_f64() && answer.get("task_records").is_none());
        // What has ended stays as it is.
        let again = site.client(&["cancel", "--run-id", &run, "--wait"]).await.json();
        assert_eq!(again, answer);
        assert_eq!(site.client(&["get", &run]).await.json(), answer);
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_runs_is_asked_first_and_then_waited_for() {
    let site = Site::start().await;
    let held = site.hold("stubborn").await;
    let asked = site.client(&["cancel", "--run-id", &held.run]).await.json();
    assert_eq!((&asked["status"], &asked["tasks"]["hold"]), (&json!("CANCELLING"), &json!("RUNNING")));
    assert!(asked["cancel_requested_at"].is_f64());

    let impatient = site.client(&["cancel", "--run-id", &held.run, "--wait", "--timeout-sec", "1"]).await;
    assert_eq!((impatient.code, impatient.stdout.as_str()), (Some(1), ""));
    assert!(impatient.stderr.starts_with("ERR-PYOCO-CANCEL: wait timeout\n"), "{}", impatient.stderr);

    held.release();
    let ended = site.client(&["cancel", "--run-id", &held.run, "--wait"]).await.json();
    assert_eq!(ended["status"], "CANCELLED");
    assert_eq!(ended["cancel_requested_at"], asked["cancel_requested_at"], "the first request counts");
    assert!(ended["end_time"].is_f64());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_listens_ends_its_run_and_what_comes_after_is_not_run() {
    let site = Site::start().await;
    let held = site.hold("hold").await;
    let ended = site.client(&["cancel", "--run-id", &held.run, "--wait"]).await.json();
    assert_eq!((&ended["status"], &ended["error"]), (&json!("CANCELLED"), &Value::Null));
    assert_eq!(ended["tasks"]["after"], "CANCELLED");

    let run = site.submit("sum", &[]).await;
    let completed = site.ended(&run).await;
    let answer = site.client(&["cancel", "--run-id", &run]).await.json();
    assert_eq!((&answer["status"], &answer["cancel_requested_at"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(answer["updated_at"], completed["updated_at"]);
    site.stop().await;
}
