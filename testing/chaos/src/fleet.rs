//! Everything that runs in a trial, and how each part is taken away and brought back.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pyoco_testing_nats::{Cluster, NatsServer, Options, free_port};

use crate::PATIENCE;
use crate::disk::Disk;
use crate::link::{Link, Weather};
use crate::site::{Process, Site};

/// The stores that a trial may be made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One process with everything, on a folder.
    Sqlite,
    /// Two gateways and two workers on one nats-server.
    Nats,
    /// The same on three.
    Nats3,
}

impl Kind {
    /// As the command line names it.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Sqlite, Self::Nats, Self::Nats3].into_iter().find(|kind| kind.name() == name)
    }

    /// As the command line names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Nats => "nats",
            Self::Nats3 => "nats3",
        }
    }
}

/// What is under the gateways and workers.
#[derive(Debug)]
enum Ground {
    Folder(Option<Disk>),
    One(Box<NatsServer>),
    Three(Cluster),
}

/// Something that can be started again as it was.
#[derive(Debug)]
struct Part {
    name: String,
    role: &'static str,
    arguments: Vec<String>,
    /// Its own ways to the nats-servers.
    links: Vec<Link>,
    /// Where it answers, if it does.
    port: Option<u16>,
    process: Option<Process>,
}

/// All of it.
#[derive(Debug)]
pub struct Fleet {
    /// Where it is.
    pub site: Site,
    /// On which store.
    pub kind: Kind,
    ground: Ground,
    parts: Vec<Part>,
    /// What the parts find in their environment when they are started, beside what is the same for all.
    pub more: Vec<(String, String)>,
}

impl Fleet {
    /// Lays everything out; `disk` is how large the disk of the embedded store is, in MiB. Nothing of ours runs yet.
    pub async fn new(site: Site, kind: Kind, disk: Option<u64>) -> Self {
        let data = site.path("data");
        let options = Options { sync_always: true, ..Options::default() };
        let ground = match kind {
            Kind::Sqlite => Ground::Folder(disk.and_then(|size| Disk::mount(&data, size))),
            Kind::Nats => Ground::One(Box::new(NatsServer::start(&options))),
            Kind::Nats3 => Ground::Three(Cluster::start(3, &options)),
        };
        let mut fleet = Self { site, kind, ground, parts: Vec::new(), more: Vec::new() };
        fleet.site.by = fleet.disk().map(Disk::entrance).unwrap_or_default();
        if kind == Kind::Sqlite {
            let data = fleet.site.path("data/store").to_str().unwrap().to_owned();
            let more = ["--data-dir", &data, "--concurrency", "4", "--task-slots", "2"];
            fleet.add_gateway("server", &more, Vec::new());
            return fleet;
        }
        if kind == Kind::Nats3 {
            fleet.site.env.insert("PYOCO_NATS_REPLICAS".to_owned(), "3".to_owned());
        }
        for name in ["gateway-0", "gateway-1"] {
            let links = fleet.lines().await;
            fleet.add_gateway(name, &["--nats-url", &urls(&links)], links);
        }
        for name in ["worker-0", "worker-1"] {
            let links = fleet.lines().await;
            let mut arguments: Vec<String> = Vec::new();
            let flows = fleet.site.path("flows");
            for argument in ["--nats-url", &urls(&links), "--worker-id", name, "--concurrency", "3"] {
                arguments.push(argument.to_owned());
            }
            arguments.extend(["--task-slots", "2", "--no-wheel-sync", "--flows"].map(str::to_owned));
            arguments.push(flows.to_str().unwrap().to_owned());
            let name = name.to_owned();
            fleet.parts.push(Part { name, role: "worker", arguments, links, port: None, process: None });
        }
        fleet
    }

    fn add_gateway(&mut self, name: &str, more: &[&str], links: Vec<Link>) {
        let port = free_port();
        let flows = self.site.path("flows");
        let mut arguments = vec!["up".to_owned(), "--port".to_owned(), port.to_string()];
        arguments.extend([
            "--no-wheel-sync".to_owned(),
            "--flows".to_owned(),
            flows.to_str().unwrap().to_owned(),
        ]);
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        let (name, port) = (name.to_owned(), Some(port));
        self.parts.push(Part { name, role: "server", arguments, links, port, process: None });
    }

    /// A line to each nats-server.
    async fn lines(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for port in self.nats().iter().map(|server| server.port()) {
            links.push(Link::to(SocketAddr::from(([127, 0, 0, 1], port))).await);
        }
        links
    }

    /// The nats-servers.
    pub fn nats(&self) -> Vec<&NatsServer> {
        match &self.ground {
            Ground::Folder(_) => Vec::new(),
            Ground::One(server) => vec![server],
            Ground::Three(cluster) => (0..cluster.len()).map(|number| &cluster[number]).collect(),
        }
    }

    /// Where they are, without a line of ours in between.
    pub fn nats_urls(&self) -> Vec<String> {
        self.nats().iter().map(|server| server.url()).collect()
    }

