//! `doctor`: the lines of the original, then what was found, each with what to do.

use pyoco_bootstrap::doctor::{self, Finding, Severity};
use pyoco_bootstrap::find::{Attempt, Source};
use pyoco_bootstrap::leaving::Petitioner;
use pyoco_bootstrap::pidfile::{self, Named};
use serde_json::json;

use super::arguments::{Common, Doctor};
use super::{MISSING, binary, service, status};
use crate::errors::Failure;
use crate::output;

pub(super) async fn examine(common: &Common, options: &Doctor) -> Result<(), Failure> {
    let (search, config) = binary::search(common).await?;
    let attempts: Vec<String> = search.attempts.iter().map(attempt).collect();
    let Some(found) = search.found else {
        if common.json {
            output::json(
                &json!({"doctor": "ng", "attempts": search.attempts, "fix": binary::how_to_install()}),
            )?;
        } else {
            output::line("doctor: ng")?;
            for line in priority().chain(attempts) {
                output::line(&line)?;
            }
            output::line(&format!("fix: {}", binary::how_to_install()))?;
        }
        return Err(Failure::said(MISSING));
    };
    let looked = status::look(&options.status).await?;
    let mut findings = vec![doctor::of_version(&found.version)];
    // Where nobody said where servers are and none is, there is nothing to examine.
    let is_nobody_there =
        looked.facts.servers.is_empty() && looked.facts.jetstream.is_none() && !looked.was_told;
    if !is_nobody_there {
        findings.extend(doctor::examine(&looked.facts));
    }
    let controllers = controllers(&options.controller).await?;
    let pid_file = pid_file(common);
    let service =
        options.service_name.as_deref().map(|name| format!("service: {name} ({})", service::state(name)));
    let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
    if common.json {
        let mut report = status::as_json(&found, &config, &looked);
        report["doctor"] = json!("ok");
        report["attempts"] = json!(search.attempts);
        report["controllers"] = json!(controllers);
        report["pid_file"] = json!(pid_file);
        report["service"] = json!(service);
        report["worst"] = json!(worst);
        report["findings"] = json!(findings);
        output::json(&report)?;
    } else {
        let lines = status::binary_lines("doctor", &found, &config).into_iter();
        let lines =
            lines.chain(priority()).chain(attempts).chain(controllers).chain([pid_file]).chain(service);
        // It is not needed; scripts that look for the line find it.
        for line in lines.chain(["nats-cli: not needed".to_owned()]) {
            output::line(&line)?;
        }
        if is_nobody_there {
            output::line(&format!("servers: none answers at {}", looked.nats_url))?;
        }
        for finding in &findings {
            show(finding)?;
        }
    }
    if worst == Severity::Error { Err(Failure::said(1)) } else { Ok(()) }
}

fn priority() -> impl Iterator<Item = String> {
    let names = Source::PRIORITY.map(Source::as_str).join(" > ");
    [format!("priority: {names}"), "resolution:".to_owned()].into_iter()
}

fn attempt(attempt: &Attempt) -> String {
    let candidate =
        attempt.candidate.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    output::one_line(&match &attempt.reason {
        Some(reason) => format!("- {}: ng {candidate} ({reason})", attempt.source.as_str()),
        None => format!("- {}: ok {candidate}", attempt.source.as_str()),
    })
}

async fn controllers(urls: &[String]) -> Result<Vec<String>, Failure> {
    let petitioner = Petitioner::new().map_err(Failure::unexpected)?;
    let mut lines = Vec::new();
    for url in urls {
        let state = match petitioner.is_there(url).await {
            Ok(()) => "ok".to_owned(),
            Err(why) => format!("ng ({why})"),
        };
        lines.push(output::one_line(&format!("controller: {url} {state}")));
    }
    Ok(lines)
}

fn pid_file(common: &Common) -> String {
    let state = match pidfile::read(&common.pid_file) {
        Named::Nobody => "missing".to_owned(),
        Named::Ours(process) => format!("{process} runs"),
        Named::Ended(pid) => format!("stale: pid {pid} has ended"),
        Named::Another(pid, name) => format!("stale: pid {pid} is {name} now"),
        Named::Unproven(pid, name) => format!("{name} (pid {pid}), not started by nats-bootstrap"),
        Named::Unreadable(why) => why,
    };
    output::one_line(&format!("pid-file: {} ({state})", common.pid_file.display()))
}

fn show(finding: &Finding) -> Result<(), Failure> {
    let Finding { id, severity, what, fix } = finding;
    output::line(&output::one_line(&format!("{:<6} {id:<16} {what}", severity.to_string())))?;
    match fix.as_ref().filter(|_| *severity > Severity::Ok) {
        Some(fix) => output::line(&output::one_line(&format!("{:<23} → {fix}", ""))),
        None => Ok(()),
    }
}
