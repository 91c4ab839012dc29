//! Every golden document, submitted over HTTP: what passes is kept as it was sent, what fails is refused for its reason.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use pyoco_client::{Client, Error};
use pyoco_server::{Config, Functions, Server, ServerOptions};
use pyoco_vectors::vector::{Document, documents};
use serde_json::{Value, json};

/// What the gateway says to a document, in the words of the vectors.
async fn submit(client: &Client, document: &Document) -> Value {
    match client.submit_run_yaml(document.bytes().unwrap(), "main", "").await {
        Ok(submitted) => {
            let run = client.get_run(&submitted.run_id).await.unwrap();
            json!({
                "defaults": run.params,
                "sha256": run.workflow_yaml_sha256,
                "size_bytes": run.workflow_yaml_bytes,
                "status": run.json()["status"],
            })
        }
        Err(Error::Status(refusal)) => {
            let reason = refusal.workflow_problems().first().map(|problem| problem.reason.clone());
            json!({"refused": refusal.status, "reason": reason})
        }
        Err(error) => panic!("{}: {error}", document.name),
    }
}

/// What it has to say.
fn expected(document: &Document) -> Value {
    let refused = |reason: &str| json!({"refused": 422, "reason": reason});
    if !document.require_flow {
        return refused("missing_flow");
    }
    match &document.reason {
        // The original crashes while it sorts the keys for its answer.
        _ if document.unhandled => refused("unknown_top_level_keys: ['zz', 1]"),
        Some(reason) => refused(reason),
        // Decision 1: a graph that cannot be read is refused here, and not first by the worker.
        None if document.name == "folded-graph" => refused("invalid_graph"),
        None => json!({
            "defaults": document.parsed["defaults"],
            "sha256": document.sha256,
            "size_bytes": document.size_bytes,
            "status": "PENDING",
        }),
    }
}

#[tokio::test]
async fn documents_pass_or_fail_as_in_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { data_dir: folder.path().to_owned(), ..Config::new() };
    // Nobody is there to run them.
    let options = ServerOptions { port: 0, worker: None, ..ServerOptions::default() };
    let server = Server::start(config, options, Functions::new()).await.unwrap();
    let client = Client::new(format!("http://{}", server.address())).unwrap();
    let documents = documents().unwrap();
    assert!(
        documents.iter().any(|document| document.valid) && documents.iter().any(|document| !document.valid)
    );
    let mut report = Vec::new();
    for document in &documents {
        let (expected, got) = (expected(document), submit(&client, document).await);
        if got != expected {
            report.push(format!("{}\n    expected {expected}\n    got      {got}", document.name));
        }
    }
    server.stop().await.unwrap();
    assert!(report.is_empty(), "{} of {} differ:\n{}", report.len(), documents.len(), report.join("\n"));
}
