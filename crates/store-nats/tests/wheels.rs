//! Wheels on a real server, beyond the conformance suite: beside the packages of PyPI, and with everything that can go wrong on the way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use ground::{Other, open, server, server_with, settings, timed};
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    ErrorKind, NewWheel, StoreError, WheelAction, WheelActor, WheelBytes, WheelEvent, WheelHistoryFilter,
    WheelRecord, WheelSource, Wheels as _,
};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::{Cluster, NatsServer, Options};
use pyoco_wheels::{Refused, Sha256Digest, WheelName};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

const STREAM: &str = "OBJ_pyoco_wheels";
const CHUNKS: &str = "$O.pyoco_wheels.C.>";
const AT: i64 = 1_790_000_000_123_456;

fn name(text: &str) -> WheelName {
    WheelName::parse(text).unwrap()
}

fn of(package: &str, version: &str) -> WheelName {
    name(&format!("{package}-{version}-py3-none-any.whl"))
}

/// Bytes that no two wheels share.
fn content(seed: u8, length: usize) -> Vec<u8> {
    let blocks = (0_u64..).flat_map(|block| Sha256::digest([&[seed][..], &block.to_le_bytes()].concat()));
    blocks.take(length).collect()
}

fn sha256(bytes: &[u8]) -> Sha256Digest {
    Sha256Digest::of_bytes(Sha256::digest(bytes).into())
}

fn new(name: &WheelName, bytes: &[u8]) -> NewWheel {
    NewWheel {
        name: name.clone(),
        size_bytes: bytes.len() as u64,
        sha256: sha256(bytes),
        at: Timestamp::from_micros(AT),
        tags: Vec::new(),
        content_type: "application/octet-stream".to_owned(),
    }
}

/// Bytes that come when the test sends them, and end as it says.
struct Fed(mpsc::Receiver<Result<Vec<u8>, StoreError>>);

#[async_trait]
impl WheelBytes for Fed {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.recv().await.transpose()
    }
}

/// All bytes, in pieces of an odd size.
fn fed(bytes: &[u8]) -> Fed {
    let pieces: Vec<_> = bytes.chunks(100_001).map(<[u8]>::to_vec).collect();
    let (feed, fed) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        feed.try_send(Ok(piece)).unwrap();
    }
    Fed(fed)
}

async fn put(store: &NatsStore, name: &WheelName, bytes: &[u8]) -> Result<WheelRecord, Refused> {
    store.put_wheel(new(name, bytes), &mut fed(bytes)).await.unwrap()
}

/// All bytes of a wheel, or what came before the error and the error.
async fn read(store: &NatsStore, wheel: &WheelRecord) -> Result<Vec<u8>, (usize, StoreError)> {
    let mut stream = store.read_wheel(wheel, 0).await.unwrap().expect("the wheel is there");
    let mut bytes = Vec::new();
    loop {
        match stream.next().await {
            Ok(Some(piece)) => bytes.extend(piece),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err((bytes.len(), error)),
        }
    }
}

/// The uploads of which there are pieces, with how many.
async fn pieces(other: &Other) -> Vec<(String, u64)> {
    let info = other.api(&format!("STREAM.INFO.{STREAM}"), &json!({"subjects_filter": CHUNKS})).await;
    let Some(subjects) = info["state"]["subjects"].as_object() else { return Vec::new() };
    let prefix = CHUNKS.trim_end_matches('>');
    let count = |(subject, count): (&String, &Value)| {
        (subject.strip_prefix(prefix).unwrap().to_owned(), count.as_u64().unwrap())
    };
    subjects.iter().map(count).collect()
}

/// Waits until nothing is left of uploads that were given up.
async fn until_no_pieces(other: &Other) {
    let looked = async {
        while !pieces(other).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looked).await.expect("pieces stay behind");
}

