//! Names, versions and tags of wheels; which may be uploaded, which a worker takes, and what a set of them is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;
use pyoco_wheels::{
    Candidate, InvalidName, NotASet, PinnedWheel, Refused, Sha256Digest, SupportedTags, TagSet, Version,
    WheelName, WheelSet, choose, may_upload, normalised, parse_tags,
};

fn name(text: &str) -> WheelName {
    WheelName::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_name_is_read_in_its_parts() {
    let wheel = name("My_Tool.kit-1.0rc1+local.2-12b-py2.PY3-none-manylinux_2_17_x86_64.any.whl");
    assert_eq!(wheel.package(), "my-tool-kit");
    assert_eq!(wheel.version().to_string(), "1.0rc1+local.2");
    assert_eq!(wheel.build().map(|build| (build.number, build.rest.as_str())), Some((12, "b")));
    let tags: Vec<String> = wheel.tags().expanded().collect();
    assert_eq!(
        tags,
        ["py2-none-any", "py2-none-manylinux_2_17_x86_64", "py3-none-any", "py3-none-manylinux_2_17_x86_64"]
    );
    assert!(name("a-1-py3-none-any.whl").build().is_none());
}

#[test]
fn what_could_not_be_a_name_is_told_from_what_is_no_wheel() {
    let long = format!("{}-1-py3-none-any.whl", "a".repeat(237));
    assert_eq!(long.len(), 256);
    for text in [
        "",
        ".whl",
        "a-1-py3-none-any.zip",
        "a-1-py3-none-any.WHL",
        "a-1-py3-none-any.whl ",
        "../a-1-py3-none-any.whl",
        "C:\\a-1-py3-none-any.whl",
        "a-1!2-py3-none-any.whl",
        "a-1-py3-none-any.whl\0",
        "a\u{202e}-1-py3-none-any.whl",
        "ä-1-py3-none-any.whl",
        &long,
    ] {
        assert_eq!(WheelName::parse(text), Err(InvalidName::NotAName), "{text}");
    }
    name(&long[1..]);
    let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].join(".");
    for text in [
        "a.whl",
        "a-1.whl",
        "a-1-py3-none.whl",
        "a-1-1-2-py3-none-any.whl",
        "-1-py3-none-any.whl",
        "a--py3-none-any.whl",
        "a-one-py3-none-any.whl",
        "a-1-b1-py3-none-any.whl",
        "a-1--py3-none-any.whl",
        "a-1-99999999999999999999999-py3-none-any.whl",
        "a__b-1-py3-none-any.whl",
        "_a-1-py3-none-any.whl",
        "..-1-py3-none-any.whl",
        "a+b-1-py3-none-any.whl",
        "a-1-3py-none-any.whl",
        "a-1-py3.-none-any.whl",
        "a-1-py3-none-.whl",
        &format!("a-1-{many}-{many}-{many}.whl"),
    ] {
        assert_eq!(WheelName::parse(text), Err(InvalidName::NotAWheelName), "{text}");
    }
    assert_eq!(InvalidName::NotAName.to_string(), "invalid wheel name");
    assert_eq!(InvalidName::NotAWheelName.to_string(), "invalid wheel filename");
}

#[test]
fn versions_are_compared_as_pip_does() {
    let ordered = [
        "1.0.dev1",
        "1.0a1",
        "1.0a2",
        "1.0b1",
        "1.0rc1",
        "1.0",
        "1.0+local",
        "1.0.post1",
        "1.2",
        "1.10",
        "2",
    ];
    let wheels: Vec<WheelName> =
        ordered.iter().map(|version| name(&format!("a-{version}-py3-none-any.whl"))).collect();
    for pair in wheels.windows(2) {
        assert_eq!(pair[0].version().cmp(pair[1].version()), Ordering::Less, "{} {}", pair[0], pair[1]);
    }
    assert_eq!(name("a-1.0-py3-none-any.whl").version(), name("a-v1.0.0-py3-none-any.whl").version());
}

