//! Fetches a wheel into a file. The file has its name when all of it is there and is what the gateway says it is, and not before.

use std::path::{Path, PathBuf};

use reqwest::{Method, Response};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::error::{Call, Error};
use crate::transport::{Client, bad_answer, broken, open};

impl Client {
    /// Fetches a wheel into `path`, in the place of what may be there, and gives how many bytes it has. `progress` is called with how
    /// many have come, and how many will.
    pub async fn download_wheel(
        &self,
        name: &str,
        path: &Path,
        progress: impl Fn(u64, Option<u64>),
    ) -> Result<u64, Error> {
        let outgoing = self.request(&Method::GET, &["wheels", name])?;
        let call = outgoing.call.clone();
        let limit = self.limits().request;
        let response = match timeout(limit, open(outgoing)).await {
            Ok(response) => response?,
            Err(_) => return Err(Error::Timeout { call, limit }),
        };
        let Some(wanted) = digest(&response) else {
            return Err(bad_answer(&call, "the answer does not say what the wheel hashes to"));
        };
        let (mut file, part) = Part::beside(path).await.map_err(|error| unwritten(path, error))?;
        let (size, hash) = self.copy(response, &mut file, path, &call, progress).await?;
        if hash != wanted {
            return Err(bad_answer(
                &call,
                format!("the wheel is damaged: it hashes to {hash}, not to {wanted}"),
            ));
        }
        let kept = async {
            file.sync_all().await?;
            part.rename(path).await
        };
        kept.await.map_err(|error| unwritten(path, error))?;
        Ok(size)
    }

    /// Writes what comes to the file; gives how much it was and what it hashes to.
    async fn copy(
        &self,
        mut response: Response,
        file: &mut File,
        path: &Path,
        call: &Call,
        progress: impl Fn(u64, Option<u64>),
    ) -> Result<(u64, String), Error> {
        let (length, limit) = (response.content_length(), self.limits().silence);
        let (mut size, mut hash) = (0, Sha256::new());
        loop {
            let piece = match timeout(limit, response.chunk()).await {
                Ok(piece) => piece.map_err(|error| broken(call, &error))?,
                Err(_) => return Err(Error::Timeout { call: call.clone(), limit }),
            };
            let Some(piece) = piece else { break };
            hash.update(&piece);
            size += piece.len() as u64;
            file.write_all(&piece).await.map_err(|error| unwritten(path, error))?;
            progress(size, length);
        }
        file.flush().await.map_err(|error| unwritten(path, error))?;
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((size, hash))
    }
}

/// The hash that the entity tag of an answer is.
fn digest(response: &Response) -> Option<String> {
    let tag = response.headers().get("etag")?.to_str().ok()?;
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_digest = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| digits.to_ascii_lowercase())
}

fn unwritten(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.to_owned(), source }
}

/// A file that is not whole yet. It vanishes unless it gets its name.
struct Part {
    place: Option<PathBuf>,
}

impl Part {
    /// In the same folder, so that it only has to be renamed.
    async fn beside(path: &Path) -> std::io::Result<(File, Self)> {
        let name = path.file_name().ok_or(std::io::ErrorKind::IsADirectory)?;
        let name = format!(".{}.{}.part", name.to_string_lossy(), uuid::Uuid::new_v4().simple());
        let place = path.with_file_name(name);
        let file = File::options().write(true).create_new(true).open(&place).await?;
        Ok((file, Self { place: Some(place) }))
    }

    async fn rename(mut self, path: &Path) -> std::io::Result<()> {
        let Some(place) = &self.place else { return Ok(()) };
        tokio::fs::rename(place, path).await?;
        self.place = None;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            // Whoever cannot remove it either has nothing left to try.
            let _ = std::fs::remove_file(place);
        }
    }
}
