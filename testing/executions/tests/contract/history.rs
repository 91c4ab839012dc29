//! The whole history: pages, streams, and the state as of an event.

use pyoco_core::event::EventType;
use pyoco_gateway::Settings;
use pyoco_testing_executions::{Answer, Kind, Site, Told, on_every_store};
use serde_json::{Value, json};

on_every_store!(
    events_are_envelopes_without_a_gap,
    events_come_in_pages,
    a_stream_tells_what_happens_and_ends_with_the_execution,
    a_stream_goes_on_behind_what_was_seen,
    a_stream_hears_of_another_gateway,
    the_state_as_of_each_event_is_shown,
    a_history_outlives_its_gateway,
);

const CHAIN: &str = "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n";

async fn completed(site: &Site) -> String {
    site.graph("chain", CHAIN).await;
    let execution = site.started("chain").await;
    site.run(&execution, "a").await;
    site.node(&execution, "b", "start", json!({})).await;
    site.node(&execution, "b", "progress", json!({"progress": 50})).await;
    site.node(&execution, "b", "success", json!({})).await;
    execution
}

async fn events_are_envelopes_without_a_gap(site: Site) {
    let execution = completed(&site).await;
    let events = site.events(&execution).await;
    let types: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    let mut before = Value::Null;
    for (seq, event) in (1_u64..).zip(&events) {
        assert_eq!(event["seq"], seq);
        assert_eq!((&event["executionId"], &event["schemaVersion"]), (&json!(execution), &json!(1)));
        assert!(types.contains(&event["type"].as_str().unwrap()), "{event}");
        assert!(event["payload"].is_object() && event["occurredAt"].is_string(), "{event}");
        assert_eq!(event["actor"]["kind"], "user", "{event}");
        let read: pyoco_api::ExecutionEvent = serde_json::from_value(event.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), *event);
        assert_ne!(event["eventId"], before["eventId"]);
        before = event.clone();
    }
    let first = &events[0];
    assert_eq!(
        (&first["type"], &first["payload"]["graphId"]),
        (&json!("EXECUTION_CREATED"), &json!("chain"))
    );
    assert_eq!(events.last().unwrap()["type"], "EXECUTION_COMPLETED");
    assert_eq!(site.execution(&execution).await["seq"], events.len());
}

async fn events_come_in_pages(site: Site) {
    let execution = completed(&site).await;
    let all = site.events(&execution).await;
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = site.shown(&format!("/executions/{execution}/events?after={after}&limit=3")).await;
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 3);
        assert_eq!((&page["executionId"], &page["lastSeq"]), (&json!(execution), &json!(all.len())));
        found.extend(events.iter().cloned());
        let Some(next) = page["next"].as_u64() else { break };
        assert_eq!(events.last().unwrap()["seq"], next);
        after = next;
    }
    assert_eq!(found, all);
    for after in [all.len(), all.len() + 5, usize::MAX] {
        let page = site.shown(&format!("/executions/{execution}/events?after={after}")).await;
        assert_eq!((&page["events"], &page["next"]), (&json!([]), &Value::Null));
    }
}

/// Each event once, in order, without a gap, and with what the page shows of it.
#[track_caller]
fn assert_told(told: &[Told], events: &[Value], first: usize) {
    assert_eq!(told.len(), events.len() - first);
    for (told, event) in told.iter().zip(&events[first..]) {
        assert_eq!(told.id, event["seq"].as_u64());
        assert_eq!(json!(told.event), event["type"]);
        assert_eq!(told.data, *event);
    }
}

async fn a_stream_tells_what_happens_and_ends_with_the_execution(site: Site) {
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    let mut stream = site.stream(&execution, None).await;
    let first = stream.next().await.unwrap();
    assert_eq!((first.id, first.event.as_str()), (Some(1), "EXECUTION_CREATED"));
    site.done(&format!("/executions/{execution}/start"), &json!({})).await;
    let second = stream.next().await.unwrap();
    assert_eq!((second.id, second.event.as_str()), (Some(2), "EXECUTION_STARTED"));
    site.run(&execution, "a").await;
    site.run(&execution, "b").await;
    let mut told = vec![first, second];
    told.extend(stream.to_the_end().await);
    assert_told(&told, &site.events(&execution).await, 0);
    // Whoever comes later hears all of it at once.
    let told = site.stream(&execution, None).await.to_the_end().await;
    assert_told(&told, &site.events(&execution).await, 0);
}