#[test]
fn a_list_of_tags_is_read_as_the_original_does() {
    let tags = |list: &str| parse_tags(list).map_err(|error| error.to_string());
    assert_eq!(tags(" gpu, ,cpu,gpu,,a_b-C9 "), Ok(vec!["gpu".into(), "cpu".into(), "a_b-C9".into()]));
    assert_eq!(tags(""), Ok(vec![]));
    for list in ["a.b", "a b", "*", "a,>", "ä", &"x".repeat(65)] {
        assert_eq!(tags(list), Err("invalid wheel tags".into()), "{list}");
    }
    let many = |count: usize| (0..count).map(|number| format!("t{number}")).collect::<Vec<_>>().join(",");
    assert_eq!(tags(&many(32)).unwrap().len(), 32);
    assert!(tags(&(many(32) + ",t0")).is_ok());
    assert!(tags(&many(33)).is_err());
    assert!(tags(&"x".repeat(64)).is_ok());
}

#[test]
fn versions_of_a_package_only_grow() {
    let there = [
        name("My_Tool-1.5-py3-none-any.whl"),
        name("other-9-py3-none-any.whl"),
        name("my.tool-1.1-py3-none-any.whl"),
    ];
    let asked = |text: &str| may_upload(&there, &name(text)).map_err(|refused| refused.to_string());
    assert_eq!(asked("my_tool-1.6-py3-none-any.whl"), Ok(()));
    assert_eq!(asked("new-0.1-py3-none-any.whl"), Ok(()));
    let same = Err("wheel version already exists; bump version".to_owned());
    assert_eq!(asked("my_tool-1.5-py3-none-any.whl"), same);
    assert_eq!(asked("MY.TOOL-1.5.0-7-cp311-abi3-linux_x86_64.whl"), same);
    // Older than one and the same as another: that it is there is said first.
    assert_eq!(asked("my_tool-1.1-py3-none-any.whl"), same);
    let older = Err("wheel version must be greater than existing latest version".to_owned());
    assert_eq!(asked("my_tool-1.2-py3-none-any.whl"), older);
    assert_eq!(asked("my_tool-1.5rc1-py3-none-any.whl"), older);
    assert_eq!(may_upload([], &there[0]), Ok(()));
    assert_eq!(may_upload(&there[..1], &there[0]), Err(Refused::SameVersion));
}

fn supported() -> SupportedTags {
    SupportedTags::new(["cp311-cp311-linux_x86_64", "cp311-abi3-linux_x86_64", "py3-none-any"]).unwrap()
}

fn candidate(text: &str, tags: &[&str]) -> Candidate {
    Candidate { name: name(text), tags: tags.iter().map(|tag| (*tag).to_owned()).collect() }
}

fn names(wheels: &[&Candidate]) -> Vec<String> {
    wheels.iter().map(|wheel| wheel.name.to_string()).collect()
}

#[test]
fn a_worker_takes_the_newest_wheel_that_it_can_run() {
    let wheels = [
        candidate("b-1-py3-none-any.whl", &[]),
        candidate("a-1.9-py3-none-any.whl", &[]),
        candidate("a-1.10-py3-none-any.whl", &["gpu", "cpu"]),
        candidate("a-2-cp312-cp312-linux_x86_64.whl", &[]),
        candidate("a-3-py3-none-any.whl", &["elsewhere"]),
        candidate("c-1-py2-none-any.whl", &["elsewhere"]),
    ];
    let chosen = choose(&wheels, &["cpu".to_owned()], &supported());
    assert_eq!(names(&chosen.selected), ["a-1.10-py3-none-any.whl", "b-1-py3-none-any.whl"]);
    assert_eq!(names(&chosen.skipped_incompatible), ["a-2-cp312-cp312-linux_x86_64.whl"]);
    let chosen = choose(&wheels, &[], &supported());
    assert_eq!(names(&chosen.selected), ["a-1.9-py3-none-any.whl", "b-1-py3-none-any.whl"]);
}

#[test]
fn of_equal_versions_the_interpreters_own_order_decides_and_then_the_build() {
    let wheels = [
        candidate("a-1-9-py3-none-any.whl", &[]),
        candidate("A-1.0-cp311-abi3-linux_x86_64.whl", &[]),
        candidate("a-1-1-cp310.cp311-cp311-linux_x86_64.whl", &[]),
        candidate("a-1-2-cp311-cp311-linux_x86_64.any.whl", &[]),
    ];
    let taken = |wheels: &[Candidate]| names(&choose(wheels, &[], &supported()).selected);
    assert_eq!(taken(&wheels), ["a-1-2-cp311-cp311-linux_x86_64.any.whl"]);
    assert_eq!(taken(&wheels[..3]), ["a-1-1-cp310.cp311-cp311-linux_x86_64.whl"]);
    assert_eq!(taken(&wheels[..2]), ["A-1.0-cp311-abi3-linux_x86_64.whl"]);
}

