//! Cases of wheels: the shelf. Those of its history have a file of their own.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use pyoco_ports::{ErrorKind, NewWheel, Store, StoreError, WheelBytes, WheelRecord};
use pyoco_wheels::{Refused, Sha256Digest, WheelName};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::samples::at;
use crate::{Subject, Verdict};

/// Longer than anything here takes, unless it never comes.
const PATIENCE: Duration = Duration::from_secs(20);

fn name(text: &str) -> WheelName {
    WheelName::parse(text).unwrap()
}

fn of(package: &str, version: &str) -> WheelName {
    name(&format!("{package}-{version}-py3-none-any.whl"))
}

/// So many bytes that no two wheels share by chance.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let blocks =
        (0_u64..).flat_map(|block| Sha256::digest([seed.to_le_bytes(), block.to_le_bytes()].concat()));
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
        at: at(7),
        tags: Vec::new(),
        content_type: "application/octet-stream".to_owned(),
    }
}

/// How a stream of bytes ends.
enum End {
    Well,
    /// In an error of its own.
    Broken,
    /// It does not: nothing comes any more.
    Silent,
}

/// Bytes that somebody sends.
struct Sent {
    pieces: VecDeque<Vec<u8>>,
    end: End,
}

impl Sent {
    /// In pieces of all sizes: a byte, less than any store keeps together, and more.
    fn new(bytes: &[u8], end: End) -> Self {
        let (mut pieces, mut rest) = (VecDeque::new(), bytes);
        for length in [1, 65_536, 7, 400_000, 131_072].into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            pieces.push_back(piece.to_vec());
            rest = behind;
        }
        Self { pieces, end }
    }
}

#[async_trait]
impl WheelBytes for Sent {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match (self.pieces.pop_front(), &self.end) {
            (Some(piece), _) => Ok(Some(piece)),
            (None, End::Well) => Ok(None),
            (None, End::Broken) => Err(StoreError::plain(ErrorKind::Unavailable, "send a wheel")),
            (None, End::Silent) => std::future::pending().await,
        }
    }
}

/// Bytes that come when the case sends them.
struct Fed(mpsc::Receiver<Vec<u8>>);

#[async_trait]
impl WheelBytes for Fed {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.recv().await)
    }
}

async fn send(store: &dyn Store, name: &WheelName, bytes: &[u8]) -> Result<WheelRecord, Refused> {
    store.put_wheel(new(name, bytes), &mut Sent::new(bytes, End::Well)).await.unwrap()
}

/// All that is left of a stream.
async fn rest(stream: &mut dyn WheelBytes) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await? {
        assert!(!piece.is_empty(), "a piece is never empty");
        bytes.extend(piece);
    }
    Ok(bytes)
}

async fn read_from(store: &dyn Store, wheel: &WheelRecord, from: u64) -> Vec<u8> {
    let mut stream = store.read_wheel(wheel, from).await.unwrap().expect("the wheel is there");
    rest(&mut *stream).await.unwrap()
}

async fn names(store: &dyn Store) -> Vec<String> {
    store.wheels().await.unwrap().into_iter().map(|wheel| wheel.name.to_string()).collect()
}

pub(crate) async fn list(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.wheels().await.unwrap(), []);
    assert_eq!(store.wheel(&of("tool", "1.0")).await.unwrap(), None);
    let wanted = [of("Zoo", "2"), of("a.b", "1.0.post1"), of("a_c", "3+local.7"), of("tool", "1.0")];
    let mut records = Vec::new();
    for (number, index) in [3, 0, 2, 1].into_iter().enumerate() {
        let mut wheel = new(&wanted[index], &bytes(index as u64, 100));
        wheel.at = at(number as u64);
        wheel.tags = ["gpu", "a-b_C"].map(str::to_owned)[..number % 3].to_vec();
        let mut sent = Sent::new(&bytes(index as u64, 100), End::Well);
        records.push((index, store.put_wheel(wheel, &mut sent).await.unwrap().unwrap()));
    }
    records.sort_by_key(|(index, _)| *index);
    let records: Vec<WheelRecord> = records.into_iter().map(|(_, record)| record).collect();
    assert_eq!(store.wheels().await.unwrap(), records, "in the order of their names");
    for record in &records {
        assert_eq!(store.wheel(&record.name).await.unwrap().as_ref(), Some(record));
    }
    // Another spelling is another name, though of the same package.
    assert_eq!(store.wheel(&of("zoo", "2")).await.unwrap(), None);
    store.delete_wheel(&wanted[1], at(9)).await.unwrap();
    assert_eq!(names(&*store).await, [0, 2, 3].map(|index| wanted[index].to_string()));
    assert_eq!(store.wheel(&wanted[1]).await.unwrap(), None);
    Verdict::Passed
}

