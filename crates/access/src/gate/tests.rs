//! Who is let in, who is not, and what it costs.

use std::collections::HashMap;
use std::sync::Condvar;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::*;
use crate::shelf::{ORIGINAL, PEPPERED, Shelf, at, record_of};

/// Hashes, counts, and stops when it is told to.
#[derive(Default)]
struct Hasher {
    begun: watch::Sender<usize>,
    holds: Mutex<bool>,
    released: Condvar,
    breaks: AtomicBool,
}

impl Hasher {
    fn hash(&self, password: &[u8], proof: &crate::record::Proof) -> [u8; 32] {
        self.begun.send_modify(|count| *count += 1);
        let held = self.holds.lock().unwrap();
        // A test that fails must still come to its end.
        let patience = Duration::from_secs(60);
        drop(self.released.wait_timeout_while(held, patience, |held| *held).unwrap());
        assert!(!self.breaks.load(Ordering::SeqCst), "this hashing was asked to break");
        hashing::derive(password, proof)
    }

    fn count(&self) -> usize {
        *self.begun.borrow()
    }

    async fn has_begun(&self, count: usize) {
        self.begun.subscribe().wait_for(|begun| *begun >= count).await.unwrap();
    }

    fn hold(&self, hold: bool) {
        *self.holds.lock().unwrap() = hold;
        self.released.notify_all();
    }
}

/// A gate whose clock, records and hashings a test holds in its hands.
struct Scene {
    gate: Gate,
    shelf: Arc<Shelf>,
    hasher: Arc<Hasher>,
    seconds: Arc<AtomicI64>,
}

impl Scene {
    fn new(settings: &Settings, pepper: &str) -> Self {
        let (shelf, hasher, seconds) =
            (Arc::new(Shelf::default()), Arc::new(Hasher::default()), Arc::new(AtomicI64::new(0)));
        let derive = {
            let hasher = hasher.clone();
            Arc::new(move |password: &[u8], proof: &crate::record::Proof| hasher.hash(password, proof))
        };
        let now: Now = {
            let seconds = seconds.clone();
            Arc::new(move || at(seconds.load(Ordering::SeqCst)))
        };
        let gate = Gate::deriving(derive, shelf.clone(), Pepper::new(pepper), now, settings).unwrap();
        Self { gate, shelf, hasher, seconds }
    }

    /// With a key that opens.
    fn with_key(settings: &Settings) -> (Self, Key) {
        let scene = Self::new(settings, "");
        let key = Key::generate().unwrap();
        scene.shelf.lay_record(&record_of(&key, None));
        (scene, key)
    }

    async fn show(&self, text: &str) -> Result<Holder, Refused> {
        self.gate.admit(Some(text)).await
    }

    /// Shows a key from a task of its own.
    fn visitor(&self, key: &Key) -> tokio::task::JoinHandle<Result<Holder, Refused>> {
        let (gate, text) = (self.gate.clone(), key.reveal());
        tokio::spawn(async move { gate.admit(Some(&text)).await })
    }

    fn revoke(&self, key: &Key) {
        self.shelf.lay_record(&KeyRecord { revoked_at: Some(at(0)), ..record_of(key, None) });
    }
}

/// Another secret for the same key.
fn guess(key: &Key, number: usize) -> String {
    format!("pyoco_{}.guess-number-{number:010}", key.id())
}

/// Lets everybody who can move move.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

fn is_wrong<T>(admitted: &Result<T, Refused>) -> bool {
    matches!(admitted, Err(Refused::Wrong))
}

