//! What options hold as JSON. The parameters of a run or a job, and the input of an execution, come out of three sources: a file, a
//! JSON text, single assignments. Later ones win, key by key.

use std::fs::File;
use std::io::{self, Read as _};

use pyoco_flow::{Limits, read_parameters};
use serde_json::{Map, Value};

use super::options::Submit;
use super::options::command::Input;
use super::options::job;
use crate::errors::Failure;

/// More than the gateway takes in one request.
const MOST_BYTES: usize = 1 << 20;

/// What a command calls its sources.
struct Names {
    command: &'static str,
    file: &'static str,
    json: &'static str,
    json_example: &'static str,
}

const OF_RUN: Names = Names {
    command: "pyoco-client submit",
    file: "--params-file",
    json: "--params",
    json_example: "pyoco-client submit --flow-name main --params '{\"x\": 1}'",
};

const OF_JOB: Names = Names {
    command: "pyoco-client job submit",
    file: "--params-file",
    json: "--params",
    json_example: "pyoco-client job submit --params '{\"x\": 1}'",
};

const OF_EXECUTION: Names = Names {
    command: "pyoco-client exec create GRAPH",
    file: "--input-file",
    json: "--input",
    json_example: "pyoco-client exec create GRAPH --input '{\"x\": 1}'",
};

/// The parameters of a run.
pub(super) fn of_run(options: &Submit) -> Result<Map<String, Value>, Failure> {
    let (file, json) = (options.params_file.as_deref(), options.params.as_deref());
    Ok(gather(file, json, &options.param, &OF_RUN)?.unwrap_or_default())
}

/// The parameters of a job.
pub(super) fn of_job(options: &job::Submit) -> Result<Map<String, Value>, Failure> {
    let (file, json) = (options.params_file.as_deref(), options.params.as_deref());
    Ok(gather(file, json, &options.param, &OF_JOB)?.unwrap_or_default())
}

/// The input of an execution, if any is given.
pub(super) fn of_execution(options: &Input) -> Result<Option<Map<String, Value>>, Failure> {
    let (file, json) = (options.input_file.as_deref(), options.input.as_deref());
    gather(file, json, &options.param, &OF_EXECUTION)
}

/// A JSON object that an option holds.
pub(super) fn object(
    flag: &'static str,
    text: Option<&String>,
) -> Result<Option<Map<String, Value>>, Failure> {
    let Some(text) = text else { return Ok(None) };
    from_json(text, flag, &format!("{flag} '{{\"x\": 1}}'")).map(Some)
}

/// Any JSON that an option holds; null when it is not given.
pub(super) fn value(flag: &'static str, text: Option<&String>) -> Result<Value, Failure> {
    let Some(text) = text else { return Ok(Value::Null) };
    let value = serde_json::from_str(text).map_err(|error| {
        let failure = Failure::arguments(format!("{flag} must be valid JSON ({error})"));
        failure.hint(format!("{flag} '{{\"x\": 1}}', or for text {flag} '\"text\"'"))
    })?;
    refuse_long_integers(text, flag)?;
    Ok(value)
}

/// Puts the sources together.
fn gather(
    file: Option<&str>,
    json: Option<&str>,
    assignments: &[String],
    names: &Names,
) -> Result<Option<Map<String, Value>>, Failure> {
    let file = file.filter(|path| !path.is_empty());
    if file.is_none() && json.is_none() && assignments.is_empty() {
        return Ok(None);
    }
    let mut params = Map::new();
    if let Some(path) = file {
        params.extend(from_file(path, names.file)?);
    }
    if let Some(text) = json {
        params.extend(from_json(text, names.json, names.json_example)?);
    }
    for text in assignments {
        let (key, value) = from_assignment(text, names.command)?;
        params.insert(key, value);
    }
    Ok(Some(params))
}

/// Reads a file of at most `most_bytes`.
pub(super) fn read_file(path: &str, most_bytes: usize) -> io::Result<Vec<u8>> {
    read(File::open(path)?, most_bytes)
}

