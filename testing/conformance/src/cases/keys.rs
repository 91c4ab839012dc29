//! Cases of the records of API keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyoco_core::ids::KeyId;
use pyoco_ports::{Store, StoredKey};

use crate::samples::key;
use crate::{Subject, Verdict};

/// Writes where there is nothing; the revision.
async fn create(store: &dyn Store, id: &KeyId, record: &[u8]) -> u64 {
    assert!(store.put_key(id, record.to_vec(), None).await.unwrap(), "{id}");
    let stored = store.key(id).await.unwrap().unwrap();
    assert_eq!(stored.record, record, "{id}");
    stored.revision
}

/// All of them, by id, each once.
async fn list(store: &dyn Store) -> BTreeMap<KeyId, StoredKey> {
    let all = store.keys().await.unwrap();
    let count = all.len();
    let all: BTreeMap<_, _> = all.into_iter().collect();
    assert_eq!(all.len(), count, "each once");
    all
}

pub(crate) async fn get(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.key(&key("somebody")).await.unwrap(), None);
    // An id means itself alone.
    let long = "z".repeat(64);
    let ids = ["AAAAAAAA", "aaaaaaaa", "aaaaaaaaa", "--------", "________", "a1-_b2-_", &long];
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(store.key(&key(id)).await.unwrap(), None, "{id}");
        create(&*store, &key(id), format!("{{\"n\":{number}}}").as_bytes()).await;
    }
    for (number, id) in ids.into_iter().enumerate() {
        let stored = store.key(&key(id)).await.unwrap().unwrap();
        assert_eq!(stored.record, format!("{{\"n\":{number}}}").as_bytes(), "{id}");
    }
    // A record is bytes, whatever is in them.
    let every: Vec<u8> = (0..=255).collect();
    let records = [&b""[..], b"\0", b"\xff\xfe{", "日本 \"'; --".as_bytes(), &every, &vec![b'\n'; 64 * 1024]];
    for (number, record) in records.into_iter().enumerate() {
        create(&*store, &key(&format!("record-{number}")), record).await;
    }
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    for (number, record) in records.into_iter().enumerate() {
        let stored = store.key(&key(&format!("record-{number}"))).await.unwrap().unwrap();
        assert!(stored.record == record, "record {number}");
    }
    Verdict::Passed
}

pub(crate) async fn put(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let (one, other) = (key("one-key-"), key("another-key"));
    for over in [0, 1, u64::MAX] {
        assert!(!store.put_key(&one, b"x".to_vec(), Some(over)).await.unwrap(), "nothing stands there");
    }
    assert_eq!(store.key(&one).await.unwrap(), None);
    let first = create(&*store, &one, b"first").await;
    let neighbour = create(&*store, &other, b"neighbour").await;
    assert!(!store.put_key(&one, b"late".to_vec(), None).await.unwrap(), "something stands there");
    // The same bytes are another writing.
    assert!(store.put_key(&one, b"first".to_vec(), Some(first)).await.unwrap());
    let second = store.key(&one).await.unwrap().unwrap();
    assert!(second.record == b"first" && second.revision != first, "{second:?}");
    for over in [0, first, neighbour, second.revision + 1_000, u64::MAX] {
        assert!(
            !store.put_key(&one, b"x".to_vec(), Some(over)).await.unwrap(),
            "{over} does not stand there"
        );
    }
    assert_eq!(store.key(&one).await.unwrap().as_ref(), Some(&second), "nothing was changed");
    // Each of several wants to be the one that writes: first where there is nothing, then over what the last one wrote.
    let (contested, mut over) = (key("contested"), None);
    let mut revisions = vec![first, neighbour, second.revision];
    for round in 0..6 {
        let rivals: Vec<_> = (0..8)
            .map(|rival| {
                let (store, id): (Arc<dyn Store>, _) = (Arc::clone(&store), contested.clone());
                let record = format!("round {round}, rival {rival}").into_bytes();
                tokio::spawn(async move {
                    store.put_key(&id, record.clone(), over).await.unwrap().then_some(record)
                })
            })
            .collect();
        let mut won = Vec::new();
        for rival in rivals {
            won.extend(rival.await.unwrap());
        }
        assert_eq!(won.len(), 1, "round {round}");
        let stands = store.key(&contested).await.unwrap().unwrap();
        assert_eq!(Some(stands.record), won.pop(), "round {round}");
        assert!(!revisions.contains(&stands.revision), "each writing has another revision");
        revisions.push(stands.revision);
        over = Some(stands.revision);
    }
    assert_eq!(store.key(&other).await.unwrap().unwrap().revision, neighbour, "not concerned");
    let last = store.key(&contested).await.unwrap();
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(store.key(&contested).await.unwrap(), last);
    assert_eq!(store.key(&one).await.unwrap(), Some(second));
    assert!(!store.put_key(&contested, b"late".to_vec(), None).await.unwrap());
    assert!(!store.put_key(&one, b"late".to_vec(), Some(first)).await.unwrap());
    assert!(store.put_key(&contested, b"next".to_vec(), over).await.unwrap());
    let next = store.key(&contested).await.unwrap().unwrap();
    assert!(next.record == b"next" && !revisions.contains(&next.revision), "{next:?}");
    Verdict::Passed
}

pub(crate) async fn list_all(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.keys().await.unwrap(), []);
    let mut wanted = BTreeMap::new();
    for number in 0..300 {
        let (id, record) = (key(&format!("key-{number:04}")), format!("record {number}").into_bytes());
        let revision = create(&*store, &id, &record).await;
        wanted.insert(id, StoredKey { record, revision });
    }
    assert_eq!(list(&*store).await, wanted);
    // Of a key that was written again only the last writing is shown.
    for (number, (id, stored)) in wanted.iter_mut().enumerate().step_by(7) {
        let record = format!("again {number}").into_bytes();
        assert!(store.put_key(id, record, Some(stored.revision)).await.unwrap());
        *stored = store.key(id).await.unwrap().unwrap();
    }
    assert_eq!(list(&*store).await, wanted);
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    assert_eq!(list(&*store).await, wanted);
    Verdict::Passed
}