pub(crate) async fn rule(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let content = bytes(1, 200_000);
    send(&*store, &of("My_Tool", "1.0"), &content).await.unwrap();
    for (refused, why) in [
        (of("My_Tool", "1.0"), Refused::SameVersion),
        (of("my.tool", "1.0.0"), Refused::SameVersion),
        (name("my_tool-1.0-7-cp312-cp312-linux_x86_64.whl"), Refused::SameVersion),
        (of("my_tool", "0.9"), Refused::OlderVersion),
        (of("my_tool", "1.0rc1"), Refused::OlderVersion),
    ] {
        // Also with the very same bytes.
        assert_eq!(send(&*store, &refused, &content).await, Err(why), "{refused}");
        assert_eq!(send(&*store, &refused, &bytes(2, 10)).await, Err(why), "{refused}");
    }
    assert_eq!(names(&*store).await, [of("My_Tool", "1.0").to_string()]);
    let stands = store.wheel(&of("My_Tool", "1.0")).await.unwrap().unwrap();
    assert_eq!(read_from(&*store, &stands, 0).await, content, "what was refused has changed nothing");
    send(&*store, &of("my_tool", "1.0.post1"), &content).await.unwrap();
    send(&*store, &of("other", "0.1"), &content).await.unwrap();
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(send(&*store, &of("my_tool", "1.0.post1"), &content).await, Err(Refused::SameVersion));
    send(&*store, &of("my_tool", "1.1"), &content).await.unwrap();
    Verdict::Passed
}

pub(crate) async fn race(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let other = subject.beside(&store).await.unwrap_or_else(|| store.clone());
    // All at once, in turn to one process and to the other.
    let send_all = async |wheels: Vec<(WheelName, Vec<u8>)>| {
        let rivals: Vec<_> = wheels
            .into_iter()
            .enumerate()
            .map(|(number, (name, bytes))| {
                let store = if number % 2 == 0 { store.clone() } else { other.clone() };
                tokio::spawn(async move { (send(&*store, &name, &bytes).await, bytes) })
            })
            .collect();
        let mut answers = Vec::new();
        for rival in rivals {
            answers.push(rival.await.unwrap());
        }
        answers
    };
    // The same version, in other builds and with other bytes.
    for round in 0..4_u64 {
        let rival = |number: u64| {
            let name = name(&format!("same-{round}.0-{number}-py3-none-any.whl"));
            (name, bytes(100 * round + number, 150_000))
        };
        let answers = send_all((0..6).map(rival).collect()).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(answer, _)| answer.is_ok());
        assert_eq!((won.len(), lost.len()), (1, 5), "round {round}");
        assert!(lost.iter().all(|(answer, _)| *answer == Err(Refused::SameVersion)), "round {round}");
        let (record, sent) = (won[0].0.clone().unwrap(), &won[0].1);
        assert_eq!(other.wheel(&record.name).await.unwrap().as_ref(), Some(&record), "round {round}");
        assert_eq!(&read_from(&*other, &record, 0).await, sent, "round {round}: of the one that won");
        assert_eq!(store.wheels().await.unwrap().len() as u64, round + 1, "round {round}");
    }
    // Very much the same: one name, and the same bytes.
    let answers = send_all((0..6).map(|_| (of("twin", "1"), bytes(7, 1_000))).collect()).await;
    let won: Vec<_> = answers.iter().filter_map(|(answer, _)| answer.clone().ok()).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(
        read_from(&*store, &won[0], 0).await,
        bytes(7, 1_000),
        "those that lost took nothing with them"
    );
    // Growing versions: whoever is refused found one that is newer, and the newest is never refused.
    let growing = |number: u64| (of("grows", &number.to_string()), bytes(1_000 + number, 10_000));
    let answers = send_all((0..8).map(growing).collect()).await;
    assert!(answers[7].0.is_ok(), "nothing is newer than the newest");
    assert!(answers.iter().all(|(answer, _)| *answer != Err(Refused::SameVersion)));
    let mut wanted: Vec<String> =
        answers.iter().filter_map(|(answer, _)| Some(answer.as_ref().ok()?.name.to_string())).collect();
    wanted.sort();
    let mut there = names(&*other).await;
    there.retain(|name| name.starts_with("grows-"));
    assert_eq!(there, wanted);
    // Packages are in nobody's way.
    let apart = |number: u64| (of(&format!("p{number}"), "1"), bytes(2_000 + number, 140_000));
    for (answer, sent) in send_all((0..6).map(apart).collect()).await {
        assert_eq!(read_from(&*store, &answer.unwrap(), 0).await, sent);
    }
    Verdict::Passed
}