    /// The folder of the embedded store, or a copy of it, to look at when nobody uses it any more.
    pub fn data(&self) -> std::path::PathBuf {
        match self.disk() {
            Some(disk) => {
                disk.copy("store", &self.site.path("copy"));
                self.site.path("copy")
            }
            None => self.site.path("data/store"),
        }
    }

    /// The disk that can be filled up, if there is one.
    pub fn disk(&self) -> Option<&Disk> {
        match &self.ground {
            Ground::Folder(disk) => disk.as_ref(),
            Ground::One(_) | Ground::Three(_) => None,
        }
    }

    /// Where the gateways answer.
    pub fn urls(&self) -> Vec<String> {
        self.parts
            .iter()
            .filter_map(|part| part.port)
            .map(|port| format!("http://127.0.0.1:{port}"))
            .collect()
    }

    /// How many gateways and workers there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// What a part is called.
    pub fn name(&self, part: usize) -> &str {
        &self.parts[part].name
    }

    /// Ends a part without a word.
    pub fn kill(&mut self, part: usize) {
        self.parts[part].process = None;
    }

    /// Stops a part where it is, or lets it go on.
    pub fn freeze(&self, part: usize, is_frozen: bool) {
        if let Some(process) = &self.parts[part].process {
            process.signal(if is_frozen { Signal::SIGSTOP } else { Signal::SIGCONT });
        }
    }

    /// Changes the weather between a part and the nats-servers.
    pub fn weather(&self, part: usize, weather: Weather) {
        self.parts[part].links.iter().for_each(|link| link.set(weather));
    }

    /// Ends nats-servers without a word.
    pub fn kill_nats(&mut self, numbers: &[usize]) {
        match &mut self.ground {
            Ground::Folder(_) => {}
            Ground::One(server) => server.kill(),
            Ground::Three(cluster) => numbers.iter().for_each(|number| cluster[*number].kill()),
        }
    }

    /// Starts those again that are not there, and waits until they agree.
    pub fn mend_nats(&mut self) {
        match &mut self.ground {
            Ground::Folder(_) => {}
            Ground::One(server) if server.process_id().is_none() => server.restart(),
            Ground::One(_) => {}
            Ground::Three(cluster) => {
                let gone = (0..cluster.len()).filter(|number| cluster[*number].process_id().is_none());
                match gone.collect::<Vec<_>>()[..] {
                    [] => {}
                    [one] => cluster.restart(one),
                    // A single one would have nobody to agree with.
                    [..] => cluster.restart_all(),
                }
            }
        }
    }

    /// Stops a nats-server where it is, or lets it go on.
    pub fn freeze_nats(&self, number: usize, is_frozen: bool) {
        let servers = self.nats();
        let server = servers[number];
        if server.process_id().is_some() {
            if is_frozen { server.pause() } else { server.resume() }
        }
    }

    /// Whether a part has ended by itself, e.g. at a place to fail at.
    pub fn has_ended(&mut self, part: usize) -> bool {
        self.parts[part].process.as_mut().is_none_or(Process::has_ended)
    }

    /// Starts every part that is not there, and waits until the gateways answer.
    pub async fn mend(&mut self) {
        self.mend_nats();
        for part in 0..self.parts.len() {
            self.mend_part(part);
        }
        self.answering().await;
    }

    /// Starts a part, if it is not there.
    pub fn mend_part(&mut self, part: usize) {
        if self.has_ended(part) {
            let more: Vec<(&str, &str)> = self.more.iter().map(|(name, value)| (&**name, &**value)).collect();
            let Part { name, role, arguments, process, .. } = &mut self.parts[part];
            *process = Some(self.site.start(role, name, arguments, &more));
        }
    }

    /// Waits until every gateway answers.
    pub async fn answering(&mut self) {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(2)).build().unwrap();
        for part in 0..self.parts.len() {
            let Some(port) = self.parts[part].port else { continue };
            let since = Instant::now();
            loop {
                let answer = http.get(format!("http://127.0.0.1:{port}/health")).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    break;
                }
                // It may have been started while the store was away, or come to a place to fail at again.
                if self.has_ended(part) {
                    self.mend_part(part);
                }
                let name = self.parts[part].name.clone();
                assert!(
                    since.elapsed() < PATIENCE,
                    "{name} does not answer: {}",
                    self.site.last_words(&name)
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Stops every part in good order. Says which did not, or not well.
    pub fn stop(&mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        // Workers first, so that nobody waits for a gateway.
        for part in self.parts.iter_mut().rev() {
            let Some(mut process) = part.process.take() else { continue };
            match process.stop() {
                Some(status) if status.success() => {}
                Some(status) => complaints.push(format!("{} ended with {status}", part.name)),
                None => complaints.push(format!("{} does not end", part.name)),
            }
        }
        complaints
    }
}

fn urls(links: &[Link]) -> String {
    links.iter().map(|link| format!("nats://{}", link.address)).collect::<Vec<_>>().join(",")
}
