//! `/wheels`: what is taken in and what is not, what is sent, and who is said to have done it.

mod download;
mod form;
mod history;
mod streaming;
mod unsound;
mod upload;

use std::path::Path;
use std::sync::Arc;

use pyoco_gateway::{ServerLimits, Settings, WheelSettings};
use pyoco_ports::Store;
use pyoco_store_memory::MemoryStore;
use pyoco_testkit::wheel;
use reqwest::multipart::{Form, Part};
use serde_json::Value;

use crate::support::{Answer, Server};

/// A gateway with a folder of its own for what is on its way in.
struct Place {
    server: Server,
    folder: tempfile::TempDir,
}

impl Place {
    async fn start() -> Self {
        Self::with(WheelSettings::default(), ServerLimits::default()).await
    }

    /// One that takes no wheel of more bytes.
    async fn up_to(max_bytes: u64) -> Self {
        Self::with(WheelSettings { max_bytes, ..WheelSettings::default() }, ServerLimits::default()).await
    }

    async fn with(wheels: WheelSettings, limits: ServerLimits) -> Self {
        Self::on(Arc::new(MemoryStore::new()), wheels, limits).await
    }

    async fn on(store: Arc<dyn Store>, wheels: WheelSettings, limits: ServerLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let wheels = WheelSettings { folder: folder.path().to_owned(), ..wheels };
        let server = Server::on(store, Settings { wheels, ..Settings::default() }, limits).await;
        Self { server, folder }
    }

    async fn post(&self, form: Form) -> Answer {
        Answer::of(self.server.client.post(self.server.url("/wheels")).multipart(form).send().await.unwrap())
            .await
    }

    /// Uploads bytes under a name.
    async fn send(&self, name: &str, bytes: Vec<u8>) -> Answer {
        self.post(Form::new().part("wheel", file(name, bytes))).await
    }

    /// Uploads a sound wheel, which is taken.
    async fn put(&self, package: &str, version: &str) -> Value {
        let (name, bytes) = demo(package, version);
        let answer = self.send(&name, bytes).await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        answer.json
    }

    async fn delete(&self, name: &str) -> Answer {
        let request = self.server.client.delete(self.server.url(&format!("/wheels/{name}")));
        Answer::of(request.send().await.unwrap()).await
    }

    /// The names of what is there.
    async fn names(&self) -> Vec<String> {
        let list = self.server.get("/wheels").await.json;
        list.as_array().unwrap().iter().map(|wheel| wheel["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Nothing came of it: no wheel, no event, no file.
    async fn assert_untouched(&self) {
        assert_eq!(self.names().await, [""; 0]);
        assert_eq!(self.server.get("/wheels/history").await.json, serde_json::json!([]));
        assert_eq!(left_in(self.folder.path()), 0);
    }
}

fn demo(package: &str, version: &str) -> (String, Vec<u8>) {
    wheel(package, version, &[("demo/__init__.py", "VERSION = 1\n")])
}

fn file(name: &str, bytes: impl Into<reqwest::Body>) -> Part {
    Part::stream(bytes).file_name(name.to_owned())
}

/// How many files are in a folder, those included that have no name and are still open.
fn left_in(folder: &Path) -> usize {
    let named = std::fs::read_dir(folder).unwrap().count();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    named
        + open
            .filter(|file| std::fs::read_link(file.path()).is_ok_and(|path| path.starts_with(folder)))
            .count()
}
