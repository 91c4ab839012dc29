//! A map by text whose copies share what they have in common: a copy takes no time, and a change after it copies one
//! piece of the map instead of all of it. Its entries are in the order of their keys.
//!
//! Every attempt holds a copy of what tasks share, as it was when the attempt began. With a plain map each result would
//! copy all results before it for as long as any other attempt runs.

use std::sync::Arc;

/// Most entries of a piece: what a change copies, beside one pointer a piece.
const PIECE: usize = 64;

type Piece<V> = Arc<Vec<(Arc<str>, V)>>;

/// A map that is copied for nothing.
#[derive(Debug, Clone)]
pub struct SharedMap<V> {
    /// In order, and none is empty.
    pieces: Arc<Vec<Piece<V>>>,
    len: usize,
}

impl<V> Default for SharedMap<V> {
    fn default() -> Self {
        Self { pieces: Arc::default(), len: 0 }
    }
}

impl<V: PartialEq> PartialEq for SharedMap<V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<V> SharedMap<V> {
    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&V> {
        let (at, found) = self.find(key);
        self.pieces.get(at)?.get(found.ok()?).map(|(_, value)| value)
    }

    /// Whether there is such a key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.pieces.iter().flat_map(|piece| piece.iter()).map(|(key, value)| (&**key, value))
    }

    /// All keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(key, _)| key)
    }

    /// The entries whose keys begin like this. Others are not looked at.
    pub fn beginning_with<'a>(&'a self, beginning: &str) -> impl Iterator<Item = (&'a str, &'a V)> {
        let (at, Ok(place) | Err(place)) = self.find(beginning);
        let entries = self.pieces.iter().skip(at).flat_map(|piece| piece.iter()).skip(place);
        entries.map(|(key, value)| (&**key, value)).take_while(move |(key, _)| key.starts_with(beginning))
    }

    /// The piece in which a key is or belongs, and where in it.
    fn find(&self, key: &str) -> (usize, Result<usize, usize>) {
        let begins_before = |piece: &Piece<V>| piece.first().is_some_and(|(first, _)| **first <= *key);
        let at = self.pieces.partition_point(begins_before).saturating_sub(1);
        let place = self.pieces.get(at).map(|piece| piece.binary_search_by(|(known, _)| (**known).cmp(key)));
        (at, place.unwrap_or(Err(0)))
    }
}

impl<V: Clone> SharedMap<V> {
    /// The value of a key, to be changed.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let (at, Ok(place)) = self.find(key) else { return None };
        let piece = Arc::make_mut(&mut self.pieces).get_mut(at)?;
        Arc::make_mut(piece).get_mut(place).map(|(_, value)| value)
    }

    /// Puts a value under a key, over what was there.
    pub(crate) fn insert(&mut self, key: &str, value: V) {
        let (at, found) = self.find(key);
        let pieces = Arc::make_mut(&mut self.pieces);
        let Some(piece) = pieces.get_mut(at) else {
            pieces.push(Arc::new(vec![(key.into(), value)]));
            self.len += 1;
            return;
        };
        let entries = Arc::make_mut(piece);
        match found {
            Ok(place) => {
                if let Some((_, known)) = entries.get_mut(place) {
                    *known = value;
                }
            }
            Err(place) => {
                entries.insert(place, (key.into(), value));
                self.len += 1;
                if entries.len() > PIECE {
                    let second = entries.split_off(entries.len() / 2);
                    pieces.insert(at + 1, Arc::new(second));
                }
            }
        }
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: &str) {
        let (at, Ok(place)) = self.find(key) else { return };
        let pieces = Arc::make_mut(&mut self.pieces);
        let Some(piece) = pieces.get_mut(at) else { return };
        let entries = Arc::make_mut(piece);
        entries.remove(place);
        self.len -= 1;
        if entries.is_empty() {
            pieces.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u16, u32),
        Change(u16, u32),
        Remove(u16),
        Copy,
    }

    fn step() -> impl Strategy<Value = Step> {
        // Few enough keys that they meet again, and many enough that there are several pieces.
        let key = 0..400_u16;
        prop_oneof![
            6 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            1 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Change(key, value)),
            2 => key.prop_map(Step::Remove),
            1 => Just(Step::Copy),
        ]
    }

    fn same(map: &SharedMap<u32>, plain: &BTreeMap<String, u32>) -> bool {
        let entries = || plain.iter().map(|(key, value)| (key.as_str(), value));
        map.len() == plain.len()
            && map.is_empty() == plain.is_empty()
            && map.iter().eq(entries())
            && (0..400_u16).map(|key| key.to_string()).all(|key| map.get(&key) == plain.get(&key))
            && ["", "1", "39", "40", "x"].iter().all(|beginning| {
                let wanted = entries().filter(|(key, _)| key.starts_with(beginning));
                map.beginning_with(beginning).eq(wanted)
            })
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_what_happens_to_one_copy_is_not_seen_in_another(
            steps in prop::collection::vec(step(), 0..1_500)
        ) {
            let (mut map, mut plain) = (SharedMap::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        map.insert(&key.to_string(), value);
                        plain.insert(key.to_string(), value);
                    }
                    Step::Change(key, value) => {
                        let known = (map.get_mut(&key.to_string()), plain.get_mut(&key.to_string()));
                        if let (Some(one), Some(other)) = known {
                            (*one, *other) = (value, value);
                        }
                    }
                    Step::Remove(key) => {
                        map.remove(&key.to_string());
                        plain.remove(&key.to_string());
                    }
                    Step::Copy => copies.push((map.clone(), plain.clone())),
                }
            }
            prop_assert!(same(&map, &plain));
            prop_assert!(copies.iter().all(|(map, plain)| same(map, plain)));
        }
    }

    #[test]
    fn a_change_after_a_copy_copies_one_piece() {
        let mut map = SharedMap::default();
        for number in 0..10_000 {
            map.insert(&format!("k{number}"), number);
        }
        let copy = map.clone();
        map.insert("k5000", 0);
        let pairs = map.pieces.iter().zip(copy.pieces.iter());
        assert_eq!(pairs.filter(|(one, other)| !Arc::ptr_eq(one, other)).count(), 1);
        assert!(map.pieces.iter().all(|piece| piece.len() <= PIECE) && map.pieces.len() < 400);
    }
}