pub(crate) async fn put(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let other = subject.beside(&store).await.unwrap_or_else(|| store.clone());
    let (wheel, content) = (of("tool", "1.0"), bytes(1, 700_000));
    let given = NewWheel { tags: vec!["gpu".to_owned(), "cpu".to_owned()], ..new(&wheel, &content) };
    let (feed, fed) = mpsc::channel(1);
    let (putting, wanted) = (store.clone(), given.clone());
    let task = tokio::spawn(async move { putting.put_wheel(wanted, &mut Fed(fed)).await });
    for piece in content.chunks(100_000) {
        assert_eq!(store.wheels().await.unwrap(), [], "nothing of it shows before all of it is there");
        assert_eq!(other.wheel(&wheel).await.unwrap(), None);
        feed.send(piece.to_vec()).await.unwrap();
    }
    drop(feed);
    let record = task.await.unwrap().unwrap().unwrap();
    let expected = WheelRecord {
        name: wheel.clone(),
        nuid: record.nuid.clone(),
        size_bytes: 700_000,
        sha256: sha256(&content),
        modified: at(7),
        tags: given.tags,
    };
    assert_eq!(record, expected);
    assert!(!record.nuid.is_empty());
    assert_eq!(other.wheel(&wheel).await.unwrap().as_ref(), Some(&record));
    assert_eq!(read_from(&*other, &record, 0).await, content);
    drop(other);
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&record));
    assert_eq!(read_from(&*store, &record, 0).await, content);
    Verdict::Passed
}

pub(crate) async fn torn(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let content = bytes(1, 700_000);
    send(&*store, &of("there", "1"), &bytes(2, 300_000)).await.unwrap();
    let (tool, there) = (of("tool", "1.0"), of("there", "1").to_string());
    let whole = new(&tool, &content);
    let mut flipped = content.clone();
    flipped[350_000] ^= 1;
    let longer = [&content[..], b"x"].concat();
    for (case, sent, end) in [
        ("ends early", &content[..500_000], End::Well),
        ("has nothing", &[], End::Well),
        ("is too long", &longer[..], End::Well),
        ("is another", &flipped[..], End::Well),
        ("breaks off", &content[..500_000], End::Broken),
        ("breaks off at the very end", &content[..], End::Broken),
    ] {
        let wanted = match end {
            End::Well => ErrorKind::Corrupt,
            // The error of whoever sends is the answer.
            End::Broken | End::Silent => ErrorKind::Unavailable,
        };
        let answer = store.put_wheel(whole.clone(), &mut Sent::new(sent, end)).await;
        assert_eq!(answer.unwrap_err().kind, wanted, "one that {case}");
        assert_eq!(names(&*store).await, [there.as_str()], "one that {case}");
        assert_eq!(store.wheel(&tool).await.unwrap(), None, "one that {case}");
    }
    // Whoever sends falls silent, and whoever takes it gives up.
    for sent in [&content[..1], &content[..500_000], &content[..]] {
        let mut silent = Sent::new(sent, End::Silent);
        let given_up = timeout(Duration::from_millis(300), store.put_wheel(whole.clone(), &mut silent));
        assert!(given_up.await.is_err(), "nobody can know that this was all");
        assert_eq!(names(&*store).await, [there.as_str()]);
    }
    // None of these is in the way of a good one, nor it in the way of the next.
    let record = send(&*store, &tool, &content).await.unwrap();
    assert_eq!(read_from(&*store, &record, 0).await, content);
    let next = new(&of("tool", "2.0"), &content);
    assert!(store.put_wheel(next, &mut Sent::new(&content[1..], End::Well)).await.is_err());
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(names(&*store).await, [there.as_str(), tool.as_str()]);
    assert_eq!(read_from(&*store, &record, 0).await, content);
    Verdict::Passed
}

