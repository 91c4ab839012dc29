//! Names and kinds of entries.

use super::raw::{Entry, Header, NAME, demo, inspected_as, line, refusal, wheel_with};

/// What is said about a wheel with a file of this name, which RECORD lists as well.
fn told_of(name: &str) -> String {
    refusal(&wheel_with(&[(name, b"x = 1\n")]).bytes())
}

fn told_of_first(change: impl Fn(&mut Header)) -> String {
    let mut archive = demo();
    archive.entry("demo_pkg/__init__.py").both(change);
    refusal(&archive.bytes())
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for (name, what) in [
        ("/etc/cron.d/x", "has an absolute name"),
        ("//host/share", "has an absolute name"),
        ("../x.py", "leaves the folder of the wheel"),
        ("demo_pkg/../../x.py", "leaves the folder of the wheel"),
        ("demo_pkg/..", "leaves the folder of the wheel"),
        ("..", "leaves the folder of the wheel"),
        ("demo_pkg/./x.py", "has an empty part in its name"),
        ("demo_pkg//x.py", "has an empty part in its name"),
        (".", "has an empty part in its name"),
        ("", "has an empty part in its name"),
        ("C:/x.py", "begins with the letter of a drive"),
        ("c:x.py", "begins with the letter of a drive"),
    ] {
        assert_eq!(told_of(name), format!("{name:?} {what}"));
    }
    assert_eq!(told_of("..\\x.py"), r#""..\\x.py" has a backslash in its name"#);
    assert_eq!(told_of("C:\\x.py"), r#""C:\\x.py" has a backslash in its name"#);
}

#[test]
fn a_name_that_breaks_texts_is_refused_and_shown_harmlessly() {
    assert_eq!(told_of("demo_pkg/x.py\0.txt"), r#""demo_pkg/x.py\0.txt" has control characters in its name"#);
    assert_eq!(told_of("a\nb"), r#""a\nb" has control characters in its name"#);
    assert_eq!(told_of("a\u{1b}[31m"), r#""a\u{1b}[31m" has control characters in its name"#);
    // What turns the direction of text is spelt out, whatever it is refused for.
    assert!(told_of("../\u{202e}yp.x").starts_with(r#""../\u{202e}yp.x" "#));
}

#[test]
fn a_name_that_is_too_long_is_refused_and_not_shown_in_full() {
    let sentence = told_of(&"x".repeat(1_025));
    assert!(sentence.ends_with("x\" has too long a name"), "{sentence}");
    assert!(sentence.len() < 300);
    assert!(inspected_as(NAME, &wheel_with(&[(&"x".repeat(1_024), b"")]).bytes()).is_ok());
}

#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    let sentence = told_of_first(|header| header.name = b"demo_pkg/\xff\xfe.py".to_vec());
    assert_eq!(sentence, "\"demo_pkg/\u{fffd}\u{fffd}.py\" has a name that is not UTF-8");
    // Without the flag, some readers take these bytes for another alphabet.
    let mut archive = wheel_with(&[("demo_pkg/ünï.py", b"")]);
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
    archive.entry("demo_pkg/ünï.py").both(|header| header.flags = 0);
    assert!(refusal(&archive.bytes()).ends_with("has a name that is not marked as UTF-8"));
}

#[test]
fn links_and_devices_are_refused() {
    for (mode, what) in [
        (0o120_777, "is a symbolic link"),
        (0o020_666, "is a device or another special file"),
        (0o060_666, "is a device or another special file"),
        (0o010_666, "is a device or another special file"),
        (0o140_777, "is a device or another special file"),
        (0o040_755, "has the name of a file and the attributes of a folder"),
    ] {
        let sentence = told_of_first(|header| header.attributes = mode << 16);
        assert_eq!(sentence, format!("\"demo_pkg/__init__.py\" {what}"));
    }
    let sentence = told_of_first(|header| header.attributes = 0x10);
    assert!(sentence.ends_with("has the name of a file and the attributes of a folder"));
}

#[test]
fn an_entry_that_is_there_twice_is_refused() {
    let mut archive = demo();
    let twin = Entry::deflated("demo_pkg/__init__.py", b"another\n");
    archive.entries.push(twin);
    assert_eq!(refusal(&archive.bytes()), "\"demo_pkg/__init__.py\" is there twice");
}

#[test]
fn entries_that_are_one_file_where_capitals_do_not_count_are_refused() {
    for (one, other) in [
        ("demo_pkg/Tool.py", "demo_pkg/tool.py"),
        ("demo_pkg/x.py", "Demo_Pkg/x.py"),
        ("demo_pkg/É.py", "demo_pkg/é.py"),
        // The same letter, spelt in one character and in two.
        ("demo_pkg/\u{e9}.py", "demo_pkg/e\u{301}.py"),
    ] {
        let sentence = refusal(&wheel_with(&[(one, b"1"), (other, b"2")]).bytes());
        let wanted = format!("{other:?} is the same file as {one:?} where capitals do not count");
        assert_eq!(sentence, wanted);
    }
}

#[test]
fn a_file_that_is_also_a_folder_is_refused() {
    for (file, below) in [("demo_pkg/a", "demo_pkg/a/b.py"), ("demo_pkg/A", "demo_pkg/a/b/c.py")] {
        for files in [[(file, &b"1"[..]), (below, b"2")], [(below, b"2"), (file, b"1")]] {
            assert_eq!(refusal(&wheel_with(&files).bytes()), format!("{below:?} is below a file"));
        }
    }
    let sentence = refusal(&wheel_with(&[("demo_pkg/a", b"1"), ("demo_pkg/a/", b"")]).bytes());
    assert!(sentence.contains("is the same file as"), "{sentence}");
}

#[test]
fn a_folder_with_content_is_refused() {
    let sentence = refusal(&wheel_with(&[("demo_pkg/sub/", b"content")]).bytes());
    assert_eq!(sentence, "\"demo_pkg/sub/\" is a folder with content");
    // It says it has none, and has some.
    let mut archive = wheel_with(&[("demo_pkg/sub/", b"content")]);
    archive.entry("demo_pkg/sub/").both(|header| header.size = 0);
    assert_eq!(refusal(&archive.bytes()), "\"demo_pkg/sub/\" inflates to more than the directory says");
    let mut archive = wheel_with(&[("demo_pkg/sub/", b"")]);
    archive.entry("demo_pkg/sub/").central.attributes = 0o100_644 << 16;
    let what = "has the name of a folder and the attributes of a file";
    assert_eq!(refusal(&archive.bytes()), format!("\"demo_pkg/sub/\" {what}"));
}

#[test]
fn an_encrypted_entry_is_refused() {
    for flag in [1, 1 | 1 << 6, 1 << 13] {
        let sentence = told_of_first(|header| header.flags |= flag);
        assert_eq!(sentence, "\"demo_pkg/__init__.py\" is encrypted");
    }
    let sentence = told_of_first(|header| header.flags |= 1 << 5);
    assert!(sentence.ends_with("has flags that not every reader knows"));
}

#[test]
fn an_entry_that_is_compressed_in_another_way_is_refused() {
    for method in [1, 6, 9, 12, 14, 93, 95, 99] {
        let sentence = told_of_first(|header| header.method = method);
        assert_eq!(sentence, "\"demo_pkg/__init__.py\" is neither stored nor deflated");
    }
}

#[test]
fn a_file_beside_record_that_it_does_not_list_is_refused() {
    let mut archive = demo();
    archive.entries.push(Entry::deflated("demo_pkg/evil.py", b"1"));
    assert_eq!(refusal(&archive.bytes()), "\"demo_pkg/evil.py\" is not listed in RECORD");
    assert!(line("a", b"").starts_with("a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0"));
}