#[test]
fn tags_of_an_interpreter_that_are_none_are_refused() {
    assert!(SupportedTags::new(["py3-none-any", "py3-none"]).is_err());
    assert!(SupportedTags::new(["", "py3-none-any"]).is_err());
    assert_eq!(SupportedTags::default().place(&TagSet::parse("py3-none-any").unwrap()), None);
}

fn pinned(text: &str, digit: char) -> PinnedWheel {
    PinnedWheel::new(name(text), Sha256Digest::parse(&digit.to_string().repeat(64)).unwrap())
}

#[test]
fn a_set_is_the_same_in_whatever_order_it_is_given() {
    let (a, b) = (pinned("a-1.0-py3-none-any.whl", '1'), pinned("b-2-py3-none-any.whl", '2'));
    let set = WheelSet::new(vec![a.clone(), b.clone()]).unwrap();
    let other = WheelSet::new(vec![b, a.clone()]).unwrap();
    assert_eq!((set.digest(), &set), (other.digest(), &other));
    // Folders on the disks of workers are named so: this may never change.
    let wanted = "3793b87f888f6ee6f95369563caffd3a3ff1b4622a4fa61f450c1fda7f5645a5";
    assert_eq!(set.digest().as_str(), wanted);
    for changed in [vec![a.clone()], vec![a, pinned("b-2-py3-none-any.whl", '3')], vec![]] {
        assert_ne!(WheelSet::new(changed).unwrap().digest(), set.digest());
    }
}