pub(crate) async fn read(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (seed, length) in [1_usize, 131_072, 262_144, 700_001].into_iter().enumerate() {
        let content = bytes(seed as u64, length);
        let record = send(&*store, &of("tool", &seed.to_string()), &content).await.unwrap();
        let end = length as u64;
        for from in [0, 1, 131_071, 131_072, 131_073, 400_000, end - 1, end].map(|from| from.min(end)) {
            let wanted = &content[usize::try_from(from).unwrap()..];
            assert!(read_from(&*store, &record, from).await == wanted, "{length} bytes from {from} on");
        }
        assert_eq!(read_from(&*store, &record, end + 1_000_000).await, b"", "behind the end");
    }
    // Only this very upload: the next one of the name is another.
    let (name, content) = (of("again", "1"), bytes(9, 200_000));
    let first = send(&*store, &name, &content).await.unwrap();
    store.delete_wheel(&name, at(8)).await.unwrap();
    assert!(store.read_wheel(&first, 0).await.unwrap().is_none(), "it is gone");
    let second = send(&*store, &name, &content).await.unwrap();
    assert_ne!(first.nuid, second.nuid);
    assert!(store.read_wheel(&first, 0).await.unwrap().is_none(), "that is another");
    assert_eq!(read_from(&*store, &second, 0).await, content);
    // One that goes while it is read.
    let content = bytes(10, 3_000_000);
    let record = send(&*store, &of("large", "1"), &content).await.unwrap();
    let mut stream = store.read_wheel(&record, 0).await.unwrap().unwrap();
    let mut found = stream.next().await.unwrap().unwrap();
    store.delete_wheel(&record.name, at(9)).await.unwrap();
    send(&*store, &record.name, &bytes(11, 3_000_000)).await.unwrap();
    match rest(&mut *stream).await {
        Ok(rest) => {
            found.extend(rest);
            assert!(found == content, "to its end, and nothing else");
        }
        Err(error) => assert!(content.starts_with(&found), "{error}"),
    }
    Verdict::Passed
}

pub(crate) async fn flipped(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    for (seed, length) in [1, 700_000].into_iter().enumerate() {
        let (name, content) = (of("tool", &seed.to_string()), bytes(seed as u64, length));
        let record = send(&*store, &name, &content).await.unwrap();
        if !subject.spoil(&store, &record).await {
            return Verdict::Skipped("nobody can reach what it holds");
        }
        let record = store.wheel(&name).await.unwrap().unwrap();
        let failed = async {
            let mut stream = store.read_wheel(&record, 0).await?.expect("the wheel is there");
            let mut found = 0;
            while let Some(piece) = stream.next().await? {
                found += piece.len();
                assert!(found < length, "the last piece is not given out");
            }
            Ok::<_, StoreError>(())
        };
        assert_eq!(failed.await.unwrap_err().kind, ErrorKind::Corrupt, "{length} bytes");
    }
    Verdict::Passed
}

pub(crate) async fn delete(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let other = subject.beside(&store).await.unwrap_or_else(|| store.clone());
    assert_eq!(store.delete_wheel(&of("tool", "1"), at(1)).await.unwrap(), None);
    // Two names of the same bytes: the one stays when the other goes.
    let content = bytes(1, 300_000);
    let one = send(&*store, &of("one", "1"), &content).await.unwrap();
    let two = send(&*store, &of("two", "1"), &content).await.unwrap();
    assert_eq!(other.delete_wheel(&one.name, at(2)).await.unwrap(), Some(one.clone()));
    assert_eq!(store.delete_wheel(&one.name, at(3)).await.unwrap(), None);
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&two));
    assert_eq!(read_from(&*store, &two, 0).await, content);
    // What is gone is in nobody's way: the version may come again, and an older one too.
    send(&*store, &of("one", "0.5"), &bytes(2, 10)).await.unwrap();
    send(&*store, &of("one", "1"), &content).await.unwrap();
    // Of several who delete it one has done it.
    let rivals: Vec<_> = (0..6)
        .map(|number| {
            let store = if number % 2 == 0 { store.clone() } else { other.clone() };
            tokio::spawn(async move { store.delete_wheel(&of("two", "1"), at(4)).await.unwrap() })
        })
        .collect();
    let mut done = Vec::new();
    for rival in rivals {
        done.extend(rival.await.unwrap());
    }
    assert_eq!(done, [two]);
    let left = ["one-0.5-py3-none-any.whl", "one-1-py3-none-any.whl"];
    assert_eq!(names(&*store).await, left);
    drop(other);
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(names(&*store).await, left);
    let again = store.wheel(&one.name).await.unwrap().unwrap();
    assert_eq!(read_from(&*store, &again, 0).await, content);
    Verdict::Passed
}

pub(crate) async fn heard(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let other = subject.beside(&store).await.unwrap_or_else(|| store.clone());
    let mut listening = [store.listen_to_wheels().await.unwrap(), other.listen_to_wheels().await.unwrap()];
    send(&*store, &of("tool", "1"), &bytes(1, 10)).await.unwrap();
    for one in &mut listening {
        assert!(timeout(PATIENCE, one.changed()).await.expect("an upload is heard"));
    }
    // Dropped while it waits, or after a call more than there were changes.
    for one in &mut listening {
        let _ = timeout(Duration::from_millis(50), one.changed()).await;
    }
    store.delete_wheel(&of("tool", "1"), at(1)).await.unwrap();
    for one in &mut listening {
        assert!(timeout(PATIENCE, one.changed()).await.expect("a deletion is heard"));
    }
    Verdict::Passed
}
