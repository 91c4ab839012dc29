//! Instants and durations as inputs: the core compares and prints times, it never asks for one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An instant, in microseconds since 1970. JSON form: RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970, held inside the years 1 to 9999 that RFC 3339 can write.
    pub fn from_micros(micros: i64) -> Self {
        const LOW: i64 = -62_135_596_800_000_000;
        const HIGH: i64 = 253_402_207_200_000_000;
        Self(micros.clamp(LOW, HIGH))
    }

    /// From unix seconds as the `/runs` surface writes them; `None` for NaN and the like.
    pub fn from_unix_seconds(seconds: f64) -> Option<Self> {
        if !seconds.is_finite() || seconds.abs() > 253_402_207_200.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded to the year 9999 above")]
        Some(Self::from_micros((seconds * 1e6).round() as i64))
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Unix seconds, as the `/runs` surface writes them.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of this century fit in 53 bits")]
    pub fn as_unix_seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This instant, `wait` later.
    #[must_use]
    pub fn after(self, wait: Millis) -> Self {
        let micros = i64::try_from(wait.0).unwrap_or(i64::MAX).saturating_mul(1000);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// Milliseconds from `earlier` to this instant; a clock that went back counts as no time.
    #[expect(clippy::cast_precision_loss, reason = "a duration in microseconds fits in 53 bits")]
    pub fn millis_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0).max(0) as f64 / 1e3
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant:.6}"),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rfc3339;
        impl serde::de::Visitor<'_> for Rfc3339 {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 instant")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                let instant: jiff::Timestamp = text.parse().map_err(E::custom)?;
                Ok(Timestamp::from_micros(instant.as_microsecond()))
            }
        }
        deserializer.deserialize_str(Rfc3339)
    }
}

/// A span of time in whole milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// From seconds as users write them; `None` for negative, NaN and longer than a hundred years.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        if !(0.0..=3.2e9).contains(&seconds) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
        Some(Self((seconds * 1e3).round() as u64))
    }

    /// Seconds, for messages.
    #[expect(clippy::cast_precision_loss, reason = "a hundred years of milliseconds fit in 53 bits")]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_its_text_form() {
        let instant = Timestamp::from_micros(1_700_000_000_123_456);
        let text = serde_json::to_string(&instant).unwrap();
        assert_eq!(text, "\"2023-11-14T22:13:20.123456Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), instant);
    }

    #[test]
    fn an_offset_is_read_as_the_same_instant() {
        let instant: Timestamp = serde_json::from_str("\"2023-11-15T07:13:20+09:00\"").unwrap();
        assert_eq!(instant, Timestamp::from_micros(1_700_000_000_000_000));
    }

    #[test]
    fn nonsense_is_an_error_and_never_a_panic() {
        for text in ["\"\"", "\"yesterday\"", "\"+999999-01-01T00:00:00Z\"", "12", "null"] {
            assert!(serde_json::from_str::<Timestamp>(text).is_err(), "{text}");
        }
        assert_eq!(Timestamp::from_unix_seconds(f64::NAN), None);
        assert_eq!(Timestamp::from_unix_seconds(1e300), None);
        assert_eq!(Millis::from_seconds(-1.0), None);
        assert!(Timestamp::from_micros(i64::MAX).to_string().starts_with("9999"));
    }
}
