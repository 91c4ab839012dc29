//! What a wheel says about itself, and whether it is true: dist-info, METADATA, WHEEL, RECORD, entry points.

use super::raw::{
    Entry, INFO, METADATA, NAME, WHEEL, demo, inspected_as, line, refusal, refusal_as, wheel_of, wheel_with,
};

/// What is said about a wheel with this METADATA and this WHEEL.
fn told_of(metadata: &str, wheel: &str) -> String {
    let paths = [format!("{INFO}/METADATA"), format!("{INFO}/WHEEL")];
    let files = [(paths[0].as_str(), metadata.as_bytes()), (&paths[1], wheel.as_bytes())];
    let sentence = refusal(&wheel_of(&files).bytes());
    sentence.strip_prefix(&format!("\"{INFO}/")).unwrap_or(&sentence).to_owned()
}

/// What is said about a wheel whose RECORD is made of the honest one, without the line for itself.
fn told_of_record(change: impl FnOnce(String) -> String) -> String {
    let mut archive = demo();
    let path = format!("{INFO}/RECORD");
    let honest = line("demo_pkg/__init__.py", b"VERSION = '1.2'\n")
        + &line(&format!("{INFO}/METADATA"), METADATA.as_bytes())
        + &line(&format!("{INFO}/WHEEL"), WHEEL.as_bytes());
    *archive.entry(&path) = Entry::deflated(&path, change(honest).as_bytes());
    match inspected_as(NAME, &archive.bytes()) {
        Ok(_) => "sound".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_wheel_under_another_name_is_refused() {
    for name in
        ["demo_pkg-1.3-py3-none-any.whl", "other-1.2-py3-none-any.whl", "demo_pkg2-1.2-py3-none-any.whl"]
    {
        let sentence = refusal_as(name, &demo().bytes());
        assert_eq!(sentence, format!("{INFO:?} is named after another wheel than the file"));
    }
    let sentence = refusal_as("demo_pkg-1.2-cp311-abi3-linux_x86_64.whl", &demo().bytes());
    assert_eq!(sentence, format!("\"{INFO}/WHEEL\" has other tags than the name of the file"));
}

#[test]
fn a_wheel_is_sound_under_every_spelling_of_its_name() {
    for name in [NAME, "Demo_Pkg-1.2.0-py3-none-any.whl", "demo.pkg-v1.2-1-py3-none-any.whl"] {
        assert!(inspected_as(name, &demo().bytes()).is_ok(), "{name}");
    }
}

#[test]
fn a_wheel_without_its_own_description_is_refused() {
    assert_eq!(refusal(&wheel_of(&[]).bytes()), format!("the archive has no {INFO}/METADATA"));
    let metadata = format!("{INFO}/METADATA");
    let archive = wheel_of(&[(&metadata, METADATA.as_bytes())]);
    assert_eq!(refusal(&archive.bytes()), format!("the archive has no {INFO}/WHEEL"));
    let mut archive = demo();
    archive.entries.pop();
    assert_eq!(refusal(&archive.bytes()), format!("the archive has no {INFO}/RECORD"));
    archive.entries.truncate(1);
    assert_eq!(refusal(&archive.bytes()), "the archive has no dist-info folder");
}

#[test]
fn a_wheel_with_two_dist_infos_is_refused() {
    for other in ["other-1.0.dist-info/METADATA", "demo_pkg-1.2.DIST-INFO/x", "x.dist-info/y"] {
        let sentence = refusal(&wheel_with(&[(other, b"")]).bytes());
        assert!(
            sentence == "the archive has more than one dist-info folder"
                || sentence.contains("where capitals do not count"),
            "{sentence}"
        );
    }
    // One that belongs to a package inside of the package is its own business.
    assert!(
        inspected_as(NAME, &wheel_with(&[("demo_pkg/_vendor/x-1.dist-info/METADATA", b"")]).bytes()).is_ok()
    );
}

#[test]
fn metadata_of_another_package_or_version_is_refused() {
    let with = |from: &str, to: &str| told_of(&METADATA.replace(from, to), WHEEL);
    assert_eq!(with("Demo.Pkg", "Other"), "METADATA\" has another Name than the file");
    assert_eq!(with("1.2.0", "1.2.1"), "METADATA\" has another Version than the file");
    assert_eq!(with("1.2.0", "1.2+local"), "METADATA\" has another Version than the file");
    assert_eq!(with("1.2.0", "one"), "METADATA\" has another Version than the file");
    assert_eq!(with("Name: Demo.Pkg\n", ""), "METADATA\" has no Name");
    assert_eq!(with("1.2.0", ""), "METADATA\" has no Version");
    assert_eq!(with("Version: 1.2.0", "Version: 1.2.0\nversion: 9"), "METADATA\" has more than one Version");
    assert_eq!(with("Name: Demo.Pkg", "Name: Demo.Pkg\nName: Demo.Pkg"), "METADATA\" has more than one Name");
    assert_eq!(with("2.1", "3.0"), "METADATA\" has a Metadata-Version that is not known");
    assert_eq!(
        with("Name: Demo.Pkg", "Name: Demo.Pkg\nno field"),
        "METADATA\" has a line that is no field of it: line 3"
    );
    assert_eq!(told_of("", WHEEL), "METADATA\" has no Metadata-Version");
    // What stands in the text is no field.
    assert_eq!(with("Name: Demo.Pkg\n", "\nName: Demo.Pkg\n"), "METADATA\" has no Name");
}

#[test]
fn metadata_that_is_no_text_is_refused() {
    let paths = [format!("{INFO}/METADATA"), format!("{INFO}/WHEEL")];
    let files = [(paths[0].as_str(), &b"Name: \xff\n"[..]), (&paths[1], WHEEL.as_bytes())];
    assert_eq!(refusal(&wheel_of(&files).bytes()), format!("\"{INFO}/METADATA\" is not UTF-8"));
}

#[test]
fn a_wheel_file_of_another_kind_is_refused() {
    let with = |from: &str, to: &str| told_of(METADATA, &WHEEL.replace(from, to));
    assert_eq!(with("Wheel-Version: 1.0", "Wheel-Version: 2.0"), "WHEEL\" has a Wheel-Version that is not 1");
    assert_eq!(with("Wheel-Version: 1.0", "Wheel-Version: 10"), "WHEEL\" has a Wheel-Version that is not 1");
    assert_eq!(with("Wheel-Version: 1.0\n", ""), "WHEEL\" has no Wheel-Version");
    assert_eq!(with("py3-none-any", "py2-none-any"), "WHEEL\" has other tags than the name of the file");
    assert_eq!(with("Tag: py3-none-any\n", ""), "WHEEL\" has other tags than the name of the file");
    assert_eq!(with("py3-none-any", "py2.py3-none-any"), "WHEEL\" has other tags than the name of the file");
    assert_eq!(with("py3-none-any", "py3"), "WHEEL\" has a Tag that cannot be read");
}

#[test]
fn the_tags_of_a_name_may_be_written_in_one_line_or_in_several() {
    let paths = [format!("{INFO}/METADATA"), format!("{INFO}/WHEEL")];
    for tags in ["py2.py3-none-any", "py2-none-any\nTag: py3-none-any"] {
        let wheel = WHEEL.replace("py3-none-any", tags);
        let files = [(paths[0].as_str(), METADATA.as_bytes()), (&paths[1], wheel.as_bytes())];
        assert!(inspected_as("demo_pkg-1.2-py2.py3-none-any.whl", &wheel_of(&files).bytes()).is_ok());
    }
}

#[test]
fn a_record_that_does_not_match_is_refused() {
    let init = line("demo_pkg/__init__.py", b"VERSION = '1.2'\n");
    let told = |from: &str, to: &str| told_of_record(|honest| honest.replace(from, to));
    let first = "\"demo_pkg/__init__.py\"";
    assert_eq!(told("", ""), "sound");
    assert_eq!(told(&init, ""), format!("{first} is not listed in RECORD"));
    assert_eq!(told(&init, &(init.clone() + &init)), format!("{first} is listed twice in RECORD"));
    let other = line("demo_pkg/__init__.py", b"VERSION = '1.3'\n");
    assert_eq!(told(&init, &other), format!("{first} has another hash than RECORD says"));
    assert_eq!(told(",16\n", ",17\n"), format!("{first} has another size than RECORD says"));
    assert_eq!(told(",16\n", ",\n"), format!("{first} has another size than RECORD says"));
    assert_eq!(
        told(&init, "demo_pkg/__init__.py,,\n"),
        format!("{first} is listed in RECORD without a hash")
    );
    assert_eq!(
        told(&init, "demo_pkg/__init__.py,md5=1B2M2Y8AsgTpgAmY7PhCfg,16\n"),
        format!("{first} has a hash in RECORD that is none of sha256, sha384 and sha512")
    );
    assert_eq!(
        told(&init, "demo_pkg/__init__.py,sha256=*,16\n"),
        format!("{first} has a hash in RECORD that cannot be read")
    );
    assert_eq!(
        told(&init, "demo_pkg/__init__.py,sha256=,16\n"),
        format!("{first} has another hash than RECORD says")
    );
    let more = line("demo_pkg/gone.py", b"");
    assert_eq!(
        told(&init, &(init.clone() + &more)),
        "\"demo_pkg/gone.py\" is listed in RECORD and is not there"
    );
    assert_eq!(
        told(&init, "demo_pkg/__init__.py\n"),
        "the archive has a RECORD with a line that is not a path, a hash and a size"
    );
    assert_eq!(
        told_of_record(
            |honest| honest + &format!("{INFO}/RECORD,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,\n")
        ),
        format!("\"{INFO}/RECORD\" has another hash than RECORD says")
    );
}

#[test]
fn record_need_not_list_itself_nor_its_signatures() {
    let mut archive = demo();
    archive.entries.push(Entry::deflated(&format!("{INFO}/RECORD.jws"), b"{}"));
    archive.entries.push(Entry::deflated(&format!("{INFO}/RECORD.p7s"), b"{}"));
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
    assert_eq!(told_of_record(|honest| honest + &format!("{INFO}/RECORD,,\n")), "sound");
    // Elsewhere, the name gives no such right.
    let mut archive = demo();
    archive.entries.push(Entry::deflated("demo_pkg/RECORD", b""));
    assert_eq!(refusal(&archive.bytes()), "\"demo_pkg/RECORD\" is not listed in RECORD");
}

#[test]
fn better_hashes_and_quoted_paths_are_read() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE;
    use sha2::{Digest as _, Sha384, Sha512};
    let init = line("demo_pkg/__init__.py", b"VERSION = '1.2'\n");
    let hash384 = URL_SAFE.encode(Sha384::digest(b"VERSION = '1.2'\n"));
    let hash512 = URL_SAFE.encode(Sha512::digest(b"VERSION = '1.2'\n"));
    for hash in [format!("sha384={hash384}"), format!("sha512={hash512}")] {
        let better = format!("\"demo_pkg/__init__.py\",{hash},16\r\n");
        assert_eq!(told_of_record(|honest| honest.replace(&init, &better)), "sound");
        let broken = better.replace(&hash[8..10], "AA");
        assert_ne!(told_of_record(|honest| honest.replace(&init, &broken)), "sound");
    }
}

#[test]
fn what_metadata_says_is_handed_on() {
    let metadata = "Metadata-Version: 2.1\r\nName: demo-pkg\r\nVersion: 1.2\r\nSummary: A demo\r\n\
        Requires-Python: >=3.9\r\nRequires-Dist: a>1\r\nRequires-Dist: b\r\nProject-URL: Docs, https://example.org\r\n\
        License: one\r\n  two\r\n\r\nThe text.\r\nName: not a field\r\n";
    let paths = [format!("{INFO}/METADATA"), format!("{INFO}/WHEEL")];
    let files = [(paths[0].as_str(), metadata.as_bytes()), (&paths[1], WHEEL.as_bytes())];
    let wheel = inspected_as(NAME, &wheel_of(&files).bytes()).unwrap();
    assert_eq!((wheel.metadata.name.as_str(), wheel.metadata.version.as_str()), ("demo-pkg", "1.2"));
    assert_eq!(wheel.metadata.summary.as_deref(), Some("A demo"));
    assert_eq!(wheel.metadata.requires_python.as_deref(), Some(">=3.9"));
    assert_eq!(wheel.metadata.requires_dist, ["a>1", "b"]);
    assert_eq!(wheel.metadata.project_urls, ["Docs, https://example.org"]);
    assert_eq!(wheel.metadata.description, "The text.\r\nName: not a field");
    assert_eq!(wheel.files, 3);
}

#[test]
fn entry_points_are_read_and_broken_ones_refused() {
    let path = format!("{INFO}/entry_points.txt");
    let wheel = |text: &str| wheel_with(&[(&path, text.as_bytes())]).bytes();
    let text = "# tools\n[console_scripts]\ndemo = demo_pkg:main\nother=demo_pkg.other:run [extra]\n\n\
        [ pyoco.flows ]\n  long =\n    demo_pkg:flow\n";
    let points = inspected_as(NAME, &wheel(text)).unwrap().entry_points;
    let points: Vec<(&str, &str, &str)> =
        points.iter().map(|point| (point.group.as_str(), point.name.as_str(), point.object.trim())).collect();
    assert_eq!(
        points,
        [
            ("console_scripts", "demo", "demo_pkg:main"),
            ("console_scripts", "other", "demo_pkg.other:run [extra]"),
            ("pyoco.flows", "long", "demo_pkg:flow"),
        ]
    );
    assert!(inspected_as(NAME, &wheel("")).unwrap().entry_points.is_empty());
    let neither = format!("{path:?} has a line that is neither a group nor an entry point: line");
    assert_eq!(refusal(&wheel("a = b\n")), format!("{neither} 1"));
    assert_eq!(refusal(&wheel("[g]\nnonsense\n")), format!("{neither} 2"));
    assert_eq!(refusal(&wheel("[g]\na=b\na = c\n")), format!("{path:?} has an entry point twice: line 3"));
}
