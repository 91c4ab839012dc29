//! Files that are fields and a text behind them, as in a mail: METADATA and WHEEL.

use super::unsound::Unsound;

/// The fields of a file in their order, and what stands behind the first empty line.
pub(super) struct Fields<'a> {
    path: &'a str,
    fields: Vec<(&'a str, String)>,
    pub(super) body: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) fn read(path: &'a str, bytes: &'a [u8]) -> Result<Self, Unsound> {
        let text = std::str::from_utf8(bytes).map_err(|_broken| Unsound::entry(path, "is not UTF-8"))?;
        let mut fields: Vec<(&str, String)> = Vec::new();
        let mut rest = text;
        let mut number = 0_usize;
        while !rest.is_empty() {
            number += 1;
            let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = behind;
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() {
                break;
            }
            if line.starts_with([' ', '\t'])
                && let Some((_, value)) = fields.last_mut()
            {
                value.push('\n');
                value.push_str(line);
                continue;
            }
            match line.split_once(':') {
                Some((field, value)) if is_field(field) => fields.push((field, value.trim().to_owned())),
                Some(_) | None => {
                    let what = format!("has a line that is no field of it: line {number}");
                    return Err(Unsound::entry(path, what));
                }
            }
        }
        Ok(Self { path, fields, body: rest })
    }

    /// Every value of a field. Names are compared without regard to capitals, as mail does.
    pub(super) fn all(&self, field: &str) -> impl Iterator<Item = &str> {
        self.fields
            .iter()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(field))
            .map(|(_, value)| value.as_str())
    }

    /// The value of a field that has to be there once.
    pub(super) fn one(&self, field: &str) -> Result<&str, Unsound> {
        let mut all = self.all(field);
        match (all.next(), all.next()) {
            (Some(value), None) if !value.is_empty() => Ok(value),
            (Some(_), Some(_)) => Err(Unsound::entry(self.path, format!("has more than one {field}"))),
            (Some(_) | None, _) => Err(Unsound::entry(self.path, format!("has no {field}"))),
        }
    }
}

fn is_field(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
