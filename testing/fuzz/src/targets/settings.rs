//! Settings: the `.env` file, and the values of variables.

use std::collections::HashMap;

use pyoco_server::Config;
use pyoco_server::config::table::TABLE;

thread_local! {
    static FILE: tempfile::NamedTempFile = tempfile::NamedTempFile::new().unwrap();
}

pub(super) fn dotenv(bytes: &[u8]) -> bool {
    FILE.with(|file| {
        std::fs::write(file.path(), bytes).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        is_read(HashMap::from([("PYOCO_ENV_FILE".to_owned(), path)]))
    })
}

/// Every variable there is, as it is by default.
pub(super) fn defaults() -> Vec<Vec<u8>> {
    let lines: Vec<String> =
        TABLE.iter().map(|variable| format!("{}={}\n", variable.name, variable.default)).collect();
    lines.chunks(8).map(|lines| lines.concat().into_bytes()).collect()
}

pub(super) fn settings(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let given = text.lines().filter_map(|line| line.split_once('='));
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    // No file of this machine is read.
    let given = given.filter(|(name, _)| name != "PYOCO_ENV_FILE");
    is_read(given.chain([("PYOCO_LOAD_DOTENV".to_owned(), "0".to_owned())]).collect())
}

/// A configuration, or a list of mistakes that each say something.
fn is_read(given: HashMap<String, String>) -> bool {
    match Config::from_vars(given) {
        Ok(_) => true,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}
