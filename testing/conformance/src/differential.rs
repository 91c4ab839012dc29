//! The same random history on two stores gives the same answers.
//!
//! Two forms: stores that are told the time are compared in everything. A store that lives in real time and leaves
//! consequences to its caller is compared in everything that does not depend on when a lease runs out.

use std::collections::BTreeMap;
use std::time::Duration;

use pyoco_core::ids::JobId;
use pyoco_core::time::Millis;
use pyoco_core::view::RunStatus;
use pyoco_ports::{
    Append, AppendError, DeadLetterRecord, Delivery, Durability, Filter, GraphRecord, IndexRow, JobFilter,
    LabelFilter, LogLine, LogStream, LogTerms, Store, WaitFilter, WorkerRecord,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::samples::{
    at, execution, graph, job, key, line, record, report, row, snapshot, tag, tenant, unmarked, wait, worker,
};

const STATUSES: [RunStatus; 4] =
    [RunStatus::Pending, RunStatus::Running, RunStatus::Completed, RunStatus::Cancelled];

/// How long a job that was given back may take until it is there again, in a store that lives in real time.
const SOON: Duration = Duration::from_secs(10);

/// Runs `steps` random operations on both stores and compares every answer. The seed is in every message.
pub async fn differ(one: &dyn Store, other: &dyn Store, seed: u64, steps: usize) {
    compare(Side::new(one, Terms::Told), Side::new(other, Terms::Told), seed, steps).await;
}

/// The same for a store that lives in real time: its leases must be so long that none runs out in between. The ids of jobs,
/// their order across tags, and who carries out the consequences of a record are a store's own.
pub async fn differ_in_real_time(reference: &dyn Store, other: &dyn Store, seed: u64, steps: usize) {
    compare(Side::new(reference, Terms::RealTime), Side::new(other, Terms::RealTime), seed, steps).await;
}

async fn compare(mut left: Side<'_>, mut right: Side<'_>, seed: u64, steps: usize) {
    // Both sides draw the same numbers, so they do the same things.
    let (mut left_dice, mut right_dice) = (ChaCha8Rng::seed_from_u64(seed), ChaCha8Rng::seed_from_u64(seed));
    for step in 0..steps {
        let first = left.step(&mut left_dice, step as u64).await;
        let second = right.step(&mut right_dice, step as u64).await;
        assert_eq!(first, second, "seed {seed}, step {step}");
    }
}

/// What both sides can be held to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terms {
    /// Stores that are told the time.
    Told,
    /// One of them lives in real time.
    RealTime,
}

/// One store, and the deliveries it has given. Job ids are a store's own; they are compared by order of appearance.
struct Side<'a> {
    store: &'a dyn Store,
    terms: Terms,
    deliveries: Vec<Delivery>,
    names: BTreeMap<JobId, usize>,
}

impl<'a> Side<'a> {
    fn new(store: &'a dyn Store, terms: Terms) -> Self {
        Self { store, terms, deliveries: Vec::new(), names: BTreeMap::new() }
    }

