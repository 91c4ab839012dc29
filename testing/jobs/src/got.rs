//! Answers whose headers and bytes matter.

use pyoco_testing_executions::Site;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer, as it came.
#[derive(Debug, Clone)]
pub struct Got {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
}

impl Got {
    /// A header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|_| panic!("not JSON ({}): {}", self.status, self.text))
    }

    /// The code of a refusal of this status.
    #[track_caller]
    pub fn code(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no code: {}", self.text)).to_owned()
    }
}

/// Asks with a method and headers.
pub async fn ask(site: &Site, method: &str, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = site.client.request(method.parse().unwrap(), site.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Got { status, headers, text: response.text().await.unwrap() }
}

/// Gets with headers.
pub async fn get(site: &Site, path: &str, headers: &[(&str, &str)]) -> Got {
    ask(site, "GET", path, headers).await
}
