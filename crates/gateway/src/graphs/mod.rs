//! Registered graphs: put, get, list, delete.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use pyoco_api::{Extra, GraphNode};
use pyoco_core::ids::NodeId;
use pyoco_core::notice::Notice;
use pyoco_core::plan::{Kind, Plan, Runner};
use pyoco_core::state::State;
use pyoco_engine::Graph;

use crate::App;
use crate::error::{Code, Denial, Refusal};

/// The graph that a path names.
pub(crate) struct GraphPath(pub(crate) String);

impl FromRequestParts<App> for GraphPath {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        Ok(Self(path.map(|path| path.0).unwrap_or_default()))
    }
}

/// What a graph may be called.
fn is_name(id: &str) -> bool {
    (1..=256).contains(&id.chars().count()) && !id.chars().any(|letter| letter == '/' || letter.is_control())
}

fn not_found(id: &str) -> Denial {
    let refusal = Refusal::new(StatusCode::NOT_FOUND, "there is no such graph").coded(Code::GraphNotFound);
    refusal.noticed(Notice::InvalidRequest).of_flow(id, "").into()
}

/// What `If-Match` says about the newest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// Nothing.
    Anything,
    /// There has to be one.
    Some,
    /// It has to be this one. A version that no graph has matches nothing.
    Version(u64),
}

impl Match {
    fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(header::IF_MATCH) else { return Self::Anything };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Self::Some;
        }
        let version = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        Self::Version(
            version.and_then(crate::query::whole_number).filter(|version| *version > 0).unwrap_or(u64::MAX),
        )
    }
}

fn tag_of(version: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{version}\"")).ok()
}

fn view(graph: &Graph) -> pyoco_api::Graph {
    let record = &graph.record;
    pyoco_api::Graph {
        graph_id: record.id.clone(),
        version: record.version,
        created_at: record.at,
        flow_version: graph.flow_version,
        nodes: graph.plan.as_deref().map(nodes).unwrap_or_default(),
        warnings: graph.plan.as_ref().map(|plan| plan.warnings.clone()).unwrap_or_default(),
        source: None,
        format: None,
        extra: Extra::new(),
    }
}

fn nodes(plan: &Plan) -> Vec<GraphNode> {
    let nodes = plan.root.nodes().iter();
    nodes
        .map(|node| GraphNode {
            node_id: NodeId::within("", &node.name).to_string(),
            node_type: State::node_type(node, plan).to_owned(),
            runner: match &node.kind {
                Kind::Task(task) => plan.task(*task).map(|task| runner(&task.runner).to_owned()),
                Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled => None,
                Kind::Fork { .. } | Kind::Join { .. } | Kind::Switch { .. } => None,
                Kind::Repeat { .. } | Kind::ForEach { .. } | Kind::Until { .. } => None,
            },
        })
        .collect()
}

const fn runner(runner: &Runner) -> &'static str {
    match runner {
        Runner::Callable(_) => "callable",
        Runner::Registered(_) => "registered",
        Runner::Command(_) => "command",
        Runner::Wait { .. } => "wait",
        Runner::External => "external",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_if_match_means() {
        let of = |text: &'static str| {
            Match::of(&HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_static(text))]))
        };
        assert_eq!(Match::of(&HeaderMap::new()), Match::Anything);
        assert_eq!(of("*"), Match::Some);
        assert_eq!(of(" \"3\" "), Match::Version(3));
        for text in ["", "3", "\"x\"", "W/\"3\"", "\"0\"", "\"-1\""] {
            assert_eq!(of(text), Match::Version(u64::MAX), "{text}");
        }
    }

    #[test]
    fn a_name_fits_into_a_path() {
        assert!(is_name("a b.é-1") && is_name(&"é".repeat(256)));
        for name in ["", "a/b", "a\nb", &"x".repeat(257)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
