//! Where traces go, read from the settings: the address, the headers, and what is said about this process.

use hyper::http::{HeaderMap, HeaderName, HeaderValue, Uri, uri::Scheme};
use percent_encoding::percent_decode_str;

use crate::StartError;
use crate::config::table::variable;
use crate::config::{InvalidConfig, TraceProtocol, TracesConfig};

/// What a base address is followed by, as OTLP says.
const PATH: &str = "v1/traces";
/// The attribute that names a service.
pub(super) const SERVICE_NAME: &str = "service.name";

/// A collector, and what it is told of us.
pub(super) struct Target {
    pub(super) address: Uri,
    pub(super) headers: HeaderMap,
    pub(super) protocol: TraceProtocol,
    /// Attributes of this process.
    pub(super) resource: Vec<(String, String)>,
}

impl Target {
    /// The collector of a configuration; `None` if it names none.
    pub(super) fn of(config: &TracesConfig) -> Result<Option<Self>, StartError> {
        let (name, address) = match (&config.traces_endpoint, &config.endpoint) {
            (Some(whole), _) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", whole.clone()),
            (None, Some(base)) => {
                ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{}/{PATH}", base.trim_end_matches('/')))
            }
            (None, None) => return Ok(None),
        };
        // An address may hold a secret, so it is not repeated.
        let wrong = |text: String| StartError::Config(InvalidConfig(vec![text]));
        let address = address.parse::<Uri>().ok().filter(is_http);
        let address = address.ok_or_else(|| {
            wrong(format!("{name} must be an address, http://HOST:PORT or https://HOST:PORT"))
        })?;
        let headers = match &config.headers {
            Some(text) => headers(text).ok_or_else(|| {
                wrong("OTEL_EXPORTER_OTLP_HEADERS must be name=value, with commas between".to_owned())
            })?,
            None => HeaderMap::new(),
        };
        let resource = resource(config);
        Ok(Some(Self { address, headers, protocol: config.protocol, resource }))
    }

    /// The address without what may be secret.
    pub(super) fn shown(&self) -> String {
        let (scheme, host) = (self.address.scheme_str().unwrap_or_default(), self.address.host());
        let port = self.address.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}{}", host.unwrap_or_default(), self.address.path())
    }
}

fn is_http(address: &Uri) -> bool {
    let is_known = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    address.scheme().is_some_and(is_known) && address.host().is_some_and(|host| !host.is_empty())
}

fn headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(text)? {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        headers.append(HeaderName::try_from(name).ok()?, value);
    }
    Some(headers)
}

/// What is said about this process. As the specification wants it, `OTEL_RESOURCE_ATTRIBUTES` that cannot be read count for nothing,
/// and a name of its own wins over one among them.
fn resource(config: &TracesConfig) -> Vec<(String, String)> {
    let given = config.resource_attributes.as_deref().unwrap_or_default();
    let mut attributes = pairs(given).unwrap_or_else(|| {
        tracing::warn!("OTEL_RESOURCE_ATTRIBUTES cannot be read: name=value, with commas between, is wanted");
        Vec::new()
    });
    let is_named = attributes.iter().any(|(name, _)| name == SERVICE_NAME);
    let default = variable("OTEL_SERVICE_NAME").map(|row| row.default).unwrap_or_default();
    if !(is_named && config.service_name == default) {
        attributes.retain(|(name, _)| name != SERVICE_NAME);
        attributes.insert(0, (SERVICE_NAME.to_owned(), config.service_name.clone()));
    }
    if !attributes.iter().any(|(name, _)| name == "service.version") {
        attributes.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
    }
    attributes
}

/// `name=value` with commas between; values are percent-encoded. `None` if it is anything else.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let given = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    given
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let name = name.trim();
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn target(change: impl FnOnce(&mut TracesConfig)) -> Result<Option<Target>, StartError> {
        let mut config = Config::new().traces;
        change(&mut config);
        Target::of(&config)
    }

    #[test]
    fn without_an_address_nothing_is_sent() {
        assert!(target(|_| {}).unwrap().is_none());
    }

    #[test]
    fn a_base_is_followed_by_the_path_and_a_whole_address_is_not() {
        for base in ["http://collector:4318", "http://collector:4318/"] {
            let found = target(|config| config.endpoint = Some(base.to_owned())).unwrap().unwrap();
            assert_eq!(found.address.to_string(), "http://collector:4318/v1/traces");
        }
        let found = target(|config| {
            config.endpoint = Some("http://else".to_owned());
            config.traces_endpoint = Some("https://u:s3cret@collector/t?k=s3cret".to_owned());
        });
        let found = found.unwrap().unwrap();
        assert_eq!(found.address.path(), "/t");
        assert_eq!(found.shown(), "https://collector/t");
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_being_shown() {
        for wrong in ["collector:4318", "grpc://s3cret", "http://", "s3cret", "/v1/traces"] {
            let error = target(|config| config.traces_endpoint = Some(wrong.to_owned())).err().unwrap();
            assert!(error.to_string().contains("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), "{error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let error = target(|config| {
            config.endpoint = Some("http://collector".to_owned());
            config.headers = Some("s3cret".to_owned());
        });
        let error = error.err().unwrap().to_string();
        assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn headers_and_attributes_are_percent_encoded_pairs() {
        let found = target(|config| {
            config.endpoint = Some("http://collector".to_owned());
            config.headers = Some("Authorization=Basic%20x%3D, x-team = a".to_owned());
            config.resource_attributes =
                Some("deployment.environment.name=a%2Cb,service.name=mine".to_owned());
        });
        let found = found.unwrap().unwrap();
        assert_eq!(found.headers["authorization"], "Basic x=");
        assert_eq!(found.headers["x-team"], "a");
        let of = |name: &str| found.resource.iter().filter(|(key, _)| key == name).collect::<Vec<_>>();
        assert_eq!(of("deployment.environment.name")[0].1, "a,b");
        assert_eq!((of(SERVICE_NAME).len(), of(SERVICE_NAME)[0].1.as_str()), (1, "mine"));
    }

    #[test]
    fn a_name_of_its_own_wins_and_unreadable_attributes_count_for_nothing() {
        let found = |attributes: &str| {
            let found = target(|config| {
                config.endpoint = Some("http://collector".to_owned());
                config.service_name = "own".to_owned();
                config.resource_attributes = Some(attributes.to_owned());
            });
            found.unwrap().unwrap().resource
        };
        assert_eq!(found("service.name=mine")[0], (SERVICE_NAME.to_owned(), "own".to_owned()));
        assert_eq!(found("a=1,b").iter().filter(|(name, _)| name == "a").count(), 0);
    }
}
