//! `graph`: flows under names.

use std::io;
use std::path::Path;

use pyoco_client::{Client, GraphFormat};

use super::options::graph::{Get, GraphCommand, List, Put};
use super::{MOST_WORKFLOW_BYTES, params, rows, utf8};
use crate::errors::Failure;
use crate::output;

pub(super) async fn run(client: &Client, command: GraphCommand) -> Result<(), Failure> {
    match command {
        GraphCommand::Put(options) => put(client, &options).await,
        GraphCommand::Get(options) => get(client, &options).await,
        GraphCommand::List(options) => list(client, &options).await,
        GraphCommand::Delete(options) => {
            Ok(client.delete_graph(&options.name, options.expected.if_version).await?)
        }
    }
}

async fn put(client: &Client, options: &Put) -> Result<(), Failure> {
    let (path, bytes) = match options.file.as_str() {
        "-" => ("standard input", params::read(io::stdin().lock(), MOST_WORKFLOW_BYTES)),
        path => (path, params::read_file(path, MOST_WORKFLOW_BYTES)),
    };
    let text = utf8(path, bytes.map_err(|error| Failure::file(path, &error))?)?;
    let format = format_of(&options.file, &text);
    let expected = options.expected.if_version;
    output::json(client.put_graph(&options.name, text, format, expected).await?.json())
}

async fn get(client: &Client, options: &Get) -> Result<(), Failure> {
    let graph = client.get_graph(&options.name, options.version).await?;
    match &graph.source {
        Some(source) if options.source => output::text(source),
        None if options.source => Err(Failure::unexpected("the gateway does not say the text of this graph")),
        Some(_) | None => output::json(graph.json()),
    }
}

async fn list(client: &Client, options: &List) -> Result<(), Failure> {
    let page = client.list_graphs(options.page.limit, options.page.cursor.as_deref()).await?;
    let headers = ["graphId", "version", "createdAt"];
    rows::page(options.output.form(), page.json(), headers, |item| {
        headers.map(|name| rows::member(item, name))
    })
}

/// By its ending; where that does not tell, what can be read as JSON is JSON.
fn format_of(path: &str, text: &str) -> GraphFormat {
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "json" => GraphFormat::Json,
        "yaml" | "yml" => GraphFormat::Yaml,
        _ if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => GraphFormat::Json,
        _ => GraphFormat::Yaml,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_what_its_name_says_or_else_what_it_holds() {
        let json = r#"{"flow": {"graph": "a"}}"#;
        assert_eq!(format_of("flow.yaml", json), GraphFormat::Yaml);
        assert_eq!(format_of("FLOW.YML", json), GraphFormat::Yaml);
        assert_eq!(format_of("flow.json", "flow: 1"), GraphFormat::Json);
        assert_eq!(format_of("-", json), GraphFormat::Json);
        assert_eq!(format_of("flow", "{flow: {graph: a}}"), GraphFormat::Yaml);
    }
}