#[tokio::test]
async fn keys_of_the_original_open_with_the_right_pepper_only() {
    for sample in [ORIGINAL, PEPPERED] {
        let id = Key::parse(sample.key).unwrap().id().clone();
        for pepper in ["", "pfeffer-ä", "pfeffer"] {
            let scene = Scene::new(&Settings::default(), pepper);
            scene.shelf.lay(&id, sample.record.as_bytes());
            let admitted = scene.show(sample.key).await;
            if pepper == sample.pepper {
                let tenant = TenantId::new("team-a").unwrap();
                assert_eq!(admitted.unwrap(), Holder { key_id: id.clone(), tenant, role: Role::Submit });
            } else {
                assert!(is_wrong(&admitted), "{admitted:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_opens_nothing_is_refused_without_hashing() {
    let (scene, key) = Scene::with_key(&Settings::default());
    for nothing in [None, Some("")] {
        assert!(matches!(scene.gate.admit(nothing).await, Err(Refused::NothingShown)));
    }
    let right = key.reveal();
    for text in
        [" ", "Bearer", &right[1..], &format!("{} ", *right), &right.replace('.', "_"), &"é".repeat(200_000)]
    {
        assert!(is_wrong(&scene.show(text).await));
    }
    assert_eq!(scene.shelf.reads(), 0, "the shape is enough");

    let lay = |change: &dyn Fn(&mut KeyRecord)| {
        let key = Key::generate().unwrap();
        let mut record = record_of(&key, None);
        change(&mut record);
        scene.shelf.lay(key.id(), &record.to_bytes().unwrap());
        key
    };
    let corrupt = Key::generate().unwrap();
    scene.shelf.lay(corrupt.id(), b"{\"key_id\":");
    let oversized = lay(&|record| drop(record.others.insert("x".to_owned(), "x".repeat(60_000).into())));
    let bytes = scene.shelf.key(oversized.id()).await.unwrap().unwrap().record;
    scene.shelf.lay(oversized.id(), &[bytes, vec![b' '; 8_000]].concat());
    let keys = HashMap::from([
        ("unknown", Key::generate().unwrap()),
        ("revoked", lay(&|record| record.revoked_at = Some(at(-5)))),
        ("revoked in the future", lay(&|record| record.revoked_at = Some(at(500)))),
        ("expired", lay(&|record| record.expires_at = Some(at(0)))),
        ("another key's record", lay(&|record| record.key_id = key.id().clone())),
        ("corrupt", corrupt),
        ("oversized", oversized),
    ]);
    for (what, key) in &keys {
        let admitted = scene.show(&key.reveal()).await;
        assert!(is_wrong(&admitted), "{what}: {admitted:?}");
    }
    assert_eq!(scene.hasher.count(), 0);
    assert!(is_wrong(&scene.show(&guess(&key, 1)).await));
    assert_eq!(scene.hasher.count(), 1, "a secret that may be right is hashed");
    assert!(scene.show(&right).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_right_costs_no_hashing_and_one_reading_a_second() {
    let (scene, key) = Scene::with_key(&Settings::default());
    for second in 0..5 {
        for _ in 0..100 {
            scene.show(&key.reveal()).await.unwrap();
        }
        assert_eq!((scene.hasher.count(), scene.shelf.reads()), (1, second + 1));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_is_refused_within_two_seconds() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.show(&key.reveal()).await.unwrap();
    scene.revoke(&key);
    tokio::time::advance(Duration::from_millis(999)).await;
    assert!(scene.show(&key.reveal()).await.is_ok(), "it is believed for a second");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(is_wrong(&scene.show(&key.reveal()).await));
    assert_eq!(scene.hasher.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reading_does_not_let_in_who_came_after_the_revocation() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.show(&key.reveal()).await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    scene.shelf.is_slow.send_replace(true);
    let early = scene.visitor(&key);
    settle().await;
    assert_eq!(scene.shelf.reads(), 2, "the record is read as it was before");
    scene.revoke(&key);
    tokio::time::advance(Duration::from_secs(2)).await;
    let late = scene.visitor(&key);
    settle().await;
    assert_eq!(scene.shelf.reads(), 2, "both wait for the one reading");
    scene.shelf.is_slow.send_replace(false);
    assert!(early.await.unwrap().is_ok(), "it came before the revocation");
    assert!(is_wrong(&late.await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_slow_hashing_does_not_let_in_who_came_after_the_revocation() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.hasher.hold(true);
    let early = scene.visitor(&key);
    scene.hasher.has_begun(1).await;
    scene.revoke(&key);
    tokio::time::advance(Duration::from_secs(2)).await;
    let late = scene.visitor(&key);
    settle().await;
    scene.hasher.hold(false);
    assert!(early.await.unwrap().is_ok());
    assert!(is_wrong(&late.await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_changed_is_checked_anew() {
    let (scene, key) = Scene::with_key(&Settings::default());
    assert_eq!(scene.show(&key.reveal()).await.unwrap().role, Role::Submit);
    scene.shelf.lay_record(&KeyRecord { role: Role::Read, ..record_of(&key, None) });
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(scene.show(&key.reveal()).await.unwrap().role, Role::Read);
    assert_eq!(scene.hasher.count(), 2);

    scene.shelf.lay_record(&record_of(&key, Pepper::new("changed").as_ref()));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_wrong(&scene.show(&key.reveal()).await), "its secret is another one now");

    scene.shelf.lay_record(&record_of(&key, None));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(scene.show(&key.reveal()).await.is_ok(), "and back again");
    scene.shelf.remove(key.id());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_wrong(&scene.show(&key.reveal()).await), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_key_ends_at_its_end_and_not_a_second_later() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.shelf.lay_record(&KeyRecord { expires_at: Some(at(100)), ..record_of(&key, None) });
    scene.seconds.store(99, Ordering::SeqCst);
    assert!(scene.show(&key.reveal()).await.is_ok());
    scene.seconds.store(100, Ordering::SeqCst);
    assert!(is_wrong(&scene.show(&key.reveal()).await));
    assert_eq!(scene.shelf.reads(), 1, "nobody had to be asked");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(is_wrong(&scene.show(&key.reveal()).await));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_wrong_is_not_looked_at_again_for_a_while() {
    let (scene, key) = Scene::with_key(&Settings::default());
    for _ in 0..100 {
        assert!(is_wrong(&scene.show(&guess(&key, 1)).await));
    }
    assert_eq!((scene.hasher.count(), scene.shelf.reads()), (1, 1));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(is_wrong(&scene.show(&guess(&key, 1)).await));
    assert_eq!((scene.hasher.count(), scene.shelf.reads()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn guesses_on_one_key_are_few_and_do_not_lock_out_who_is_in() {
    let (scene, key) = Scene::with_key(&Settings::default());
    let other = Key::generate().unwrap();
    scene.shelf.lay_record(&record_of(&other, None));
    scene.show(&key.reveal()).await.unwrap();
    for number in 0..20 {
        assert!(is_wrong(&scene.show(&guess(&key, number)).await), "{number}");
    }
    let reads = scene.shelf.reads();
    for number in 20..1_000 {
        assert!(matches!(scene.show(&guess(&key, number)).await, Err(Refused::Throttled)), "{number}");
    }
    assert_eq!(
        (scene.hasher.count(), scene.shelf.reads()),
        (21, reads),
        "nothing is read or hashed for them"
    );
    assert!(scene.show(&other.reveal()).await.is_ok(), "another key has nothing to do with it");
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(scene.show(&key.reveal()).await.is_ok(), "who was right before still comes in");
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(is_wrong(&scene.show(&guess(&key, 2_000)).await), "and a minute later it may be tried again");
}

#[tokio::test(start_paused = true)]
async fn many_guesses_at_once_are_no_way_around_the_limit() {
    let (scene, key) = Scene::with_key(&Settings { hashings: 1, ..Settings::default() });
    scene.hasher.hold(true);
    let guesses: Vec<_> = (0..60)
        .map(|number| {
            let (gate, text) = (scene.gate.clone(), guess(&key, number));
            tokio::spawn(async move { gate.admit(Some(&text)).await })
        })
        .collect();
    scene.hasher.has_begun(1).await;
    settle().await;
    scene.hasher.hold(false);
    let (mut wrong, mut throttled) = (0, 0);
    for guess in guesses {
        match guess.await.unwrap() {
            Err(Refused::Wrong) => wrong += 1,
            Err(Refused::Throttled) => throttled += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((wrong, throttled, scene.hasher.count()), (20, 40, 20));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_right_is_never_counted_as_a_guess() {
    let (scene, key) = Scene::with_key(&Settings::default());
    for round in 0..50 {
        let name = Some(format!("round {round}"));
        scene.shelf.lay_record(&KeyRecord { name, ..record_of(&key, None) });
        assert!(scene.show(&key.reveal()).await.is_ok(), "{round}");
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(scene.hasher.count(), 50);
}

#[tokio::test(start_paused = true)]
async fn when_too_many_wait_to_be_hashed_the_next_is_told_so() {
    let settings = Settings { hashings: 1, waiting: 2, ..Settings::default() };
    let (scene, known) = Scene::with_key(&settings);
    scene.show(&known.reveal()).await.unwrap();
    scene.hasher.hold(true);
    let keys: Vec<Key> = (0..4).map(|_| Key::generate().unwrap()).collect();
    keys.iter().for_each(|key| scene.shelf.lay_record(&record_of(key, None)));
    let waiting: Vec<_> = keys[..3].iter().map(|key| scene.visitor(key)).collect();
    scene.hasher.has_begun(2).await;
    settle().await;
    assert!(matches!(scene.show(&keys[3].reveal()).await, Err(Refused::Busy)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(scene.show(&known.reveal()).await.is_ok(), "who is known does not stand in that line");
    assert_eq!(scene.hasher.count(), 2, "one at a time");
    scene.hasher.hold(false);
    for visitor in waiting {
        assert!(visitor.await.unwrap().is_ok());
    }
    assert!(scene.show(&keys[3].reveal()).await.is_ok(), "there is room again");
}

#[tokio::test(start_paused = true)]
async fn when_the_store_is_slow_strangers_are_few_and_the_known_are_not_among_them() {
    let (scene, known) = Scene::with_key(&Settings { strangers: 2, ..Settings::default() });
    scene.show(&known.reveal()).await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    scene.shelf.is_slow.send_replace(true);
    let strangers = [(); 3].map(|()| Key::generate().unwrap());
    let waiting = [scene.visitor(&strangers[0]), scene.visitor(&strangers[1])];
    settle().await;
    assert!(matches!(scene.show(&strangers[2].reveal()).await, Err(Refused::Busy)));
    let known = scene.visitor(&known);
    settle().await;
    scene.shelf.is_slow.send_replace(false);
    assert!(known.await.unwrap().is_ok());
    for stranger in waiting {
        assert!(is_wrong(&stranger.await.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_show_the_same_key_at_once_are_hashed_once() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.hasher.hold(true);
    let visitors: Vec<_> = (0..32).map(|_| scene.visitor(&key)).collect();
    scene.hasher.has_begun(1).await;
    scene.hasher.hold(false);
    for visitor in visitors {
        assert!(visitor.await.unwrap().is_ok());
    }
    assert_eq!(scene.hasher.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_does_not_take_the_answer_with_them() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.hasher.hold(true);
    let first = scene.visitor(&key);
    scene.hasher.has_begun(1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let second = scene.visitor(&key);
    settle().await;
    scene.hasher.hold(false);
    assert!(second.await.unwrap().is_ok());
    assert_eq!(scene.hasher.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_bad_keys_push_no_good_one_out() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.show(&key.reveal()).await.unwrap();
    for number in 0..10_100 {
        let bad = format!("pyoco_stranger-{number:08}.aaaaaaaaaaaaaaaaaaaaaaaa");
        assert!(is_wrong(&scene.show(&bad).await));
    }
    let reads = scene.shelf.reads();
    assert!(scene.show(&key.reveal()).await.is_ok());
    assert_eq!((scene.hasher.count(), scene.shelf.reads()), (1, reads));
}

#[tokio::test(start_paused = true)]
async fn of_too_many_good_keys_those_in_use_are_remembered() {
    let (scene, key) = Scene::with_key(&Settings { most_right: 4, ..Settings::default() });
    for round in 0..20 {
        let other = Key::generate().unwrap();
        scene.shelf.lay_record(&record_of(&other, None));
        scene.show(&other.reveal()).await.unwrap();
        scene.show(&key.reveal()).await.unwrap();
        assert_eq!(scene.hasher.count(), round + 2);
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_store_is_away_nobody_is_let_in_on_a_guess() {
    let (scene, key) = Scene::with_key(&Settings::default());
    scene.show(&key.reveal()).await.unwrap();
    scene.shelf.is_away.store(true, Ordering::SeqCst);
    assert!(scene.show(&key.reveal()).await.is_ok(), "within the second nobody needs to be asked");
    tokio::time::advance(Duration::from_secs(1)).await;
    for text in [&*key.reveal(), &guess(&key, 1)] {
        match scene.show(text).await {
            Err(Refused::Unknown(error)) => {
                assert_eq!(error.kind, ErrorKind::Unavailable);
                assert!(error.to_string().contains("nobody is there"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    scene.shelf.is_away.store(false, Ordering::SeqCst);
    assert!(scene.show(&key.reveal()).await.is_ok());
    assert_eq!(scene.hasher.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hashing_that_breaks_leaves_nobody_waiting() {
    let (scene, key) = Scene::with_key(&Settings { hashings: 1, waiting: 0, ..Settings::default() });
    scene.hasher.breaks.store(true, Ordering::SeqCst);
    for _ in 0..30 {
        let admitted = scene.show(&key.reveal()).await;
        assert!(matches!(admitted, Err(Refused::Unknown(_))), "{admitted:?}");
    }
    scene.hasher.breaks.store(false, Ordering::SeqCst);
    assert!(scene.show(&key.reveal()).await.is_ok(), "neither a place nor a try was lost");
}

#[tokio::test]
async fn nothing_that_is_printed_shows_a_secret() {
    let scene = Scene::new(&Settings::default(), "black pepper");
    let key = Key::generate().unwrap();
    scene.shelf.lay_record(&record_of(&key, Pepper::new("black pepper").as_ref()));
    let wrong = guess(&key, 7);
    let mut shown = format!("{:?} {:?}", scene.show(&key.reveal()).await, scene.show(&wrong).await);
    scene.shelf.is_away.store(true, Ordering::SeqCst);
    let unknown = scene.show(&guess(&key, 8)).await.unwrap_err();
    shown += &format!("{unknown} {unknown:?} {:?} {:?}", scene.gate, scene.gate.0.memory());
    for refused in [Refused::NothingShown, Refused::Wrong, Refused::Throttled, Refused::Busy] {
        shown += &format!("{refused} {refused:?}");
    }
    for secret in [key.secret(), "guess-number", "black pepper", "pyoco_"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