/// Reads at most `most_bytes` to the end.
pub(super) fn read(source: impl io::Read, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most_bytes {
        let text = format!("the file has more than {most_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn from_file(path: &str, flag: &'static str) -> Result<Map<String, Value>, Failure> {
    let bytes = read_file(path, MOST_BYTES).map_err(|error| {
        Failure::arguments(format!("failed to read {flag}: {path} ({error})"))
            .hint("check file path and read permission")
    })?;
    let example = "file example: {\"x\":1} or x: 1";
    let json_problem = match serde_json::from_slice(&bytes) {
        Ok(Value::Object(params)) => {
            refuse_long_integers(&String::from_utf8_lossy(&bytes), flag)?;
            return Ok(params);
        }
        Ok(_) => {
            let reason = format!("{flag} must contain object at top level ({path})");
            return Err(Failure::arguments(reason).hint(example));
        }
        Err(error) => error,
    };
    read_parameters(&bytes, Limits { max_bytes: MOST_BYTES }).map_err(|error| {
        let place = error.first().line().zip(error.first().column());
        let place = place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default();
        Failure::arguments(format!("{flag} must be JSON/YAML object ({path})"))
            .note("detail", format!("json={json_problem}; yaml={place}{error}"))
            .hint(example)
    })
}

fn from_json(text: &str, flag: &'static str, example: &str) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(params)) => {
            refuse_long_integers(text, flag)?;
            Ok(params)
        }
        Ok(_) => Err(Failure::arguments(format!("{flag} must be JSON object")).hint(example)),
        Err(error) => {
            Err(Failure::arguments(format!("{flag} must be valid JSON object ({error})")).hint(example))
        }
    }
}

fn from_assignment(text: &str, command: &str) -> Result<(String, Value), Failure> {
    let Some((key, value)) = text.split_once('=') else {
        let failure = Failure::arguments(format!("--param must be key=value ('{text}')"));
        return Err(failure.hint(format!("{command} --param x=1 --param name=alice")));
    };
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() {
        let failure = Failure::arguments(format!("--param key is empty ('{text}')"));
        return Err(failure.hint(format!("{command} --param x=1")));
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
        from_assignment(text, "c").unwrap().1
    }

    #[test]
    fn a_value_is_json_where_it_can_be() {
        assert_eq!(assigned("x=1"), json!(1));
        assert_eq!(assigned("x= [1, \"a\"] "), json!([1, "a"]));
        assert_eq!(assigned("x=alice"), json!("alice"));
        assert_eq!(assigned("x=a=b"), json!("a=b"));
        assert_eq!(assigned("x="), json!(""));
        assert_eq!(assigned("x=\"1\""), json!("1"));
        assert_eq!(from_assignment("  k  = v", "c").unwrap(), ("k".to_owned(), json!("v")));
    }

    #[test]
    fn nothing_given_is_not_an_empty_object() {
        let given =
            |json: Option<&str>, assignments: &[String]| gather(None, json, assignments, &OF_EXECUTION);
        assert_eq!(given(None, &[]).unwrap(), None);
        assert_eq!(given(Some("{}"), &[]).unwrap(), Some(Map::new()));
        let both = given(Some(r#"{"x": 1, "y": 2}"#), &["x=a".to_owned()]).unwrap().unwrap();
        assert_eq!(Value::Object(both), json!({"x": "a", "y": 2}));
        let refused = given(Some("[]"), &[]).unwrap_err().to_string();
        assert!(refused.contains("--input must be JSON object"), "{refused}");
    }

    #[test]
    fn an_option_holds_any_json_or_says_why_not() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(value("--output", None).unwrap(), Value::Null);
        assert_eq!(value("--output", text("[1, null]").as_ref()).unwrap(), json!([1, null]));
        for wrong in ["yes please", "", "123456789012345678901"] {
            let refused = value("--output", text(wrong).as_ref()).unwrap_err().to_string();
            assert!(refused.contains("- reason: --output "), "{refused}");
        }
        assert!(object("--prompt", text("[]").as_ref()).is_err());
        assert_eq!(object("--prompt", None).unwrap(), None);
    }

    #[test]
    fn an_assignment_needs_a_key() {
        assert!(
            from_assignment("x", "c").unwrap_err().to_string().contains("--param must be key=value ('x')")
        );
        assert!(
            from_assignment(" =1", "c").unwrap_err().to_string().contains("--param key is empty (' =1')")
        );
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
