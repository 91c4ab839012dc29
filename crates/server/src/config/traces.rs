//! Where traces go: the variables of the OpenTelemetry specification, as far as they are honoured.

use std::fmt;

use super::settings::Settings;

/// Where traces go, and what is said along. It holds secrets, which it does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct TracesConfig {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: the base address.
    pub endpoint: Option<String>,
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`: the whole address.
    pub traces_endpoint: Option<String>,
    /// `OTEL_EXPORTER_OTLP_PROTOCOL`.
    pub protocol: TraceProtocol,
    /// `OTEL_EXPORTER_OTLP_HEADERS`.
    pub headers: Option<String>,
    /// `OTEL_SERVICE_NAME`.
    pub service_name: String,
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub resource_attributes: Option<String>,
}

/// How traces are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceProtocol {
    /// `http/protobuf`.
    Protobuf,
    /// `http/json`.
    Json,
}

impl TracesConfig {
    /// Whether traces go anywhere.
    pub const fn is_on(&self) -> bool {
        self.endpoint.is_some() || self.traces_endpoint.is_some()
    }

    pub(super) fn read(from: &mut Settings) -> Self {
        let endpoint = from.given("OTEL_EXPORTER_OTLP_ENDPOINT");
        let traces_endpoint = from.given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let protocol = match from.text("OTEL_EXPORTER_OTLP_PROTOCOL").as_str() {
            "http/json" => TraceProtocol::Json,
            "http/protobuf" => TraceProtocol::Protobuf,
            // It may be meant for others as long as nothing is sent from here.
            _ => {
                if endpoint.is_some() || traces_endpoint.is_some() {
                    from.mistakes.push(
                        "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json; no other is spoken here"
                            .to_owned(),
                    );
                }
                TraceProtocol::Protobuf
            }
        };
        Self {
            endpoint,
            traces_endpoint,
            protocol,
            headers: from.given("OTEL_EXPORTER_OTLP_HEADERS"),
            service_name: from.text("OTEL_SERVICE_NAME"),
            resource_attributes: from.given("OTEL_RESOURCE_ATTRIBUTES"),
        }
    }
}

impl fmt::Debug for TracesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracesConfig")
            .field("protocol", &self.protocol)
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}