    async fn step(&mut self, dice: &mut ChaCha8Rng, now: u64) -> String {
        let name = format!("e{}", dice.random_range(0..5));
        let tag_name = ["cpu", "gpu"][dice.random_range(0..2)];
        match dice.random_range(0..23) {
            0..=3 => self.append(dice, &name, tag_name, now).await,
            4 => format!("{:?}", self.store.enqueue(job(&name, tag_name), at(now)).await.is_ok()),
            5 | 6 => match self.terms {
                Terms::Told => self.take(dice, tag_name, now).await,
                Terms::RealTime => self.take_one_tag(tag_name, dice.random_range(1..4), now).await,
            },
            7 => match self.terms {
                Terms::Told => self.settle(dice, now).await,
                Terms::RealTime => self.settle_in_hand(dice, now).await,
            },
            8 => {
                let mut row = row(&name, dice.random_range(0..9), dice.random_range(0..20));
                row.summary.status = STATUSES[dice.random_range(0..STATUSES.len())];
                row.summary.tag = Some(tag(tag_name));
                row.summary.flow_name = ["main", "other"][dice.random_range(0..2)].to_owned();
                row.workflow_sha256 = dice.random_bool(0.5).then(|| "abc".to_owned());
                row.summary.tenant_id = dice.random_bool(0.5).then(|| tenant("team"));
                row.next_timer = dice.random_bool(0.5).then(|| at(dice.random_range(0..50)));
                row.wants_job = dice.random_bool(0.5);
                row.created_at = at(dice.random_range(0..20)).min(row.updated_at);
                row.summary.tags = labels(dice, tag_name);
                row.hidden = dice.random_bool(0.2);
                row.started_at = dice.random_bool(0.5).then(|| at(dice.random_range(0..20)));
                row.ended_at = dice.random_bool(0.3).then(|| at(dice.random_range(0..20)));
                row.cancel_requested_at = dice.random_bool(0.1).then(|| at(dice.random_range(0..20)));
                if dice.random_bool(0.4) {
                    for node in ["a", "b", "c/1/d"] {
                        if dice.random_bool(0.5) {
                            row.waits.push(wait(node, dice.random_range(0..20)));
                        }
                    }
                    row.has_waited = true;
                }
                self.put(row, dice.random_bool(0.5)).await
            }
            9 | 15 => self.list(dice, tag_name).await,
            16 => self.waits(dice, tag_name).await,
            17 => self.graph(dice, now).await,
            18 | 19 => self.jobs(dice, tag_name).await,
            20 => self.labels(dice).await,
            22 => self.key(dice, now).await,
            10 => {
                let due = self.store.due(at(dice.random_range(0..60)), 3).await.unwrap();
                let runnable = self.store.runnable(&tag(tag_name), 3).await.unwrap();
                let tags = self.store.runnable_tags().await.unwrap();
                let queues = self.store.queues().await.unwrap();
                let whose = dice.random_bool(0.5).then(|| tenant("team"));
                let counts = self.store.counts(whose.as_ref()).await.unwrap();
                let since = at(dice.random_range(0..20));
                let recent = self.store.counts_since(whose.as_ref(), since).await.unwrap();
                format!("{due:?} {runnable:?} {tags:?} {queues:?} {counts:?} {recent:?}")
            }
            11 => {
                let digest = self.store.put_blob(&execution(&name), name.as_bytes()).await.unwrap();
                format!("{digest} {:?}", self.store.get_blob(&digest).await.unwrap())
            }
            12 => {
                let seen = WorkerRecord { hidden: dice.random_bool(0.3), ..report(&name, now) };
                self.store.report(seen).await.unwrap();
                let hidden = self.store.hide(&worker("e1"), dice.random_bool(0.5)).await.unwrap();
                let workers = self.store.workers().await.unwrap();
                match self.terms {
                    Terms::Told => format!("{hidden:?} {workers:?}"),
                    Terms::RealTime => {
                        let workers: Vec<_> = workers.into_iter().map(unmarked).collect();
                        format!("{:?} {workers:?}", hidden.map(unmarked))
                    }
                }
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
        let answer = match self.store.append(append.clone()).await {
            Ok(appended) if appended.left.is_none() => "appended".to_owned(),
            Ok(_) => {
                assert!(self.terms == Terms::RealTime, "these stores do it in one step");
                self.carry_out(append, now).await;
                "appended".to_owned()
            }
            Err(AppendError::Conflict { expected, actual }) => format!("conflict {expected} {actual}"),
            Err(AppendError::Store(error)) => panic!("{error}"),
        };
        format!("{answer} {known:?} {}", self.store.depth(&tag(tag_name)).await.unwrap())
    }

    /// What a store that does only the append leaves to its caller, in the order in which the others do it.
    async fn carry_out(&self, append: Append, now: u64) {
        if append.drop_job {
            self.store.drop_waiting(&append.execution).await.unwrap();
        }
        if let Some(job) = append.enqueue {
            self.store.enqueue(job, at(now)).await.unwrap();
        }
        if let Some(row) = append.row {
            self.put(row, true).await;
        }
    }

    async fn put(&self, row: IndexRow, published: bool) -> String {
        let snapshot = snapshot(&row);
        let done =
            if published { self.store.publish_row(row, snapshot).await } else { self.store.put(row).await };
        format!("{:?}", done.is_ok())
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

    /// Of one tag, in order: the order of jobs of several tags is a store's own.
    async fn take_one_tag(&mut self, tag_name: &str, most: usize, now: u64) -> String {
        let tags = [tag(tag_name)];
        let in_hand = self.deliveries.iter().filter(|delivery| delivery.tag == tags[0]).count() as u64;
        let waiting = self.store.depth(&tags[0]).await.unwrap() - in_hand;
        let taking = async {
            let mut taken: Vec<Delivery> = Vec::new();
            loop {
                let left = most - taken.len();
                taken.extend(
                    self.store.take(&tags, &worker("w"), left, Millis(u64::MAX), at(now)).await.unwrap(),
                );
                // What was put there a moment ago may need a moment.
                if taken.len() == most || taken.len() as u64 >= waiting {
                    return taken;
                }
                self.store.wait(&tags, SOON).await.unwrap();
            }
        };
        let taken = tokio::time::timeout(SOON, taking).await.expect("what waits can be taken");
        let shown = taken.iter().map(described).collect::<Vec<_>>().join(", ");
        self.deliveries.extend(taken);
        format!("{waiting} wait, {shown}")
    }

    /// Settles one that is in hand. One that is given back comes again, behind or before the others of its tag.
    async fn settle_in_hand(&mut self, dice: &mut ChaCha8Rng, now: u64) -> String {
        let (choice, pick) = (dice.random_range(0..4), dice.random::<u32>());
        if self.deliveries.is_empty() {
            return "nothing in hand".to_owned();
        }
        let place = pick as usize % self.deliveries.len();
        match choice {
            0 => {
                let delivery = self.deliveries.remove(place);
                let before = self.store.depth(&delivery.tag).await.unwrap();
                self.store.ack(&delivery).await.unwrap();
                // Nobody waits for it, so it may not have arrived yet where it goes over a line.
                let arrived = async {
                    loop {
                        let depth = self.store.depth(&delivery.tag).await.unwrap();
                        if depth < before || self.terms == Terms::Told {
                            break depth;
                        }
                    }
                };
                let depth = tokio::time::timeout(SOON, arrived).await.expect("what is done is gone");
                format!("ack {depth}")
            }
            1 => {
                let delivery = self.deliveries.remove(place);
                self.store.refuse(&delivery).await.unwrap();
                "refuse".to_owned()
            }
            2 => {
                let delivery = self.deliveries.remove(place);
                self.store.nak(&delivery, Millis(0), at(now)).await.unwrap();
                self.take_until(&delivery, now).await
            }
            _ => {
                let delivery = &self.deliveries[place];
                self.store.extend(delivery, Millis(u64::MAX), at(now)).await.unwrap();
                "extend".to_owned()
            }
        }
    }

    /// Takes everything of a tag until a job that was given back is there again.
    async fn take_until(&mut self, back: &Delivery, now: u64) -> String {
        let taking = async {
            let mut taken: Vec<Delivery> = Vec::new();
            loop {
                let tags = [back.tag.clone()];
                let more =
                    self.store.take(&tags, &worker("w"), 100, Millis(u64::MAX), at(now)).await.unwrap();
                taken.extend(more);
                if taken.iter().any(|delivery| delivery.id == back.id) {
                    break;
                }
                self.store.wait(&tags, SOON).await.unwrap();
            }
            taken
        };
        let mut taken = tokio::time::timeout(SOON, taking).await.expect("what is given back comes again");
        taken.sort_by_key(described);
        let shown = taken.iter().map(described).collect::<Vec<_>>().join(", ");
        self.deliveries.extend(taken);
        shown
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
        let lines = lines.collect();
        let max_bytes = if dice.random_bool(0.2) { 1_000 } else { 1_000_000 };
        let terms = LogTerms { max_bytes, closes: dice.random_bool(0.1) };
        let id = execution(name);
        let written = self.store.write_lines(&id, lines, terms).await.unwrap();
        assert_eq!(self.store.log_end(&id).await.unwrap(), written.end);
        let byte = dice.random_range(0..2_000);
        let place = self.store.line_at(&id, byte).await.unwrap();
        format!("{written:?} {place:?} {:?}", self.store.read_lines(&id, 0, 1_000).await.unwrap())
    }

    /// The whole list, page by page: how much of it is on one page is a store's own.
    async fn jobs(&self, dice: &mut ChaCha8Rng, tag_name: &str) -> String {
        let some_labels = |dice: &mut ChaCha8Rng| -> Vec<String> {
            let count = [0, 0, 1, 2][dice.random_range(0..4)];
            (0..count).map(|_| label(dice, tag_name)).collect()
        };
        let mut filter = JobFilter {
            tenant: dice.random_bool(0.3).then(|| tenant("team")),
            all_labels: some_labels(dice),
            any_labels: some_labels(dice),
            statuses: (0..dice.random_range(0..3))
                .map(|_| STATUSES[dice.random_range(0..STATUSES.len())])
                .collect(),
            flow: dice.random_bool(0.3).then(|| "main".to_owned()),
            created_after: dice.random_bool(0.2).then(|| at(dice.random_range(0..20))),
            created_before: dice.random_bool(0.2).then(|| at(dice.random_range(0..20))),
            cursor: None,
        };
        let mut rows = Vec::new();
        loop {
            let page = self.store.jobs(&filter, 2).await.unwrap();
            rows.extend(page.rows);
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => return format!("{rows:?}"),
            }
        }
    }

    async fn labels(&self, dice: &mut ChaCha8Rng) -> String {
        let mut filter = LabelFilter {
            tenant: dice.random_bool(0.4).then(|| tenant("team")),
            prefix: dice
                .random_bool(0.4)
                .then(|| ["c", "gp", "nightly", ""][dice.random_range(0..4)].to_owned()),
            after: dice.random_bool(0.2).then(|| "cpu".to_owned()),
        };
        let first = self.store.labels(&filter, 2).await.unwrap();
        filter.after.clone_from(&first.next);
        let second = self.store.labels(&filter, 2).await.unwrap();
        format!("{first:?} {second:?}")
    }

    async fn waits(&self, dice: &mut ChaCha8Rng, tag_name: &str) -> String {
        let mut filter = WaitFilter {
            tenant: dice.random_bool(0.4).then(|| tenant("team")),
            label: dice.random_bool(0.5).then(|| label(dice, tag_name)),
            since_before: dice.random_bool(0.4).then(|| at(dice.random_range(0..20))),
            cursor: None,
        };
        let first = self.store.waits(&filter, 2).await.unwrap();
        filter.cursor.clone_from(&first.next);
        let second = self.store.waits(&filter, 2).await.unwrap();
        format!("{first:?} {second:?}")
    }

    async fn graph(&self, dice: &mut ChaCha8Rng, now: u64) -> String {
        let owner = dice.random_bool(0.3).then(|| tenant("team"));
        let id = ["a", "b.c", "ünï"][dice.random_range(0..3)];
        let newest = self.store.graph(owner.as_ref(), id, None).await.unwrap();
        let next = newest.map_or(0, |newest| newest.version) + 1;
        let version = [next, next, next, next - 1, next + 1][dice.random_range(0..5)];
        let put = GraphRecord { tenant: owner.clone(), at: at(now), ..graph(id, version) };
        let put = if dice.random_bool(0.3) { GraphRecord { source: None, ..put } } else { put };
        let was_put = self.store.put_graph(put).await.unwrap();
        let known = self.store.known_graph(owner.as_ref(), id).await.unwrap();
        let older = self.store.graph(owner.as_ref(), id, Some(dice.random_range(0..5))).await.unwrap();
        let after = dice.random_bool(0.5).then_some("a");
        let listed = self.store.graphs(owner.as_ref(), after, dice.random_range(0..4)).await.unwrap();
        format!("{was_put} {known:?} {older:?} {listed:?}")
    }

    /// Revisions are a store's own; which of them may be written over is not.
    async fn key(&self, dice: &mut ChaCha8Rng, now: u64) -> String {
        let id = key(["aaaaaaaa", "AAAAAAAA", "b-b_b-b_"][dice.random_range(0..3)]);
        let known = self.store.key(&id).await.unwrap();
        let revision = known.as_ref().map(|known| known.revision);
        let over = [revision, revision, None, revision.map(|known| known + 1)][dice.random_range(0..4)];
        let was_put = self.store.put_key(&id, now.to_be_bytes().to_vec(), over).await.unwrap();
        let mut listed = self.store.keys().await.unwrap();
        listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let listed: Vec<_> = listed.into_iter().map(|(id, known)| (id, known.record)).collect();
        format!("{was_put} {:?} {listed:?}", known.map(|known| known.record))
    }

    async fn list(&self, dice: &mut ChaCha8Rng, tag_name: &str) -> String {
        let mut filter = Filter {
            statuses: (0..dice.random_range(0..3))
                .map(|_| STATUSES[dice.random_range(0..STATUSES.len())])
                .collect(),
            tag: dice.random_bool(0.4).then(|| tag_name.to_owned()),
            flow: dice.random_bool(0.3).then(|| "main".to_owned()),
            workflow_sha256: dice.random_bool(0.2).then(|| "abc".to_owned()),
            tenant: dice.random_bool(0.3).then(|| tenant("team")),
            updated_after: dice.random_bool(0.3).then(|| at(dice.random_range(0..20))),
            updated_before: dice.random_bool(0.3).then(|| at(dice.random_range(0..20))),
            created_after: dice.random_bool(0.2).then(|| at(dice.random_range(0..20))),
            created_before: dice.random_bool(0.2).then(|| at(dice.random_range(0..20))),
            label: dice.random_bool(0.4).then(|| label(dice, tag_name)),
            cursor: None,
        };
        let first = self.store.list(&filter, 2).await.unwrap();
        filter.cursor = first.next.clone();
        let second = self.store.list(&filter, 2).await.unwrap();
        format!("{first:?} {second:?}")
    }
}

/// The tag alone, as most have it, or others.
fn labels(dice: &mut ChaCha8Rng, tag_name: &str) -> Vec<String> {
    match dice.random_range(0..4) {
        0 | 1 => vec![tag_name.to_owned()],
        2 => Vec::new(),
        _ => (0..dice.random_range(1..4)).map(|_| label(dice, tag_name)).collect(),
    }
}

fn label(dice: &mut ChaCha8Rng, tag_name: &str) -> String {
    [tag_name, "cpu", "nightly"][dice.random_range(0..3)].to_owned()
}

/// A delivery without its id.
fn described(delivery: &Delivery) -> String {
    format!("{} {} {}", delivery.tag, delivery.number, String::from_utf8_lossy(&delivery.body))
}
