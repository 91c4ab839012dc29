//! `pyoco-server status`: how a server does, as its gateway tells it.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use pyoco_client::{Client, Error};
use pyoco_server::config::without_secrets;
use serde_json::{Value, json};

use crate::errors::Failure;
use crate::output;

/// A run that nobody has.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
/// A server that takes longer is not well.
const PATIENCE: Duration = Duration::from_secs(5);

/// The arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    #[command(flatten)]
    pub(super) gateway: GatewayArguments,
    /// JSON instead of lines for people
    #[arg(long)]
    pub json: bool,
}

/// Where the gateway is, and who asks.
#[derive(Debug, Args)]
pub(super) struct GatewayArguments {
    /// Address of the gateway [default: http://127.0.0.1:8000]
    #[arg(long, value_name = "URL", env = "PYOCO_SERVER_URL")]
    pub(super) url: Option<String>,
    /// Key to show, if the gateway asks for one
    #[arg(long, value_name = "KEY", env = "PYOCO_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// Header that carries the key
    #[arg(long, value_name = "NAME", default_value = "X-API-Key")]
    api_key_header: String,
}

impl GatewayArguments {
    pub(super) fn url(&self) -> &str {
        self.url.as_deref().filter(|url| !url.is_empty()).unwrap_or("http://127.0.0.1:8000")
    }

    pub(super) fn client(&self) -> Result<Client, Failure> {
        let builder = Client::builder(self.url()).api_key_header(&self.api_key_header);
        let key = self.api_key.clone().unwrap_or_default();
        Ok(builder.api_key(key).connect_timeout(PATIENCE).request_timeout(PATIENCE).build()?)
    }
}

pub(super) async fn show(arguments: StatusArguments) -> Result<(), Failure> {
    let client = arguments.gateway.client()?;
    let status = Status::of(&client).await;
    if arguments.json {
        output::json(&status.as_value(arguments.gateway.url()))?;
    } else {
        for line in status.lines(arguments.gateway.url()) {
            output::line(&line)?;
        }
    }
    if status.is_well() { Ok(()) } else { Err(Failure::said(1)) }
}

/// What a gateway told.
#[derive(Debug, Default)]
struct Status {
    /// Why it is not there.
    away: Option<String>,
    /// Why there is no more to tell.
    silent: Option<Silence>,
    figures: Option<Figures>,
}

#[derive(Debug)]
enum Silence {
    /// It wants a key, or another one.
    Locked(String),
    /// It is there and cannot tell.
    Failing(String),
}

