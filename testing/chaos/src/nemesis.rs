//! What goes wrong, and when, by a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::fleet::{Fleet, Kind};
use crate::link::Weather;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// A server, gateway or worker is killed.
    Kill,
    /// All of them are, at once.
    KillAll,
    /// One is stopped for longer than a lease, and goes on.
    Freeze,
    /// The Python processes of the workers are killed.
    KillHosts,
    /// A nats-server is killed.
    KillNats,
    /// Two of three are.
    KillTwoNats,
    /// All of them are.
    KillAllNats,
    /// A nats-server is stopped, and goes on.
    FreezeNats,
    /// Connections between one part and NATS break.
    Cut,
    /// Nothing arrives between one part and NATS, and nobody says so.
    Silence,
    /// What is sent between one part and NATS takes long.
    Slow,
    /// The disk is full.
    FillDisk,
    /// The clock jumps, forward or back, and stays there for a while.
    JumpClock,
}

impl Blow {
    /// What a summary calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::KillAll => "kill all",
            Self::Freeze => "stop and go on",
            Self::KillHosts => "kill Python",
            Self::KillNats => "kill NATS",
            Self::KillTwoNats => "kill two NATS",
            Self::KillAllNats => "kill all NATS",
            Self::FreezeNats => "stop NATS",
            Self::Cut => "cut",
            Self::Silence => "silence",
            Self::Slow => "slow",
            Self::FillDisk => "full disk",
            Self::JumpClock => "clock jump",
        }
    }
}

/// What can go wrong with a fleet.
pub fn repertoire(fleet: &Fleet, jumps: bool) -> Vec<Blow> {
    let mut blows = vec![Blow::Kill, Blow::Kill, Blow::KillAll, Blow::Freeze, Blow::KillHosts];
    match fleet.kind {
        Kind::Sqlite => {}
        Kind::Nats => blows.extend([Blow::KillNats, Blow::FreezeNats, Blow::Cut, Blow::Silence, Blow::Slow]),
        Kind::Nats3 => {
            blows.extend([Blow::KillNats, Blow::KillTwoNats, Blow::KillAllNats, Blow::FreezeNats]);
            blows.extend([Blow::Cut, Blow::Silence, Blow::Slow]);
        }
    }
    blows.extend(fleet.disk().map(|_| Blow::FillDisk));
    blows.extend(jumps.then_some(Blow::JumpClock));
    blows
}

/// Strikes until it is told to stop.
#[derive(Debug)]
pub struct Nemesis {
    random: ChaCha8Rng,
    blows: Vec<Blow>,
    /// How often each came.
    pub struck: BTreeMap<Blow, u64>,
}

impl Nemesis {
    /// One that knows these blows.
    pub fn new(random: ChaCha8Rng, blows: Vec<Blow>) -> Self {
        Self { random, blows, struck: BTreeMap::new() }
    }

    /// One blow, from its beginning to its end: when this returns, everything is there again, though perhaps not well yet.
    pub async fn strike(&mut self, fleet: &mut Fleet) {
        let Some(blow) = self.blows.choose(&mut self.random).copied() else { return };
        *self.struck.entry(blow).or_default() += 1;
        let part = self.random.random_range(0..fleet.parts());
        match blow {
            Blow::Kill => {
                fleet.kill(part);
                self.pass(0..800).await;
            }
            Blow::KillAll => {
                (0..fleet.parts()).for_each(|part| fleet.kill(part));
                self.pass(0..500).await;
            }
            Blow::Freeze => {
                fleet.freeze(part, true);
                self.pass(200..5_000).await;
                fleet.freeze(part, false);
            }
            Blow::KillHosts => {
                for pid in fleet.site.hosts() {
                    // It may have ended by itself.
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
            Blow::KillNats => self.without_nats(fleet, 1).await,
            Blow::KillTwoNats => self.without_nats(fleet, 2).await,
            Blow::KillAllNats => self.without_nats(fleet, 3).await,
            Blow::FreezeNats => {
                let number = self.random.random_range(0..fleet.nats().len());
                fleet.freeze_nats(number, true);
                self.pass(200..5_000).await;
                fleet.freeze_nats(number, false);
            }
            Blow::Cut => self.in_weather(fleet, part, Weather::Cut).await,
            Blow::Silence => self.in_weather(fleet, part, Weather::Silent).await,
            Blow::Slow => {
                let pause = Duration::from_millis(self.random.random_range(10..150));
                self.in_weather(fleet, part, Weather::Slow(pause)).await;
            }
            Blow::FillDisk => {
                if let Some(disk) = fleet.disk() {
                    disk.fill();
                    self.pass(200..2_000).await;
                    disk.free();
                }
            }
            Blow::JumpClock => {
                let micros = self.random.random_range(-3_600_000_000_i64..3_600_000_000);
                let clock = fleet.site.path("clock");
                std::fs::write(&clock, micros.to_string()).unwrap();
                self.pass(500..3_000).await;
                std::fs::remove_file(clock).unwrap();
            }
        }
        fleet.mend_nats();
        (0..fleet.parts()).for_each(|part| fleet.mend_part(part));
    }

    async fn without_nats(&mut self, fleet: &mut Fleet, count: usize) {
        let all = fleet.nats().len();
        let first = self.random.random_range(0..all);
        let numbers: Vec<usize> = (first..first + count.min(all)).map(|number| number % all).collect();
        fleet.kill_nats(&numbers);
        self.pass(0..2_000).await;
    }

    async fn in_weather(&mut self, fleet: &Fleet, part: usize, weather: Weather) {
        fleet.weather(part, weather);
        self.pass(300..5_000).await;
        fleet.weather(part, Weather::Fair);
    }

    /// Lets so many milliseconds pass, about.
    pub async fn pass(&mut self, millis: std::ops::Range<u64>) {
        tokio::time::sleep(Duration::from_millis(self.random.random_range(millis))).await;
    }
}
