//! What becomes of one request on its way to the store.

use std::time::Duration;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// How bad it is. Each number is how many of a thousand requests meet this fate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    /// Refused at once; nothing is done.
    pub(crate) refused: u32,
    /// Never arrives; nobody answers.
    pub(crate) lost: u32,
    /// Done, but the answer is lost.
    pub(crate) unanswered: u32,
    /// Nobody answers in time; it is done later, when the caller has given up.
    pub(crate) late: u32,
    /// An append is refused for a neighbour in flight.
    pub(crate) in_flight: u32,
    /// Slow, there and back.
    pub(crate) slow: u32,
    /// Very slow: longer than somebody who asks is left without an answer.
    pub(crate) very_slow: u32,
    /// A job that is put into the queue stands there twice.
    pub(crate) doubled: u32,
    /// A job that was taken comes to somebody else as well.
    pub(crate) unleased: u32,
    /// A hint that something has changed is not heard.
    pub(crate) unheard: u32,
}

/// A store that breaks its contract. Each of them must be found out: a check that finds nothing wrong there would find nothing anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Some appends are taken whatever version they expect.
    IgnoresTheVersion,
    /// Some records are acknowledged and not stored.
    ForgetsRecords,
    /// Some records are stored twice.
    StoresTwice,
    /// Logs are read without their newest record.
    ReadsOldLogs,
    /// Jobs are not given again when their lease has run out, and nobody says that there is none.
    SwallowsJobs,
}

impl Lie {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::IgnoresTheVersion,
        Self::ForgetsRecords,
        Self::StoresTwice,
        Self::ReadsOldLogs,
        Self::SwallowsJobs,
    ];
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives after this time, and its answer after that.
    Answered { there: Duration, back: Duration },
    /// Refused at once.
    Refused,
    /// It never arrives.
    Lost,
    /// It is done, and nobody hears of it.
    Unanswered { there: Duration },
    /// The caller hears that nobody answered; after this time it is done all the same.
    Late { there: Duration },
    /// Refused for a neighbour in flight.
    InFlight,
}

/// So long a silent server is waited for.
pub(crate) const SILENCE: Duration = Duration::from_millis(900);

impl Weather {
    /// Nothing goes wrong any more.
    pub(crate) const CALM: Self = Self {
        refused: 0,
        lost: 0,
        unanswered: 0,
        late: 0,
        in_flight: 0,
        slow: 0,
        very_slow: 0,
        doubled: 0,
        unleased: 0,
        unheard: 0,
    };

    /// The fate of a request. Only a change can be refused for a neighbour, or be done late.
    pub(crate) fn fate(&self, rng: &mut ChaCha8Rng, is_append: bool) -> Fate {
        if *self == Self::CALM {
            return Fate::Answered { there: Duration::ZERO, back: Duration::ZERO };
        }
        let mut dice = rng.random_range(0..1000);
        let mut falls = |share: u32| {
            let falls = dice < share;
            dice = dice.saturating_sub(share);
            falls && share > 0
        };
        if falls(self.refused) {
            return Fate::Refused;
        }
        if falls(self.lost) {
            return Fate::Lost;
        }
        if falls(self.unanswered) {
            return Fate::Unanswered { there: self.journey(rng) };
        }
        if falls(self.late) {
            return Fate::Late { there: Duration::from_millis(rng.random_range(1..8_000)) };
        }
        if is_append && falls(self.in_flight) {
            return Fate::InFlight;
        }
        Fate::Answered { there: self.journey(rng), back: self.journey(rng) }
    }

    fn journey(&self, rng: &mut ChaCha8Rng) -> Duration {
        let millis = match rng.random_range(0..1000) {
            dice if dice < self.very_slow => rng.random_range(500..5_000),
            dice if dice < self.very_slow + self.slow => rng.random_range(5..400),
            dice if dice < 500 => 0,
            _ => rng.random_range(1..4),
        };
        Duration::from_millis(millis)
    }

    /// Whether this happens now, so many times in a thousand.
    pub(crate) fn strikes(share: u32, rng: &mut ChaCha8Rng) -> bool {
        share > 0 && rng.random_range(0..1000) < share
    }
}
