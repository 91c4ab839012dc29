//! Wheels that are sound: of every writer that people use, Python's among them.

use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::Command;

use pyoco_wheels::{InspectError, Limits, WheelName, inspect};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::raw::{Entry, INFO, METADATA, NAME, WHEEL, demo, inspected_as, line, wheel_with};

#[test]
fn a_wheel_by_hand_is_sound() {
    let wheel = inspected_as(NAME, &demo().bytes()).unwrap();
    assert_eq!((wheel.metadata.name.as_str(), wheel.files), ("Demo.Pkg", 4));
    let sizes = demo().entries.iter().map(|entry| u64::from(entry.central.size)).sum::<u64>();
    assert_eq!(wheel.uncompressed_bytes, sizes);
    assert!(wheel.entry_points.is_empty());
}

#[test]
fn sizes_behind_the_data_folders_and_harmless_extra_fields_are_sound() {
    for with_signature in [true, false] {
        let mut archive = wheel_with(&[("demo_pkg/sub/", b""), ("demo_pkg/sub/x.py", b"x = 1\n")]);
        archive.entry("demo_pkg/sub/").central.attributes = 0o040_755 << 16 | 0x10;
        archive.entry("demo_pkg/sub/x.py").central.attributes = 0o100_755 << 16;
        for entry in &mut archive.entries {
            entry.describe_behind(with_signature);
            // When it was changed.
            entry.both(|header| header.extra = vec![0x55, 0x54, 5, 0, 1, 0, 0, 0, 0]);
        }
        assert_eq!(inspected_as(NAME, &archive.bytes()).unwrap().files, 5);
    }
}

#[test]
fn the_directory_may_list_the_entries_in_another_order() {
    let mut archive = demo();
    let honest = archive.bytes();
    let mut offset = 0;
    for entry in &mut archive.entries {
        entry.central.offset = Some(offset);
        offset += u32::try_from(30 + entry.local.name.len() + entry.data.len()).unwrap();
    }
    let (first, second) = (archive.entries[0].central.clone(), archive.entries[1].central.clone());
    (archive.entries[0].central, archive.entries[1].central) = (second, first);
    assert_ne!(archive.bytes(), honest);
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
}

#[test]
fn a_wheel_of_another_writer_is_sound() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method).unix_permissions(0o644);
        let files = [
            ("demo_pkg/__init__.py".to_owned(), b"VERSION = '1.2'\n".to_vec()),
            ("demo_pkg/naïve.txt".to_owned(), vec![b'x'; 100_000]),
            (format!("{INFO}/METADATA"), METADATA.into()),
            (format!("{INFO}/WHEEL"), WHEEL.into()),
        ];
        writer.add_directory("demo_pkg/", options).unwrap();
        let mut record = format!("{INFO}/RECORD,,\n");
        for (name, content) in &files {
            writer.start_file(name.as_str(), options).unwrap();
            writer.write_all(content).unwrap();
            record.push_str(&line(name, content));
        }
        writer.start_file(format!("{INFO}/RECORD"), options).unwrap();
        writer.write_all(record.as_bytes()).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert_eq!(inspected_as(NAME, &bytes).unwrap().files, 5);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_unsound() {
    let name = WheelName::parse(NAME).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w");
    std::fs::write(&path, demo().bytes()).unwrap();
    let mut only_written = File::options().write(true).open(&path).unwrap();
    let error = inspect(&mut only_written, &name, &Limits::default()).unwrap_err();
    assert!(matches!(error, InspectError::Unreadable(_)), "{error:?}");
}

fn python(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("python3").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn inspect_file(path: &Path) -> pyoco_wheels::Wheel {
    let name = WheelName::parse(path.file_name().unwrap().to_str().unwrap()).unwrap();
    inspect(&mut File::open(path).unwrap(), &name, &Limits::default()).unwrap()
}

/// A program that writes the wheel with Python's own zip writer, which every build backend uses: into a file, as a stream
/// that cannot go back, and with room for long sizes.
const WRITE: &str = r#"
import base64, hashlib, io, sys, zipfile
class Stream(io.RawIOBase):
    def __init__(self, file): self.file = file
    def writable(self): return True
    def write(self, data): return self.file.write(data)
info, metadata, wheel, kind = sys.argv[1:]
files = {"demo_pkg/__init__.py": b"VERSION = '1.2'\n", "demo_pkg/na\u00efve.txt": b"x" * 50000,
    info + "/METADATA": metadata.encode(), info + "/WHEEL": wheel.encode()}
record = ""
for name, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
with open("demo_pkg-1.2-py3-none-any.whl", "wb") as file:
    with zipfile.ZipFile(Stream(file) if kind == "stream" else file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            with archive.open(name, "w", force_zip64=kind == "long") as entry:
                entry.write(data)
"#;

#[test]
fn a_wheel_of_pythons_own_writer_is_sound_and_pip_installs_it() {
    for kind in ["file", "stream", "long"] {
        let folder = tempfile::tempdir().unwrap();
        python(folder.path(), &["-c", WRITE, INFO, METADATA, WHEEL, kind]);
        let wheel = inspect_file(&folder.path().join(NAME));
        assert_eq!((wheel.files, wheel.metadata.version.as_str()), (5, "1.2.0"));
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
        python(folder.path(), &[&install[..], &["--no-deps", "--target", "installed", NAME]].concat());
        assert!(folder.path().join("installed/demo_pkg/naïve.txt").is_file());
    }
}

#[test]
fn the_wheels_that_python_comes_with_are_sound() {
    let folder = tempfile::tempdir().unwrap();
    let list = "import ensurepip, pathlib\n\
        for wheel in pathlib.Path(ensurepip.__file__).parent.glob('_bundled/*.whl'): print(wheel)";
    let wheels = python(folder.path(), &["-c", list]);
    assert!(!wheels.is_empty(), "this Python has no ensurepip");
    for path in wheels.lines() {
        let wheel = inspect_file(Path::new(path));
        assert!(wheel.files > 100 && wheel.uncompressed_bytes > 1_000_000, "{path}: {wheel:?}");
        assert!(wheel.entry_points.iter().any(|point| !point.object.is_empty()), "{path}");
    }
}

#[test]
fn one_entry_may_be_stored_and_another_deflated() {
    let mut archive = demo();
    let name = "demo_pkg/__init__.py";
    *archive.entry(name) = Entry::stored(name, b"VERSION = '1.2'\n");
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
}
