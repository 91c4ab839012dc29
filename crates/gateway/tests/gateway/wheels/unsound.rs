//! Files that are no sound wheels. Everything that is wrong with one is tried in `pyoco-wheels`; here is what comes of it.

use std::io::{Cursor, Write as _};

use pyoco_testkit::wheel;
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Place, demo};

/// The wheel `demo` 1 with one thing done to the archive before it is closed. RECORD does not know of it, but it is seen before.
fn with(change: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut sound = ZipArchive::new(Cursor::new(demo("demo", "1").1)).unwrap();
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for place in 0..sound.len() {
        archive.raw_copy_file(sound.by_index_raw(place).unwrap()).unwrap();
    }
    change(&mut archive);
    archive.finish().unwrap().into_inner()
}

fn with_file(name: &str) -> Vec<u8> {
    with(|archive| {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(b"x = 1\n").unwrap();
    })
}

/// The same bytes with one word for another of the same length, everywhere.
fn renamed(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut changed = bytes.to_vec();
    let mut at = 0;
    while let Some(place) = changed[at..].windows(from.len()).position(|window| window == from.as_bytes()) {
        changed[at + place..at + place + to.len()].copy_from_slice(to.as_bytes());
        at += place + to.len();
    }
    assert_ne!(changed, bytes);
    changed
}

#[tokio::test]
async fn a_file_that_is_no_sound_wheel_is_refused_with_a_sentence_and_leaves_nothing() {
    let place = Place::start().await;
    let (name, sound) = demo("demo", "1");
    let zeros = "\0".repeat(20 << 20);
    let bomb = wheel("demo", "1", &[("demo/zeros.bin", &zeros)]).1;
    assert!(bomb.len() < 100_000);
    let twice = wheel("demo", "1", &[("demo/one.py", "x = 1\n"), ("demo/two.py", "x = 2\n")]).1;
    let link = with(|archive| {
        archive.add_symlink("demo/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    });
    let cases = [
        (b"hello".to_vec(), "the archive "),
        (Vec::new(), "the archive "),
        (sound[..sound.len() - 30].to_vec(), "the archive "),
        ([&sound[..], b"more"].concat(), "the archive "),
        (with_file("../evil.py"), "\"../evil.py\" "),
        (with_file("/evil.py"), "\"/evil.py\" "),
        (with_file("demo\\evil.py"), "\"demo\\\\evil.py\" "),
        (with_file("DEMO/__init__.py"), "\"DEMO/__init__.py\" "),
        (link, "\"demo/link\" "),
        (renamed(&twice, "demo/two.py", "demo/one.py"), "\"demo/one.py\" "),
        (bomb, "\"demo/zeros.bin\" "),
        // Of another package, and of another version, than its name says.
        (demo("other", "1").1, "\"other-1.dist-info\" "),
        (demo("demo", "2").1, "\"demo-2.dist-info\" "),
        // RECORD does not list it.
        (with_file("demo/extra.py"), "\"demo/extra.py\" "),
    ];
    for (bytes, beginning) in cases {
        let answer = place.send(&name, bytes).await;
        let detail = answer.detail(422).as_str().unwrap_or_else(|| panic!("no sentence: {}", answer.json));
        assert!(detail.starts_with(beginning), "{detail}");
        assert_eq!(answer.json["err_id"], json!("ERR-PYOCO-0002"));
    }
    place.assert_untouched().await;
    // Nothing of that stands in the way of a sound one.
    assert_eq!(place.send(&name, sound).await.status, 200);
}
