//! What a setting is: its name, what it may hold, who reads it. The settings themselves stand in `table`.

use std::fmt;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// What it is called.
    pub name: &'static str,
    /// Where the reference shows it.
    pub group: Group,
    /// What it may hold.
    pub kind: Kind,
    /// What counts when it is not given, written as a person would write it. Empty: nothing.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
    /// Who reads it.
    pub readers: &'static [Program],
    /// Where it comes from.
    pub origin: Origin,
}

/// A program, or what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `pyoco-server`.
    Server,
    /// `pyoco-worker`.
    Worker,
    /// `pyoco-server-admin`.
    Admin,
    /// `pyoco-client`.
    Client,
    /// What a task sees.
    Task,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Known from pyoco-server 0.5.1, with the same meaning.
    Known,
    /// Of this product.
    Own,
    /// Of the OpenTelemetry specification.
    OpenTelemetry,
}

/// Parts of the reference, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Where settings come from.
    Files,
    /// The store and its limits.
    Store,
    /// Reaching NATS.
    Nats,
    /// Names of what stands in NATS.
    NatsNames,
    /// The HTTP surface.
    Http,
    /// Runs and their tasks.
    Runs,
    /// Workers.
    Workers,
    /// How long things are kept.
    Retention,
    /// Dead letters.
    DeadLetters,
    /// Log lines, figures and traces.
    Observing,
    /// Wheels.
    Wheels,
    /// The command line.
    Client,
    /// What tasks find in their environment.
    Tasks,
}

/// What a setting may hold. Validation, and what is said about a value that is none, come from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A path of a file or a folder.
    Path,
    /// An address, or several with commas between. What stands before an `@` is not shown.
    Url,
    /// `HOST:PORT`.
    Address,
    /// Any text, which is never shown.
    Secret,
    /// Yes or no.
    Flag,
    /// A number of seconds, 0 or more.
    Seconds,
    /// A number of seconds, more than 0.
    SomeSeconds,
    /// A whole number that is no less than this.
    Whole(i64),
    /// One of these, in any case of letters.
    Choice(&'static [&'static str]),
    /// A tag of runs.
    Tag,
    /// The name of a header.
    Header,
}

impl Variable {
    /// A setting of this product that nothing is said about yet but what it is.
    pub(super) const fn new(name: &'static str, group: Group, kind: Kind, help: &'static str) -> Self {
        Self { name, group, kind, default: "", help, readers: &[], origin: Origin::Own }
    }

    /// What counts when it is not given.
    pub(super) const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// Who reads it.
    pub(super) const fn read_by(mut self, readers: &'static [Program]) -> Self {
        self.readers = readers;
        self
    }

    /// Known from pyoco-server 0.5.1.
    pub(super) const fn known(mut self) -> Self {
        self.origin = Origin::Known;
        self
    }

    /// Of the OpenTelemetry specification.
    pub(super) const fn opentelemetry(mut self) -> Self {
        self.origin = Origin::OpenTelemetry;
        self
    }

    /// Whether its value is never shown.
    pub const fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }

    /// Whether a program reads it.
    pub fn is_read_by(&self, program: Program) -> bool {
        self.readers.contains(&program)
    }

    /// A value as a person may see it.
    pub fn shown(&self, value: &str) -> String {
        match self.kind {
            Kind::Secret => "(set)".to_owned(),
            Kind::Url => without_secrets(value),
            Kind::Text
            | Kind::Path
            | Kind::Address
            | Kind::Flag
            | Kind::Seconds
            | Kind::SomeSeconds
            | Kind::Whole(_)
            | Kind::Choice(_)
            | Kind::Tag
            | Kind::Header => value.to_owned(),
        }
    }

    /// What is wrong when its value is not of its kind. A setting may hold a secret by mistake: only its name is said.
    pub(super) fn mistake(&self) -> String {
        let instead = if self.default.is_empty() {
            "or leave it out".to_owned()
        } else {
            format!("or leave it out for {}", self.default)
        };
        format!("{} must be {}; {instead}", self.name, self.kind)
    }
}

impl fmt::Display for Kind {
    /// What is wanted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Path => f.write_str("a path"),
            Self::Url => {
                f.write_str("an address with a scheme, such as nats://HOST:PORT or http://HOST:PORT")
            }
            Self::Address => f.write_str("HOST:PORT, such as 127.0.0.1:9464"),
            Self::Secret => f.write_str("a secret"),
            Self::Flag => f.write_str("one of 1, true, yes, on, 0, false, no, off"),
            Self::Seconds => f.write_str("a number of seconds, 0 or more"),
            Self::SomeSeconds => f.write_str("a number of seconds, more than 0"),
            Self::Whole(least) => write!(f, "a whole number, {least} or more"),
            Self::Choice(of) => write!(f, "one of {}", of.join(", ")),
            Self::Tag => f.write_str("letters, digits, '_' and '-'"),
            Self::Header => f.write_str("the name of a header"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "pyoco-server",
            Self::Worker => "pyoco-worker",
            Self::Admin => "pyoco-server-admin",
            Self::Client => "pyoco-client",
            Self::Task => "tasks",
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "Where settings come from",
            Self::Store => "The store",
            Self::Nats => "Reaching NATS",
            Self::NatsNames => "What stands in NATS",
            Self::Http => "The HTTP surface",
            Self::Runs => "Runs",
            Self::Workers => "Workers",
            Self::Retention => "How long things are kept",
            Self::DeadLetters => "Dead letters",
            Self::Observing => "Log lines, figures, traces",
            Self::Wheels => "Wheels",
            Self::Client => "The command line",
            Self::Tasks => "What tasks find in their environment",
        })
    }
}

/// Addresses without what stands before an `@` or behind a `?` or `#`.
pub fn without_secrets(urls: &str) -> String {
    let bare = |rest: &str| {
        let (rest, is_cut) = match rest.find(['?', '#']) {
            Some(end) => (rest.get(..end).unwrap_or_default(), true),
            None => (rest, false),
        };
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{host}{}", if is_cut { "?…" } else { "" })
    };
    let shown = |url: &str| match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", bare(rest)),
        None => bare(url),
    };
    urls.split(',').map(|url| shown(url.trim())).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_an_at_sign_or_behind_a_question_mark_is_not_shown() {
        assert_eq!(without_secrets("nats://u:p@a:1, tls://b:2,c@d"), "nats://a:1,tls://b:2,d");
        assert_eq!(without_secrets("https://a/v1?api-key=s@x"), "https://a/v1?…");
    }
}
