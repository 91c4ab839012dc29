//! Small wheels, made by hand.

use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A sound wheel of pure Python with these files: the name of its file, and its bytes. The same files make the same bytes.
///
/// A file such as `entry_points.txt`, which belongs to the description of a wheel, is given with `{dist_info}/` in front.
pub fn wheel(name: &str, version: &str, files: &[(&str, &str)]) -> (String, Vec<u8>) {
    wheel_for("py3-none-any", name, version, files)
}

/// The same for certain interpreters: `cp311-cp311-linux_x86_64`.
pub fn wheel_for(tag: &str, name: &str, version: &str, files: &[(&str, &str)]) -> (String, Vec<u8>) {
    let stem = format!("{}-{version}", name.replace('-', "_"));
    let dist_info = format!("{stem}.dist-info");
    let is_pure = tag.ends_with("-none-any");
    let mut all: Vec<(String, String)> = files
        .iter()
        .map(|(path, text)| (path.replace("{dist_info}", &dist_info), (*text).to_owned()))
        .collect();
    let metadata = format!(
        "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: made for a test\n\nA wheel that was made for a test.\n"
    );
    let described =
        format!("Wheel-Version: 1.0\nGenerator: pyoco-testkit\nRoot-Is-Purelib: {is_pure}\nTag: {tag}\n");
    all.push((format!("{dist_info}/METADATA"), metadata));
    all.push((format!("{dist_info}/WHEEL"), described));
    let record: String = all
        .iter()
        .map(|(path, text)| {
            let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()));
            format!("{path},sha256={hash},{}\n", text.len())
        })
        .collect();
    all.push((format!("{dist_info}/RECORD"), format!("{record}{dist_info}/RECORD,,\n")));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in &all {
        archive.start_file(path, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    (format!("{stem}-{tag}.whl"), archive.finish().unwrap().into_inner())
}
