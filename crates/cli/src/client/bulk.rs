//! `cancel --where` and `retry --where`: the same for every execution that fits, page by page.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pyoco_client::api::{BulkAction, BulkFilter, BulkReport, BulkRequest, RetryExecution};
use pyoco_client::{Client, CommandOptions};

use super::command;
use super::options::bulk::{Cancel, Condition, Many, Retry};
use super::options::command::Sending;
use super::watch;
use crate::errors::Failure;
use crate::output::{self, can_show_progress, one_line};

/// So many are counted with a request, and so many changed: a bar that moves is worth a few more requests.
const COUNTED: u32 = 1_000;
const CHANGED: u32 = 200;
/// So many that could not be changed are named.
const NAMED: usize = 10;

pub(super) async fn cancel(client: &Client, options: Cancel) -> Result<(), Failure> {
    if let Some(run_id) = options.run_id {
        return watch::cancel(client, &run_id, options.wait, options.timeout_sec).await;
    }
    let sending =
        Sending { idempotency_key: options.idempotency_key, correlation_id: options.correlation_id };
    many(client, BulkAction::Cancel, options.many, options.reason, sending).await
}

pub(super) async fn retry(client: &Client, options: Retry) -> Result<(), Failure> {
    if let Some(run_id) = options.run_id {
        let sent = command::options(options.sending);
        return command::show(client.retry_execution(&run_id, &RetryExecution::default(), &sent).await);
    }
    many(client, BulkAction::Retry, options.many, None, options.sending).await
}

async fn many(
    client: &Client,
    action: BulkAction,
    options: Many,
    reason: Option<String>,
    sending: Sending,
) -> Result<(), Failure> {
    let filter = filter(options.conditions)?;
    let request = BulkRequest {
        action,
        filter: (!options.all).then_some(filter),
        all: options.all,
        dry_run: false,
        limit: Some(CHANGED),
        cursor: None,
        reason,
    };
    let mut found = None;
    if options.dry_run || !options.yes {
        if !options.dry_run && !can_ask() {
            let reason = format!("this may {} many, and there is nobody to ask", verb(action));
            return Err(Failure::arguments(reason).hint("--dry-run says how many; --yes means yes"));
        }
        let dry = BulkRequest { dry_run: true, limit: Some(COUNTED), ..request.clone() };
        let counted = Pages::new(client, dry, None).finish(&CommandOptions::new()).await?;
        if options.dry_run || counted.done.is_empty() {
            let counted = BulkReport { dry_run: options.dry_run, ..counted };
            show(&counted, options.json)?;
            return complain(&counted);
        }
        if !is_agreed(action, counted.done.len()).await? {
            return Err(Failure::new("nothing was done"));
        }
        found = Some(counted.matched);
    }
    let sent = command::options(sending);
    let mut pages = Pages::new(client, request, found);
    let outcome = pages.each(&sent).await;
    let report = pages.end();
    if outcome.is_ok() || report.matched > 0 {
        // What was done is told, also when the rest could not be.
        show(&report, options.json)?;
    }
    outcome.map_err(|failure| failure.hint("the same command does the rest; nothing is done twice"))?;
    complain(&report)
}