async fn a_stream_goes_on_behind_what_was_seen(site: Site) {
    site.graph("wide", "flow: {graph: a}\ntasks: {a: {}, b: {}}\n").await;
    let execution = site.started("wide").await;
    site.node(&execution, "a", "start", json!({})).await;
    let mut told: Vec<Told> = Vec::new();
    for round in 0..20 {
        // A reader that is cut off again and again, in the middle of what happens.
        let mut stream = site.stream(&execution, told.last().and_then(|told| told.id)).await;
        let progress = json!({"progress": round});
        let writing = site.node(&execution, "a", "progress", progress);
        let reading = stream.take(if round == 0 { 3 } else { 1 });
        let (_, read) = tokio::join!(writing, reading);
        told.extend(read);
    }
    site.done(&format!("/executions/{execution}/cancel"), &json!({})).await;
    let seen = told.last().and_then(|told| told.id);
    told.extend(site.stream(&execution, seen).await.to_the_end().await);
    let events = site.events(&execution).await;
    assert_told(&told, &events, 0);
    // The header wins over the query; what was seen to the end has nothing more to tell.
    let last = events.len() as u64;
    let path = format!("/executions/{execution}/events/stream?after=1");
    let request = site.client.get(site.url(&path)).header("last-event-id", last.to_string());
    assert_eq!(request.send().await.unwrap().status(), 204, "whoever comes back need not come again");
    let text = site.client.get(site.url(&path)).send().await.unwrap().text().await.unwrap();
    assert!(text.starts_with("id: 2\n") && text.ends_with("event: end\ndata: {}\n\n"), "{text}");
    // An archive that comes after the end is told to whoever has not seen it.
    site.done(&format!("/executions/{execution}/archive"), &json!({})).await;
    let told = site.stream(&execution, Some(last)).await.to_the_end().await;
    assert_eq!(told.iter().map(|told| told.event.as_str()).collect::<Vec<_>>(), ["EXECUTION_ARCHIVED"]);
}

async fn a_stream_hears_of_another_gateway(site: Site) {
    site.graph("chain", CHAIN).await;
    let beside = site.beside().await;
    let execution = site.created("chain").await;
    let mut stream = beside.stream(&execution, None).await;
    assert_eq!(stream.next().await.unwrap().event, "EXECUTION_CREATED");
    site.done(&format!("/executions/{execution}/start"), &json!({})).await;
    site.run(&execution, "a").await;
    site.run(&execution, "b").await;
    let told = stream.to_the_end().await;
    assert_told(&told, &site.events(&execution).await, 1);
}

async fn the_state_as_of_each_event_is_shown(site: Site) {
    let execution = completed(&site).await;
    let events = site.events(&execution).await;
    for event in &events {
        let seq = event["seq"].as_u64().unwrap();
        let shown = site.shown(&format!("/executions/{execution}?at={seq}")).await;
        assert_eq!(shown["seq"], seq);
        let is_last = seq == events.len() as u64;
        assert_eq!(shown["status"] == "COMPLETED", is_last, "{shown}");
        let node = |name: &str| {
            let nodes = shown["nodes"].as_array().unwrap().iter();
            nodes.into_iter().find(|node| node["nodeId"] == name).map(|node| node["status"].clone())
        };
        let (kind, of) =
            (event["type"].as_str().unwrap(), event["payload"]["nodeId"].as_str().unwrap_or("a"));
        match kind {
            "NODE_STARTED" => assert_eq!(node(of), Some(json!("RUNNING")), "{shown}"),
            "NODE_SUCCEEDED" => assert_eq!(node(of), Some(json!("SUCCEEDED")), "{shown}"),
            "EXECUTION_CREATED" => assert_eq!(shown["startedAt"], Value::Null),
            _ => {}
        }
    }
    let last = events.len();
    assert_eq!(
        site.shown(&format!("/executions/{execution}?at={last}")).await,
        site.execution(&execution).await
    );
    let beyond = site.get(&format!("/executions/{execution}?at={}", last + 1)).await;
    assert_eq!(beyond.paths("INVALID_INPUT"), ["at"]);
}

async fn a_history_outlives_its_gateway(site: Site) {
    let execution = completed(&site).await;
    let (events, shown) = (site.events(&execution).await, site.execution(&execution).await);
    let site = site.restarted().await;
    assert_eq!((site.events(&execution).await, site.execution(&execution).await), (events, shown));
}

#[tokio::test]
async fn a_quiet_stream_says_that_it_is_alive_and_only_so_many_are_open() {
    let beat = std::time::Duration::from_millis(50);
    let settings = Settings { watch_heartbeat: beat, max_watches: 1, ..Settings::default() };
    let site = Site::open_with(Kind::Memory, settings).await;
    site.graph("chain", CHAIN).await;
    let execution = site.created("chain").await;
    let path = site.url(&format!("/executions/{execution}/events/stream?after=1"));
    let mut response = site.client.get(&path).send().await.unwrap();
    for _ in 0..2 {
        assert_eq!(response.chunk().await.unwrap().unwrap(), &b": keep-alive\n\n"[..]);
    }
    let answer = Answer::of(site.client.get(&path).send().await.unwrap()).await;
    answer.denied(503, "UNAVAILABLE");
    assert_eq!(answer.header("retry-after"), "1");
}
