//! A folder of named flows: `NAME.yaml`, or `NAME/flow.yaml` with the modules of its tasks beside it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use pyoco_flow::Limits;

/// The file of a flow. A name that leads out of the folder has none.
fn flow_file(dir: &Path, name: &str) -> Option<PathBuf> {
    let mut components = Path::new(name).components();
    let is_plain = matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name);
    if !is_plain || name.contains('\0') {
        return None;
    }
    let candidates = [dir.join(name).join("flow.yaml"), dir.join(format!("{name}.yaml"))];
    candidates.into_iter().find(|file| file.is_file())
}

/// Where the modules of a flow are: the folder of its file.
pub(crate) fn flow_folder(dir: &Path, name: &str) -> Option<PathBuf> {
    let file = flow_file(dir, name)?;
    let folder = file.parent()?;
    folder.canonicalize().ok()
}

/// The text of a named flow, or `None` when the folder has none of that name.
pub fn read_flow(dir: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let Some(path) = flow_file(dir, name) else { return Ok(None) };
    let mut text = Vec::new();
    // One byte more than is allowed, so that the parser sees that there is more.
    let limit = Limits::default().max_bytes as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut text)?;
    Ok(Some(text))
}
