//! Driving executions over HTTP, in short words.

use pyoco_core::command::{Command, Issuer, Request};
use pyoco_core::ids::ExecutionId;
use pyoco_engine::Clock as _;
use serde_json::{Value, json};

use crate::{Answer, Site};

/// A key that nobody has used.
fn fresh() -> String {
    uuid::Uuid::new_v4().to_string()
}

impl Site {
    /// Gets a path.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.client.get(self.url(path)).send().await.unwrap()).await
    }

    /// Gets a path that has to be there.
    pub async fn shown(&self, path: &str) -> Value {
        self.get(path).await.expect(200)
    }

    /// Sends a command under a key.
    pub async fn send(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = self.client.post(self.url(path)).header("x-idempotency-key", key);
        Answer::of(request.json(body).send().await.unwrap()).await
    }

    /// Sends a command under a new key.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(path, &fresh(), body).await
    }

    /// Sends a command that has to be accepted.
    pub async fn done(&self, path: &str, body: &Value) -> Value {
        self.post(path, body).await.expect(202)
    }

    /// Sends a command to an execution that has to refuse it, and looks that nothing happened.
    pub async fn refused(&self, execution: &str, path: &str, body: &Value, status: u16, code: &str) -> Value {
        let before = self.events(execution).await;
        let answer = self.post(&format!("/executions/{execution}{path}"), body).await;
        let error = answer.denied(status, code).clone();
        assert_eq!(self.events(execution).await, before, "{path} {body}: {error}");
        error
    }

    /// Registers a graph of version 2.
    pub async fn graph(&self, id: &str, rest: &str) -> Value {
        let answer = self.put(&format!("/graphs/{id}"), &format!("version: 2\n{rest}")).await;
        assert!(matches!(answer.status, 200 | 201), "{}", answer.json);
        answer.json
    }

    /// Puts a YAML document.
    pub async fn put(&self, path: &str, text: &str) -> Answer {
        let request = self.client.put(self.url(path)).header("content-type", "application/yaml");
        Answer::of(request.body(text.to_owned()).send().await.unwrap()).await
    }

    /// Creates an execution.
    pub async fn created(&self, graph: &str) -> String {
        self.created_with(&json!({"graphId": graph})).await
    }

    /// Creates an execution with more to say.
    pub async fn created_with(&self, body: &Value) -> String {
        self.done("/executions", body).await["executionId"].as_str().unwrap().to_owned()
    }

    /// Creates an execution and starts it.
    pub async fn started(&self, graph: &str) -> String {
        self.started_with(&json!({"graphId": graph})).await
    }

    /// The same, with more to say.
    pub async fn started_with(&self, body: &Value) -> String {
        let execution = self.created_with(body).await;
        self.done(&format!("/executions/{execution}/start"), &json!({})).await;
        execution
    }

    /// Sends a command to a node; it has to be accepted.
    pub async fn node(&self, execution: &str, node: &str, command: &str, body: Value) {
        self.done(&format!("/executions/{execution}/nodes/{node}/{command}"), &body).await;
    }

    /// Starts a node and lets it succeed.
    pub async fn run(&self, execution: &str, node: &str) {
        self.node(execution, node, "start", json!({})).await;
        self.node(execution, node, "success", json!({"output": {"by": node}})).await;
    }

    /// An execution as it is shown.
    pub async fn execution(&self, execution: &str) -> Value {
        self.shown(&format!("/executions/{execution}")).await
    }

    /// The status of an execution.
    pub async fn status(&self, execution: &str) -> String {
        self.execution(execution).await["status"].as_str().unwrap().to_owned()
    }

    /// A node as it is shown.
    pub async fn node_of(&self, execution: &str, node: &str) -> Value {
        let shown = self.execution(execution).await;
        let nodes = shown["nodes"].as_array().unwrap();
        nodes
            .iter()
            .find(|shown| shown["nodeId"] == node)
            .cloned()
            .unwrap_or_else(|| panic!("no {node}: {shown}"))
    }

    /// The whole history of an execution.
    pub async fn events(&self, execution: &str) -> Vec<Value> {
        let page = self.shown(&format!("/executions/{execution}/events?limit=1000")).await;
        assert_eq!(page["next"], Value::Null, "more than one page");
        page["events"].as_array().unwrap().clone()
    }

    /// The types of the events after a number.
    pub async fn types(&self, execution: &str, after: usize) -> Vec<String> {
        let events = self.events(execution).await;
        events.iter().skip(after).map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The payloads of events of a type.
    pub async fn payloads(&self, execution: &str, kind: &str) -> Vec<Value> {
        let events = self.events(execution).await;
        events
            .into_iter()
            .filter(|event| event["type"] == kind)
            .map(|event| event["payload"].clone())
            .collect()
    }

    /// Says something that only a worker may say.
    pub async fn as_worker(&self, execution: &str, issuer: &Issuer, command: impl Into<Command>) {
        let request = Request::new(issuer.clone(), self.hands.now(), command);
        self.engine.command(&ExecutionId::new(execution).unwrap(), &request).await.unwrap();
    }
}
