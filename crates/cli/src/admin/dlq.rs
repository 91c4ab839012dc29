//! `dlq`: dead letters as a table for people or as JSON, and a question before they go.

use std::io::{self, IsTerminal as _, Write as _};

use pyoco_server::admin::{Order, Which};
use pyoco_server::{Clock as _, Config, SystemClock};
use serde_json::Value;

use super::arguments::{LetterCommand, Letters, Purge, Redriven};
use super::{listing, ordered};
use crate::errors::Failure;
use crate::output::{self, cell};
use crate::table;

const HEADERS: [&str; 6] = ["key", "at", "reason", "tag", "flow_name", "error"];
/// So much of an error stands in a table; `show` has all of it.
const ERROR: usize = 60;

pub(super) async fn run(config: &Config, command: LetterCommand) -> Result<(), Failure> {
    match command {
        LetterCommand::List(list) => show_list(config, list).await,
        LetterCommand::Show(letter) => {
            output::json(&ordered(config, Order::ShowLetter { key: letter.key }).await?)
        }
        LetterCommand::Redrive(redrive) => {
            let dry_run = redrive.dry_run;
            output::json(
                &ordered(config, Order::RedriveLetters { which: which(redrive.which), dry_run }).await?,
            )
        }
        LetterCommand::Purge(purge) => throw_away(config, &purge).await,
    }
}

fn which(redriven: Redriven) -> Which {
    match (redriven.key, redriven.reason) {
        (Some(key), _) => Which::Key(key),
        (None, Some(reason)) => Which::Reason(reason),
        (None, None) => Which::All,
    }
}

async fn show_list(config: &Config, list: Letters) -> Result<(), Failure> {
    let limit = usize::try_from(list.limit).unwrap_or(usize::MAX);
    let letters = ordered(config, Order::ListLetters { reason: list.reason, tag: list.tag, limit }).await?;
    if list.json || !io::stdout().is_terminal() {
        return output::json(&letters);
    }
    let letters = letters.as_array().map_or(&[][..], Vec::as_slice);
    let rows: Vec<_> = letters.iter().map(row).collect();
    output::line(&table::lines(HEADERS, &rows).join("\n"))?;
    if rows.len() == limit {
        output::aside(&format!("these are the newest {limit}; --limit shows more"));
    }
    Ok(())
}

fn row(letter: &Value) -> [String; HEADERS.len()] {
    HEADERS.map(|header| match header {
        "at" => listing::time(letter, header).map_or_else(|| "-".to_owned(), listing::second),
        "error" => {
            let error = cell(letter.get(header));
            let cut: String = error.chars().take(ERROR).collect();
            if cut.len() < error.len() { format!("{cut}…") } else { cut }
        }
        _ => cell(letter.get(header)),
    })
}

async fn throw_away(config: &Config, purge: &Purge) -> Result<(), Failure> {
    if !purge.yes {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let reason = "dead letters that were thrown away cannot be had back";
            return Err(Failure::arguments(reason).hint("say --yes where nobody can be asked"));
        }
        if !is_agreed(purge.before.is_none()).await? {
            output::aside("nothing was thrown away");
            return Ok(());
        }
    }
    // Those that come while this goes on stay.
    let before = purge.before.unwrap_or_else(|| SystemClock.now());
    output::json(&ordered(config, Order::PurgeLetters { before }).await?)
}

async fn is_agreed(is_all: bool) -> Result<bool, Failure> {
    let which = if is_all { "all dead letters" } else { "these dead letters" };
    write!(io::stderr(), "throw {which} away for good? [y/N] ")?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let answer = answer.await.map_err(Failure::unexpected)?.map_err(Failure::unexpected)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_of_the_table_has_one_line_whatever_the_letter_says() {
        let letter = json!({"key": "r/3", "at": 1_700_000_000.5, "reason": "execution_error", "tag": "gpu",
                            "flow_name": null, "error": format!("boom\n\u{1b}[2J{}", "x".repeat(200))});
        let [key, at, reason, tag, flow, error] = row(&letter);
        assert_eq!(
            [key, at, reason, tag, flow],
            ["r/3", "2023-11-14T22:13:20Z", "execution_error", "gpu", "-"]
        );
        assert!(error.starts_with("boom\\n\\u{1b}[2Jxxx") && error.ends_with("x…"), "{error}");
        assert_eq!(error.chars().count(), ERROR + 1);
    }
}