#[test]
fn a_set_survives_being_written_and_refuses_what_it_is_not() {
    let set = WheelSet::new(vec![pinned("a-1.0-py3-none-any.whl", 'a')]).unwrap();
    let text = serde_json::to_string(&set).unwrap();
    let hash = "a".repeat(64);
    assert_eq!(text, format!(r#"[{{"name":"a-1.0-py3-none-any.whl","version":"1.0","sha256":"{hash}"}}]"#));
    assert_eq!(serde_json::from_str::<WheelSet>(&text).unwrap(), set);
    for broken in [
        text.replace(&hash, &hash.to_uppercase()),
        text.replace(&hash, "../../etc"),
        text.replace("\"1.0\"", "\"1.1\""),
        text.replace("a-1.0", "../a-1.0"),
        text.replace("[{", &format!("[{},{{", text.trim_matches(['[', ']']))),
        text.replace("\"version\"", "\"more\":1,\"version\""),
    ] {
        assert!(serde_json::from_str::<WheelSet>(&broken).is_err(), "{broken}");
    }
    let twice = vec![pinned("a-1-py3-none-any.whl", '1'), pinned("A-2-py3-none-any.whl", '1')];
    assert_eq!(WheelSet::new(twice), Err(NotASet::Twice("a".into())));
}

fn version() -> impl Strategy<Value = String> {
    let numbers = prop::collection::vec(0..30_u32, 1..4)
        .prop_map(|numbers| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("."));
    let suffix = prop::sample::select(vec!["", "a1", "b2", "rc3", ".post1", ".dev4", "+local.1"]);
    (numbers, suffix).prop_map(|(numbers, suffix)| format!("{numbers}{suffix}"))
}

fn wheel() -> impl Strategy<Value = Candidate> {
    let package = prop::sample::select(vec!["a", "A", "b_c", "B.c", "d"]);
    let build = prop::sample::select(vec!["", "-1", "-2x"]);
    let tags = prop::sample::select(vec![
        "py3-none-any",
        "py2.py3-none-any",
        "cp311-cp311-linux_x86_64",
        "cp311-abi3-linux_x86_64",
        "cp39-cp39-win32",
    ]);
    let for_workers = prop::sample::subsequence(vec!["gpu", "cpu", "x"], 0..3);
    (package, version(), build, tags, for_workers).prop_map(|(package, version, build, tags, for_workers)| {
        candidate(&format!("{package}-{version}{build}-{tags}.whl"), &for_workers)
    })
}

proptest! {
    #[test]
    fn any_text_is_a_name_or_is_refused(text in "[A-Za-z0-9._+-]{0,40}(\\.whl)?") {
        if let Ok(wheel) = WheelName::parse(&text) {
            prop_assert_eq!(wheel.as_str(), &text);
            prop_assert_eq!(&wheel.to_string().parse::<WheelName>().unwrap(), &wheel);
            prop_assert_eq!(normalised(wheel.package()), wheel.package());
            let json = serde_json::to_string(&wheel).unwrap();
            prop_assert_eq!(serde_json::from_str::<WheelName>(&json).unwrap(), wheel);
        }
    }

    #[test]
    fn text_of_strangers_is_refused_without_a_panic(text in "\\PC{0,300}") {
        let _read = WheelName::parse(&text);
        let _read = WheelName::parse(&format!("{text}.whl"));
        let _read = WheelName::parse(&format!("a-{text}-py3-none-any.whl"));
        let _read = TagSet::parse(&text);
        if let Ok(tags) = parse_tags(&text) {
            prop_assert!(tags.len() <= 32);
        }
    }

    #[test]
    fn a_name_of_good_parts_is_read(
        package in "[A-Za-z0-9]([A-Za-z0-9]|[._][A-Za-z0-9]){0,20}",
        version in version(),
        build in prop::option::of(0..999_u64),
    ) {
        let build_text = build.map(|build| format!("-{build}")).unwrap_or_default();
        let wheel = name(&format!("{package}-{version}{build_text}-py3-none-any.whl"));
        prop_assert_eq!(wheel.package(), normalised(&package));
        prop_assert_eq!(wheel.version(), &version.parse::<Version>().unwrap());
        prop_assert_eq!(wheel.build().map(|build| build.number), build);
    }

    #[test]
    fn the_choice_is_one_of_each_package_and_nothing_better_is_left(
        wheels in prop::collection::vec(wheel(), 0..12),
        worker_tags in prop::sample::subsequence(vec!["gpu".to_owned(), "cpu".to_owned()], 0..=2),
    ) {
        let supported = supported();
        let is_for = |wheel: &Candidate| {
            wheel.tags.is_empty() || wheel.tags.iter().any(|tag| worker_tags.contains(tag))
        };
        let chosen = choose(&wheels, &worker_tags, &supported);
        let mut by_package: BTreeMap<&str, &Candidate> = BTreeMap::new();
        for wheel in &chosen.selected {
            prop_assert!(is_for(wheel) && supported.place(wheel.name.tags()).is_some());
            prop_assert!(by_package.insert(wheel.name.package(), wheel).is_none());
        }
        for wheel in wheels.iter().filter(|wheel| is_for(wheel)) {
            let Some(place) = supported.place(wheel.name.tags()) else {
                prop_assert!(chosen.skipped_incompatible.contains(&wheel));
                continue;
            };
            let taken = by_package[wheel.name.package()];
            prop_assert!(wheel.name.version() <= taken.name.version());
            if wheel.name.version() == taken.name.version() {
                prop_assert!(place >= supported.place(taken.name.tags()).unwrap());
            }
        }
        prop_assert!(chosen.skipped_incompatible.iter().all(|wheel| is_for(wheel)));
        let mut turned = wheels.clone();
        turned.reverse();
        let again = choose(&turned, &worker_tags, &supported);
        prop_assert_eq!(names(&again.selected), names(&chosen.selected));
    }

    #[test]
    fn what_may_be_uploaded_is_newer_than_all_of_its_package(
        there in prop::collection::vec(wheel(), 0..8),
        new in wheel(),
    ) {
        let there: Vec<WheelName> = there.into_iter().map(|wheel| wheel.name).collect();
        let same: Vec<_> = there.iter().filter(|wheel| wheel.package() == new.name.package()).collect();
        let wanted = if same.iter().any(|wheel| wheel.version() == new.name.version()) {
            Err(Refused::SameVersion)
        } else if same.iter().any(|wheel| wheel.version() > new.name.version()) {
            Err(Refused::OlderVersion)
        } else {
            Ok(())
        };
        prop_assert_eq!(may_upload(&there, &new.name), wanted);
    }
}
