//! The same random history on two stores gives the same answers.

use std::collections::BTreeMap;

use pyoco_core::ids::JobId;
use pyoco_core::time::Millis;
use pyoco_core::view::RunStatus;
use pyoco_ports::{
    Append, AppendError, DeadLetterRecord, Delivery, Durability, Filter, LogLine, LogStream, Store,
    WorkerRecord,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::samples::{at, execution, job, line, record, row, tag, tenant, worker};

const STATUSES: [RunStatus; 4] =
    [RunStatus::Pending, RunStatus::Running, RunStatus::Completed, RunStatus::Cancelled];

/// Runs `steps` random operations on both stores and compares every answer. The seed is in every message.
pub async fn differ(one: &dyn Store, other: &dyn Store, seed: u64, steps: usize) {
    let mut left = Side::new(one);
    let mut right = Side::new(other);
    // Both sides draw the same numbers, so they do the same things.
    let (mut left_dice, mut right_dice) = (ChaCha8Rng::seed_from_u64(seed), ChaCha8Rng::seed_from_u64(seed));
    for step in 0..steps {
        let first = left.step(&mut left_dice, step as u64).await;
        let second = right.step(&mut right_dice, step as u64).await;
        assert_eq!(first, second, "seed {seed}, step {step}");
    }
}

/// One store, and the deliveries it has given. Job ids are a store's own; they are compared by order of appearance.
struct Side<'a> {
    store: &'a dyn Store,
    deliveries: Vec<Delivery>,
    names: BTreeMap<JobId, usize>,
}

impl<'a> Side<'a> {
    fn new(store: &'a dyn Store) -> Self {
        Self { store, deliveries: Vec::new(), names: BTreeMap::new() }
    }

    async fn step(&mut self, dice: &mut ChaCha8Rng, now: u64) -> String {
        let name = format!("e{}", dice.random_range(0..5));
        let tag_name = ["cpu", "gpu"][dice.random_range(0..2)];
        match dice.random_range(0..16) {
            0..=3 => self.append(dice, &name, tag_name, now).await,
            4 => format!("{:?}", self.store.enqueue(job(&name, tag_name), at(now)).await.is_ok()),
            5 | 6 => self.take(dice, tag_name, now).await,
            7 => self.settle(dice, now).await,
            8 => {
                let mut row = row(&name, dice.random_range(0..9), dice.random_range(0..20));
                row.summary.status = STATUSES[dice.random_range(0..STATUSES.len())];
                row.summary.tag = Some(tag(tag_name));
                row.summary.flow_name = ["main", "other"][dice.random_range(0..2)].to_owned();
                row.workflow_sha256 = dice.random_bool(0.5).then(|| "abc".to_owned());
                row.summary.tenant_id = dice.random_bool(0.5).then(|| tenant("team"));
                row.next_timer = dice.random_bool(0.5).then(|| at(dice.random_range(0..50)));
                row.wants_job = dice.random_bool(0.5);
                format!("{:?}", self.store.put(row).await.is_ok())
            }
            9 => self.list(dice, tag_name).await,
            10 => {
                let due = self.store.due(at(dice.random_range(0..60)), 3).await.unwrap();
                let runnable = self.store.runnable(&tag(tag_name), 3).await.unwrap();
                let tags = self.store.runnable_tags().await.unwrap();
                let whose = dice.random_bool(0.5).then(|| tenant("team"));
                let counts = self.store.counts(whose.as_ref()).await.unwrap();
                let since = at(dice.random_range(0..20));
                let recent = self.store.counts_since(whose.as_ref(), since).await.unwrap();
                format!("{due:?} {runnable:?} {tags:?} {counts:?} {recent:?}")
            }
            11 => {
                let digest = self.store.put_blob(name.as_bytes()).await.unwrap();
                format!("{digest} {:?}", self.store.get_blob(&digest).await.unwrap())
            }
            12 => {
                let seen = WorkerRecord {
                    worker: worker(&name),
                    seen_at: at(now),
                    hidden: dice.random_bool(0.3),
                    body: b"{}".to_vec(),
                };
                self.store.report(seen).await.unwrap();
                let hidden = self.store.hide(&worker("e1"), dice.random_bool(0.5)).await.unwrap();
                format!("{hidden:?} {:?}", self.store.workers().await.unwrap())
            }
            13 => self.lines(dice, &name, now).await,
            14 => {
                let (after, limit) = (dice.random_range(0..40), dice.random_range(0..20));
                format!("{:?}", self.store.read_lines(&execution(&name), after, limit).await.unwrap())
            }
            _ => {
                let key = format!("k{}", dice.random_range(0..4));
                let letter =
                    DeadLetterRecord { key, tag: tag_name.to_owned(), at: at(now), body: name.into_bytes() };
                self.store.publish(letter).await.unwrap();
                format!(
                    "{:?} {}",
                    self.store.letters(3).await.unwrap(),
                    self.store.count_letters().await.unwrap()
                )
            }
        }
    }

