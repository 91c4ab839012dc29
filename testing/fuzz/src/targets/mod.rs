//! The registry of decoders. A target says what has to hold for any bytes, by panicking when it does not, and whether they were read.

mod http;
mod records;
mod scene;
mod settings;
mod texts;
mod wheels;

use std::path::Path;

/// A decoder, and what has to hold for it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder of samples.
    pub name: &'static str,
    /// Panics when something does not hold for these bytes. Whether they were read, and not refused.
    pub check: fn(&[u8]) -> bool,
    /// So many inputs are tried in `make test`; a decoder that takes longer has fewer.
    pub quick: u64,
    /// Samples that are made, where a file would have to be made again with every change.
    made: fn() -> Vec<Vec<u8>>,
}

/// Every decoder of bytes from outside.
pub const TARGETS: &[Target] = &[
    Target { name: "job-message", check: records::job_message, quick: 40_000, made: records::jobs },
    Target { name: "record", check: records::record, quick: 20_000, made: records::records },
    Target { name: "event", check: records::event, quick: 40_000, made: records::events },
    Target { name: "command", check: records::command, quick: 40_000, made: nothing },
    Target { name: "plan", check: records::plan, quick: 20_000, made: records::plans },
    Target { name: "snapshot", check: records::snapshot, quick: 20_000, made: records::snapshots },
    Target { name: "foreign-run", check: records::foreign_run, quick: 3_000, made: records::snapshots },
    Target { name: "key-record", check: records::key_record, quick: 40_000, made: nothing },
    Target { name: "cursor", check: texts::cursor, quick: 60_000, made: texts::cursors },
    Target { name: "traceparent", check: texts::traceparent, quick: 60_000, made: nothing },
    Target { name: "expression", check: texts::expression, quick: 40_000, made: texts::expressions },
    Target { name: "flow-yaml", check: texts::flow_yaml, quick: 4_000, made: texts::flows },
    Target { name: "parameters", check: texts::parameters, quick: 6_000, made: nothing },
    Target {
        name: "described-flow",
        check: texts::described_flow,
        quick: 10_000,
        made: texts::described_flows,
    },
    Target { name: "wheel-name", check: wheels::name, quick: 40_000, made: nothing },
    Target { name: "wheel-tags", check: wheels::tags, quick: 40_000, made: nothing },
    Target { name: "wheel", check: wheels::wheel, quick: 6_000, made: wheels::made },
    Target { name: "dotenv", check: settings::dotenv, quick: 3_000, made: settings::defaults },
    Target { name: "settings", check: settings::settings, quick: 6_000, made: settings::defaults },
    Target { name: "http", check: http::request, quick: 2_000, made: http::every_route },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

const fn nothing() -> Vec<Vec<u8>> {
    Vec::new()
}

impl Target {
    /// Real inputs: the files of its folder, in the order of their names, and those that are made.
    pub fn samples(&self) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name);
        let mut files: Vec<_> =
            std::fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()).collect();
        files.sort();
        let stored = files.iter().map(|file| std::fs::read(file).unwrap());
        stored.chain((self.made)()).collect()
    }
}
