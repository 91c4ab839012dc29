//! `Range`: which bytes of a whole are wanted.

use axum::http::{HeaderMap, header};

/// What a request wants of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: nothing was said, or nothing that has to be followed.
    All,
    /// The bytes from the first to the last.
    Part { first: u64, last: u64 },
    /// Bytes that it does not have.
    Nothing,
}

impl Wanted {
    /// What `Range` says about something of so many bytes. One range is followed; several, and what cannot be read, are not.
    pub(crate) fn of(headers: &HeaderMap, length: u64) -> Self {
        let mut ranges = headers.get_all(header::RANGE).iter();
        let (Some(range), None) = (ranges.next(), ranges.next()) else { return Self::All };
        let Some((unit, range)) = range.to_str().ok().and_then(|text| text.split_once('=')) else {
            return Self::All;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
            return Self::All;
        }
        let Some((first, last)) = range.trim().split_once('-') else { return Self::All };
        match (number(first), number(last)) {
            (Number::Absent, Number::Is(count)) => match length.checked_sub(count.min(length)) {
                Some(first) if count > 0 && length > 0 => Self::Part { first, last: length - 1 },
                Some(_) | None => Self::Nothing,
            },
            (Number::Is(first), Number::Is(last)) if last < first => Self::All,
            (Number::Is(first), Number::Is(_) | Number::Absent) if first >= length => Self::Nothing,
            (Number::Is(first), Number::Is(last)) => Self::Part { first, last: last.min(length - 1) },
            (Number::Is(first), Number::Absent) => Self::Part { first, last: length - 1 },
            (Number::Absent, Number::Absent) | (Number::Wrong, _) | (_, Number::Wrong) => Self::All,
        }
    }
}

enum Number {
    Absent,
    Is(u64),
    Wrong,
}

/// A number that is too large to count is as good as any that is.
fn number(text: &str) -> Number {
    match text {
        "" => Number::Absent,
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => Number::Is(text.parse().unwrap_or(u64::MAX)),
        _ => Number::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(ranges: &[&str], length: u64) -> Wanted {
        let mut headers = HeaderMap::new();
        for range in ranges {
            headers.append(header::RANGE, HeaderValue::from_str(range).unwrap());
        }
        Wanted::of(&headers, length)
    }

    #[test]
    fn one_range_is_followed() {
        for (range, first, last) in [
            ("bytes=0-", 0, 9),
            ("bytes=0-0", 0, 0),
            ("bytes=3-5", 3, 5),
            ("Bytes= 3-5 ", 3, 5),
            ("bytes=9-99999999999999999999999", 9, 9),
            ("bytes=-3", 7, 9),
            ("bytes=-99999999999999999999999", 0, 9),
        ] {
            assert_eq!(of(&[range], 10), Wanted::Part { first, last }, "{range}");
        }
    }

    #[test]
    fn bytes_that_are_not_there_are_told_from_words_that_say_nothing() {
        for range in ["bytes=10-", "bytes=10-20", "bytes=99999999999999999999999-", "bytes=-0"] {
            assert_eq!(of(&[range], 10), Wanted::Nothing, "{range}");
        }
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-3",
            "bytes=a-b",
            "bytes=-1-",
            "bytes=+1-2",
            "lines=1-2",
        ] {
            assert_eq!(of(&[range], 10), Wanted::All, "{range}");
        }
        assert_eq!(of(&["bytes=0-1,3-4"], 10), Wanted::All);
        assert_eq!(of(&["bytes=0-1", "bytes=0-1"], 10), Wanted::All);
        assert_eq!(of(&[], 10), Wanted::All);
    }

    #[test]
    fn an_empty_text_has_no_bytes() {
        for range in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
            assert_eq!(of(&[range], 0), Wanted::Nothing, "{range}");
        }
    }
}
