//! The calls that really happened: the module of a vector says each one over a socket in its folder.

use std::path::Path;
use std::sync::Arc;

use tokio::net::UnixDatagram;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Broken;

/// Longest name of a function.
const LONGEST: usize = 256;

/// Listens for as long as it lives.
#[derive(Debug)]
pub(crate) struct Calls {
    socket: Arc<UnixDatagram>,
    heard: Arc<watch::Sender<Vec<String>>>,
    listening: JoinHandle<()>,
}

impl Calls {
    /// Listens in a folder.
    pub(crate) fn listen(folder: &Path) -> Result<Self, Broken> {
        let socket = UnixDatagram::bind(folder.join("calls")).map_err(|error| format!("calls: {error}"))?;
        let (socket, heard) = (Arc::new(socket), Arc::new(watch::Sender::new(Vec::new())));
        let listening = tokio::spawn({
            let (socket, heard) = (socket.clone(), heard.clone());
            async move {
                let mut name = [0_u8; LONGEST];
                while let Ok(length) = socket.recv(&mut name).await {
                    note(&heard, &name, length);
                }
            }
        });
        Ok(Self { socket, heard, listening })
    }

    /// Waits for the `nth` call of a function.
    pub(crate) async fn called(&self, function: &str, nth: usize) {
        let mut heard = self.heard.subscribe();
        let is_it = |calls: &Vec<String>| calls.iter().filter(|call| *call == function).count() >= nth;
        // We hold the other end, so it cannot be gone.
        drop(heard.wait_for(is_it).await);
    }

    /// Every call, once nobody calls any more.
    pub(crate) fn all(self) -> Vec<String> {
        self.listening.abort();
        let mut name = [0_u8; LONGEST];
        while let Ok(length) = self.socket.try_recv(&mut name) {
            note(&self.heard, &name, length);
        }
        self.heard.borrow().clone()
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn note(heard: &watch::Sender<Vec<String>>, name: &[u8], length: usize) {
    let name = String::from_utf8_lossy(name.get(..length).unwrap_or_default()).into_owned();
    heard.send_modify(|calls| calls.push(name));
}
