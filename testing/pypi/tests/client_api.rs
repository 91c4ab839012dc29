//! PyPI's `PyocoHttpClient`: every method that our endpoints serve, from a Python program that checks types and fields.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;

use pyoco_pypi::{Site, WORKER};

#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_the_original_client_gets_what_it_expects() {
    let site = Site::start().await;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client_api.py");
    let folder = site.path("");
    let said = site.python(&program, &[&site.url(), WORKER, folder.to_str().unwrap()]).await;
    let methods: Vec<_> = said.text().lines().collect();
    let wanted = [
        "submit_run",
        "submit_run_yaml",
        "get_run",
        "get_run_with_records",
        "get_tasks",
        "list_runs",
        "list_runs_vnext",
        "watch_run",
        "cancel_run",
        "get_workers",
        "patch_worker_hidden",
        "get_metrics",
    ];
    assert_eq!(methods, wanted);
    site.stop().await;
}
