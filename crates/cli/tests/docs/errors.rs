//! docs/reference/errors.md has every number and every word that the product answers with, and no other.

use std::collections::BTreeSet;

use crate::page;

const PAGE: &str = "docs/reference/errors.md";

/// The numbers and texts of the contract, from the one table of them.
fn notices() -> Vec<(String, String)> {
    let source = page::read("crates/core/src/notice.rs");
    let (_, variants) = source.split_once("pub enum Notice {\n").unwrap();
    let (variants, _) = variants.split_once("\n}\n").unwrap();
    let variants = variants.lines().map(str::trim).filter(|line| !line.starts_with("///"));
    let names: Vec<&str> = variants.map(|line| line.trim_end_matches(',')).collect();
    let text = |name: &str| {
        let (_, rest) = source.split_once(&format!("Self::{name} => \"")).unwrap_or_else(|| panic!("{name}"));
        rest.split_once('"').unwrap().0.to_owned()
    };
    names.iter().enumerate().map(|(place, name)| (format!("{:04}", place + 1), text(name))).collect()
}

/// What stands below a heading, up to the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) =
        page.split_once(&format!("\n### {heading}\n")).unwrap_or_else(|| panic!("{PAGE} has no {heading}"));
    rest.split("\n##").next().unwrap()
}

#[test]
fn every_number_is_explained_with_its_cause_and_what_to_do() {
    let page = page::read(PAGE);
    let notices = notices();
    assert_eq!(
        pyoco_core::notice::Notice::WheelSyncFailed.err_id(),
        format!("ERR-PYOCO-{}", notices.last().unwrap().0)
    );
    for (number, text) in &notices {
        let said = section(&page, &format!("ERR-PYOCO-{number}"));
        assert!(
            said.contains(&format!("`MSG-PYOCO-{number}`: {text}")),
            "{number}: the message is {text}\n{said}"
        );
        for word in ["**What happened.** ", "**Why.** ", "**What to do.** "] {
            let sentence = said.split_once(word).unwrap_or_else(|| panic!("{number} has no {word}")).1;
            assert!(sentence.len() > 10, "{number}: {word}");
        }
    }
    let known: BTreeSet<&str> = notices.iter().map(|(number, _)| number.as_str()).collect();
    let named: BTreeSet<&str> = page
        .split("PYOCO-")
        .skip(1)
        .filter_map(|rest| rest.get(..4))
        .filter(|number| number.chars().all(|c| c.is_ascii_digit()))
        .collect();
    assert_eq!(named, known, "numbers of {PAGE}, and of the code");
}

#[test]
fn every_word_of_the_command_line_is_explained() {
    let page = page::read(PAGE);
    let mut said = BTreeSet::new();
    let mut folders = vec![page::root().join("crates/cli/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let source = std::fs::read_to_string(entry.path()).unwrap();
            for rest in source.split("\"ERR-PYOCO-").skip(1) {
                let word: String = rest.chars().take_while(char::is_ascii_uppercase).collect();
                if !word.is_empty() {
                    said.insert(word);
                }
            }
        }
    }
    assert!(said.contains("HTTP"), "{said:?}");
    let explained: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `ERR-PYOCO-"))
        .map(|rest| rest.chars().take_while(char::is_ascii_uppercase).collect())
        .collect();
    assert_eq!(explained, said, "words of {PAGE}, and of the programs");
}

#[test]
fn every_code_of_an_answer_is_explained() {
    let page = page::read(PAGE);
    let source = page::read("crates/gateway/src/error/denial.rs");
    let (_, table) = source.split_once("const fn as_str(self) -> &'static str {\n").unwrap();
    let (table, _) = table.split_once("\n    }\n").unwrap();
    let codes: BTreeSet<&str> = table.lines().filter_map(|line| line.split('"').nth(1)).collect();
    let (_, rest) = page.split_once("\n## Codes\n").expect("a table of codes");
    let rows = rest.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    let explained: BTreeSet<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(codes.len() > 20, "{codes:?}");
    assert_eq!(explained, codes, "codes of {PAGE}, and of the gateway");
}
