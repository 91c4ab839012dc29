//! Keys that are made, listed, revoked and rotated.

use std::sync::atomic::Ordering;

use super::*;
use crate::gate::{Gate, Refused, Settings};
use crate::shelf::{ORIGINAL, Shelf, at, record_of};

fn new_key() -> NewKey {
    NewKey {
        tenant: TenantId::new("team-b").unwrap(),
        role: Role::Read,
        expires_at: Some(at(1_000)),
        name: Some("Åsa's laptop".to_owned()),
    }
}

fn keys(shelf: &Arc<Shelf>) -> Keys {
    Keys::new(shelf.clone(), Pepper::new("salt's friend"))
}

/// Somebody who remembers nothing.
async fn admitted(shelf: &Arc<Shelf>, key: &Key) -> Result<Role, Refused> {
    let pepper = Pepper::new("salt's friend");
    let gate = Gate::new(shelf.clone(), pepper, Arc::new(|| at(10)), &Settings::default()).unwrap();
    gate.admit(Some(&key.reveal())).await.map(|holder| holder.role)
}

#[tokio::test]
async fn a_key_that_was_made_opens_and_its_record_is_what_the_original_reads() {
    let shelf = Arc::new(Shelf::default());
    let created = keys(&shelf).create(new_key(), at(0)).await.unwrap();
    assert_eq!(admitted(&shelf, &created.key).await.unwrap(), Role::Read);

    let stored = shelf.key(created.key.id()).await.unwrap().unwrap().record;
    let members: serde_json::Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(members["kdf"], "pbkdf2_hmac_sha256");
    assert_eq!(members["iterations"], 200_000);
    assert_eq!(members["salt_b64"].as_str().unwrap().len(), 22);
    assert_eq!(members["hash_b64"].as_str().unwrap().len(), 43);
    assert_eq!(members["created_at"], at(0).as_unix_seconds());
    assert!(members["revoked_at"].is_null());
    assert!(!String::from_utf8(stored).unwrap().contains(created.key.secret()));
    assert!(!format!("{created:?}").contains(created.key.secret()));
}

