//! The socket in the data folder: a server that has the store takes orders there, from its own user only.
//!
//! One connection is one order: a line of JSON in, a line of JSON out.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::KeyId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::desk::Desk;
use super::order::{AdminError, Order, perform};

const NAME: &str = "admin.sock";
/// Here the socket is made, out of sight, before it gets its name.
const MAKING: &str = "admin.new";
/// The longest order.
const LONGEST_ORDER: usize = 64 * 1024;
/// The longest answer: a list of some hundred thousand keys.
const LONGEST_ANSWER: usize = 64 << 20;
/// How long either side waits for the other to say its line. How long an order may take is the order's own matter.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many orders at once; more wait.
const AT_ONCE: usize = 8;

/// There is no file; or one that a server left which was killed; or the path is longer than one of a socket can be, which a server says
/// when it starts.
const NOBODY: [io::ErrorKind; 3] =
    [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused, io::ErrorKind::InvalidInput];

/// Where the server of a data folder takes orders.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// The end of the server. Its file goes when it does.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The user who may give orders.
    owner: u32,
}

impl AdminSocket {
    /// Takes the place of whatever an earlier server left there. Whoever calls has the lock of the folder.
    pub(crate) fn bind(folder: &Path) -> io::Result<Self> {
        let making = folder.join(MAKING);
        remove(&making)?;
        let made = Self::make(&making, path(folder));
        // Also when it failed half-way.
        let removed = remove(&making);
        let socket = made?;
        removed?;
        Ok(socket)
    }

    /// A socket is born open to others; in a folder that they cannot enter, nobody can be quicker than the change of its mode.
    fn make(making: &Path, path: PathBuf) -> io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(making)?;
        // A short name: the path of a socket may not be long.
        let new = making.join("s");
        let listener = UnixListener::bind(&new)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))?;
        let owner = std::fs::symlink_metadata(&new)?.uid();
        std::fs::rename(&new, &path)?;
        Ok(Self { listener, path, owner })
    }

    /// Takes orders until it is told to stop; an order that has begun is carried out.
    pub(crate) async fn serve(self, desk: Desk, tasks: TaskTracker, stopping: CancellationToken) {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let next = async {
                let place = places.clone().acquire_owned().await.ok();
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = stopping.cancelled() => return,
                next = next => next,
            };
            match accepted {
                Ok((stream, _)) if self.may_order(&stream) => {
                    let (desk, stopping) = (desk.clone(), stopping.clone());
                    tasks.spawn(async move {
                        let _place = place;
                        if let Err(reason) = attend(stream, &desk, &stopping).await {
                            tracing::warn!(%reason, "an order at the admin socket got no answer");
                        }
                    });
                }
                Ok(_) => tracing::warn!("somebody else than this server's user was at the admin socket"),
                Err(reason) => {
                    tracing::warn!(%reason, "the admin socket takes no orders now");
                    // Too many open files, for one, do not go away at once.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// The mode of the file says the same, unless somebody has changed it.
    fn may_order(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.owner || peer.uid() == 0)
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        // The folder is still ours, so this is no other server's. A file that stays is replaced by the next one.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a folder with all that is in it, if there is one.
fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What goes over the socket as an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Done(Value),
    NotFound(KeyId),
    NoLetter(String),
    Refused(String),
    Failed(String),
}

async fn attend(mut stream: UnixStream, desk: &Desk, stopping: &CancellationToken) -> io::Result<()> {
    let order = tokio::select! {
        () = stopping.cancelled() => return Ok(()),
        order = tokio::time::timeout(PATIENCE, read_line(&mut stream, LONGEST_ORDER)) => order??,
    };
    let done = match serde_json::from_slice::<Order>(&order) {
        Ok(order) => perform(desk, order).await,
        Err(_) => Err(AdminError::Refused(
            "the server does not understand this order; is it of another version than this tool?".to_owned(),
        )),
    };
    let answer = match done {
        Ok(value) => Answer::Done(value),
        Err(AdminError::NotFound { key_id }) => Answer::NotFound(key_id),
        Err(AdminError::NoLetter { key }) => Answer::NoLetter(key),
        Err(AdminError::Refused(why)) => Answer::Refused(why),
        Err(
            error @ (AdminError::Failed(_)
            | AdminError::Start(_)
            | AdminError::NoStore { .. }
            | AdminError::InUse { .. }
            | AdminError::Socket { .. }),
        ) => Answer::Failed(error.to_string()),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    tokio::time::timeout(PATIENCE, stream.write_all(&line)).await?
}

/// Gives an order to the server of a folder. Nothing when there is no server.
pub(super) async fn ask(socket: &Path, order: &Order) -> Result<Option<Value>, AdminError> {
    let mut stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) if NOBODY.contains(&error.kind()) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let why = "only the user that the server runs as may; run this as that user";
            return Err(AdminError::socket(socket, why));
        }
        Err(error) => return Err(AdminError::socket(socket, error)),
    };
    let mut line = serde_json::to_vec(order).map_err(|error| AdminError::socket(socket, error))?;
    line.push(b'\n');
    let no_answer = |why: &dyn std::fmt::Display| {
        // It may have been carried out all the same.
        AdminError::socket(socket, format!("no answer came ({why}); {}", order.how_to_see()))
    };
    let exchange = async {
        stream.write_all(&line).await?;
        read_line(&mut stream, LONGEST_ANSWER).await
    };
    let answer = match order.patience() {
        Some(patience) => tokio::time::timeout(patience, exchange).await,
        // A server that ends closes the line.
        None => Ok(exchange.await),
    };
    let answer = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(no_answer(&error)),
        Err(_) => return Err(no_answer(&"it takes too long")),
    };
    match serde_json::from_slice(&answer).map_err(|error| no_answer(&error))? {
        Answer::Done(value) => Ok(Some(value)),
        Answer::NotFound(key_id) => Err(AdminError::NotFound { key_id }),
        Answer::NoLetter(key) => Err(AdminError::NoLetter { key }),
        Answer::Refused(why) => Err(AdminError::Refused(why)),
        Answer::Failed(why) => Err(AdminError::Failed(why)),
    }
}

/// One line without its end, of so many bytes at most.
async fn read_line(stream: &mut UnixStream, longest: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    BufReader::new(stream.take(most)).read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "that is no line, or too long a one"));
    }
    Ok(line)
}
