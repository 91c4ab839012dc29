//! A server beside a program: started with it, started again when it ends by itself, stopped with it.

use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use crate::pidfile::{self, Identity, Named};
use crate::process::{self, Launch, NotReady};

/// How long a server may take to answer.
const START: Duration = Duration::from_secs(10);
/// How long it may take to end before it is killed.
const END: Duration = Duration::from_secs(5);
/// The pause before it is started again: doubled each time, up to the second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// Whoever ran so long has started well.
const STEADY: Duration = Duration::from_secs(30);

/// A server, and the task that looks after it.
#[derive(Debug)]
pub struct Supervised {
    stopping: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// Why it was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It does not come up.
    #[error("{why}{}", .words.as_ref().map(|words| format!(": {words}")).unwrap_or_default())]
    NotReady {
        /// What was seen.
        why: NotReady,
        /// What it said itself.
        words: Option<String>,
    },
    /// The file names a process that is not known for certain.
    #[error("{} names {what}; look whether that is a nats-server of yours, stop it, and remove the file", .file.display())]
    Another {
        /// Which file.
        file: PathBuf,
        /// Whom it names.
        what: String,
    },
    /// The system said no.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: String,
        /// What it said.
        source: std::io::Error,
    },
}

/// What is started, and where it answers.
#[derive(Debug, Clone)]
pub struct Server {
    /// How.
    pub launch: Launch,
    /// `host:port` of clients.
    pub address: String,
    /// Which process it is.
    pub pid_file: PathBuf,
}

/// Stops what an earlier start has left behind, and forgets what it named that is gone. A process of somebody else stays.
pub async fn clear(pid_file: &std::path::Path) -> Result<(), StartError> {
    let failed =
        |what: &str, source| StartError::System { what: format!("{what} {}", pid_file.display()), source };
    match pidfile::read(pid_file) {
        Named::Nobody => Ok(()),
        Named::Ours(orphan) => {
            tracing::warn!(
                pid = orphan.pid,
                "an earlier start has left its nats-server behind; it is stopped first"
            );
            process::stop(&orphan, END).await.map_err(|error| failed("the process of", error))?;
            pidfile::release(pid_file, &orphan).map_err(|error| failed("cannot remove", error))
        }
        Named::Ended(pid) | Named::Another(pid, _) => {
            // Proven to be gone, or never ours: only the file is removed.
            tracing::info!(pid, "the nats-server of an earlier start is gone");
            std::fs::remove_file(pid_file).map_err(|error| failed("cannot remove", error))
        }
        Named::Unproven(pid, name) => {
            Err(StartError::Another { file: pid_file.to_owned(), what: format!("{name} (pid {pid})") })
        }
        Named::Unreadable(why) => Err(StartError::Another { file: pid_file.to_owned(), what: why }),
    }
}

impl Server {
    /// Starts it, and waits until it answers.
    pub async fn up(self) -> Result<Supervised, StartError> {
        let mut child = self.start().await?;
        let stopping = CancellationToken::new();
        let stop = stopping.clone();
        let task = tokio::spawn(async move {
            loop {
                let since = tokio::time::Instant::now();
                let ended = tokio::select! {
                    () = stop.cancelled() => {
                        self.down(&mut child).await;
                        return;
                    }
                    ended = child.wait() => ended,
                };
                let is_steady = since.elapsed() >= STEADY;
                let why = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                tracing::error!(why, "nats-server ended; it is started again");
                match self.again(&stop, is_steady).await {
                    Some(new) => child = new,
                    None => return,
                }
            }
        });
        Ok(Supervised { stopping, task })
    }

    /// Starts it until it answers; nothing if it is to stop instead.
    async fn again(&self, stop: &CancellationToken, is_steady: bool) -> Option<Child> {
        let mut pause = if is_steady { Duration::ZERO } else { PAUSE.0 };
        loop {
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(pause) => {}
            }
            let started = async {
                clear(&self.pid_file).await?;
                self.start().await
            };
            match started.await {
                Ok(child) => {
                    tracing::info!(pid = child.id(), "nats-server is up again");
                    return Some(child);
                }
                Err(error) => tracing::error!(%error, "nats-server does not start; trying again"),
            }
            pause = pause.saturating_mul(2).clamp(PAUSE.0, PAUSE.1);
        }
    }

    async fn start(&self) -> Result<Child, StartError> {
        let failed = |what: String, source| StartError::System { what, source };
        let binary = self.launch.binary.display();
        let mut child =
            self.launch.start().map_err(|error| failed(format!("cannot start {binary}"), error))?;
        let identity = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Identity::of);
        if let Some(identity) = &identity
            && let Err(error) = pidfile::claim(&self.pid_file, identity)
        {
            let _ = child.kill().await;
            return Err(failed(format!("cannot write {}", self.pid_file.display()), error));
        }
        match process::answers(&mut child, &self.address, START).await {
            Ok(()) => Ok(child),
            Err(why) => {
                self.down(&mut child).await;
                let words = self.launch.log.as_deref().and_then(process::last_words);
                Err(StartError::NotReady { why, words })
            }
        }
    }

    /// Ends it, and forgets it.
    async fn down(&self, child: &mut Child) {
        let identity = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Identity::of);
        let named = pidfile::read(&self.pid_file);
        if let Some(identity) = identity {
            let (stopped, _) = tokio::join!(process::stop(&identity, END), child.wait());
            if let Err(error) = stopped {
                tracing::error!(%error, "nats-server was not stopped");
                return;
            }
            let _ = pidfile::release(&self.pid_file, &identity);
        } else if matches!(named, Named::Ended(_)) {
            let _ = std::fs::remove_file(&self.pid_file);
        }
    }
}

impl Supervised {
    /// Stops it, and waits until it has.
    pub async fn stop(self) {
        self.stopping.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "nobody looked after nats-server any more");
        }
    }
}
