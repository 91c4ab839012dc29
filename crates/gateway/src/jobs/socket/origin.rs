//! Where a page is from that opens a WebSocket. Browsers let any page open one and send what the user is known by along, so whoever
//! answers has to look.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use pyoco_core::notice::Notice;

use crate::error::Refusal;

/// Refuses a page of another host. What is no browser says nothing about itself.
pub(super) fn must_be_ours(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_ours = match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            origin.to_str().ok().zip(host).is_some_and(|(origin, host)| is_same(origin, host))
        }
        (Some(_), Some(_)) => false,
    };
    if is_ours {
        return Ok(());
    }
    let detail = "a page of another site must not open this socket";
    Err(Refusal::new(StatusCode::FORBIDDEN, detail).noticed(Notice::InvalidRequest))
}

/// Whether an origin is the host that is asked. The port of its scheme may be left out on either side.
fn is_same(origin: &str, host: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let usual = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        Some(_) | None => return false,
    };
    let Ok(host) = host.parse::<Authority>() else { return false };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(usual);
    origin
        .authority()
        .is_some_and(|origin| origin.host().eq_ignore_ascii_case(host.host()) && port(origin) == port(&host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_same_host_is_ours() {
        for (origin, host) in [
            ("http://localhost:8000", "localhost:8000"),
            ("http://Example.ORG", "example.org"),
            ("https://example.org", "example.org"),
            ("https://example.org", "example.org:443"),
            ("http://example.org:80", "example.org"),
            ("http://[::1]:8000", "[::1]:8000"),
        ] {
            assert!(is_same(origin, host), "{origin} {host}");
        }
    }

    #[test]
    fn any_other_page_is_not() {
        for (origin, host) in [
            ("http://evil.example", "example.org"),
            ("http://localhost:3000", "localhost:8000"),
            ("http://example.org.evil.example", "example.org"),
            ("https://example.org:8443", "example.org"),
            ("null", "example.org"),
            ("file://", "example.org"),
            ("", "example.org"),
            ("http://example.org", ""),
            ("example.org", "example.org"),
        ] {
            assert!(!is_same(origin, host), "{origin} {host}");
        }
    }
}
