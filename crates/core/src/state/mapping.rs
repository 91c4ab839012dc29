//! One of the mappings that tasks share: by name, and in the order in which names were added, as an author sees it.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::shared::SharedMap;
use crate::json::Json;

/// A mapping. A copy shares its members with the original; a change copies a few of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping {
    members: SharedMap<Member>,
    /// How many were added so far.
    added: u64,
    /// All of it as one value, once somebody has asked for that.
    whole: OnceLock<Arc<Value>>,
}

#[derive(Debug, Clone)]
struct Member {
    /// It was added as this one.
    number: u64,
    value: Arc<Json>,
}

/// In whatever order, as JSON objects are compared.
impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.members.iter(), other.members.iter());
        ours.map(|(key, member)| (key, &member.value)).eq(theirs.map(|(key, member)| (key, &member.value)))
    }
}

impl Mapping {
    pub(super) fn of(members: &Map<String, Value>) -> Self {
        let mut mapping = Self::default();
        for (key, value) in members {
            mapping.put(key, Arc::new(Json(value.clone())));
        }
        mapping
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key).map(|member| &member.value.0)
    }

    /// The members in the order in which they were added.
    pub(super) fn in_order(&self) -> Vec<(&str, &Value)> {
        let mut members: Vec<(&str, &Member)> = self.members.iter().collect();
        members.sort_unstable_by_key(|(_, member)| member.number);
        members.into_iter().map(|(key, member)| (key, &member.value.0)).collect()
    }

    /// All of it as one value.
    pub(super) fn whole(&self) -> &Value {
        self.whole.get_or_init(|| {
            let members = self.in_order().into_iter().map(|(key, value)| (key.to_owned(), value.clone()));
            Arc::new(Value::Object(members.collect()))
        })
    }

    /// Puts a value under a name. One that is known keeps its place in the order.
    pub(super) fn put(&mut self, key: &str, value: Arc<Json>) {
        self.whole.take();
        match self.members.get(key).map(|known| known.number) {
            Some(number) => self.members.insert(key, Member { number, value }),
            None => {
                self.members.insert(key, Member { number: self.added, value });
                self.added += 1;
            }
        }
    }

    /// Puts a value under a name that is not known yet.
    pub(super) fn put_if_new(&mut self, key: &str, value: impl FnOnce() -> Value) {
        if !self.members.contains_key(key) {
            self.put(key, Arc::new(Json(value())));
        }
    }

    /// A value, to be changed.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.whole.take();
        self.members.get_mut(key).map(|member| &mut Arc::make_mut(&mut member.value).0)
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.whole.take();
        self.members.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(mapping: &mut Mapping, key: &str, value: Value) {
        mapping.put(key, Arc::new(Json(value)));
    }

    #[test]
    fn members_are_in_the_order_in_which_they_came() {
        let mut mapping = Mapping::default();
        for key in ["z", "b", "a"] {
            put(&mut mapping, key, json!(1));
        }
        put(&mut mapping, "z", json!(2));
        mapping.remove("b");
        put(&mut mapping, "b", json!(3));
        assert_eq!(mapping.whole().to_string(), r#"{"z":2,"a":1,"b":3}"#);
    }

    #[test]
    fn the_whole_is_what_it_is_now() {
        let mut mapping = Mapping::default();
        assert_eq!(mapping.whole(), &json!({}));
        put(&mut mapping, "a", json!({"b": 1}));
        assert_eq!(mapping.whole(), &json!({"a": {"b": 1}}));
        let copy = mapping.clone();
        mapping.get_mut("a").unwrap()["b"] = json!(2);
        assert_eq!((mapping.whole(), copy.whole()), (&json!({"a": {"b": 2}}), &json!({"a": {"b": 1}})));
        mapping.remove("a");
        assert_eq!(mapping.whole(), &json!({}));
    }
}
