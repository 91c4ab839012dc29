//! Sends a wheel, piece by piece. It may take as long as it needs while it moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use pyoco_api::WheelArtifact;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::error::Error;
use crate::transport::{Client, Outgoing, bad_answer, refuse};

/// So much is read from the file at once.
const PIECE: usize = 128 << 10;
/// After the last byte the gateway looks at every file of the wheel and puts it away. At least so much of it in a second.
const LOOKED_AT: u64 = 4 << 20;

/// A wheel that is to be uploaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WheelFile {
    /// Where it is. The name of the file is the name of the wheel.
    pub path: PathBuf,
    /// The workers it is for; none is all of them.
    pub tags: Vec<String>,
    /// Whether an older one may be replaced. It stands in the history.
    pub replace: bool,
}

impl Client {
    /// Uploads a wheel. `progress` is called with how many bytes of it have been sent.
    pub async fn upload_wheel(
        &self,
        wheel: &WheelFile,
        progress: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Answer<WheelArtifact>, Error> {
        let name = wheel.path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| refuse("the wheel", "has no name that can be sent"))?.to_owned();
        let unread = |source| Error::File { path: wheel.path.clone(), source };
        let file = File::open(&wheel.path).await.map_err(unread)?;
        let size = file.metadata().await.map_err(unread)?.len();
        let (moved, moves) = watch::channel(0);
        let outgoing = self.request(&Method::POST, &["wheels"])?;
        let part = Part::stream_with_length(Body::wrap_stream(pieces(file, size, moved, progress)), size);
        let part = part.file_name(name).mime_str("application/octet-stream");
        let part = part.map_err(|error| bad_answer(&outgoing.call, error.to_string()))?;
        let mut form = Form::new().text("replace", wheel.replace.to_string());
        if !wheel.tags.is_empty() {
            form = form.text("tags", wheel.tags.join(","));
        }
        let outgoing = outgoing.with(|call| call.multipart(form.part("wheel", part)));
        self.sent(outgoing, size, moves).await
    }

    /// Waits for the answer for as long as bytes are taken, and then for as long as they are looked at.
    async fn sent(
        &self,
        outgoing: Outgoing,
        size: u64,
        mut moves: watch::Receiver<u64>,
    ) -> Result<Answer<WheelArtifact>, Error> {
        let call = outgoing.call.clone();
        let at_rest = self.limits().request;
        let patient = self.clone().unhurried();
        let answer = patient.json(outgoing);
        tokio::pin!(answer);
        loop {
            let is_sent = *moves.borrow_and_update() >= size;
            let looked_at = Duration::from_secs(size / LOOKED_AT);
            let limit = if is_sent { at_rest + looked_at } else { at_rest };
            tokio::select! {
                answer = &mut answer => return answer,
                // With the last piece goes whoever tells of them; then only the answer can come.
                Ok(()) = moves.changed() => {}
                () = tokio::time::sleep(limit) => return Err(Error::Timeout { call, limit }),
            }
        }
    }
}

/// The pieces of a file that is so long.
fn pieces(
    file: File,
    size: u64,
    moved: watch::Sender<u64>,
    progress: impl Fn(u64) + Send + Sync + 'static,
) -> impl stream::Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let progress = Arc::new(progress);
    stream::try_unfold((file.take(size), moved, 0_u64), move |(mut file, moved, sent)| {
        let progress = progress.clone();
        async move {
            let mut piece = Vec::with_capacity(PIECE);
            (&mut file).take(PIECE as u64).read_to_end(&mut piece).await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let sent = sent + piece.len() as u64;
            // What was read before was taken: nobody asks for more while there is some.
            moved.send_replace(sent);
            progress(sent);
            Ok(Some((Bytes::from(piece), (file, moved, sent))))
        }
    })
}
