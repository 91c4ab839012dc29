//! Registered graphs: a row for each version, and the newest is the one with the highest number.

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{Durability, GraphFormat, GraphRecord, GraphSource, Graphs, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error};

/// The columns of a version, in the order in which `decode` reads them.
macro_rules! columns {
    () => {
        "tenant, id, version, at, by, format, text"
    };
}

const NEWEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM graphs WHERE tenant = ?1 AND id = ?2 ORDER BY version DESC LIMIT 1"
);

const ONE: &str =
    concat!("SELECT ", columns!(), " FROM graphs WHERE tenant = ?1 AND id = ?2 AND version = ?3");

/// The id after one, however many versions it has.
const NEXT: &str = "SELECT min(id) FROM graphs WHERE tenant = ?1 AND id > ?2";

#[async_trait]
impl Graphs for SqliteStore {
    async fn put_graph(&self, graph: GraphRecord) -> Result<bool, StoreError> {
        let terms = Terms { operation: "put a graph", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| put(connection, &graph)).await
    }

    async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<GraphRecord>, StoreError> {
        let (tenant, id) = (owner(tenant).to_owned(), id.to_owned());
        self.read("get a graph", move |connection| match version {
            None => connection.prepare_cached(NEWEST)?.query_row((tenant, id), decode).optional(),
            Some(version) => {
                // No graph has so many, so beyond it there is none.
                let version = i64::try_from(version).unwrap_or(i64::MAX);
                connection.prepare_cached(ONE)?.query_row((tenant, id, version), decode).optional()
            }
        })
        .await
    }

    async fn graphs(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GraphRecord>, StoreError> {
        let (tenant, after) = (owner(tenant).to_owned(), after.unwrap_or_default().to_owned());
        self.read("list graphs", move |connection| {
            let (mut next, mut newest) =
                (connection.prepare_cached(NEXT)?, connection.prepare_cached(NEWEST)?);
            let (mut found, mut last) = (Vec::new(), after);
            while found.len() < limit {
                let id: Option<String> = next.query_row((&tenant, &last), |row| row.get(0))?;
                let Some(id) = id else { break };
                let graph = newest.query_row((&tenant, &id), decode).optional()?;
                found.extend(graph.filter(|graph| graph.source.is_some()));
                last = id;
            }
            Ok(found)
        })
        .await
    }
}

/// Adds a version behind the newest, or nothing. The writer is alone, so nothing comes in between.
fn put(connection: &Connection, graph: &GraphRecord) -> rusqlite::Result<bool> {
    let tenant = owner(graph.tenant.as_ref());
    let newest: Option<u64> = connection
        .prepare_cached("SELECT max(version) FROM graphs WHERE tenant = ?1 AND id = ?2")?
        .query_row((tenant, &graph.id), |row| row.get(0))?;
    if graph.version != newest.unwrap_or(0) + 1 {
        return Ok(false);
    }
    let source = graph.source.as_ref();
    connection
        .prepare_cached(concat!("INSERT INTO graphs (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"))?
        .execute((
            tenant,
            &graph.id,
            graph.version,
            graph.at.as_micros(),
            &graph.by,
            source.map(|source| source.format.as_str()),
            source.map(|source| &source.text),
        ))?;
    Ok(true)
}

/// Nobody's graphs stand under the empty name, which no tenant has.
fn owner(tenant: Option<&TenantId>) -> &str {
    tenant.map_or("", TenantId::as_str)
}

fn decode(row: &Row<'_>) -> rusqlite::Result<GraphRecord> {
    let tenant: String = row.get(0)?;
    let tenant = if tenant.is_empty() { None } else { Some(TenantId::new(&tenant)) };
    let format: Option<String> = row.get(5)?;
    let source = match format {
        None => None,
        Some(format) => {
            let format =
                GraphFormat::named(&format).ok_or_else(|| error::unreadable(5, "no format of a graph"))?;
            Some(GraphSource { format, text: row.get(6)? })
        }
    };
    Ok(GraphRecord {
        tenant: tenant.transpose().map_err(|why| error::unreadable(0, why))?,
        id: row.get(1)?,
        version: row.get(2)?,
        at: Timestamp::from_micros(row.get(3)?),
        by: row.get(4)?,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_looked_up_along_their_key() {
        let connection = crate::list::tests::empty();
        for sql in [NEWEST, ONE, NEXT] {
            let plan = crate::list::tests::plan(&connection, sql);
            assert!(plan.contains("SEARCH graphs USING") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }
}
