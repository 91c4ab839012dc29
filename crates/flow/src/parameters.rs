//! The parameters of a run, written as a YAML document. JSON is YAML too.

use serde_json::{Map, Value as Json};

use crate::diagnostic::FlowError;
use crate::document::{Limits, decode, object, problem};
use crate::yaml;

/// Reads a mapping from parameter names to values, by the same rules as `defaults` of a flow.
pub fn read_parameters(source: &[u8], limits: Limits) -> Result<Map<String, Json>, FlowError> {
    let text = decode(source, limits)?;
    let (root, _) = yaml::load(text, limits.bounds())?;
    if root.as_map().is_none() {
        let text = "parameters are a mapping from names to values, e.g. 'x: 1'";
        return Err(problem("invalid_parameters", text, root.place.at).into());
    }
    Ok(object(&root, "parameters", "invalid_parameters")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Json, String> {
        let read = read_parameters(text.as_bytes(), Limits::default());
        read.map(Json::Object).map_err(|error| error.reason().to_owned())
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        let text = "a: yes\nb: 0x10\nc: 1_000\nd: '1'\ne: ~\nf: 2026-11-15\n";
        let expected = json!({"a": true, "b": 16, "c": 1000, "d": "1", "e": null, "f": "2026-11-15"});
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn json_is_read_too() {
        assert_eq!(read(r#"{"x": [1, {"y": "z"}]}"#), Ok(json!({"x": [1, {"y": "z"}]})));
    }

    #[test]
    fn anything_but_a_mapping_is_refused() {
        for text in ["", "- 1", "text", "null"] {
            assert_eq!(read(text), Err("invalid_parameters".to_owned()), "{text}");
        }
        assert_eq!(read("x: [1"), Err("invalid_yaml".to_owned()));
        assert_eq!(read("x: !!binary aGk="), Err("invalid_parameters".to_owned()));
    }
}
