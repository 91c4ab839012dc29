//! Submitting and looking at one job.

use pyoco_gateway::Settings;
use pyoco_testing_executions::{Answer, Site, on_every_store};
use pyoco_testing_jobs::{get, submitted, submitted_with};
use serde_json::{Value, json};

on_every_store!(
    a_job_is_created_where_location_says,
    a_job_runs_the_flow_it_names_or_the_gateways_choice,
    a_job_shows_how_it_stands,
    a_key_makes_one_job,
    what_is_wrong_with_a_submission_is_told,
    a_path_that_names_no_job_is_not_found,
    the_description_has_the_schemas_of_the_contract,
);

async fn post(site: &Site, body: &Value, key: Option<&str>) -> Answer {
    let mut request = site.client.post(site.url("/jobs")).json(body);
    if let Some(key) = key {
        request = request.header("x-idempotency-key", key);
    }
    Answer::of(request.send().await.unwrap()).await
}

async fn a_job_is_created_where_location_says(site: Site) {
    let body = json!({"parameters": {"input": "data.csv", "mode": "fast"}, "tags": ["urgent", "test"]});
    let answer = post(&site, &body, None).await;
    let place = answer.header("location").to_owned();
    let job = answer.expect(201);
    assert_eq!(place, format!("/jobs/{}", job["id"].as_str().unwrap()));
    assert_eq!(job["status"], "pending");
    assert_eq!(job["tags"], json!(["urgent", "test"]));
    assert_eq!((&job["startedAt"], &job["completedAt"]), (&Value::Null, &Value::Null));
    assert_eq!((&job["flow"], &job["parameters"]), (&json!("analysis"), &body["parameters"]));
    assert!(
        job["createdAt"].as_str().is_some_and(|at| at.starts_with("2023-11-14T22:13:") && at.ends_with('Z'))
    );
    assert_eq!(site.shown(&place).await, job);
    let read: pyoco_api::Job = serde_json::from_value(job.clone()).unwrap();
    assert!(read.extra.is_empty(), "{read:?}");
    // It is the same execution everywhere.
    let id = job["id"].as_str().unwrap();
    assert_eq!(site.shown(&format!("/runs/{id}")).await["params"], body["parameters"]);
    assert_eq!(site.execution(id).await["tags"], json!(["urgent", "test"]));
}

async fn a_job_runs_the_flow_it_names_or_the_gateways_choice(site: Site) {
    let named = submitted_with(&site, &json!({"parameters": {}, "flow": "other", "tag": "gpu"})).await;
    let shown = site.execution(&named).await;
    assert_eq!((&shown["graphId"], &shown["tag"]), (&json!("other"), &json!("gpu")));
    assert_eq!(site.shown(&format!("/jobs/{named}")).await["tags"], json!([]));
    let settings = Settings { jobs_flow: "report".to_owned(), ..Settings::default() };
    let chosen = submitted(&site.again(settings).await).await;
    assert_eq!(site.execution(&chosen).await["graphId"], "report");
    // A registered graph of that name is what runs.
    site.graph("analysis", "flow: {graph: a}\ntasks: {a: {}}\n").await;
    let job = submitted(&site).await;
    assert_eq!(site.execution(&job).await["graphVersion"], 1);
}

async fn a_job_shows_how_it_stands(site: Site) {
    site.graph("analysis", "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n").await;
    let job = submitted(&site).await;
    let path = format!("/jobs/{job}");
    site.node(&job, "a", "start", json!({})).await;
    let running = site.shown(&path).await;
    assert_eq!((&running["status"], &running["completedAt"]), (&json!("running"), &Value::Null));
    assert!(running["startedAt"].is_string());
    site.node(&job, "a", "success", json!({})).await;
    site.run(&job, "b").await;
    let completed = site.shown(&path).await;
    assert_eq!((&completed["status"], &completed["startedAt"]), (&json!("completed"), &running["startedAt"]));
    assert!(completed["completedAt"].as_str() > completed["startedAt"].as_str());
    let job = submitted(&site).await;
    site.node(&job, "a", "start", json!({})).await;
    site.node(&job, "a", "fail", json!({"error": {"message": "boom"}})).await;
    let failed = site.shown(&format!("/jobs/{job}")).await;
    assert_eq!((&failed["status"], &failed["error"]), (&json!("failed"), &json!("boom")));
}

