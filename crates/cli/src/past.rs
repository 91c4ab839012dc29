//! An instant in the past, as people say it: as such, or how long ago.

use jiff::SpanRelativeTo;
use pyoco_core::time::Timestamp;
use pyoco_server::{Clock as _, SystemClock};

const WANTED: &str = "an instant like 2026-01-31T00:00:00Z, or how long ago: 90m, 12h or 30d";

/// Reads an instant.
pub fn parse(text: &str) -> Result<Timestamp, String> {
    before(text, SystemClock.now())
}

fn before(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp::from_micros(instant.as_microsecond()));
    }
    // Months and years are not always as long; whoever wants one names the day.
    let span = text.parse::<jiff::Span>().map_err(|_| WANTED)?;
    let ago = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| WANTED)?;
    let ago = i64::try_from(ago.as_micros()).ok().filter(|ago| *ago >= 0).ok_or(WANTED)?;
    now.as_micros().checked_sub(ago).map(Timestamp::from_micros).ok_or_else(|| WANTED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_or_a_time_ago_is_understood_and_nothing_else() {
        let now = Timestamp::from_unix_seconds(1_700_000_000.0).unwrap();
        let seconds = |text| before(text, now).unwrap().as_unix_seconds();
        assert_eq!(seconds("2s"), 1_699_999_998.0);
        assert_eq!(seconds("90m"), 1_699_994_600.0);
        assert_eq!(seconds("1d"), 1_699_913_600.0);
        assert_eq!(seconds("0s"), 1_700_000_000.0);
        assert_eq!(seconds("2023-11-15T09:13:20+09:00"), 1_700_007_200.0);
        for nonsense in ["", "soon", "30", "1mo", "1y", "-5d", "2027-01-31", "99999999999999999999d"] {
            assert_eq!(before(nonsense, now), Err(WANTED.to_owned()), "{nonsense}");
        }
    }
}
