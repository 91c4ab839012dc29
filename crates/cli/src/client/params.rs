//! The parameters of a run out of three sources: a file, a JSON text, single assignments. Later ones win, key by key.

use std::fs::File;
use std::io::{self, Read as _};

use pyoco_flow::{Limits, read_parameters};
use serde_json::{Map, Value};

use super::options::Submit;
use crate::errors::Failure;

/// More than the gateway takes in one request.
const MOST_BYTES: usize = 1 << 20;

/// Puts the sources together.
pub(super) fn gather(options: &Submit) -> Result<Map<String, Value>, Failure> {
    let mut params = Map::new();
    if let Some(path) = options.params_file.as_deref().filter(|path| !path.is_empty()) {
        params.extend(from_file(path)?);
    }
    if let Some(text) = &options.params {
        params.extend(from_json(text)?);
    }
    for text in &options.param {
        let (key, value) = from_assignment(text)?;
        params.insert(key, value);
    }
    Ok(params)
}

/// Reads a file of at most `most_bytes`.
pub(super) fn read_file(path: &str, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most_bytes {
        let text = format!("the file has more than {most_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn from_file(path: &str) -> Result<Map<String, Value>, Failure> {
    let bytes = read_file(path, MOST_BYTES).map_err(|error| {
        Failure::arguments(format!("failed to read --params-file: {path} ({error})"))
            .hint("check file path and read permission")
    })?;
    let example = "file example: {\"x\":1} or x: 1";
    let json_problem = match serde_json::from_slice(&bytes) {
        Ok(Value::Object(params)) => {
            refuse_long_integers(&String::from_utf8_lossy(&bytes), "--params-file")?;
            return Ok(params);
        }
        Ok(_) => {
            let reason = format!("--params-file must contain object at top level ({path})");
            return Err(Failure::arguments(reason).hint(example));
        }
        Err(error) => error,
    };
    read_parameters(&bytes, Limits { max_bytes: MOST_BYTES }).map_err(|error| {
        let place = error.first().line().zip(error.first().column());
        let place = place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default();
        Failure::arguments(format!("--params-file must be JSON/YAML object ({path})"))
            .note("detail", format!("json={json_problem}; yaml={place}{error}"))
            .hint(example)
    })
}

fn from_json(text: &str) -> Result<Map<String, Value>, Failure> {
    let example = "pyoco-client submit --flow-name main --params '{\"x\": 1}'";
    match serde_json::from_str(text) {
        Ok(Value::Object(params)) => {
            refuse_long_integers(text, "--params")?;
            Ok(params)
        }
        Ok(_) => Err(Failure::arguments("--params must be JSON object").hint(example)),
        Err(error) => {
            Err(Failure::arguments(format!("--params must be valid JSON object ({error})")).hint(example))
        }
    }
}

fn from_assignment(text: &str) -> Result<(String, Value), Failure> {
    let Some((key, value)) = text.split_once('=') else {
        let failure = Failure::arguments(format!("--param must be key=value ('{text}')"));
        return Err(failure.hint("pyoco-client submit --param x=1 --param name=alice"));
    };
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() {
        let failure = Failure::arguments(format!("--param key is empty ('{text}')"));
        return Err(failure.hint("pyoco-client submit --param x=1"));
    }
    let value = match serde_json::from_str(value) {
        Ok(json) => {
            refuse_long_integers(value, "--param")?;
            json
        }
        Err(_) => Value::String(value.to_owned()),
    };
    Ok((key.to_owned(), value))
}

/// JSON readers keep integers of more than 64 bits as floats and lose their last digits. Better not to send them.
fn refuse_long_integers(json: &str, source: &str) -> Result<(), Failure> {
    let mut is_in_text = false;
    let mut number = String::new();
    let mut letters = json.chars();
    loop {
        let letter = letters.next();
        match letter {
            Some('\\') if is_in_text => drop(letters.next()),
            Some('"') => is_in_text = !is_in_text,
            Some(digit @ ('0'..='9' | '-' | '+' | '.' | 'e' | 'E')) if !is_in_text => {
                number.push(digit);
                continue;
            }
            Some(_) | None => {}
        }
        let is_whole =
            number.ends_with(|last: char| last.is_ascii_digit()) && !number.contains(['.', 'e', 'E']);
        if is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            let reason = format!("{source} has an integer of more than 64 bits ({number})");
            return Err(Failure::arguments(reason).hint("write it in quotes, as text"));
        }
        number.clear();
        if letter.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assigned(text: &str) -> Value {
        from_assignment(text).unwrap().1
    }

    #[test]
    fn a_value_is_json_where_it_can_be() {
        assert_eq!(assigned("x=1"), json!(1));
        assert_eq!(assigned("x= [1, \"a\"] "), json!([1, "a"]));
        assert_eq!(assigned("x=alice"), json!("alice"));
        assert_eq!(assigned("x=a=b"), json!("a=b"));
        assert_eq!(assigned("x="), json!(""));
        assert_eq!(assigned("x=\"1\""), json!("1"));
        assert_eq!(from_assignment("  k  = v").unwrap(), ("k".to_owned(), json!("v")));
    }

    #[test]
    fn an_assignment_needs_a_key() {
        assert!(from_assignment("x").unwrap_err().to_string().contains("--param must be key=value ('x')"));
        assert!(from_assignment(" =1").unwrap_err().to_string().contains("--param key is empty (' =1')"));
    }

    #[test]
    fn integers_that_would_lose_digits_are_refused() {
        assert!(refuse_long_integers("18446744073709551615", "x").is_ok());
        assert!(refuse_long_integers("-9223372036854775808", "x").is_ok());
        assert!(refuse_long_integers("18446744073709551616", "x").is_err());
        assert!(refuse_long_integers(r#"{"a": [1, -9223372036854775809]}"#, "x").is_err());
        assert!(
            refuse_long_integers(r#"{"99999999999999999999": "99999999999999999999\"9", "b": 1e30}"#, "x")
                .is_ok()
        );
    }
}
