//! Registered graphs: versions, conditions, deletion and what is wrong with one.

use pyoco_testing_executions::{Answer, Site, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    a_graph_has_versions,
    a_graph_may_be_json,
    a_change_may_be_conditional,
    a_deleted_graph_is_gone_and_goes_on_with_its_numbers,
    executions_keep_the_version_that_they_were_made_of,
    graphs_are_listed_by_name,
    what_is_no_flow_is_refused_with_its_places,
    a_name_has_its_rules,
    a_graph_is_known_to_other_gateways_and_after_a_restart,
);

const ONE: &str = "version: 2\nflow: {graph: a}\ntasks: {a: {}}\n";
const TWO: &str =
    "version: 2\nflow: {graph: 'a >> b'}\ntasks:\n  a: {wait: {key: k}}\n  b: {callable: 'm:b'}\n";

async fn a_graph_has_versions(site: Site) {
    let first = site.put("/graphs/g", ONE).await;
    assert_eq!(first.status, 201, "{}", first.json);
    assert_eq!(first.header("etag"), "\"1\"");
    let wanted = json!([{"nodeId": "a", "nodeType": "Task", "runner": "external"}]);
    assert_eq!(first.json["nodes"], wanted);
    assert_eq!((&first.json["graphId"], &first.json["version"]), (&json!("g"), &json!(1)));
    assert_eq!(first.json["flowVersion"], 2);
    assert!(first.json["createdAt"].is_string());
    // The same text is the same version.
    let same = site.put("/graphs/g", ONE).await;
    assert_eq!((same.status, &same.json), (200, &first.json));
    let second = site.put("/graphs/g", TWO).await;
    assert_eq!((second.status, second.header("etag"), &second.json["version"]), (200, "\"2\"", &json!(2)));
    let runners: Vec<&Value> =
        second.json["nodes"].as_array().unwrap().iter().map(|node| &node["runner"]).collect();
    assert_eq!(runners, ["wait", "callable"]);
    let shown = site.get("/graphs/g").await;
    assert_eq!(shown.header("etag"), "\"2\"");
    assert_eq!((&shown.json["source"], &shown.json["format"]), (&json!(TWO), &json!("yaml")));
    let shown = site.get("/graphs/g?version=1").await;
    assert_eq!(shown.header("etag"), "\"1\"");
    assert_eq!((&shown.json["source"], &shown.json["version"]), (&json!(ONE), &json!(1)));
    let read: pyoco_api::Graph = serde_json::from_value(shown.json.clone()).unwrap();
    assert!(read.extra.is_empty());
    site.get("/graphs/g?version=3").await.denied(404, "GRAPH_NOT_FOUND");
    // A flow of version 1 finds its tasks where it runs.
    let old = site
        .put("/graphs/old", "flow: {graph: 'a >> b'}\ntasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}}\n")
        .await;
    assert_eq!((old.status, &old.json["flowVersion"]), (201, &json!(1)));
}

async fn a_graph_may_be_json(site: Site) {
    let document = json!({"version": 2, "flow": {"graph": "a >> b"}, "tasks": {"a": {}, "b": {}}});
    for content_type in [None, Some("application/json"), Some("Application/JSON; charset=utf-8")] {
        let mut request = site.client.put(site.url("/graphs/j")).body(document.to_string());
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert!(matches!(answer.status, 200 | 201), "{}", answer.json);
        assert_eq!(answer.json["version"], 1);
    }
    assert_eq!(site.shown("/graphs/j").await["format"], "json");
    for content_type in ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"] {
        let request = site.client.put(site.url("/graphs/y")).header("content-type", content_type);
        let answer = Answer::of(request.body(ONE).send().await.unwrap()).await;
        assert!(matches!(answer.status, 200 | 201), "{content_type}: {}", answer.json);
    }
    for content_type in ["application/xml", "multipart/form-data; boundary=x", "", "application/jsonx"] {
        let request = site.client.put(site.url("/graphs/y")).header("content-type", content_type);
        let answer = Answer::of(request.body(ONE).send().await.unwrap()).await;
        answer.denied(415, "UNSUPPORTED_MEDIA_TYPE");
    }
}