async fn a_key_makes_one_job(site: Site) {
    let body = json!({"parameters": {"n": 1}, "tags": ["cafe\u{301}"]});
    let first = post(&site, &body, Some("k")).await;
    let place = first.header("location").to_owned();
    let first = first.expect(201);
    let other = site.beside().await;
    // The same tag, written otherwise, is the same request.
    let again = post(&other, &json!({"parameters": {"n": 1}, "tags": ["caf\u{e9}"]}), Some("k")).await;
    assert_eq!(again.header("location"), place);
    assert_eq!(again.expect(200), first);
    post(&site, &json!({"parameters": {"n": 2}}), Some("k")).await.denied(409, "IDEMPOTENCY_KEY_REUSED");
    let jobs = site.shown("/jobs").await;
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1);
    // A key of another surface is another key.
    let run = site.client.post(site.url("/runs")).header("x-idempotency-key", "k");
    let run = Answer::of(run.json(&json!({"flow_name": "analysis"})).send().await.unwrap()).await.expect(200);
    assert_ne!(run["run_id"], first["id"]);
}

async fn what_is_wrong_with_a_submission_is_told(site: Site) {
    let many: Vec<String> = (0..65).map(|number| format!("t{number}")).collect();
    let flood: Vec<String> = (0..10_000).map(|number| format!("t{number}")).collect();
    for (body, paths) in [
        (json!({}), vec!["parameters"]),
        (json!({"parameters": null}), vec!["parameters"]),
        (json!({"parameters": []}), vec!["parameters"]),
        (json!({"parameters": {}, "x": 1, "flowName": "f"}), vec!["x", "flowName"]),
        (json!({"parameters": {}, "flow": " ", "tag": "a b"}), vec!["flow", "tag"]),
        (json!({"parameters": {}, "flow": "f".repeat(257)}), vec!["flow"]),
        (json!({"parameters": {}, "tags": "urgent"}), vec!["tags"]),
        (
            json!({"parameters": {}, "tags": ["a", "", 5, "b\n", "x".repeat(129)]}),
            vec!["tags.1", "tags.2", "tags.3", "tags.4"],
        ),
        (json!({"parameters": {}, "tags": ["x".repeat(100_000)]}), vec!["tags.0"]),
        (json!({"parameters": {}, "tags": many}), vec!["tags"]),
        (json!({"parameters": {}, "tags": flood}), vec!["tags"]),
    ] {
        let answer = post(&site, &body, None).await;
        let mut found = answer.paths("INVALID_INPUT");
        found.sort();
        let mut wanted = paths;
        wanted.sort_unstable();
        assert_eq!(found, wanted);
    }
    post(&site, &json!({"parameters": {}}), Some(&"k".repeat(256)))
        .await
        .denied(422, "INVALID_IDEMPOTENCY_KEY");
    // A page of another site can post text, but not JSON.
    let text = site.client.post(site.url("/jobs")).header("content-type", "text/plain");
    let text = Answer::of(text.body(r#"{"parameters": {}}"#).send().await.unwrap()).await;
    text.denied(422, "INVALID_INPUT");
    let large = json!({"parameters": {"x": "x".repeat(2 << 20)}});
    post(&site, &large, None).await.denied(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(site.shown("/jobs").await, json!({"jobs": []}));
}

async fn a_path_that_names_no_job_is_not_found(site: Site) {
    for path in
        ["/jobs/nothing", "/jobs/a.b", "/jobs/%3E", "/jobs/%ff", "/jobs/nothing/logs", "/jobs/nothing/tags"]
    {
        assert_eq!(get(&site, path, &[]).await.code(404), "JOB_NOT_FOUND", "{path}");
    }
    let stream = get(&site, "/jobs/nothing/logs/stream", &[]).await;
    assert_eq!(stream.code(404), "JOB_NOT_FOUND");
    assert_eq!(get(&site, "/runs/nothing/logs", &[]).await.json()["detail"], "run not found");
    assert_eq!(get(&site, "/runs/nothing/logs/stream", &[]).await.json()["detail"], "run not found");
}

async fn the_description_has_the_schemas_of_the_contract(site: Site) {
    let description = site.shown("/openapi.json").await;
    let schemas = &description["components"]["schemas"];
    for (schema, wanted) in [
        ("SubmitJob", vec!["parameters"]),
        ("Job", vec!["id", "status", "createdAt"]),
        ("JobPage", vec!["jobs"]),
        ("LogPage", vec!["entries"]),
        ("LogEntry", vec!["timestamp", "message"]),
        ("AddTag", vec!["tag"]),
    ] {
        let required = schemas[schema]["required"].as_array().unwrap_or_else(|| panic!("no {schema}"));
        assert!(wanted.iter().all(|name| required.contains(&json!(name))), "{schema}: {required:?}");
    }
    let properties = &schemas["Job"]["properties"];
    for name in ["createdAt", "startedAt", "completedAt"] {
        assert_eq!(properties[name]["format"], "date-time", "{name}");
    }
    assert_eq!(properties["startedAt"]["type"], json!(["string", "null"]));
    let words = json!(["pending", "running", "completed", "failed", "canceled"]);
    assert_eq!(schemas["JobState"]["enum"], words);
    for named in ["JobNews", "JobWish", "TagPage"] {
        assert!(schemas[named].is_object(), "{named}");
    }
}
