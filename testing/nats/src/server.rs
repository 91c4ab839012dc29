//! One server: its configuration, its folder and its process.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::process::Process;
use crate::{binary, monitor, ports, until};

/// What a test may ask of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `sync_interval: always`: every write is on the disk before it is answered.
    pub sync_always: bool,
    /// More lines of the configuration file, e.g. `max_payload: 64KB` or `authorization { token: t }`.
    pub conf: String,
}

/// A nats-server with JetStream on loopback. It ends with this value, and with the test process.
#[derive(Debug)]
pub struct NatsServer {
    folder: TempDir,
    port: u16,
    monitor: u16,
    process: Option<Process>,
}

impl NatsServer {
    /// Starts a server on a free port and waits until it can be used.
    pub fn start(options: &Options) -> Self {
        loop {
            if let Some(mut server) = Self::launch("alone", ports::free(), options, "")
                && server.comes_up()
            {
                return server;
            }
        }
    }

    /// Starts the process only. `None` if somebody else was faster with its ports.
    pub(crate) fn launch(name: &str, port: u16, options: &Options, more: &str) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("pyoco-nats-").tempdir().expect("a temporary folder");
        let mut server = Self { folder, port, monitor: ports::free(), process: None };
        let sync = if options.sync_always { "sync_interval: always" } else { "" };
        let conf = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{}\"\n\
             jetstream {{ store_dir: {:?}\n {sync} }}\n{more}\n{}\n",
            server.monitor,
            server.path("data"),
            options.conf
        );
        std::fs::write(server.path("nats.conf"), conf).expect("a configuration file");
        server.run();
        (!server.lost_its_port()).then_some(server)
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The port of `url`.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it tells about itself over HTTP.
    pub fn monitor_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.monitor)
    }

    /// Its process, to look for what it leaves behind.
    pub fn process_id(&self) -> Option<i32> {
        self.process.as_ref().map(Process::id)
    }

    /// Ends it without a word (`kill -9`).
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops it where it is (`SIGSTOP`): connections stay open and nobody answers.
    pub fn pause(&self) {
        self.running().signal(Signal::SIGSTOP);
        until("the stop of a nats-server", || self.running().is_stopped().then_some(()));
    }

    /// Lets it go on (`SIGCONT`).
    pub fn resume(&self) {
        self.running().signal(Signal::SIGCONT);
    }

    /// Starts it again on the same port and folder, and waits until it can be used. One that runs is killed first.
    pub fn restart(&mut self) {
        self.restart_without_waiting();
        assert!(self.comes_up(), "it does not start again: {}", self.log());
    }

    pub(crate) fn restart_without_waiting(&mut self) {
        self.kill();
        self.run();
    }

    /// What it says about itself, e.g. to `/jsz?consumers=true` or `/connz`.
    #[track_caller]
    pub fn ask(&self, path: &str) -> Value {
        match monitor::ask(self.monitor, path) {
            Some((200, answer)) => answer,
            other => panic!("{path} is answered with {other:?}"),
        }
    }

    /// What it has written to its log, over all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Whether it takes requests and, in a cluster, knows who leads it.
    pub(crate) fn is_healthy(&self) -> bool {
        matches!(monitor::ask(self.monitor, "/healthz"), Some((200, _)))
    }

    /// Waits until it is healthy; `false` if another process has its port.
    fn comes_up(&mut self) -> bool {
        until("the start of a nats-server", || {
            if self.lost_its_port() {
                return Some(false);
            }
            self.is_healthy().then_some(true)
        })
    }

    /// Whether it ended because its ports are taken. Any other end is a mistake of the test.
    fn lost_its_port(&mut self) -> bool {
        if !self.process.as_mut().is_some_and(Process::has_ended) {
            return false;
        }
        let log = self.log();
        assert!(log.contains("address already in use"), "the nats-server ended: {log}");
        true
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("a server that was not killed")
    }

    fn run(&mut self) {
        self.process =
            Some(Process::start(binary::nats_server(), &self.path("nats.conf"), &self.path("log")));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