impl Status {
    async fn of(client: &Client) -> Self {
        if let Err(error) = client.get_health().await {
            return Self { away: Some(error.to_string()), ..Self::default() };
        }
        // Figures may be those of a moment ago; that a run is not there only the store can tell.
        let asked = match client.get_run(NOBODY).await {
            Err(error) if error.status() == Some(404) => Ok(()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        let told = match asked {
            Ok(()) => client.get_metrics().await,
            Err(error) => Err(error),
        };
        match told {
            Ok(text) => Self { figures: Some(Figures::read(&text)), ..Self::default() },
            Err(error) if matches!(error.status(), Some(401 | 403)) => {
                Self { silent: Some(Silence::Locked(locked(&error))), ..Self::default() }
            }
            Err(error) => Self { silent: Some(Silence::Failing(error.to_string())), ..Self::default() },
        }
    }

    /// A gateway that only wants to know who asks is well.
    const fn is_well(&self) -> bool {
        self.away.is_none() && !matches!(self.silent, Some(Silence::Failing(_)))
    }

    fn lines(&self, url: &str) -> Vec<String> {
        let url = output::one_line(&without_secrets(url));
        let why = |text: &str| output::one_line(text);
        match (&self.away, &self.silent, &self.figures) {
            (Some(reason), _, _) => vec![
                format!("not up     {url}: {}", why(reason)),
                "           start a server with pyoco-server up, or name another one with --url".to_owned(),
            ],
            (None, Some(Silence::Locked(reason)), _) => {
                vec![format!("up         {url}"), format!("locked     {}", why(reason))]
            }
            (None, Some(Silence::Failing(reason)), _) => {
                vec![format!("failing    {url} answers, but its store does not: {}", why(reason))]
            }
            (None, None, Some(figures)) => {
                let mut lines = vec![format!("up         {url}")];
                lines.extend(figures.lines());
                lines
            }
            (None, None, None) => Vec::new(),
        }
    }

    fn as_value(&self, url: &str) -> Value {
        let mut value = json!({"url": without_secrets(url), "up": self.is_well()});
        let reason = match (&self.away, &self.silent) {
            (Some(reason), _) | (None, Some(Silence::Locked(reason) | Silence::Failing(reason))) => {
                Some(reason)
            }
            (None, None) => None,
        };
        if let Some(members) = value.as_object_mut() {
            members.extend(reason.map(|reason| ("reason".to_owned(), json!(reason))));
            members.extend(self.figures.as_ref().map(Figures::as_members).unwrap_or_default());
        }
        value
    }
}

fn locked(error: &Error) -> String {
    match error.status() {
        Some(401) => "it asks for an API key: set PYOCO_API_KEY to see more".to_owned(),
        Some(_) | None => "the API key is not good here".to_owned(),
    }
}

/// The figures of `/metrics` that tell how a server does. One of an earlier version may tell fewer.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    version: Option<String>,
    store: Option<String>,
    started_at: Option<f64>,
    runs: BTreeMap<String, u64>,
    waiting: Option<u64>,
    oldest_seconds: Option<f64>,
    workers_alive: Option<u64>,
    letters: Option<u64>,
}

impl Figures {
    fn read(text: &str) -> Self {
        let mut figures = Self::default();
        for (name, labels, value) in text.lines().filter_map(sample) {
            // Counts fit; a figure that is none of ours is not looked at.
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count is whole and not negative"
            )]
            let count = value.max(0.0) as u64;
            match name {
                "pyoco_runs_total" => {
                    figures.runs.extend(label(labels, "status").map(|status| (status, count)));
                }
                "pyoco_queue_depth" => {
                    *figures.waiting.get_or_insert(0) += count;
                }
                "pyoco_queue_oldest_age_seconds" => {
                    figures.oldest_seconds = Some(figures.oldest_seconds.unwrap_or(0.0).max(value));
                }
                "pyoco_workers_alive_total" => figures.workers_alive = Some(count),
                "pyoco_dlq_messages_total" => figures.letters = Some(count),
                "process_start_time_seconds" => figures.started_at = Some(value),
                "pyoco_build_info" => {
                    figures.version = label(labels, "version");
                    figures.store = label(labels, "store");
                }
                _ => {}
            }
        }
        figures
    }

    fn lines(&self) -> Vec<String> {
        let told = |name: &str, value: Option<String>| value.map(|value| format!("{name:<11}{value}"));
        let runs: Vec<String> =
            self.runs.iter().map(|(status, runs)| format!("{runs} {}", status.to_lowercase())).collect();
        let runs = if runs.is_empty() { "none".to_owned() } else { runs.join(", ") };
        let waiting = self.waiting.map(|runs| match self.oldest_seconds.filter(|_| runs > 0) {
            Some(oldest) => format!("{runs} for a worker, the oldest for {oldest:.0} s"),
            None => format!("{runs} for a worker"),
        });
        let version = self.version.as_ref().map(|version| match &self.store {
            Some(store) => format!("{version}, store {store}"),
            None => version.clone(),
        });
        [
            told("version", version),
            told("runs", Some(runs)),
            told("waiting", waiting),
            told("workers", self.workers_alive.map(|workers| format!("{workers} alive"))),
            told("dead", self.letters.map(|letters| format!("{letters} letters"))),
        ]
        .into_iter()
        .flatten()
        .map(|line| output::one_line(&line))
        .collect()
    }

    fn as_members(&self) -> serde_json::Map<String, Value> {
        let value = json!({
            "version": self.version,
            "store": self.store,
            "started_at": self.started_at,
            "runs": self.runs,
            "waiting": self.waiting,
            "oldest_waiting_seconds": self.oldest_seconds,
            "workers_alive": self.workers_alive,
            "dead_letters": self.letters,
        });
        match value {
            Value::Object(members) => members,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                serde_json::Map::new()
            }
        }
    }
}

/// A line of Prometheus' text: the name, what stands between braces, the value.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.trim_end().rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    Some((name, labels, value.parse().ok()?))
}

/// The value of a label. Those that are asked for hold no quotes.
fn label(labels: &str, name: &str) -> Option<String> {
    let pair = labels.split(',').find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))?;
    Some(pair.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_text_of_the_gateway() {
        let text = "# HELP pyoco_runs_total Count\n# TYPE pyoco_runs_total gauge\n\
                    pyoco_runs_total{status=\"COMPLETED\"} 4\npyoco_runs_total{status=\"PENDING\"} 2\n\
                    pyoco_workers_alive_total 1\npyoco_dlq_messages_total 3\n\
                    pyoco_queue_depth{tag=\"a\"} 1\npyoco_queue_depth{tag=\"b\"} 2\n\
                    pyoco_queue_oldest_age_seconds{tag=\"a\"} 1.5\npyoco_queue_oldest_age_seconds{tag=\"b\"} 12.25\n\
                    pyoco_build_info{version=\"0.1.0\",store=\"embedded\"} 1\nprocess_start_time_seconds 1.5e9\nodd\n";
        let figures = Figures::read(text);
        assert_eq!(figures.runs, BTreeMap::from([("COMPLETED".to_owned(), 4), ("PENDING".to_owned(), 2)]));
        assert_eq!((figures.waiting, figures.oldest_seconds), (Some(3), Some(12.25)));
        assert_eq!((figures.workers_alive, figures.letters), (Some(1), Some(3)));
        assert_eq!(
            figures.lines(),
            [
                "version    0.1.0, store embedded",
                "runs       4 completed, 2 pending",
                "waiting    3 for a worker, the oldest for 12 s",
                "workers    1 alive",
                "dead       3 letters",
            ]
        );
    }

    #[test]
    fn a_gateway_that_tells_little_is_shown_with_little() {
        let figures = Figures::read("pyoco_workers_alive_total 0\n");
        assert_eq!(figures.lines(), ["runs       none", "workers    0 alive"]);
    }
}
