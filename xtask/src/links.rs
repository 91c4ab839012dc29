//! What a page points at is there: files, headings, and the pages that code and comments name.
//!
//! Not here: addresses of other sites, which nobody but the network can vouch for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 6] = ["target", "node_modules", ".git", "dist", "corpus", "artifacts"];

/// Links that lead nowhere.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    collect(root, &mut files);
    let (pages, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|path| path.extension().is_some_and(|extension| extension == "md"));
    let texts: BTreeMap<PathBuf, String> =
        pages.into_iter().filter_map(|path| Some((path.clone(), fs::read_to_string(&path).ok()?))).collect();
    let headings: BTreeMap<&PathBuf, BTreeSet<String>> =
        texts.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut findings = Vec::new();
    for (path, text) in &texts {
        let shown = path.strip_prefix(root).unwrap_or(path).display();
        for link in links(text) {
            let (file, anchor) =
                link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = match file {
                "" => path.clone(),
                file => plain(&path.parent().unwrap_or(root).join(file)),
            };
            if !target.exists() {
                findings.push(format!("{shown} points at {link}, which is not there"));
            } else if let (Some(anchor), Some(known)) = (anchor, headings.get(&target))
                && !known.contains(anchor)
            {
                findings.push(format!("{shown} points at {link}, but there is no such heading"));
            }
        }
        findings
            .extend(absent_pages(root, text).map(|page| format!("{shown} names {page}, which is not there")));
    }
    for path in others {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        findings.extend(
            absent_pages(root, &text).map(|page| format!("{shown} names {page}, which is not there")),
        );
    }
    findings
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_ref()) && !name.starts_with('.') {
                collect(&path, files);
            }
        } else if ["md", "rs", "toml", "sh", "yml", "py"]
            .iter()
            .any(|ending| name.ends_with(&format!(".{ending}")))
            || name == "Makefile"
        {
            files.push(path);
        }
    }
}

/// Pages that a text names by their way from the root, such as docs/architecture.md, and that are not there.
fn absent_pages<'a>(root: &'a Path, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let named = text.match_indices("docs/").filter(|(place, _)| {
        let before = text.get(..*place).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_ascii_alphanumeric() && !"/._-".contains(c))
    });
    let named = named.filter_map(|(place, _)| {
        let word: String = text.get(place..)?.chars().take_while(|c| is_of_path(*c)).collect();
        let word = word.trim_end_matches(['.', '-']);
        word.ends_with(".md").then(|| word.to_owned())
    });
    named.filter(|page| !root.join(page).exists()).collect::<BTreeSet<_>>().into_iter()
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-".contains(c)
}

/// Where the links of a page lead, outside of fences and code; addresses with a scheme are left out.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in outside_fences(text) {
        for (number, part) in line.split('`').enumerate() {
            // Between backticks stands code, but a link may have code as its text: `](` comes after it.
            if number % 2 == 1 {
                continue;
            }
            for rest in part.split("](").skip(1) {
                let Some((target, _)) = rest.split_once(')') else { continue };
                if !target.contains("://") && !target.starts_with("mailto:") && !target.starts_with('/') {
                    found.push(target);
                }
            }
        }
    }
    found
}

fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_outside = true;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_outside ^= is_fence;
        is_outside && !is_fence
    })
}

/// The anchors of a page's headings, as GitHub makes them: lower case, no punctuation, hyphens for spaces, a number for a repeat.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in outside_fences(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String =
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let times = seen.entry(anchor.clone()).or_default();
        found.insert(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    found
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "see [a](b.md#c) and [`x`](y.md), not `[z](no.md)` nor [w](https://example.org)\n```\n[q](r.md)\n```\n";
        assert_eq!(links(text), ["b.md#c", "y.md"]);
    }

    #[test]
    fn anchors_are_as_github_makes_them() {
        let found = anchors(
            "# What a 200 is worth\n## `a.b`, c!\n## Keys\n## Keys\n```\n# none\n```\n## 最初のフロー\n",
        );
        let wanted = ["what-a-200-is-worth", "ab-c", "keys", "keys-1", "最初のフロー"];
        assert_eq!(found, wanted.iter().map(ToString::to_string).collect());
    }

    #[test]
    fn pages_that_code_names_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        // Written in two parts, or this file would name a page that is not there.
        let absent = ["docs", "nowhere.md"].join("/");
        let text = format!("//! See docs/architecture.md. Not /docs/x.md, but {absent}.");
        assert_eq!(absent_pages(root, &text).collect::<Vec<_>>(), [absent]);
    }
}
