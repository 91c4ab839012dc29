//! Writes the table of the files that `npm run build` has put into `dashboard/dist`; an empty one where nobody has built them.

#![allow(clippy::print_stdout, reason = "that is how a build script talks to cargo")]

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

/// What a file is called when it stands beside its compressed form.
const COMPRESSED: [&str; 2] = [".br", ".gz"];

fn main() -> Result<()> {
    let dashboard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dashboard");
    let built = dashboard.join("dist");
    // To name a folder that is not there would mean to run at every build.
    let watched = if built.is_dir() { &built } else { &dashboard };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut table = String::from("&[\n");
    for name in names(&built)? {
        let [brotli, gzip] = COMPRESSED.map(|ending| built.join(format!("{name}{ending}")));
        table.push_str(&format!(
            "    File {{ name: {name:?}, plain: {}, brotli: {}, gzip: {} }},\n",
            bytes(&built.join(&name))?,
            perhaps(&brotli)?,
            perhaps(&gzip)?,
        ));
    }
    table.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo names no OUT_DIR"))?;
    fs::write(PathBuf::from(out).join("files.rs"), table)
}

/// The files that are served, by their place in the folder. None if the page itself is not among them.
fn names(built: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if built.join("index.html").is_file() {
        names.push("index.html".to_owned());
        for entry in fs::read_dir(built.join("static"))? {
            let name = entry?.file_name();
            let name = name.to_str().ok_or_else(|| Error::other("a file whose name is no text"))?;
            if !COMPRESSED.iter().any(|ending| name.ends_with(ending)) {
                names.push(format!("static/{name}"));
            }
        }
        names.sort();
    }
    Ok(names)
}

fn bytes(path: &Path) -> Result<String> {
    let path = path.canonicalize()?;
    let path = path.to_str().ok_or_else(|| Error::other("a folder whose name is no text"))?;
    Ok(format!("include_bytes!({path:?})"))
}

fn perhaps(path: &Path) -> Result<String> {
    if path.is_file() { Ok(format!("Some({})", bytes(path)?)) } else { Ok("None".to_owned()) }
}
