//! Executions whose nodes the bench drives itself, as a program outside would: no worker takes part.

use std::cell::Cell;
use std::fmt::Write as _;

use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::Failure;
use crate::http::{Address, Connection};

/// A chain of tasks that nobody but the bench carries out.
pub(crate) struct Chain {
    pub(crate) graph: &'static str,
    pub(crate) nodes: usize,
}

impl Chain {
    /// Registers the graph.
    pub(crate) async fn put(&self, address: Address) -> Result<(), Failure> {
        let names: Vec<String> = (0..self.nodes).map(node).collect();
        let mut text = format!("version: 2\nflow: {{graph: '{}'}}\ntasks:\n", names.join(" >> "));
        for name in &names {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name}: {{}}");
        }
        put_graph(address, self.graph, text).await
    }
}

/// Registers a flow.yaml under a name.
pub(crate) async fn put_graph(address: Address, name: &str, text: String) -> Result<(), Failure> {
    let request = Request::builder().method(Method::PUT).uri(format!("/graphs/{name}"));
    let request = request.header(CONTENT_TYPE, "application/yaml").body(text)?;
    let answer = Connection::open(address).await?.send(request).await?;
    if answer.status.is_success() { Ok(()) } else { Err(answer.problem()) }
}

/// The name of a node of a chain.
pub(crate) fn node(number: usize) -> String {
    format!("n{number}")
}

/// A connection that sends commands, each under a key of its own.
pub(crate) struct Driver<'a> {
    connection: Connection,
    /// How many keys were used, by all drivers.
    keys: &'a Cell<usize>,
}

impl<'a> Driver<'a> {
    pub(crate) async fn open(address: Address, keys: &'a Cell<usize>) -> Result<Self, Failure> {
        Ok(Self { connection: Connection::open(address).await?, keys })
    }

    /// Creates an execution and starts it.
    pub(crate) async fn start(&mut self, graph: &str) -> Result<String, Failure> {
        let created = self.command("/executions", &json!({"graphId": graph}).to_string()).await?;
        let id = created.get("executionId").and_then(Value::as_str).ok_or("no executionId")?.to_owned();
        self.command(&format!("/executions/{id}/start"), "").await?;
        Ok(id)
    }

    /// Sends a command that has to be accepted.
    pub(crate) async fn command(&mut self, path: &str, body: &str) -> Result<Value, Failure> {
        let key = self.keys.replace(self.keys.get() + 1);
        let request = Request::builder().method(Method::POST).uri(path);
        let request = request.header("x-idempotency-key", format!("bench-{key}")).body(body.to_owned())?;
        let answer = self.connection.send(request).await?;
        if answer.status != StatusCode::ACCEPTED {
            return Err(answer.problem());
        }
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Sends a command to a node.
    pub(crate) async fn drive(
        &mut self,
        execution: &str,
        number: usize,
        command: &str,
        body: &str,
    ) -> Result<(), Failure> {
        let path = format!("/executions/{execution}/nodes/{}/{command}", node(number));
        self.command(&path, body).await.map(drop)
    }

    /// How many events an execution has.
    pub(crate) async fn events(&mut self, execution: &str) -> Result<usize, Failure> {
        let shown = self.connection.get(&format!("/executions/{execution}")).await?.json()?;
        Ok(usize::try_from(shown.get("seq").and_then(Value::as_u64).ok_or("no seq")?)?)
    }
}