    async fn append(&self, dice: &mut ChaCha8Rng, name: &str, tag_name: &str, now: u64) -> String {
        let known = self.store.read(&execution(name), pyoco_core::ids::Version(0)).await.unwrap();
        let offset = [0_i64, 0, 0, 1, -1][dice.random_range(0..5)];
        let expected = (i64::try_from(known.len()).unwrap() + offset).max(0);
        let mut append: Append = record(name, u64::try_from(expected).unwrap());
        append.durability = if dice.random_bool(0.5) { Durability::Full } else { Durability::Process };
        append.drop_job = dice.random_bool(0.3);
        append.enqueue = dice.random_bool(0.3).then(|| job(name, tag_name));
        append.row = dice.random_bool(0.5).then(|| row(name, append.expected.0 + 1, now));
        let answer = match self.store.append(append).await {
            Ok(appended) => format!("appended {}", appended.consequences_done),
            Err(AppendError::Conflict { expected, actual }) => format!("conflict {expected} {actual}"),
            Err(AppendError::Store(error)) => panic!("{error}"),
        };
        format!("{answer} {known:?} {}", self.store.depth(&tag(tag_name)).await.unwrap())
    }

    async fn take(&mut self, dice: &mut ChaCha8Rng, tag_name: &str, now: u64) -> String {
        let tags = if dice.random_bool(0.5) { vec![tag("cpu"), tag("gpu")] } else { vec![tag(tag_name)] };
        let lease = Millis(dice.random_range(1..30));
        let taken =
            self.store.take(&tags, &worker("w"), dice.random_range(1..4), lease, at(now)).await.unwrap();
        let mut shown = Vec::new();
        for delivery in taken {
            let next = self.names.len();
            let name = *self.names.entry(delivery.id.clone()).or_insert(next);
            shown.push(format!("{name} {} {} {:?}", delivery.tag, delivery.number, delivery.body));
            self.deliveries.push(delivery);
        }
        shown.join(", ")
    }

    async fn settle(&self, dice: &mut ChaCha8Rng, now: u64) -> String {
        let (choice, pick, millis) =
            (dice.random_range(0..3), dice.random::<u32>(), dice.random_range(1..20));
        let Some(delivery) = self.deliveries.get(pick as usize % self.deliveries.len().max(1)) else {
            return "nothing in hand".to_owned();
        };
        match choice {
            0 => self.store.ack(delivery).await.unwrap(),
            1 => self.store.nak(delivery, Millis(millis), at(now)).await.unwrap(),
            _ => self.store.extend(delivery, Millis(millis), at(now)).await.unwrap(),
        }
        format!("{choice}")
    }

    async fn lines(&self, dice: &mut ChaCha8Rng, name: &str, now: u64) -> String {
        let streams = [LogStream::Stdout, LogStream::Stderr, LogStream::Engine];
        let lines = (0..dice.random_range(0..12)).map(|number| LogLine {
            stream: streams[dice.random_range(0..3)],
            ..line(
                ["a", "b"][dice.random_range(0..2)],
                dice.random_range(1..3),
                now,
                &format!("{now}.{number}"),
            )
        });
        self.store.write_lines(&execution(name), lines.collect()).await.unwrap();
        format!("{:?}", self.store.read_lines(&execution(name), 0, 1_000).await.unwrap())
    }

    async fn list(&self, dice: &mut ChaCha8Rng, tag_name: &str) -> String {
        let mut filter = Filter {
            status: dice.random_bool(0.4).then(|| STATUSES[dice.random_range(0..STATUSES.len())]),
            tag: dice.random_bool(0.4).then(|| tag_name.to_owned()),
            flow: dice.random_bool(0.3).then(|| "main".to_owned()),
            workflow_sha256: dice.random_bool(0.2).then(|| "abc".to_owned()),
            tenant: dice.random_bool(0.3).then(|| tenant("team")),
            updated_after: dice.random_bool(0.3).then(|| at(dice.random_range(0..20))),
            ..Filter::default()
        };
        let first = self.store.list(&filter, 2).await.unwrap();
        filter.cursor = first.next.clone();
        let second = self.store.list(&filter, 2).await.unwrap();
        format!("{first:?} {second:?}")
    }
}