async fn conditional(site: &Site, text: &str, version: &str) -> Answer {
    let request = site.client.put(site.url("/graphs/g")).header("content-type", "text/yaml");
    Answer::of(request.header("if-match", version).body(text.to_owned()).send().await.unwrap()).await
}

async fn a_change_may_be_conditional(site: Site) {
    conditional(&site, ONE, "*").await.denied(412, "PRECONDITION_FAILED");
    conditional(&site, ONE, "\"1\"").await.denied(412, "PRECONDITION_FAILED");
    site.put("/graphs/g", ONE).await.expect(201);
    for wrong in ["\"2\"", "\"0\"", "1", "W/\"1\"", "x"] {
        conditional(&site, TWO, wrong).await.denied(412, "PRECONDITION_FAILED");
    }
    assert_eq!(site.shown("/graphs/g").await["version"], 1);
    assert_eq!(conditional(&site, TWO, "\"1\"").await.expect(200)["version"], 2);
    conditional(&site, ONE, "\"1\"").await.denied(412, "PRECONDITION_FAILED");
    assert_eq!(conditional(&site, ONE, "*").await.expect(200)["version"], 3);
    let delete = site.client.delete(site.url("/graphs/g")).header("if-match", "\"2\"");
    Answer::of(delete.send().await.unwrap()).await.denied(412, "PRECONDITION_FAILED");
    let delete = site.client.delete(site.url("/graphs/g")).header("if-match", "\"3\"");
    assert_eq!(delete.send().await.unwrap().status(), 204);
    // Of several who build on the same version one succeeds.
    site.put("/graphs/race", ONE).await.expect(201);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let text = format!("version: 2\nflow: {{graph: a}}\ntasks: {{a: {{}}, w{writer}: {{}}}}\n");
        let request = site.client.put(site.url("/graphs/race")).header("content-type", "text/yaml");
        let request = request.header("if-match", "\"1\"").body(text);
        writers.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    let mut statuses = writers.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

async fn delete(site: &Site, id: &str) -> Answer {
    Answer::of(site.client.delete(site.url(&format!("/graphs/{id}"))).send().await.unwrap()).await
}

async fn a_deleted_graph_is_gone_and_goes_on_with_its_numbers(site: Site) {
    delete(&site, "g").await.denied(404, "GRAPH_NOT_FOUND");
    site.put("/graphs/g", ONE).await.expect(201);
    assert_eq!(delete(&site, "g").await.expect(204), Value::Null);
    delete(&site, "g").await.denied(404, "GRAPH_NOT_FOUND");
    site.get("/graphs/g").await.denied(404, "GRAPH_NOT_FOUND");
    assert_eq!(site.shown("/graphs").await["items"], json!([]));
    site.post("/executions", &json!({"graphId": "g"})).await.denied(404, "GRAPH_NOT_FOUND");
    let again = site.put("/graphs/g", ONE).await;
    assert_eq!((again.status, &again.json["version"]), (201, &json!(3)));
}

async fn executions_keep_the_version_that_they_were_made_of(site: Site) {
    site.put("/graphs/g", ONE).await.expect(201);
    let execution = site.created("g").await;
    site.put("/graphs/g", TWO).await.expect(200);
    let pinned = site.created_with(&json!({"graphId": "g", "graphVersion": 1})).await;
    assert_eq!(site.execution(&site.created("g").await).await["graphVersion"], 2);
    delete(&site, "g").await.expect(204);
    for execution in [execution, pinned] {
        let shown = site.execution(&execution).await;
        assert_eq!((&shown["graphVersion"], shown["nodes"].as_array().unwrap().len()), (&json!(1), 1));
        site.done(&format!("/executions/{execution}/start"), &json!({})).await;
        site.run(&execution, "a").await;
        assert_eq!(site.status(&execution).await, "COMPLETED");
    }
}

async fn graphs_are_listed_by_name(site: Site) {
    assert_eq!(site.shown("/graphs").await, json!({"items": [], "nextCursor": null}));
    let names = ["b", "a", "c c", "é", "B"];
    for name in names {
        site.put(&format!("/graphs/{}", name.replace(' ', "%20")), ONE).await.expect(201);
    }
    site.put("/graphs/a", TWO).await.expect(200);
    let mut wanted = names.to_vec();
    wanted.sort_unstable();
    let (mut found, mut path) = (Vec::new(), "/graphs?limit=2".to_owned());
    loop {
        let page = site.shown(&path).await;
        let items = page["items"].as_array().unwrap();
        found.extend(items.iter().map(|item| item["graphId"].as_str().unwrap().to_owned()));
        let item = items.iter().find(|item| item["graphId"] == "a");
        assert!(item.is_none_or(|item| item["version"] == 2 && item["createdAt"].is_string()), "{page}");
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/graphs?limit=2&cursor={cursor}");
    }
    assert_eq!(found, wanted);
}

async fn what_is_no_flow_is_refused_with_its_places(site: Site) {
    let broken = "version: 2\nflow: {graph: 'a >> nothing'}\ntasks:\n  a: {}\n";
    let answer = site.put("/graphs/g", broken).await;
    let error = answer.denied(422, "INVALID_GRAPH");
    let problem = &error["details"]["errors"][0];
    assert_eq!(problem["line"], 2, "{error}");
    assert!(problem["column"].as_u64().is_some_and(|column| column > 15), "{error}");
    for name in ["message", "reason", "help"] {
        assert!(problem[name].is_string(), "{name}: {error}");
    }
    for (text, line) in [
        ("version: 2\nflow: {graph: 'a >>'}\ntasks: {a: {}}\n", Some(2)),
        ("version: 2\nflow: {graph: a}\ntasks: {a: {retries: many}}\n", Some(3)),
        ("version: 2\nflow: {graph: a}\ntasks: {a: {}}\nmore: 1\n", None),
        ("a: [", None),
        ("", None),
        ("version: 3\nflow: {graph: a}\ntasks: {a: {}}\n", None),
    ] {
        let answer = site.put("/graphs/g", text).await;
        let error = answer.denied(422, "INVALID_GRAPH");
        let errors = error["details"]["errors"].as_array().unwrap_or_else(|| panic!("{text}: {error}"));
        assert!(errors[0]["reason"].is_string(), "{text}: {error}");
        assert!(line.is_none_or(|line: u64| errors[0]["line"] == line), "{text}: {error}");
    }
    let request = site.client.put(site.url("/graphs/g")).body(&b"{\"version\": \"\xff\"}"[..]);
    Answer::of(request.send().await.unwrap()).await.denied(422, "INVALID_GRAPH");
    site.get("/graphs/g").await.denied(404, "GRAPH_NOT_FOUND");
}

async fn a_name_has_its_rules(site: Site) {
    for name in ["a%2Fb", "a%0Ab", "x".repeat(257).as_str()] {
        let answer = site.put(&format!("/graphs/{name}"), ONE).await;
        assert_eq!(answer.paths("INVALID_INPUT"), ["graphId"], "{name}");
        site.get(&format!("/graphs/{name}")).await.denied(404, "GRAPH_NOT_FOUND");
        delete(&site, name).await.denied(404, "GRAPH_NOT_FOUND");
    }
    for name in ["a.b*c>", "%20", "x".repeat(256).as_str(), "%E6%97%A5%E6%9C%AC"] {
        site.put(&format!("/graphs/{name}"), ONE).await.expect(201);
        let shown = site.shown(&format!("/graphs/{name}")).await;
        let execution = site.created(shown["graphId"].as_str().unwrap()).await;
        assert_eq!(site.execution(&execution).await["graphId"], shown["graphId"]);
    }
}

async fn a_graph_is_known_to_other_gateways_and_after_a_restart(site: Site) {
    let beside = site.beside().await;
    site.put("/graphs/g", ONE).await.expect(201);
    assert_eq!(beside.shown("/graphs/g").await["version"], 1);
    assert_eq!(beside.put("/graphs/g", TWO).await.expect(200)["version"], 2);
    assert_eq!(site.execution(&site.created("g").await).await["graphVersion"], 2);
    drop(beside);
    let site = site.restarted().await;
    assert_eq!(site.shown("/graphs/g").await["source"], TWO);
    assert_eq!(site.shown("/graphs").await["items"][0]["version"], 2);
}
