//! Asking a controller to take a server out of the cluster, and which process may be stopped then.

use std::time::Duration;

use procfs::process::Process;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::pidfile::Identity;

/// As long as the original waits; taking a server out takes a moment longer than noting it.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a controller answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// It was done before.
    Already,
    /// It would be the end of streams that nobody else has.
    WouldLose(Vec<String>),
    /// It cannot be done now.
    Refused(String),
}

/// What still counts on a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Left {
    /// Streams that have a copy there.
    pub held: Vec<String>,
    /// Streams that have fewer copies than they should.
    pub lacking: Vec<String>,
}

/// What a controller says of what still counts on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It knows.
    Told(Left),
    /// It never will, as the original's.
    Unable,
    /// It does not know now.
    Unknown(String),
}

/// Somebody who asks controllers.
#[derive(Debug, Clone)]
pub struct Petitioner(reqwest::Client);

impl Petitioner {
    /// Nothing is sent yet.
    pub fn new() -> Result<Self, String> {
        let client = reqwest::Client::builder().timeout(PATIENCE).connect_timeout(Duration::from_secs(5));
        client.build().map(Self).map_err(|error| error.to_string())
    }

    /// Whether a controller is there.
    pub async fn is_there(&self, controller: &str) -> Result<(), String> {
        let answer =
            self.0.get(address(controller, "/health")).send().await.map_err(|error| error.to_string())?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("it answers {}", answer.status())) }
    }

    /// Asks for a server to be taken out. Passwords stay here: nothing hides them on the way.
    pub async fn leave(
        &self,
        controller: &str,
        request: &str,
        server: &str,
        nats_url: Option<&str>,
    ) -> Result<Answer, String> {
        let nats_url = nats_url.map(without_user);
        let order = json!({"request_id": request, "server_name": server, "nats_url": nats_url});
        let sent = self.0.post(address(controller, "/v1/leave")).json(&order).send();
        let answer = sent.await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let told: Value = answer.json().await.unwrap_or_default();
        let text = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
        Ok(match (status.as_u16(), text("result")) {
            (200, "ok") => Answer::Done,
            (200, "already_done") => Answer::Already,
            (409, _) => {
                let streams = told.get("streams").and_then(Value::as_array).into_iter().flatten();
                Answer::WouldLose(streams.filter_map(Value::as_str).map(str::to_owned).collect())
            }
            (_, _) => Answer::Refused(format!("{status} {} {}", text("error"), text("reason"))),
        })
    }

    /// What still counts on a server.
    pub async fn left(&self, controller: &str, server: &str) -> Word {
        let url = address(controller, &format!("/v1/replicas?server={server}"));
        let answer = match self.0.get(url).send().await {
            Ok(answer) => answer,
            Err(error) => return Word::Unknown(error.to_string()),
        };
        let status = answer.status();
        if status == StatusCode::NOT_FOUND {
            return Word::Unable;
        }
        if status.is_success() {
            return match answer.json().await {
                Ok(left) => Word::Told(left),
                Err(error) => Word::Unknown(error.to_string()),
            };
        }
        let told: Value = answer.json().await.unwrap_or_default();
        let why = told.get("reason").and_then(Value::as_str);
        Word::Unknown(why.map_or_else(|| format!("it answers {status}"), str::to_owned))
    }
}

fn address(controller: &str, path: &str) -> String {
    format!("{}{path}", controller.trim_end_matches('/'))
}

/// Addresses without who we are there. What is no address is left out.
pub(crate) fn without_user(urls: &str) -> String {
    let bare = |url: &str| {
        let url = if url.contains("://") { url.to_owned() } else { format!("nats://{url}") };
        let mut url = Url::parse(&url).ok()?;
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url.to_string())
    };
    urls.split(',').filter_map(|url| bare(url.trim())).collect::<Vec<_>>().join(",")
}

/// Whether a process is the server of a folder: it was started with the configuration there.
pub fn is_server_of(process: &Identity, folder: &Folder) -> bool {
    let Ok(process) = Process::new(process.pid) else { return false };
    let (Ok(arguments), Ok(from)) = (process.cmdline(), process.cwd()) else { return false };
    let Ok(wanted) = folder.conf().canonicalize() else { return false };
    let is_wanted = |file: &str| from.join(file).canonicalize().is_ok_and(|file| file == wanted);
    configuration(&arguments).is_some_and(is_wanted)
}

/// The configuration that arguments of a nats-server name. The last one counts.
fn configuration(arguments: &[String]) -> Option<&str> {
    const NAMES: [&str; 4] = ["-c", "--config", "-config", "--c"];
    let mut found = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if NAMES.contains(&argument.as_str()) {
            found = arguments.next().map(String::as_str);
        } else if let Some((name, file)) = argument.split_once('=')
            && NAMES.contains(&name)
        {
            found = Some(file);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_belongs_to_the_folder_whose_configuration_it_was_given() {
        let home = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = Folder::new(&home.path().join(name)).unwrap();
            folder.make().unwrap();
            std::fs::write(folder.conf(), "").unwrap();
            folder
        };
        let (own, other) = (folder("own"), folder("other"));
        let linked = home.path().join("linked");
        std::os::unix::fs::symlink(own.path(), &linked).unwrap();
        let linked = Folder::new(&linked).unwrap();
        // It has the arguments of a server, says that it is there, and waits for a line that never comes. Before that the system may not
        // know its arguments yet.
        let mut child = Command::new("sh")
            .args(["-c", "echo; read line", "nats-server", "-c", "own/nats-bootstrap.conf"])
            .current_dir(home.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let process = Identity::of(i32::try_from(child.id()).unwrap()).unwrap();
        let found = [&own, &linked, &other].map(|folder| is_server_of(&process, folder));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [true, true, false]);
        assert!(!is_server_of(&process, &own), "it has ended");
    }

    #[test]
    fn the_configuration_of_a_server_is_the_last_one_it_is_given() {
        let said = |text: &str| {
            let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
            configuration(&arguments).map(str::to_owned)
        };
        assert_eq!(said("nats-server -c /a/x.conf -p 1").as_deref(), Some("/a/x.conf"));
        assert_eq!(said("nats-server -c a --config=b").as_deref(), Some("b"));
        assert_eq!(said("nats-server -p 4222"), None);
        assert_eq!(said("nats-server -c"), None);
    }

    #[test]
    fn an_address_is_passed_on_without_who_we_are() {
        assert_eq!(without_user("nats://u:p@a:1, tls://token@b:2"), "nats://a:1,tls://b:2");
        assert_eq!(without_user("u:p@a:4222"), "nats://a:4222");
        assert_eq!(without_user("a:4222"), "nats://a:4222");
        assert_eq!(without_user("nats://u:p@a:1?token=s"), "nats://a:1");
    }
}
