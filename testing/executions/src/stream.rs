//! A reader of server-sent events.

use std::time::Duration;

use serde_json::Value;

use crate::Site;

/// An open stream.
#[derive(Debug)]
pub struct Stream {
    response: reqwest::Response,
    text: String,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// Its type.
    pub event: String,
    /// What it says.
    pub data: Value,
}

impl Site {
    /// Opens the stream of an execution, behind an event.
    pub async fn stream(&self, execution: &str, last_seen: Option<u64>) -> Stream {
        self.stream_at(&format!("/executions/{execution}/events/stream"), last_seen).await
    }

    /// Opens any stream, behind an event.
    pub async fn stream_at(&self, path: &str, last_seen: Option<u64>) -> Stream {
        let mut request = self.client.get(self.url(path));
        if let Some(seen) = last_seen {
            request = request.header("last-event-id", seen.to_string());
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Stream { response, text: String::new() }
    }
}

impl Stream {
    /// The next event; `None` at the end of the connection. Comments are passed over.
    pub async fn next(&mut self) -> Option<Told> {
        tokio::time::timeout(Duration::from_secs(20), self.read()).await.expect("an event in time")
    }

    async fn read(&mut self) -> Option<Told> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let told = parse(block);
                self.text = rest.to_owned();
                if told.is_some() {
                    return told;
                }
            }
            let bytes = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&bytes).expect("whole characters"));
        }
    }

    /// The next so many events.
    pub async fn take(&mut self, count: usize) -> Vec<Told> {
        let mut told = Vec::new();
        while told.len() < count {
            told.push(self.next().await.expect("another event"));
        }
        told
    }

    /// Everything until `event: end`, after which nothing may come.
    pub async fn to_the_end(&mut self) -> Vec<Told> {
        let mut told = self.to("end").await;
        let end = told.pop().expect("an end");
        assert_eq!(end.id, None);
        told
    }

    /// Everything up to an event of this type, after which nothing may come.
    pub async fn to(&mut self, last: &str) -> Vec<Told> {
        let mut told = Vec::new();
        loop {
            let next = self.next().await.expect("an end");
            let is_last = next.event == last;
            told.push(next);
            if is_last {
                assert_eq!(self.next().await, None);
                return told;
            }
        }
    }
}

fn parse(block: &str) -> Option<Told> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Some(Told {
        id: field("id").map(|id| id.parse().expect("a number")),
        event: field("event")?.to_owned(),
        data: serde_json::from_str(field("data").expect("data")).expect("JSON"),
    })
}
