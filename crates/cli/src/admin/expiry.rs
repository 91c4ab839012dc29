//! When a key ceases to be good, as people say it: an instant, or a time from now.

use jiff::SpanRelativeTo;
use pyoco_core::time::Timestamp;
use pyoco_server::{Clock as _, SystemClock};

const WANTED: &str = "an instant like 2027-01-31T00:00:00Z, or a time from now like 30d, 12h or 90m";

pub(super) fn parse(text: &str) -> Result<Timestamp, String> {
    from(text, SystemClock.now())
}

fn from(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let micros = match text.parse::<jiff::Timestamp>() {
        Ok(instant) => instant.as_microsecond(),
        Err(_) => {
            // Months and years are not always as long; whoever wants one names the day.
            let span = text.parse::<jiff::Span>().map_err(|_| WANTED)?;
            let wait = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| WANTED)?;
            now.as_micros().saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX))
        }
    };
    let end = Timestamp::from_micros(micros);
    if end > now { Ok(end) } else { Err("that is over already".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_or_a_time_from_now_is_understood_and_nothing_else() {
        let now = Timestamp::from_unix_seconds(1_700_000_000.0).unwrap();
        let seconds = |text| from(text, now).unwrap().as_unix_seconds();
        assert_eq!(seconds("2s"), 1_700_000_002.0);
        assert_eq!(seconds("90m"), 1_700_005_400.0);
        assert_eq!(seconds("30d"), 1_702_592_000.0);
        assert_eq!(seconds("2w"), 1_701_209_600.0);
        assert_eq!(seconds("2023-11-15T09:13:20+09:00"), 1_700_007_200.0);
        for nonsense in ["", "soon", "30", "1mo", "1y", "2027-01-31", "99999999999999999999d"] {
            assert_eq!(from(nonsense, now), Err(WANTED.to_owned()), "{nonsense}");
        }
        for past in ["0s", "-5d", "2020-01-01T00:00:00Z"] {
            assert_eq!(from(past, now), Err("that is over already".to_owned()), "{past}");
        }
    }
}