/// What the packages of PyPI do and answer.
async fn pypi(server: &NatsServer, arguments: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = std::env::var("PYOCO_TEST_PYTHON")
        .map_or_else(|_| root.join("../../.venv/bin/python"), std::path::PathBuf::from);
    assert!(program.is_file(), "there is no Python in .venv; `make test` installs it");
    let mut command = tokio::process::Command::new(program);
    command.arg(root.join("tests/wheels.py")).args(arguments);
    command.env("PYOCO_NATS_URL", server.url()).env("PYOCO_LOAD_DOTENV", "0");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    answer.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_buckets_are_those_that_pypi_makes() {
    let (theirs, ours) = (server(), server());
    assert_eq!(pypi(&theirs, &["list"]).await["status"], 200);
    open(&ours).await;
    let (theirs, ours) = (Other::connect(&theirs).await, Other::connect(&ours).await);
    for stream in [STREAM, "KV_pyoco_wheel_history"] {
        assert_eq!(ours.config(stream).await, theirs.config(stream).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pypi_uploads_is_listed_read_and_deleted_here() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (bytes, wheel) = (content(1, 400_000), of("Theirs", "1.0"));
    let path = folder.path().join("file");
    std::fs::write(&path, &bytes).unwrap();
    let uploaded = pypi(&server, &["upload", wheel.as_str(), path.to_str().unwrap(), "gpu,cpu"]).await;
    assert_eq!(uploaded["status"], 200, "{uploaded}");
    let store = open(&server).await;
    let listed = store.wheels().await.unwrap();
    let record = listed.first().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (record.name.clone(), record.size_bytes, record.sha256.clone()),
        (wheel.clone(), 400_000, sha256(&bytes))
    );
    assert_eq!(record.tags, ["gpu", "cpu"]);
    assert_eq!(record.nuid, uploaded["body"]["nuid"]);
    assert_eq!(store.wheel(&wheel).await.unwrap().as_ref(), Some(record));
    assert!(read(&store, record).await.unwrap() == bytes);
    assert_eq!(put(&store, &of("theirs", "0.9"), b"x").await, Err(Refused::OlderVersion));
    // An event of theirs is one of ours.
    let all = WheelHistoryFilter { wheel_name: None, action: None, limit: 10 };
    let now = Timestamp::from_unix_seconds(record.modified.as_unix_seconds() + 60.0).unwrap();
    let events = store.wheel_history(&all, now).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].action, events[0].wheel_name.as_str()), (WheelAction::Upload, wheel.as_str()));
    assert_eq!(events[0].sha256_hex.as_deref(), Some(record.sha256.as_str()));

    assert_eq!(store.delete_wheel(&wheel, Timestamp::from_micros(AT)).await.unwrap().as_ref(), Some(record));
    assert_eq!(pieces(&Other::connect(&server).await).await, []);
    assert_eq!(pypi(&server, &["download", wheel.as_str()]).await["status"], 404);
    assert_eq!(pypi(&server, &["read", wheel.as_str()]).await["error"], "ObjectNotFoundError");
    // It may come again, from either side.
    let again = pypi(&server, &["upload", wheel.as_str(), path.to_str().unwrap(), ""]).await;
    assert_eq!(again["status"], 200, "{again}");
    let record = store.wheel(&wheel).await.unwrap().unwrap();
    assert_eq!(record.tags, Vec::<String>::new());
    assert!(read(&store, &record).await.unwrap() == bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_uploaded_here_pypi_lists_reads_and_deletes() {
    let server = server();
    let store = open(&server).await;
    let (bytes, plain, tagged) = (content(2, 300_000), of("plain", "1.0"), of("tagged", "2.0"));
    put(&store, &plain, &bytes).await.unwrap();
    let wheel = NewWheel { tags: vec!["gpu".to_owned(), "x-1".to_owned()], ..new(&tagged, &bytes) };
    let record = store.put_wheel(wheel, &mut fed(&bytes)).await.unwrap().unwrap();
    let listed = pypi(&server, &["list"]).await;
    let body = listed["body"].as_array().unwrap();
    assert_eq!(body.iter().map(|one| &one["name"]).collect::<Vec<_>>(), [plain.as_str(), tagged.as_str()]);
    assert_eq!((&body[0]["tags"], &body[1]["tags"]), (&json!([]), &json!(["gpu", "x-1"])));
    assert_eq!((&body[1]["nuid"], &body[1]["size_bytes"]), (&json!(record.nuid), &json!(300_000)));
    // Its worker reads it, and looks at the hash itself.
    let found = pypi(&server, &["read", tagged.as_str()]).await;
    let headers = json!({"content-type": "application/octet-stream", "sha256": record.sha256.as_str(), "x-pyoco-wheel-tags": "gpu,x-1"});
    assert_eq!(found, json!({"size": 300_000, "headers": headers, "sha256": record.sha256.as_str()}));
    let found = pypi(&server, &["read", plain.as_str()]).await;
    assert!(found["headers"].get("x-pyoco-wheel-tags").is_none(), "{found}");
    let downloaded = pypi(&server, &["download", tagged.as_str()]).await;
    assert_eq!(downloaded, json!({"status": 200, "sha256": record.sha256.as_str()}));
    // An event of ours is one of theirs.
    let event = event("cafe", 1_790_000_001.25, tagged.as_str());
    store.note_wheel(event.clone()).await.unwrap();
    let history = pypi(&server, &["history"]).await;
    assert_eq!(history["body"], json!([event]));

    assert_eq!(pypi(&server, &["delete", tagged.as_str()]).await["status"], 200);
    assert_eq!(store.wheels().await.unwrap().len(), 1);
    assert_eq!(store.wheel(&tagged).await.unwrap(), None);
    assert!(store.read_wheel(&record, 0).await.unwrap().is_none());
    assert_eq!(store.delete_wheel(&tagged, Timestamp::from_micros(AT)).await.unwrap(), None);
    put(&store, &tagged, &bytes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_are_no_wheels_are_left_alone() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let describe = async |name: &str, description: &str| {
        let subject = format!("$O.pyoco_wheels.M.{}", base64_of(name));
        other.publish(&subject, &[("Nats-Rollup", "sub")], description).await;
    };
    other.publish("$O.pyoco_wheels.C.abc", &[], "piece").await;
    let odd = of("odd", "1");
    let wild = json!({"name": odd.as_str(), "bucket": "pyoco_wheels", "nuid": ">", "size": 1, "chunks": 1,
                      "digest": "SHA-256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU="});
    describe(
        "notes.txt",
        &json!({"name": "notes.txt", "bucket": "pyoco_wheels", "nuid": "abc", "size": 5, "chunks": 1,
                                  "digest": "", "deleted": false})
        .to_string(),
    )
    .await;
    describe(odd.as_str(), &wild.to_string()).await;
    describe("broken", "{").await;
    let kept = put(&store, &of("kept", "1"), b"bytes").await.unwrap();
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&kept));
    // One that names everybody's pieces takes nobody's away.
    assert_eq!(store.delete_wheel(&odd, Timestamp::from_micros(AT)).await.unwrap(), None);
    put(&store, &odd, b"better").await.unwrap();
    assert_eq!(store.sweep_wheels(Duration::ZERO).await.unwrap(), 0, "the notes are somebody's");
    assert_eq!(read(&store, &kept).await.unwrap(), b"bytes");
    assert_eq!(pieces(&other).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_that_upload_one_package_one_wins_and_nothing_of_the_other_stays() {
    let server = server();
    let stores = [open(&server).await, open(&server).await];
    let other = Other::connect(&server).await;
    one_wins(&stores, &other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_one_wins_and_nothing_of_the_other_stays() {
    let cluster = Cluster::start(3, &Options::default());
    let urls = cluster.urls();
    let mut stores = Vec::new();
    for server in urls.split(',') {
        let settings = Settings { replicas: 3, ..Settings::new(&[server]) };
        stores.push(NatsStore::open(settings, None).await.unwrap());
    }
    let other = Other(async_nats::connect(urls.split(',').next().unwrap()).await.unwrap());
    one_wins(&stores, &other).await;
}

/// All stores have sent all but the end of a wheel before any of them may go on.
async fn one_wins(stores: &[Arc<NatsStore>], other: &Other) {
    for round in 0..8_u8 {
        let mut feeds = Vec::new();
        let mut rivals = Vec::new();
        for (number, store) in stores.iter().enumerate() {
            let bytes = content(round * 16 + u8::try_from(number).unwrap(), 300_000);
            let (feed, fed) = mpsc::channel(1);
            let name = name(&format!("rival-{round}-{number}-py3-none-any.whl"));
            let (store, wheel) = (Arc::clone(store), new(&name, &bytes));
            rivals.push(tokio::spawn(async move { store.put_wheel(wheel, &mut Fed(fed)).await.unwrap() }));
            // The second piece is taken when the first one is, which is after the first look.
            for piece in bytes.chunks(150_000) {
                feed.send(Ok(piece.to_vec())).await.unwrap();
            }
            feeds.push(feed);
        }
        drop(feeds);
        let mut answers = Vec::new();
        for rival in rivals {
            answers.push(rival.await.unwrap());
        }
        let won: Vec<_> = answers.iter().flatten().collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        assert!(
            answers.iter().all(|answer| answer.as_ref().err().is_none_or(|why| *why == Refused::SameVersion))
        );
        let there: Vec<String> = pieces(other).await.into_iter().map(|(nuid, _)| nuid).collect();
        assert_eq!(there, [won[0].nuid.clone()], "in round {round}");
        for store in stores {
            assert_eq!(store.wheels().await.unwrap(), [won[0].clone()], "in round {round}");
            assert_eq!(sha256(&read(store, won[0]).await.unwrap()), won[0].sha256);
        }
        stores[0].delete_wheel(&won[0].name, Timestamp::from_micros(AT)).await.unwrap();
        for store in stores {
            assert_eq!(store.wheels().await.unwrap(), [], "in round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_fails_or_is_given_up_leaves_nothing_behind() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let bytes = content(3, 2_000_000);
    let wheel = new(&of("torn", "1"), &bytes);
    for ends_in_error in [true, false] {
        let (feed, fed) = mpsc::channel(1);
        let (putting, wanted) = (Arc::clone(&store), wheel.clone());
        let task = tokio::spawn(async move { putting.put_wheel(wanted, &mut Fed(fed)).await });
        for piece in bytes.chunks(131_072) {
            feed.send(Ok(piece.to_vec())).await.unwrap();
        }
        // More than are under way at once were sent, so some are stored.
        assert!(!pieces(&other).await.is_empty());
        if ends_in_error {
            feed.send(Err(StoreError::plain(ErrorKind::Unavailable, "send"))).await.unwrap();
            assert_eq!(task.await.unwrap().unwrap_err().kind, ErrorKind::Unavailable);
            assert_eq!(pieces(&other).await, []);
        } else {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            until_no_pieces(&other).await;
        }
        // What was still under way may be stored behind the first removal; there is a second.
        let nothing = async {
            while other.messages(STREAM).await > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), nothing).await.expect("pieces stay behind");
        assert_eq!(store.wheels().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_or_a_lost_piece_is_found_before_the_last_piece_is_given_out() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let bytes = content(4, 3_000_000);
    let flipped = put(&store, &of("flipped", "1"), &bytes).await.unwrap();
    other.spoil("pyoco_wheels", &flipped.nuid).await;
    let (came, error) = read(&store, &flipped).await.unwrap_err();
    assert!(error.kind == ErrorKind::Corrupt && came > 2_000_000 && came < 3_000_000, "{came} {error}");
    // Also whoever wants only the end of it.
    let mut end = store.read_wheel(&flipped, 2_999_990).await.unwrap().unwrap();
    assert_eq!(end.next().await.unwrap_err().kind, ErrorKind::Corrupt);
    let lost = put(&store, &of("lost", "1"), &bytes).await.unwrap();
    let stored = other.all(STREAM, &format!("$O.pyoco_wheels.C.{}", lost.nuid)).await;
    let (sequence, _) = stored.last().unwrap();
    other.api(&format!("STREAM.MSG.DELETE.{STREAM}"), &json!({"seq": sequence})).await;
    let (came, error) = read(&store, &lost).await.unwrap_err();
    assert!(error.kind == ErrorKind::Corrupt && came < 3_000_000, "{came} {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wheel_that_is_deleted_while_it_is_read_ends_in_an_error() {
    let server = server();
    let store = open(&server).await;
    let bytes = content(5, 3_000_000);
    let wheel = put(&store, &of("large", "1"), &bytes).await.unwrap();
    let mut stream = store.read_wheel(&wheel, 0).await.unwrap().unwrap();
    let mut came = stream.next().await.unwrap().unwrap();
    open(&server).await.delete_wheel(&wheel.name, Timestamp::from_micros(AT)).await.unwrap();
    let error = loop {
        match stream.next().await {
            Ok(Some(piece)) => came.extend(piece),
            Ok(None) => panic!("there were more pieces than are asked for at once"),
            Err(error) => break error,
        }
    };
    assert!(bytes.starts_with(&came) && came.len() < bytes.len());
    assert!(error.kind == ErrorKind::Unavailable && error.to_string().contains("deleted"), "{error}");
    assert!(store.read_wheel(&wheel, 0).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_of_an_upload_that_died_are_swept_up_when_they_are_old() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let kept = put(&store, &of("kept", "1"), &content(6, 300_000)).await.unwrap();
    for piece in ["one", "two"] {
        other.publish("$O.pyoco_wheels.C.orphan", &[], piece).await;
    }
    assert_eq!(
        store.sweep_wheels(Duration::from_secs(24 * 3_600)).await.unwrap(),
        0,
        "they may be of one that goes on"
    );
    assert_eq!(pieces(&other).await.len(), 2);
    assert_eq!(store.sweep_wheels(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(pieces(&other).await, [(kept.nuid.clone(), 3)]);
    assert_eq!(store.sweep_wheels(Duration::ZERO).await.unwrap(), 0);
    assert_eq!(sha256(&read(&store, &kept).await.unwrap()), kept.sha256);
    // Somebody who died between the two steps of a deletion.
    let gone =
        json!({"name": kept.name.as_str(), "bucket": "pyoco_wheels", "nuid": kept.nuid, "deleted": true});
    let subject = format!("$O.pyoco_wheels.M.{}", base64_of(kept.name.as_str()));
    other.publish(&subject, &[("Nats-Rollup", "sub")], &gone.to_string()).await;
    assert_eq!(store.sweep_wheels(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(pieces(&other).await, []);
    other.api(&format!("STREAM.DELETE.{STREAM}"), &Value::Null).await;
    assert_eq!(store.sweep_wheels(Duration::ZERO).await.unwrap(), 0, "there is nothing to sweep");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_starts_looks_for_pieces_and_leaves_those_that_are_young() {
    let server = server();
    let other = Other::connect(&server).await;
    open(&server).await;
    other.publish("$O.pyoco_wheels.C.young", &[], "piece").await;
    let mut asked = other.0.subscribe(format!("$JS.API.STREAM.INFO.{STREAM}")).await.unwrap();
    other.0.flush().await.unwrap();
    let index = pyoco_store_sqlite::SqliteStore::scratch(&std::env::temp_dir()).unwrap();
    let gateway = NatsStore::open(settings(&server), Some(Arc::new(index))).await.unwrap();
    let looked = async {
        while let Some(question) = asked.next().await {
            if question.payload.windows(CHUNKS.len()).any(|part| part == CHUNKS.as_bytes()) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looked).await.expect("a gateway looks for pieces");
    gateway.close().await;
    assert_eq!(pieces(&other).await, [("young".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_full_says_so_and_a_wheel_can_still_be_deleted() {
    let server = server();
    let settings = Settings { wheels_max_bytes: 1_000_000, ..settings(&server) };
    let store = NatsStore::open(settings, None).await.unwrap();
    let other = Other::connect(&server).await;
    let first = put(&store, &of("first", "1"), &content(7, 900_000)).await.unwrap();
    let (name, bytes) = (of("second", "1"), content(8, 900_000));
    let error = store.put_wheel(new(&name, &bytes), &mut fed(&bytes)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Full, "{error}");
    assert_eq!(pieces(&other).await, [(first.nuid.clone(), 7)]);
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&first));
    // To the last byte: there is no room even for the word that it is gone.
    let room = async |length: usize| {
        let answer = other.0.request("$O.pyoco_wheels.C.ballast", vec![b'x'; length].into()).await.unwrap();
        serde_json::from_slice::<Value>(&answer.payload).unwrap()["error"].is_null()
    };
    for length in [50_000, 5_000, 500, 50, 1] {
        while room(length).await {}
    }
    let gone = store.delete_wheel(&first.name, Timestamp::from_micros(AT)).await.unwrap();
    assert_eq!(gone, Some(first));
    assert_eq!(store.wheels().await.unwrap(), []);
    put(&store, &name, &bytes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_was_deleted_is_empty_and_made_again() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let wheel = put(&store, &of("tool", "1"), b"bytes").await.unwrap();
    let made = other.config(STREAM).await;
    store.note_wheel(event("a", 1_790_000_000.0, "x")).await.unwrap();
    other.api(&format!("STREAM.DELETE.{STREAM}"), &Value::Null).await;
    other.api("STREAM.DELETE.KV_pyoco_wheel_history", &Value::Null).await;
    let all = WheelHistoryFilter { wheel_name: None, action: None, limit: 10 };
    let now = Timestamp::from_micros(AT);
    assert_eq!(store.wheels().await.unwrap(), []);
    assert_eq!(store.wheel(&wheel.name).await.unwrap(), None);
    assert!(store.read_wheel(&wheel, 0).await.unwrap().is_none());
    assert_eq!(store.delete_wheel(&wheel.name, now).await.unwrap(), None);
    assert_eq!(store.wheel_history(&all, now).await.unwrap(), []);
    let again = put(&store, &of("tool", "1"), b"bytes").await.unwrap();
    assert_eq!(read(&store, &again).await.unwrap(), b"bytes");
    assert_eq!(other.config(STREAM).await, made);
    store.note_wheel(event("b", 1_790_000_000.0, "x")).await.unwrap();
    assert_eq!(store.wheel_history(&all, now).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_costs_two_requests_and_no_consumer_however_long_it_is() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    for number in 0..200 {
        put(&store, &of(&format!("p{number:03}"), "1"), b"x").await.unwrap();
    }
    let before = store.messages_sent();
    assert_eq!(store.wheels().await.unwrap().len(), 200);
    assert_eq!(store.messages_sent() - before, 2);
    // More than one answer can hold are read one by one.
    let last =
        other.api(&format!("STREAM.MSG.GET.{STREAM}"), &json!({"last_by_subj": "$O.pyoco_wheels.M.>"})).await;
    let description = read_base64(last["message"]["data"].as_str().unwrap());
    for number in 200..1_100 {
        let name = of(&format!("p{number:03}"), "1").to_string();
        let described =
            String::from_utf8(description.clone()).unwrap().replace("p199-1-py3-none-any.whl", &name);
        other.0.publish(format!("$O.pyoco_wheels.M.{}", base64_of(&name)), described.into()).await.unwrap();
    }
    other
        .publish("$O.pyoco_wheels.C.after", &[], "this one is answered when those before it are stored")
        .await;
    let (wheels, took) = timed(store.wheels()).await;
    assert_eq!(wheels.unwrap().len(), 1_100);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let info = other.api(&format!("STREAM.INFO.{STREAM}"), &Value::Null).await;
    assert_eq!(info["state"]["consumer_count"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_of_another_name_and_form_is_used_as_it_is() {
    let server = server();
    let other = Other::connect(&server).await;
    let config = json!({"name": "OBJ_team", "subjects": ["$O.team.C.>", "$O.team.M.>"], "allow_rollup_hdrs": true,
                        "discard": "new", "allow_direct": false, "description": "ours"});
    other.api("STREAM.CREATE.OBJ_team", &config).await;
    let before = other.config("OBJ_team").await;
    let settings = Settings { wheels_bucket: "team".to_owned(), ..settings(&server) };
    let store = NatsStore::open(settings, None).await.unwrap();
    let bytes = content(9, 1_500_000);
    let wheels = [
        put(&store, &of("a", "1"), &bytes).await.unwrap(),
        put(&store, &of("b", "1"), &bytes).await.unwrap(),
    ];
    assert_eq!(store.wheels().await.unwrap(), wheels);
    assert!(read(&store, &wheels[1]).await.unwrap() == bytes);
    assert_eq!(other.config("OBJ_team").await, before);
    for bucket in ["a.>", "", "a b"] {
        let settings = Settings { wheels_bucket: bucket.to_owned(), ..ground::settings(&server) };
        let error = NatsStore::open(settings, None).await.unwrap_err().to_string();
        assert!(error.contains("bucket of wheels"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hears_of_a_change_sees_it() {
    let server = server();
    let (store, worker) = (open(&server).await, open(&server).await);
    let mut listening = worker.listen_to_wheels().await.unwrap();
    let heard = async |listening: &mut Box<dyn pyoco_ports::ShelfListening>| {
        tokio::time::timeout(Duration::from_secs(10), listening.changed()).await.expect("it is heard")
    };
    for number in 1..=20_u64 {
        let name = of("tool", &number.to_string());
        let putting = tokio::spawn({
            let (store, name) = (Arc::clone(&store), name.clone());
            async move { put(&store, &name, b"x").await.unwrap() }
        });
        assert!(heard(&mut listening).await);
        assert!(worker.wheel(&name).await.unwrap().is_some(), "{name}");
        putting.await.unwrap();
    }
    worker.close().await;
    assert!(!heard(&mut listening).await, "there is nothing more to hear");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_a_reason_to_look() {
    let mut server = server();
    let store = open(&server).await;
    let mut listening = store.listen_to_wheels().await.unwrap();
    put(&store, &of("tool", "1"), b"x").await.unwrap();
    assert!(listening.changed().await);
    server.restart();
    let heard = tokio::time::timeout(Duration::from_secs(20), listening.changed()).await;
    assert!(heard.expect("whatever was missed is looked for"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_nobody_says_that_there_is_no_wheel() {
    let mut server = server();
    let store = open(&server).await;
    let bytes = content(10, 2_000_000);
    let wheel = put(&store, &of("tool", "1"), &bytes).await.unwrap();
    let mut stream = store.read_wheel(&wheel, 0).await.unwrap().unwrap();
    stream.next().await.unwrap().unwrap();
    server.kill();
    assert!(store.wheels().await.unwrap_err().kind.is_retryable());
    assert!(store.wheel(&wheel.name).await.unwrap_err().kind.is_retryable());
    let refused = store.put_wheel(new(&of("next", "1"), &bytes), &mut fed(&bytes)).await.unwrap_err();
    assert!(refused.kind.is_retryable(), "{refused}");
    let error = loop {
        match stream.next().await {
            Ok(piece) => assert!(piece.is_some(), "it is not the end"),
            Err(error) => break error,
        }
    };
    assert!(error.kind.is_retryable(), "{error}");
    server.restart();
    let there = async {
        loop {
            match store.wheels().await {
                Ok(wheels) => return wheels,
                Err(error) => assert!(error.kind.is_retryable(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(20), there).await.unwrap(),
        std::slice::from_ref(&wheel)
    );
    assert!(read(&store, &wheel).await.unwrap() == bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_holds_the_wheels_and_their_history() {
    let (server, restored) = (server(), server());
    let store = open(&server).await;
    let bytes = content(11, 700_000);
    let wheel = put(&store, &of("tool", "1"), &bytes).await.unwrap();
    store.note_wheel(event("a", 1_790_000_000.0, "tool")).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copies = pyoco_store_nats::backup::back_up(&settings(&server), folder.path()).await.unwrap();
    pyoco_store_nats::backup::restore(&settings(&restored), &copies, folder.path()).await.unwrap();
    let store = open(&restored).await;
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&wheel));
    assert!(read(&store, &wheel).await.unwrap() == bytes);
    assert_eq!(put(&store, &of("tool", "1"), b"x").await, Err(Refused::SameVersion));
    let all = WheelHistoryFilter { wheel_name: None, action: None, limit: 10 };
    assert_eq!(store.wheel_history(&all, Timestamp::from_micros(AT)).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_are_as_small_as_the_server_takes() {
    let server = server_with("max_payload: 40000");
    let store = open(&server).await;
    let bytes = content(12, 300_000);
    let wheel = put(&store, &of("tool", "1"), &bytes).await.unwrap();
    assert!(read(&store, &wheel).await.unwrap() == bytes);
    assert_eq!(pypi(&server, &["read", wheel.name.as_str()]).await["sha256"], wheel.sha256.as_str());
}

fn event(id: &str, occurred_at: f64, wheel_name: &str) -> WheelEvent {
    WheelEvent {
        event_id: id.to_owned(),
        occurred_at,
        action: WheelAction::Upload,
        wheel_name: wheel_name.to_owned(),
        tags: vec!["gpu".to_owned()],
        size_bytes: Some(7),
        sha256_hex: None,
        replace: Some(true),
        actor: WheelActor::default(),
        source: WheelSource::default(),
    }
}

fn read_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE.encode(text)
}
