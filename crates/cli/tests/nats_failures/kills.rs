//! Everything is killed again and again, at random moments, under load: nothing that was accepted is lost, every run ends once,
//! and a task that has succeeded is not run again.

use std::time::{Duration, Instant};

use pyoco_testing_nats::{NatsServer, Options};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use crate::ground::{Ground, Worker, count, free_port, is_soak, random, until};
use crate::load::Load;
use crate::support::Running;
use crate::verdict::judge;
use crate::wire::Wire;

/// What can be killed.
struct Fleet {
    ground: Ground,
    nats: NatsServer,
    port: u16,
    gateway: Option<Running>,
    workers: Vec<Option<Worker>>,
}

impl Fleet {
    fn start() -> Self {
        let nats = NatsServer::start(&Options::default());
        let ground = Ground::new(&nats.url());
        let mut fleet = Self { ground, nats, port: free_port(), gateway: None, workers: vec![None, None] };
        fleet.mend(false);
        fleet
    }

    /// Starts what is not there, the servers first: nothing of ours starts without them.
    fn mend(&mut self, nats_too: bool) {
        if nats_too {
            self.nats.restart();
        }
        self.gateway.get_or_insert_with(|| self.ground.gateway_on(self.port));
        for (number, worker) in self.workers.iter_mut().enumerate() {
            worker.get_or_insert_with(|| self.ground.worker(&format!("w{number}"), "default", 2));
        }
    }

    /// Waits until more runs have completed than are in work at once: a run whose worker is lost five times in a row without any
    /// progress is failed on purpose, and that is another test's matter.
    async fn progress(&self) {
        let gateway = self.gateway.as_ref().unwrap();
        let before = count(gateway, "COMPLETED").await;
        until("progress", async || (count(gateway, "COMPLETED").await >= before + 5).then_some(())).await;
    }
}

/// What is killed in one round, one thing or several at once.
struct Round {
    gateway: bool,
    worker: Option<usize>,
    nats: bool,
}

/// Every kind so often, in some order, now and then together.
fn rounds(each: usize, random: &mut ChaCha8Rng) -> Vec<Round> {
    let mut left = [each; 3];
    let mut rounds = Vec::new();
    while left.iter().any(|left| *left > 0) {
        let mut now = left.map(|left| left > 0 && random.random_bool(0.4));
        if now.iter().all(|now| !now) {
            now[left.iter().position(|left| *left > 0).unwrap()] = true;
        }
        for (left, now) in left.iter_mut().zip(now) {
            *left -= usize::from(now);
        }
        let [gateway, worker, nats] = now;
        rounds.push(Round { gateway, worker: worker.then(|| random.random_range(0..2)), nats });
    }
    rounds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_accepted_is_lost_when_worker_gateway_and_nats_are_killed_at_random() {
    let mut random = random("kills");
    let each = if is_soak() { 100 } else { 8 };
    let mut fleet = Fleet::start();
    let url = format!("http://127.0.0.1:{}", fleet.port);
    let gateways = vec![url; 4];
    let mut load = Load::start(&gateways, &fleet.ground.ledger_path(), Duration::from_millis(60));
    let rounds = rounds(each, &mut random);
    for round in &rounds {
        fleet.progress().await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..200))).await;
        if let Some(worker) = round.worker {
            fleet.workers[worker] = None;
        }
        if round.gateway {
            fleet.gateway.take().unwrap().kill();
        }
        if round.nats {
            fleet.nats.kill();
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..300))).await;
        fleet.mend(round.nats);
    }
    until("enough load", async || (load.accepted().len() >= 150).then_some(())).await;
    let accepted = load.stop().await;
    let wire = Wire::connect(&fleet.nats.url()).await;
    let since = Instant::now();
    let verdict = judge(&wire, &accepted, &fleet.ground).await;
    let (rounds, asked, settling) = (rounds.len(), load.asked(), since.elapsed());
    eprintln!("kills: {rounds} rounds, {asked} submissions, quiet after {settling:?}: {verdict:?}");
    assert_eq!(verdict.accepted, accepted.len());
}
