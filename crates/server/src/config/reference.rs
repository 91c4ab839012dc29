//! The reference of the settings, written from the table: docs/reference/configuration.md, and the end of the programs' help.

use super::table::{self, TABLE};
use super::variable::{Group, Origin, Program, Variable};

const BEGINNING: &str = "# Configuration

Written by `pyoco-server config --markdown`; to change it, change the table in `crates/server/src/config/table.rs`.

A flag wins over a variable of the environment, that over the `.env` file, that over the default. An empty value counts as not given.
The `.env` file has lines of `NAME=value`: blank lines and those that begin with `#` are skipped, `export ` may stand before a name, quotes
around a value are taken off, and ` #` begins a comment. It does not change the environment of the process, so tasks do not see it.
`pyoco-client` reads no `.env` file.

A value that makes no sense is refused at the start, with exit code 1 and every mistake named; no value is ever printed there. A `PYOCO_*`
name that is not below is warned about, with the nearest one that is. `pyoco-server check-config` (or `--check-config` with the flags of `up`
or of `pyoco-worker`) says all of that and shows every value with where it comes from, and starts nothing.

Yes and no: `1`, `true`, `yes`, `on`, and `0`, `false`, `no`, `off`. Names marked with * are those of pyoco-server 0.5.1, with the same
meaning and default.
";

/// The reference as Markdown.
pub fn markdown() -> String {
    let mut text = BEGINNING.to_owned();
    let mut group: Option<Group> = None;
    for row in TABLE {
        if group != Some(row.group) {
            group = Some(row.group);
            text.push_str(&format!(
                "\n## {}\n\n| name | default | what it does | read by |\n|---|---|---|---|\n",
                row.group
            ));
        }
        text.push_str(&line(row));
    }
    text
}

fn line(row: &Variable) -> String {
    let mark = match row.origin {
        Origin::Known => "\\*",
        Origin::Own | Origin::OpenTelemetry => "",
    };
    let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
    let kind = kind(row);
    let readers: Vec<String> = row.readers.iter().map(|reader| format!("{reader}")).collect();
    format!("| `{}`{mark} | {default} | {}{kind}. | {} |\n", row.name, row.help, readers.join(", "))
}

/// What a value may be, where the default does not show it.
fn kind(row: &Variable) -> String {
    use super::variable::Kind;
    match row.kind {
        Kind::Choice(of) => {
            format!(" ({})", of.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", "))
        }
        Kind::SomeSeconds => " (more than 0)".to_owned(),
        Kind::Address => " (`HOST:PORT`)".to_owned(),
        Kind::Secret => " (never shown)".to_owned(),
        Kind::Text
        | Kind::Path
        | Kind::Url
        | Kind::Flag
        | Kind::Seconds
        | Kind::Whole(_)
        | Kind::Tag
        | Kind::Header => String::new(),
    }
}

/// The settings that a program reads, with their defaults, for the end of its help.
pub fn names_read_by(program: Program) -> String {
    let names: Vec<String> = table::read_by(program)
        .map(|row| match row.default {
            "" => row.name.to_owned(),
            default => format!("{}={default}", row.name),
        })
        .collect();
    format!("Variables and their defaults (`pyoco-server config` explains them): {}", names.join(", "))
}
