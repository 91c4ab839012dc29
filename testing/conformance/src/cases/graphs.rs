//! Cases of registered graphs.

use std::sync::Arc;

use pyoco_ports::{GraphFormat, GraphRecord, GraphSource, Store};

use crate::samples::{at, graph, tenant};
use crate::{Subject, Verdict};

/// The version of a graph that deletes it.
fn deletion(id: &str, version: u64) -> GraphRecord {
    GraphRecord { source: None, ..graph(id, version) }
}

async fn versions(store: &dyn Store, id: &str) -> Vec<GraphRecord> {
    let mut found = Vec::new();
    while let Some(graph) = store.graph(None, id, Some(found.len() as u64 + 1)).await.unwrap() {
        found.push(graph);
    }
    found
}

pub(crate) async fn put(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for version in [0, 2, u64::MAX] {
        assert!(!store.put_graph(graph("g", version)).await.unwrap(), "{version} is not the first");
    }
    assert_eq!(store.graph(None, "g", None).await.unwrap(), None);
    assert!(store.put_graph(graph("g", 1)).await.unwrap());
    let late = GraphRecord { by: Some("late".to_owned()), ..graph("g", 1) };
    assert!(!store.put_graph(late).await.unwrap(), "it is taken");
    assert!(!store.put_graph(graph("g", 3)).await.unwrap(), "one is left out");
    // A deletion is a version too, and what comes back goes on behind it.
    assert!(store.put_graph(deletion("g", 2)).await.unwrap());
    assert!(store.put_graph(graph("g", 3)).await.unwrap());
    assert_eq!(versions(&*store, "g").await, [graph("g", 1), deletion("g", 2), graph("g", 3)]);
    // Each of several wants to be the next.
    for version in 4..=6 {
        let rivals: Vec<_> = (0..8)
            .map(|rival| {
                let store: Arc<dyn Store> = Arc::clone(&store);
                let graph = GraphRecord { by: Some(format!("rival {rival}")), ..graph("g", version) };
                tokio::spawn(async move { store.put_graph(graph.clone()).await.unwrap().then_some(graph) })
            })
            .collect();
        let mut won = Vec::new();
        for rival in rivals {
            won.extend(rival.await.unwrap());
        }
        assert_eq!(won.len(), 1, "version {version}");
        assert_eq!(store.graph(None, "g", None).await.unwrap(), won.pop());
    }
    assert_eq!(versions(&*store, "g").await.len(), 6);
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(versions(&*store, "g").await.len(), 6);
    assert!(!store.put_graph(graph("g", 6)).await.unwrap());
    assert!(store.put_graph(graph("g", 7)).await.unwrap());
    Verdict::Passed
}

pub(crate) async fn get(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let (team, other) = (tenant("team"), tenant("other"));
    // Every member comes back, whatever is in it and however large it is.
    let rich = GraphRecord {
        tenant: Some(team.clone()),
        at: at(1).after(pyoco_core::time::Millis(7)),
        by: Some("ünï \"\u{7f}\n".to_owned()),
        source: Some(GraphSource {
            format: GraphFormat::Yaml,
            text: "version: 1 # ünï\r\n\t\"".repeat(99_999),
        }),
        ..graph("g", 1)
    };
    assert!(store.put_graph(rich.clone()).await.unwrap());
    for (owner, wanted) in [(Some(&team), Some(&rich)), (Some(&other), None), (None, None)] {
        for version in [None, Some(1)] {
            let found = store.graph(owner, "g", version).await.unwrap();
            assert!(found.as_ref() == wanted, "{owner:?} {version:?}");
        }
    }
    // The same name is another graph for another owner.
    assert!(store.put_graph(graph("g", 1)).await.unwrap());
    assert!(store.put_graph(deletion("g", 2)).await.unwrap());
    assert_eq!(store.graph(None, "g", None).await.unwrap(), Some(deletion("g", 2)));
    assert_eq!(store.graph(None, "g", Some(1)).await.unwrap(), Some(graph("g", 1)));
    for version in [0, 3, u64::MAX] {
        assert_eq!(store.graph(None, "g", Some(version)).await.unwrap(), None);
    }
    assert!(store.graph(Some(&team), "g", None).await.unwrap() == Some(rich));
    // A name means itself alone.
    let names = ["a.b", "a.>", "*", "a b", "日本", "a=2Eb", "%", "_", "A", "a", "'; --"];
    let long = "日".repeat(256);
    for name in names.into_iter().chain([long.as_str()]) {
        assert_eq!(store.graph(None, name, None).await.unwrap(), None, "{name}");
        assert!(store.put_graph(graph(name, 1)).await.unwrap(), "{name}");
        assert_eq!(store.graph(None, name, None).await.unwrap(), Some(graph(name, 1)), "{name}");
    }
    Verdict::Passed
}

pub(crate) async fn known(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.known_graph(None, "g").await.unwrap(), None);
    for version in 1..=20 {
        let put = if version % 5 == 0 { deletion("g", version) } else { graph("g", version) };
        assert!(store.put_graph(put.clone()).await.unwrap());
        assert_eq!(store.known_graph(None, "g").await.unwrap(), Some(put));
    }
    // What was not put is not known either.
    assert!(!store.put_graph(graph("g", 20)).await.unwrap());
    assert_eq!(store.known_graph(None, "g").await.unwrap(), Some(deletion("g", 20)));
    assert_eq!(store.known_graph(Some(&tenant("team")), "g").await.unwrap(), None);
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(store.known_graph(None, "g").await.unwrap(), Some(deletion("g", 20)));
    Verdict::Passed
}

pub(crate) async fn list(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let team = tenant("team");
    let mut wanted = Vec::new();
    // Put in another order than listed; upper case comes before lower case, and longer ones behind what they begin with.
    for id in ["d", "ab", "a", "日本", "B", "c", "e"] {
        assert!(store.put_graph(graph(id, 1)).await.unwrap());
        assert!(store.put_graph(graph(id, 2)).await.unwrap());
        wanted.push(graph(id, 2));
    }
    wanted.sort_by(|one, other| one.id.cmp(&other.id));
    assert!(store.put_graph(deletion("c", 3)).await.unwrap());
    wanted.retain(|graph| graph.id != "c");
    let theirs = GraphRecord { tenant: Some(team.clone()), ..graph("c", 1) };
    assert!(store.put_graph(theirs.clone()).await.unwrap());
    assert_eq!(store.graphs(None, None, 99).await.unwrap(), wanted);
    assert_eq!(store.graphs(Some(&team), None, 99).await.unwrap(), [theirs]);
    assert_eq!(store.graphs(Some(&tenant("nobody")), None, 99).await.unwrap(), []);
    assert_eq!(store.graphs(None, None, 0).await.unwrap(), []);
    let (mut paged, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = store.graphs(None, after.as_deref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        paged.extend(page);
    }
    assert_eq!(paged, wanted);
    // Behind a name that no graph has, or no longer has.
    assert_eq!(store.graphs(None, Some("aa"), 1).await.unwrap(), [graph("ab", 2)]);
    assert_eq!(store.graphs(None, Some("c"), 1).await.unwrap(), [graph("d", 2)]);
    // What comes back is listed again.
    assert!(store.put_graph(graph("c", 4)).await.unwrap());
    assert_eq!(store.graphs(None, Some("ab"), 1).await.unwrap(), [graph("c", 4)]);
    Verdict::Passed
}