#[tokio::test]
async fn a_key_that_would_be_of_no_use_is_not_made() {
    let shelf = Arc::new(Shelf::default());
    for name in ["", "two\nlines", "\u{1b}[31m", &"x".repeat(129)] {
        let new = NewKey { name: Some(name.to_owned()), ..new_key() };
        assert!(matches!(keys(&shelf).create(new, at(0)).await, Err(KeysError::Name)), "{name:?}");
    }
    let new = NewKey { expires_at: Some(at(0)), ..new_key() };
    assert!(matches!(keys(&shelf).create(new, at(0)).await, Err(KeysError::PastEnd)));
    assert!(shelf.keys().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_list_has_the_newest_first_and_leaves_out_what_cannot_be_read() {
    let shelf = Arc::new(Shelf::default());
    assert_eq!(keys(&shelf).list().await.unwrap(), []);
    let mut ids = Vec::new();
    for second in [5, 9, 1] {
        let key = Key::generate().unwrap();
        shelf.lay_record(&KeyRecord { created_at: at(second), ..record_of(&key, None) });
        ids.push(key.id().clone());
    }
    shelf.lay(&KeyId::new("broken-record").unwrap(), b"{");
    shelf.lay(&KeyId::new("not-its-place").unwrap(), ORIGINAL.record.as_bytes());
    let listed: Vec<KeyId> =
        keys(&shelf).list().await.unwrap().into_iter().map(|record| record.key_id).collect();
    assert_eq!(listed, [ids[1].clone(), ids[0].clone(), ids[2].clone()]);
}

#[tokio::test]
async fn a_revoked_key_opens_nothing_and_keeps_the_first_time() {
    let shelf = Arc::new(Shelf::default());
    let created = keys(&shelf).create(new_key(), at(0)).await.unwrap();
    let id = created.key.id();
    let revoked = keys(&shelf).revoke(id, at(5)).await.unwrap().unwrap();
    assert_eq!(revoked, KeyRecord { revoked_at: Some(at(5)), ..created.record });
    assert_eq!(keys(&shelf).revoke(id, at(6)).await.unwrap(), Some(revoked));
    assert!(matches!(admitted(&shelf, &created.key).await, Err(Refused::Wrong)));
    let unknown = KeyId::new("nobody-has-it").unwrap();
    assert_eq!(keys(&shelf).revoke(&unknown, at(5)).await.unwrap(), None);
}

#[tokio::test]
async fn whoever_changes_a_record_at_the_same_time_is_not_overwritten() {
    let shelf = Arc::new(Shelf::default());
    let key = Key::generate().unwrap();
    let record = record_of(&key, None);
    shelf.lay_record(&record);
    *shelf.faster.lock().unwrap() = Some(KeyRecord { name: Some("renamed".to_owned()), ..record.clone() });
    let revoked = keys(&shelf).revoke(key.id(), at(5)).await.unwrap().unwrap();
    assert_eq!((revoked.name.as_deref(), revoked.revoked_at), (Some("renamed"), Some(at(5))));
    assert_eq!(keys(&shelf).list().await.unwrap(), [revoked]);
}

#[tokio::test]
async fn a_rotated_key_is_replaced_by_one_that_opens_as_much() {
    let shelf = Arc::new(Shelf::default());
    let old = keys(&shelf).create(new_key(), at(0)).await.unwrap();
    let new = keys(&shelf).rotate(old.key.id(), at(7)).await.unwrap().unwrap();
    assert_ne!(new.key.id(), old.key.id());
    let like = |record: &KeyRecord| NewKey {
        tenant: record.tenant_id.clone(),
        role: record.role,
        expires_at: record.expires_at,
        name: record.name.clone(),
    };
    assert_eq!((like(&new.record), new.record.created_at), (new_key(), at(7)));
    assert!(matches!(admitted(&shelf, &old.key).await, Err(Refused::Wrong)));
    assert_eq!(admitted(&shelf, &new.key).await.unwrap(), Role::Read);
    let unknown = KeyId::new("nobody-has-it").unwrap();
    assert!(keys(&shelf).rotate(&unknown, at(5)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_key_that_is_over_is_not_rotated_back_to_life() {
    let shelf = Arc::new(Shelf::default());
    let key = Key::generate().unwrap();
    let id = key.id();
    for over in [
        KeyRecord { revoked_at: Some(at(1)), ..record_of(&key, None) },
        KeyRecord { expires_at: Some(at(1)), ..record_of(&key, None) },
    ] {
        shelf.lay_record(&over);
        assert!(matches!(keys(&shelf).rotate(id, at(2)).await, Err(KeysError::Over(over)) if over == *id));
    }
    assert_eq!(shelf.keys().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_that_is_revoked_while_it_is_rotated_leaves_no_successor() {
    let shelf = Arc::new(Shelf::default());
    let key = Key::generate().unwrap();
    shelf.lay_record(&record_of(&key, None));
    *shelf.faster.lock().unwrap() = Some(KeyRecord { revoked_at: Some(at(1)), ..record_of(&key, None) });
    assert!(matches!(keys(&shelf).rotate(key.id(), at(2)).await, Err(KeysError::Over(_))));
    let records = keys(&shelf).list().await.unwrap();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.revoked_at.is_some()), "{records:?}");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_not_written_over() {
    let shelf = Arc::new(Shelf::default());
    let id = KeyId::new("broken-record").unwrap();
    shelf.lay(&id, b"{");
    assert!(matches!(keys(&shelf).revoke(&id, at(1)).await, Err(KeysError::Unreadable(_))));
    assert!(matches!(keys(&shelf).rotate(&id, at(1)).await, Err(KeysError::Unreadable(_))));
    assert_eq!(shelf.key(&id).await.unwrap().unwrap().record, b"{");
}

#[tokio::test]
async fn a_store_that_is_away_is_said_to_be() {
    let shelf = Arc::new(Shelf::default());
    shelf.is_away.store(true, Ordering::SeqCst);
    let id = KeyId::new("nobody-has-it").unwrap();
    assert!(matches!(keys(&shelf).create(new_key(), at(0)).await, Err(KeysError::Store(_))));
    assert!(matches!(keys(&shelf).list().await, Err(KeysError::Store(_))));
    assert!(matches!(keys(&shelf).revoke(&id, at(0)).await, Err(KeysError::Store(_))));
    assert!(matches!(keys(&shelf).rotate(&id, at(0)).await, Err(KeysError::Store(_))));
}
