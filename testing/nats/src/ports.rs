//! Ports that are free, and stay it while a server is away.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::sync::Mutex;

/// Below the range from which systems give out ports by themselves: there the port of a server that is down would soon be
/// somebody's.
const FIRST: u64 = 10_000;
const COUNT: u64 = 22_000;

/// What this process has given out already.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port that nobody listens on. Another process may be faster all the same; whoever starts a server on it has to look.
pub fn free() -> u16 {
    let mut given = GIVEN.lock().unwrap();
    // Other test processes choose at the same time, so each begins somewhere else.
    let start = RandomState::new().hash_one(std::process::id());
    let candidates = (0..COUNT).map(|step| u16::try_from(FIRST + start.wrapping_add(step) % COUNT).unwrap());
    let is_free = |port: &u16| !given.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = candidates.into_iter().find(is_free).expect("a free port");
    given.insert(port);
    port
}
