//! Wheels: their names, the tags of uploads, and the files themselves.

use std::io::Cursor;

use pyoco_testkit::wheel as sound_wheel;
use pyoco_wheels::{Limits, Sha256Digest, TagSet, WheelName, inspect, normalised, parse_tags};

pub(super) fn name(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(name) = WheelName::parse(&text) else { return false };
    assert_eq!(name.as_str(), text);
    assert_eq!(WheelName::parse(name.as_str()).as_ref(), Ok(&name));
    assert_eq!(normalised(name.package()), name.package());
    // A name of 255 bytes cannot stand for more.
    assert!(name.tags().expanded().take(1 << 20).count() < 1 << 20);
    true
}

pub(super) fn tags(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(digest) = Sha256Digest::parse(&text) {
        assert_eq!(digest.as_str(), text);
    }
    let _ = TagSet::parse(&text);
    let Ok(tags) = parse_tags(&text) else { return false };
    assert_eq!(parse_tags(&tags.join(",")).as_ref(), Ok(&tags));
    true
}

const NAME: &str = "demo-1-py3-none-any.whl";

pub(super) fn made() -> Vec<Vec<u8>> {
    let files = [
        ("demo/__init__.py", "x = 1\n"),
        ("{dist_info}/entry_points.txt", "[console_scripts]\na = demo:x\n"),
    ];
    let large = "x".repeat(20_000);
    vec![
        sound_wheel("demo", "1", &[]).1,
        sound_wheel("demo", "1", &files).1,
        sound_wheel("demo", "1", &[("demo/data.txt", &large)]).1,
    ]
}

pub(super) fn wheel(bytes: &[u8]) -> bool {
    let name = WheelName::parse(NAME).unwrap();
    inspect(&mut Cursor::new(bytes), &name, &Limits::default()).is_ok()
}
