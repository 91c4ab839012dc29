//! What a page of the documentation asks its reader to do: its fences, read in order.
//!
//! - A fence of `sh` is typed as it stands. `<!-- not run: why -->` above it leaves it out, `<!-- stays up -->` lets it go on
//!   beside what follows, `<!-- until it shows -->` types it again until the output below is there.
//! - A fence of `output` below it is what the reader sees: lines in this order, others may be between; `…` is anything.
//! - `<!-- stopped -->` ends whatever stays up.
//! - A fence of another language whose first line is `# a/path.ext` is a file that the reader makes.

use std::path::PathBuf;

/// One thing to do.
#[derive(Debug)]
pub(crate) struct Step {
    /// Where it stands, for whoever has to mend it.
    pub(crate) line: usize,
    pub(crate) deed: Deed,
}

#[derive(Debug)]
pub(crate) enum Deed {
    File { path: String, text: String },
    Type { commands: Vec<String>, output: Vec<String>, again: bool },
    Start(String),
    Stop,
    LeaveOut { reason: String, first: String },
}

/// A fence as it stands.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) line: usize,
    pub(crate) language: String,
    /// The comment above it, without its marks.
    note: String,
    pub(crate) lines: Vec<String>,
}

/// The comment that ends whatever stays up.
const STOPPED: &str = "stopped";

pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Every page that people read: the READMEs, and what is below docs/.
pub(crate) fn all() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "README.ja.md".to_owned()];
    for folder in std::fs::read_dir(root().join("examples")).unwrap().flatten() {
        if folder.path().join("README.md").exists() {
            pages.push(format!("examples/{}/README.md", folder.file_name().to_str().unwrap()));
        }
    }
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap().flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The fences of a page.
pub(crate) fn fences(text: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let mut note = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if !line.trim().is_empty() {
                let comment = line.trim().strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                note = comment.unwrap_or_default().to_owned();
                if note == STOPPED {
                    let (language, note, lines) = (STOPPED.to_owned(), String::new(), Vec::new());
                    fences.push(Fence { line: number + 1, language, note, lines });
                }
            }
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let within = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let within = within.map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect();
        fences.push(Fence {
            line: number + 1,
            language: language.to_owned(),
            note: std::mem::take(&mut note),
            lines: within,
        });
    }
    fences
}

/// What the page asks its reader to do.
pub(crate) fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for Fence { line, language, note, lines } in fences(text) {
        let deed = match language.as_str() {
            "sh" => typed(&note, &lines),
            STOPPED => Deed::Stop,
            "output" => {
                let Some(Step { deed: Deed::Type { output, .. }, .. }) = steps.last_mut() else {
                    panic!("line {line}: an output of what?")
                };
                *output = lines;
                continue;
            }
            _ => match lines.first().and_then(|first| file_name(first)) {
                Some(path) => Deed::File { path: path.to_owned(), text: lines.join("\n") + "\n" },
                None => continue,
            },
        };
        steps.push(Step { line, deed });
    }
    steps
}

fn typed(note: &str, lines: &[String]) -> Deed {
    if let Some(reason) = note.strip_prefix("not run: ") {
        return Deed::LeaveOut {
            reason: reason.to_owned(),
            first: lines.first().cloned().unwrap_or_default(),
        };
    }
    match note {
        "stays up" => Deed::Start(lines.join("\n")),
        _ => Deed::Type { commands: commands(lines), output: Vec::new(), again: note == "until it shows" },
    }
}

/// `# flows/report/flow.yaml`.
fn file_name(first: &str) -> Option<&str> {
    let name = first.strip_prefix("# ")?.trim_end();
    let (_, ending) = name.rsplit_once('.')?;
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    (is_plain(name) && !ending.is_empty() && !ending.contains('/')).then_some(name)
}

/// The commands of a fence: a line each, longer with a backslash at the end or a text for standard input.
fn commands(lines: &[String]) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = line.clone();
        while command.ends_with('\\') {
            command.push('\n');
            command.push_str(lines.next().expect("something behind the backslash"));
        }
        if line.contains("<<'END'") {
            for line in lines.by_ref() {
                command.push('\n');
                command.push_str(line);
                if line == "END" {
                    break;
                }
            }
        }
        commands.push(command);
    }
    commands
}

/// Whether the lines of an output are there, in this order.
pub(crate) fn shows(said: &str, wanted: &[String]) -> Result<(), String> {
    let mut said = said.lines().map(plain);
    for line in wanted.iter().filter(|line| !line.trim().is_empty()) {
        let parts: Vec<String> = line.split('…').map(plain).filter(|part| !part.is_empty()).collect();
        if !said.any(|said| has_parts(&said, &parts)) {
            return Err(line.clone());
        }
    }
    Ok(())
}

fn has_parts(line: &str, parts: &[String]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.split_once(part.as_str()) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// Columns are as wide as what stands in them.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_is_read_as_a_person_reads_it() {
    let page = "a\n\n<!-- not run: it takes root -->\n```sh\nsudo x\n```\n\n```sh\na \\\n  b   # exit code 1\n\n# only a word\nc\n```\n\
                ```output\nx … y\n```\n<!-- stays up -->\n\n```sh\nup\n```\n```yaml\n# f/flow.yaml\na: 1\n```\n```yaml\n# a word\n```\n";
    let steps = steps(page);
    assert_eq!(steps.len(), 4, "{steps:?}");
    assert!(
        matches!(&steps[0].deed, Deed::LeaveOut { reason, first } if reason == "it takes root" && first == "sudo x")
    );
    let Deed::Type { commands, output, again: false } = &steps[1].deed else { panic!("{steps:?}") };
    assert_eq!((commands.len(), output.len()), (2, 1), "{steps:?}");
    assert!(matches!(&steps[2].deed, Deed::Start(line) if line == "up"));
    assert!(matches!(&steps[3].deed, Deed::File { path, .. } if path == "f/flow.yaml"));
}

#[test]
fn an_output_is_looked_for_line_by_line() {
    let wanted = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    let said = "one  1\ntwo 2\nthree 3\n";
    assert_eq!(shows(said, &wanted(&["one 1", "th…3"])), Ok(()));
    assert_eq!(shows(said, &wanted(&["two 2", "one 1"])), Err("one 1".to_owned()));
    assert_eq!(shows(said, &wanted(&["2…two"])), Err("2…two".to_owned()));
}
