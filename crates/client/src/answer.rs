//! What a call gives back: the value with its type, and the JSON it came as.

use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A value of the contract, with every field that the gateway sent, also those that this version does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    value: T,
    json: Value,
}

impl<T: DeserializeOwned> Answer<T> {
    pub(crate) fn read(json: Value) -> Result<Self, serde_json::Error> {
        Ok(Self { value: T::deserialize(&json)?, json })
    }
}

impl<T> Answer<T> {
    pub(crate) const fn new(value: T, json: Value) -> Self {
        Self { value, json }
    }

    /// The answer as it came.
    pub const fn json(&self) -> &Value {
        &self.json
    }

    /// The answer as it came, by itself.
    pub fn into_json(self) -> Value {
        self.json
    }

    /// The typed value, by itself.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
