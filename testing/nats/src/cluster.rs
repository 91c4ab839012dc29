//! Servers that know each other.

use std::ops::{Index, IndexMut};

use crate::server::{NatsServer, Options};
use crate::{ports, until};

/// A cluster on loopback. Its servers are `cluster[0]`, `cluster[1]` …
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<NatsServer>,
}

impl Cluster {
    /// Starts so many servers and waits until they have a leader.
    pub fn start(count: usize, options: &Options) -> Self {
        loop {
            if let Some(servers) = launch(count, options) {
                let mut cluster = Self { servers };
                cluster.settle();
                return cluster;
            }
        }
    }

    /// Where clients find them, comma separated.
    pub fn urls(&self) -> String {
        self.servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    /// How many there are, killed ones included.
    #[expect(clippy::len_without_is_empty, reason = "a cluster is never empty")]
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Starts a server again that was killed and waits until all that run are healthy.
    pub fn restart(&mut self, number: usize) {
        self[number].restart_without_waiting();
        self.settle();
    }

    /// Starts all of them again, together: a single one would have nobody to agree with.
    pub fn restart_all(&mut self) {
        self.servers.iter_mut().for_each(NatsServer::restart_without_waiting);
        self.settle();
    }

    fn settle(&mut self) {
        until("the election of a leader", || {
            let mut running = self.servers.iter().filter(|server| server.process_id().is_some());
            running.all(NatsServer::is_healthy).then_some(())
        });
    }
}

impl Index<usize> for Cluster {
    type Output = NatsServer;

    fn index(&self, number: usize) -> &NatsServer {
        &self.servers[number]
    }
}

impl IndexMut<usize> for Cluster {
    fn index_mut(&mut self, number: usize) -> &mut NatsServer {
        &mut self.servers[number]
    }
}

fn launch(count: usize, options: &Options) -> Option<Vec<NatsServer>> {
    let routes: Vec<u16> = (0..count).map(|_| ports::free()).collect();
    let all = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect::<Vec<_>>().join(", ");
    let one = |(number, route): (usize, &u16)| {
        let more = format!(
            "cluster {{ name: pyoco-test\n listen: \"127.0.0.1:{route}\"\n no_advertise: true\n routes: [{all}] }}"
        );
        NatsServer::launch(&format!("n{number}"), ports::free(), options, &more)
    };
    routes.iter().enumerate().map(one).collect()
}
