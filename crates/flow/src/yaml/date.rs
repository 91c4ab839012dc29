//! Dates and times of YAML 1.1: recognised, checked as Python's `datetime` does, printed as ISO 8601.

/// A date, or a date with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Moment {
    year: u32,
    month: u32,
    day: u32,
    time: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Time {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// Minutes east of UTC; `None`: local, without a zone.
    offset: Option<i32>,
}

/// Reads one after the other; every method fails without moving on bad input.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    }

    fn one_of(&mut self, wanted: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        wanted.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    fn blanks(&mut self) -> usize {
        let count = self.0.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.0 = &self.0[count..];
        count
    }
}

/// Whether the text has the shape of a timestamp, and then the moment, if there is such a one.
pub(crate) fn parse(text: &str) -> Option<Result<Moment, &'static str>> {
    let moment = short(text).or_else(|| long(text))?;
    Some(moment.checked())
}

/// `2024-01-02`.
fn short(text: &str) -> Option<Moment> {
    let mut at = Cursor(text.as_bytes());
    let year = at.digits(4, 4)?;
    at.one_of(b"-")?;
    let month = at.digits(2, 2)?;
    at.one_of(b"-")?;
    let day = at.digits(2, 2)?;
    at.0.is_empty().then_some(Moment { year, month, day, time: None })
}

/// `2024-1-2t3:04:05.6 -7`: one or two digits, `T` or blanks before the time, an optional zone.
fn long(text: &str) -> Option<Moment> {
    let mut at = Cursor(text.as_bytes());
    let year = at.digits(4, 4)?;
    at.one_of(b"-")?;
    let month = at.digits(1, 2)?;
    at.one_of(b"-")?;
    let day = at.digits(1, 2)?;
    if at.one_of(b"Tt").is_none() && at.blanks() == 0 {
        return None;
    }
    let hour = at.digits(1, 2)?;
    at.one_of(b":")?;
    let minute = at.digits(2, 2)?;
    at.one_of(b":")?;
    let second = at.digits(2, 2)?;
    let micros = at.one_of(b".").map_or(0, |_| fraction(&mut at));
    let had_blanks = at.blanks() > 0;
    let offset = match at.one_of(b"Z+-") {
        Some(b'Z') => Some(0),
        Some(sign) => {
            let hours = at.digits(1, 2)?;
            let minutes = if at.one_of(b":").is_some() { at.digits(2, 2)? } else { 0 };
            let total = i32::try_from(hours * 60 + minutes).ok()?;
            Some(if sign == b'-' { -total } else { total })
        }
        None if had_blanks => return None,
        None => None,
    };
    let time = Time { hour, minute, second, micros, offset };
    at.0.is_empty().then_some(Moment { year, month, day, time: Some(time) })
}

/// Any number of digits, of which six count.
fn fraction(at: &mut Cursor<'_>) -> u32 {
    let count = at.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut micros = 0;
    for place in 0..6 {
        let digit = at.0.get(place).filter(|_| place < count).map_or(0, |digit| u32::from(digit - b'0'));
        micros = micros * 10 + digit;
    }
    at.0 = &at.0[count..];
    micros
}

impl Moment {
    fn checked(self) -> Result<Self, &'static str> {
        if !(1..=12).contains(&self.month) {
            return Err("month must be in 1..12");
        }
        if self.year == 0 {
            return Err("year 0 is out of range");
        }
        if self.day == 0 || self.day > days_in(self.year, self.month) {
            return Err("day is out of range for month");
        }
        if let Some(time) = self.time {
            if time.hour > 23 {
                return Err("hour must be in 0..23");
            }
            if time.minute > 59 || time.second > 59 {
                return Err("minutes and seconds must be in 0..59");
            }
            if time.offset.is_some_and(|offset| offset.abs() >= 24 * 60) {
                return Err("a zone must be less than 24 hours from UTC");
            }
        }
        Ok(self)
    }

    /// Python's `repr`, without the zone, which no key of ours has.
    pub(crate) fn repr(&self) -> String {
        let Self { year, month, day, time } = self;
        match time {
            None => format!("datetime.date({year}, {month}, {day})"),
            Some(Time { hour, minute, second, .. }) => {
                format!("datetime.datetime({year}, {month}, {day}, {hour}, {minute}, {second})")
            }
        }
    }

    /// What Python's `isoformat()` gives.
    pub(crate) fn iso(&self) -> String {
        let mut text = format!("{:04}-{:02}-{:02}", self.year, self.month, self.day);
        if let Some(time) = self.time {
            text += &format!("T{:02}:{:02}:{:02}", time.hour, time.minute, time.second);
            if time.micros > 0 {
                text += &format!(".{:06}", time.micros);
            }
            if let Some(offset) = time.offset {
                let sign = if offset < 0 { '-' } else { '+' };
                text += &format!("{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60);
            }
        }
        text
    }
}

const fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_python_prints_them() {
        for (text, iso) in [
            ("2024-01-02", "2024-01-02"),
            ("2024-01-02 03:04:05", "2024-01-02T03:04:05"),
            ("2024-1-2T3:04:05Z", "2024-01-02T03:04:05+00:00"),
            ("2024-01-02t3:04:05.1234567 -5", "2024-01-02T03:04:05.123456-05:00"),
            ("2001-12-14 21:59:43.10 +09:30", "2001-12-14T21:59:43.100000+09:30"),
        ] {
            assert_eq!(parse(text).unwrap().unwrap().iso(), iso);
        }
    }

    #[test]
    fn other_texts_are_not_dates_and_impossible_dates_are_errors() {
        for text in ["2024-1-2", "2024-01-02x", "24-01-02", "2024-01-02 03:04", "2024-01-02 03:04:05 "] {
            assert!(parse(text).is_none(), "{text}");
        }
        for text in
            ["2024-13-01", "2023-02-29", "0000-01-01", "2024-01-02T25:00:00", "2024-01-02T01:00:00+24:00"]
        {
            assert!(parse(text).unwrap().is_err(), "{text}");
        }
    }
}
