//! A file as it is served: its forms, how long it may be kept, and under which policy a browser has to show it.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use super::PageFile;
use super::encoding::{Encoding, Wishes};
use crate::conditions;

/// Nothing but files of this server, and no script or style that stands in a page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// What every answer of the dashboard says.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// How long a browser may keep a file without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// For ever: other bytes would have another name.
    Always,
    /// For a while.
    Hour,
    /// It asks each time whether it has changed.
    Never,
}

impl Keep {
    /// Of a file by its name. The build puts a hash of eight characters before the ending.
    fn of(name: &str) -> Self {
        let mut parts = name.rsplit('.').skip(1);
        match (parts.next(), parts.next()) {
            _ if name == super::INDEX => Self::Never,
            (Some(hash), Some(_)) if hash.len() == 8 => Self::Always,
            (_, _) => Self::Hour,
        }
    }

    const fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Always => "public, max-age=31536000, immutable",
            Self::Hour => "public, max-age=3600",
            Self::Never => "no-cache",
        })
    }
}

/// A file of the dashboard.
pub(super) struct Document {
    kind: HeaderValue,
    keep: Keep,
    /// The plain one, and those that are smaller.
    forms: Vec<Form>,
}

struct Form {
    encoding: Encoding,
    bytes: Bytes,
    /// Of a file that may change under its name.
    mark: Option<HeaderValue>,
}

impl Document {
    /// A file as it was built.
    pub(super) fn of(file: &PageFile) -> Self {
        let compressed = [(Encoding::Brotli, file.brotli), (Encoding::Gzip, file.gzip)];
        let compressed = compressed.into_iter().filter_map(|(encoding, bytes)| Some((encoding, bytes?)));
        let forms = compressed.chain([(Encoding::Identity, file.plain)]);
        Self::new(file.name, forms.map(|(encoding, bytes)| (encoding, Bytes::from_static(bytes))))
    }

    /// A text that was made here.
    pub(super) fn written(name: &str, text: String) -> Self {
        Self::new(name, [(Encoding::Identity, Bytes::from(text))].into_iter())
    }

    fn new(name: &str, forms: impl Iterator<Item = (Encoding, Bytes)>) -> Self {
        let keep = Keep::of(name);
        let form = |(encoding, bytes)| {
            let mark = (keep != Keep::Always).then(|| mark(&bytes));
            Form { encoding, bytes, mark }
        };
        Self { kind: kind(name), keep, forms: forms.map(form).collect() }
    }

    /// In the form that the client likes best, or nothing if it has that.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let best = Wishes::of(headers).best(self.forms.iter().map(|form| form.encoding));
        let form = self.forms.iter().find(|form| form.encoding == best);
        let Some(Form { encoding, bytes, mark }) = form else { return StatusCode::NOT_FOUND.into_response() };
        let is_known = mark.as_ref().is_some_and(|mark| conditions::is_known(headers, mark));
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let mut response = bytes.clone().into_response();
            response.headers_mut().insert(header::CONTENT_TYPE, self.kind.clone());
            if *encoding != Encoding::Identity {
                let encoding = HeaderValue::from_static(encoding.as_str());
                response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
            }
            response
        };
        let to = response.headers_mut();
        to.extend(HEADERS);
        to.insert(header::CACHE_CONTROL, self.keep.header());
        if let Some(mark) = mark {
            to.insert(header::ETAG, mark.clone());
        }
        if self.forms.len() > 1 {
            to.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        response
    }
}

/// Of what the build makes; anything else is nothing that a browser should show.
fn kind(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => "application/octet-stream",
    })
}

/// The entity tag of these bytes.
fn mark(bytes: &Bytes) -> HeaderValue {
    let digits: String = Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    // Hexadecimal digits can always be a header.
    HeaderValue::try_from(format!("\"{digits}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_a_hash_is_kept_for_ever() {
        for name in ["static/index.DadXONIP.js", "static/Confirm.Cv2Fdh_3.css", "static/icon.Df0K-uR5.svg"] {
            assert_eq!(Keep::of(name), Keep::Always, "{name}");
        }
        for name in ["static/licenses.txt", "static/app.js", "static/a.min.js", "static/12345678.js"] {
            assert_eq!(Keep::of(name), Keep::Hour, "{name}");
        }
        assert_eq!(Keep::of("index.html"), Keep::Never);
    }
}
