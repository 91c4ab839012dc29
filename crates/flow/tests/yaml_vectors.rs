//! Every validation vector: the same documents pass, the others fail for the same reason.

mod support;

use pyoco_flow::{Limits, validate};
use serde_json::{Value, json};

fn source(vector: &Value) -> Vec<u8> {
    match vector["yaml"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        // The only encoded vector; a decoder for one line would be the longer part of this file.
        None => {
            assert_eq!(vector["yaml_base64"], "ZmxvdzoKICBncmFwaDog//4K");
            b"flow:\n  graph: \xff\xfe\n".to_vec()
        }
    }
}

#[test]
fn documents_pass_or_fail_as_in_the_reference() {
    let vectors: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(support::folder("yaml.json")).unwrap()).unwrap();
    assert!(!vectors.is_empty());
    for vector in &vectors {
        let name = support::text(vector, "name");
        let require_flow = vector["require_flow"].as_bool().unwrap_or(true);
        let result = validate(&source(vector), Limits::default(), require_flow);
        match result {
            Ok(document) => {
                assert_eq!(vector["valid"], true, "{name} must fail with {}", vector["reason"]);
                let tasks: serde_json::Map<String, Value> = document
                    .tasks()
                    .map(|(name, task)| {
                        let entry = json!({"callable": task.callable(), "inputs": task.inputs(), "outputs": task.outputs()});
                        (name.to_owned(), entry)
                    })
                    .collect();
                let parsed = json!({
                    "version": document.version(),
                    "graph": document.graph(),
                    "defaults": document.defaults(),
                    "tasks": tasks,
                    "expose_env": document.expose_env().unwrap_or_default(),
                });
                assert_eq!(parsed, vector["parsed"], "{name}");
            }
            // Where the reference crashes, any reason of the same check is right.
            Err(error) if vector["unhandled"] == true => {
                assert_eq!(error.reason(), "unknown_top_level_keys: ['zz', 1]", "{name}");
            }
            Err(error) => {
                assert_eq!(vector["valid"], false, "{name}: {error}");
                assert_eq!(json!(error.reason()), vector["reason"], "{name}");
                assert!(error.to_string().starts_with(error.reason()), "{name}: {error}");
            }
        }
    }
}
