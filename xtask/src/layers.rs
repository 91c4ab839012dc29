//! The direction of dependencies, and which room a technology lives in.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, Package};

/// What each crate of the product may depend on, among our own crates. A crate that is not listed is refused,
/// so that a new one gets its place here first.
const OWN: &[(&str, &[&str])] = &[
    ("pyoco-core", &[]),
    ("pyoco-flow", &["pyoco-core"]),
    ("pyoco-wheels", &[]),
    ("pyoco-ports", &["pyoco-core", "pyoco-wheels"]),
    ("pyoco-figures", &[]),
    // Says what a store says, so that a test can say it in the place of one.
    ("pyoco-faults", &["pyoco-ports"]),
    ("pyoco-page", &[]),
    ("pyoco-access", &["pyoco-core", "pyoco-ports"]),
    ("pyoco-engine", &["pyoco-core", "pyoco-flow", "pyoco-ports", "pyoco-figures", "pyoco-faults"]),
    ("pyoco-store-memory", &["pyoco-core", "pyoco-ports", "pyoco-wheels"]),
    ("pyoco-store-sqlite", &["pyoco-core", "pyoco-ports", "pyoco-figures", "pyoco-wheels", "pyoco-faults"]),
    ("pyoco-store-nats", &["pyoco-core", "pyoco-ports", "pyoco-wheels", "pyoco-faults"]),
    // What stands in NATS is the store's to say; no engine is needed to look after servers.
    ("pyoco-bootstrap", &["pyoco-core", "pyoco-store-nats"]),
    ("pyoco-api", &["pyoco-core"]),
    (
        "pyoco-worker",
        &[
            "pyoco-core",
            "pyoco-flow",
            "pyoco-ports",
            "pyoco-engine",
            "pyoco-figures",
            "pyoco-wheels",
            "pyoco-faults",
        ],
    ),
    (
        "pyoco-gateway",
        &[
            "pyoco-core",
            "pyoco-flow",
            "pyoco-ports",
            "pyoco-engine",
            "pyoco-api",
            "pyoco-figures",
            "pyoco-wheels",
        ],
    ),
    ("pyoco-client", &["pyoco-api"]),
];

/// The pure crates may use these and nothing else from outside.
const PURE: &[(&str, &[&str])] = &[
    ("pyoco-core", &["base64", "indexmap", "jiff", "num-bigint", "serde", "serde_json", "sha2", "thiserror"]),
    ("pyoco-flow", &["annotate-snippets", "indexmap", "saphyr-parser", "serde", "serde_json", "thiserror"]),
];

/// A technology and the one crate that may know it.
const ROOMS: &[(&str, &str)] = &[
    ("rusqlite", "pyoco-store-sqlite"),
    ("async-nats", "pyoco-store-nats"),
    ("axum", "pyoco-gateway"),
    ("prometheus-client", "pyoco-figures"),
    ("clap", "pyoco-cli"),
];

/// Every place where a crate depends on what its layer may not.
pub(crate) fn check(metadata: &Metadata) -> Vec<String> {
    let members: BTreeSet<&str> =
        metadata.workspace_packages().iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in metadata.workspace_packages() {
        let in_product = package.manifest_path.components().any(|part| part.as_str() == "crates");
        if in_product {
            findings.extend(check_own(package, &members));
            findings.extend(check_rooms(package));
        }
    }
    findings
}

fn shipped(package: &Package) -> impl Iterator<Item = &str> {
    let is_shipped = |kind| matches!(kind, DependencyKind::Normal | DependencyKind::Build);
    package.dependencies.iter().filter(move |dependency| is_shipped(dependency.kind)).map(|d| d.name.as_str())
}

fn check_own(package: &Package, members: &BTreeSet<&str>) -> Vec<String> {
    let name = package.name.as_str();
    // Here adapters meet the engine; these may know everything.
    if matches!(name, "pyoco-server" | "pyoco-cli") {
        return Vec::new();
    }
    let Some((_, allowed)) = OWN.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name} has no place in xtask/src/layers.rs; say what it may depend on")];
    };
    let pure = PURE.iter().find(|(known, _)| *known == name).map(|(_, outside)| *outside);
    let is_refused = |dependency: &&str| {
        if members.contains(dependency) {
            return !allowed.contains(dependency);
        }
        pure.is_some_and(|outside| !outside.contains(dependency))
    };
    shipped(package).filter(is_refused).map(|found| format!("{name} may not depend on {found}")).collect()
}

fn check_rooms(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let misplaced = |dependency: &str| {
        let room = ROOMS.iter().find(|(technology, _)| *technology == dependency)?;
        (room.1 != name).then(|| format!("{name} uses {dependency}, which belongs to {}", room.1))
    };
    // Tests may look at what an adapter has written with the technology itself.
    shipped(package).filter_map(misplaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies: Vec<String> = dependencies
            .iter()
            .map(|dependency| {
                format!(
                    r#"{{"name":"{dependency}","req":"*","kind":null,"optional":false,"uses_default_features":true,
                        "features":[],"target":null,"rename":null,"registry":null,"path":null,"source":null}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"name":"{name}","version":"0.1.0","id":"{name}","source":null,"dependencies":[{}],"targets":[],
                "features":{{}},"manifest_path":"/x/crates/{name}/Cargo.toml","categories":[],"keywords":[],
                "authors":[],"edition":"2024"}}"#,
            dependencies.join(",")
        );
        serde_json::from_str(&text).expect("a package as cargo describes it")
    }

    #[test]
    fn what_a_layer_may_not_know_is_found() {
        let members = BTreeSet::from(["pyoco-core", "pyoco-flow", "pyoco-engine"]);
        let refused = |name, dependencies: &[&str]| check_own(&package(name, dependencies), &members);
        assert!(refused("pyoco-flow", &["pyoco-core", "serde"]).is_empty());
        assert_eq!(refused("pyoco-core", &["pyoco-flow"]), ["pyoco-core may not depend on pyoco-flow"]);
        assert_eq!(refused("pyoco-core", &["tokio"]), ["pyoco-core may not depend on tokio"]);
        assert_eq!(refused("pyoco-flow", &["pyoco-engine"]), ["pyoco-flow may not depend on pyoco-engine"]);
        assert_eq!(refused("pyoco-new", &[]).len(), 1);
    }

    #[test]
    fn a_technology_outside_its_room_is_found() {
        let found = check_rooms(&package("pyoco-engine", &["rusqlite"]));
        assert_eq!(found, ["pyoco-engine uses rusqlite, which belongs to pyoco-store-sqlite"]);
        assert!(check_rooms(&package("pyoco-store-sqlite", &["rusqlite"])).is_empty());
    }
}
