//! What a gateway answers.

use serde_json::Value;

/// An answer, with its JSON body if it has one.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body; null if there is none.
    pub json: Value,
}

impl Answer {
    /// Reads an answer to its end.
    pub async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let json = match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON ({status}): {text}")),
        };
        Self { status, headers, json }
    }

    /// The body of an answer that has to have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.json);
        self.json
    }

    /// The error of an answer that has to have this status and code. It has a message and details, and nothing else.
    #[track_caller]
    pub fn denied(&self, status: u16, code: &str) -> &Value {
        assert_eq!(self.status, status, "{}", self.json);
        let members =
            |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
        assert_eq!(members(&self.json), Some(vec!["error".to_owned()]), "{}", self.json);
        let error = &self.json["error"];
        let mut names = members(error).unwrap_or_default();
        names.sort();
        assert_eq!(names, ["code", "details", "message"], "{error}");
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
        assert!(error["details"].is_object(), "{error}");
        error
    }

    /// The paths of `details.errors` of a 422 with this code.
    #[track_caller]
    pub fn paths(&self, code: &str) -> Vec<String> {
        let error = self.denied(422, code);
        let errors = error["details"]["errors"].as_array().unwrap_or_else(|| panic!("no list: {error}"));
        let path = |problem: &Value| {
            assert!(problem["message"].is_string(), "{problem}");
            problem["path"].as_str().unwrap_or_else(|| panic!("no path: {problem}")).to_owned()
        };
        errors.iter().map(path).collect()
    }

    /// A header.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers)).to_str().unwrap()
    }
}