fn filter(conditions: Vec<Condition>) -> Result<BulkFilter, Failure> {
    let mut filter = BulkFilter::default();
    for condition in conditions {
        let (name, is_first) = match condition {
            Condition::Status(status) => {
                filter.status.push(status);
                ("status", true)
            }
            Condition::Flow(flow) => ("flow", filter.flow.replace(flow).is_none()),
            Condition::Tag(tag) => ("tag", filter.tag.replace(tag).is_none()),
            Condition::Label(label) => ("label", filter.label.replace(label).is_none()),
            Condition::CreatedAfter(at) => ("created-after", filter.created_after.replace(at).is_none()),
            Condition::CreatedBefore(at) => ("created-before", filter.created_before.replace(at).is_none()),
            Condition::UpdatedAfter(at) => ("updated-after", filter.updated_after.replace(at).is_none()),
            Condition::UpdatedBefore(at) => ("updated-before", filter.updated_before.replace(at).is_none()),
        };
        if !is_first {
            let reason = format!("argument --where: {name} is given more than once");
            return Err(Failure::arguments(reason).hint("only status may be, and means any of them"));
        }
    }
    Ok(filter)
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

async fn is_agreed(action: BulkAction, count: usize) -> Result<bool, Failure> {
    io::stderr().write_all(format!("{} {}? [y/N] ", verb(action), executions(count)).as_bytes())?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let answer = answer.await.map_err(Failure::unexpected)?.map_err(Failure::unexpected)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The pages of one wish, and what became of all of them.
struct Pages<'a> {
    client: &'a Client,
    request: BulkRequest,
    total: BulkReport,
    bar: Option<ProgressBar>,
}

impl<'a> Pages<'a> {
    fn new(client: &'a Client, request: BulkRequest, found: Option<u64>) -> Self {
        let total = BulkReport {
            action: request.action,
            dry_run: request.dry_run,
            matched: 0,
            done: Vec::new(),
            created: Vec::new(),
            skipped: Vec::new(),
            failed: Vec::new(),
            next_cursor: None,
        };
        Self { client, request, total, bar: can_show_progress().then(|| bar(found)) }
    }

    async fn each(&mut self, sent: &CommandOptions) -> Result<(), Failure> {
        loop {
            let page = self.client.bulk(&self.request, sent).await?.into_value();
            let total = &mut self.total;
            total.matched += page.matched;
            total.done.extend(page.done);
            total.created.extend(page.created);
            total.skipped.extend(page.skipped);
            total.failed.extend(page.failed);
            total.next_cursor.clone_from(&page.next_cursor);
            if let Some(bar) = &self.bar {
                bar.set_position(total.matched);
            }
            self.request.cursor = page.next_cursor;
            if self.request.cursor.is_none() {
                return Ok(());
            }
        }
    }

    async fn finish(mut self, sent: &CommandOptions) -> Result<BulkReport, Failure> {
        self.each(sent).await?;
        Ok(self.end())
    }

    fn end(self) -> BulkReport {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.total
    }
}

/// How far it is can be shown when it is known how many there are.
fn bar(found: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(found, ProgressDrawTarget::stderr());
    let template = match found {
        Some(_) => "{spinner} [{bar:24}] {pos}/{len} {elapsed}",
        None => "{spinner} {pos} {elapsed}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(report: &BulkReport, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return output::json(&serde_json::to_value(report).map_err(Failure::unexpected)?);
    }
    output::line(&summary(report))
}

/// How many, and of those that were passed over, why.
fn summary(report: &BulkReport) -> String {
    let did = match (report.dry_run, report.action) {
        (true, action) => format!("would {}", verb(action)),
        (false, BulkAction::Cancel) => "canceled".to_owned(),
        (false, BulkAction::Retry) => "retried".to_owned(),
    };
    let mut parts = vec![format!("{did} {}", executions(report.done.len()))];
    if !report.skipped.is_empty() {
        let mut reasons = BTreeMap::<&str, usize>::new();
        for skip in &report.skipped {
            *reasons.entry(&skip.why).or_default() += 1;
        }
        let reasons: Vec<String> =
            reasons.iter().map(|(why, count)| format!("{count} {}", one_line(why))).collect();
        parts.push(format!("skipped {} ({})", report.skipped.len(), reasons.join(", ")));
    }
    if !report.failed.is_empty() {
        parts.push(format!("failed {}", report.failed.len()));
    }
    parts.join(", ")
}

fn complain(report: &BulkReport) -> Result<(), Failure> {
    if report.failed.is_empty() {
        return Ok(());
    }
    let count = executions(report.failed.len());
    let failure = Failure::new(format!("ERR-PYOCO-BULK: could not {} {count}", verb(report.action)));
    let named = report.failed.iter().take(NAMED);
    let failure = named.fold(failure, |failure, failed| {
        failure.note("reason", format!("{}: {}: {}", failed.id, failed.code, failed.message))
    });
    Err(failure.hint("the same command tries them again; nothing is done twice"))
}

const fn verb(action: BulkAction) -> &'static str {
    match action {
        BulkAction::Cancel => "cancel",
        BulkAction::Retry => "retry",
    }
}

fn executions(count: usize) -> String {
    match count {
        1 => "1 execution".to_owned(),
        count => format!("{count} executions"),
    }
}
