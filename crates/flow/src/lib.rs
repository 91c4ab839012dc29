//! The compiler of flow.yaml.
