//! Registered graphs: put, read, list, delete.

use pyoco_api::{Graph, GraphPage};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, IF_MATCH};

use crate::answer::Answer;
use crate::error::Error;
use crate::transport::{Client, Outgoing};

/// How the document of a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// As flow.yaml.
    Yaml,
    /// The same document in JSON.
    Json,
}

impl GraphFormat {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Yaml => "application/yaml",
            Self::Json => "application/json",
        }
    }
}

impl Client {
    /// Keeps a flow under a name, as a new version unless it says the same as the newest one. With `expected`, only if the newest
    /// version is that one.
    pub async fn put_graph(
        &self,
        graph_id: &str,
        document: impl Into<Vec<u8>>,
        format: GraphFormat,
        expected: Option<u64>,
    ) -> Result<Answer<Graph>, Error> {
        let outgoing = if_version(self.request(&Method::PUT, &["graphs", graph_id])?, expected);
        let document = document.into();
        self.json(outgoing.with(|call| call.header(CONTENT_TYPE, format.content_type()).body(document))).await
    }

    /// Reads a version of a graph with its text; the newest when none is named.
    pub async fn get_graph(&self, graph_id: &str, version: Option<u64>) -> Result<Answer<Graph>, Error> {
        let query: Vec<(&str, String)> =
            version.map(|version| ("version", version.to_string())).into_iter().collect();
        let outgoing = self.request(&Method::GET, &["graphs", graph_id])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Lists the newest version of every graph, by name.
    pub async fn list_graphs(
        &self,
        limit: Option<i64>,
        cursor: Option<&str>,
    ) -> Result<Answer<GraphPage>, Error> {
        let mut query: Vec<(&str, String)> = Vec::new();
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        query.extend(cursor.filter(|cursor| !cursor.is_empty()).map(|cursor| ("cursor", cursor.to_owned())));
        let outgoing = self.request(&Method::GET, &["graphs"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Deletes a graph: nothing new can be made of it. With `expected`, only if its newest version is that one.
    pub async fn delete_graph(&self, graph_id: &str, expected: Option<u64>) -> Result<(), Error> {
        let outgoing = if_version(self.request(&Method::DELETE, &["graphs", graph_id])?, expected);
        self.body(outgoing).await.map(drop)
    }
}

fn if_version(outgoing: Outgoing, expected: Option<u64>) -> Outgoing {
    match expected {
        Some(version) => outgoing.with(|call| call.header(IF_MATCH, format!("\"{version}\""))),
        None => outgoing,
    }
}
