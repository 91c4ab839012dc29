//! What one decision and one fold cost. Figures and their reading: docs/performance.md.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pyoco_core::command::Request;
use pyoco_core::decide::{Batch, decide};
use pyoco_core::digest::Digest;
use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::record::Record;
use pyoco_core::state::State;
use pyoco_testkit::*;
use serde_json::json;

/// An execution of `nodes` tasks side by side, all of them ready, the first one running.
fn wide(nodes: usize) -> State {
    let graph = (0..nodes).fold(Graph::new(), |graph, n| graph.task(&format!("t{n}"), external()));
    let mut command = create();
    command.plan = Some(graph.plan());
    let mut execution = Execution::new().given(&caller(), command);
    execution = execution.given(&caller(), start());
    while execution.state().needs_advance() {
        execution = execution
            .given(&pyoco_core::command::Issuer::Scheduler, pyoco_core::command::AdvanceExecution {});
    }
    execution.given(&caller(), start_node("t0")).state().clone()
}

fn commands(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide and apply");
    for nodes in [1, 100, 1000, 10_000] {
        let state = wide(nodes);
        let at = state.updated_at.unwrap();
        let progress = Request::new(caller(), at, progress("t0", 50.0));
        group.bench_with_input(BenchmarkId::new("ReportNodeProgress", nodes), &state, |b, state| {
            b.iter_batched_ref(
                || state.clone(),
                |state| black_box(decide(state, &progress)),
                BatchSize::LargeInput,
            );
        });
        if nodes > 1 {
            let start = Request::new(caller(), at, start_node("t1"));
            group.bench_with_input(BenchmarkId::new("StartNode", nodes), &state, |b, state| {
                b.iter_batched_ref(
                    || state.clone(),
                    |state| black_box(decide(state, &start)),
                    BatchSize::LargeInput,
                );
            });
        }
        let succeed = Request::new(caller(), at, succeed("t0", json!({"rows": 3})));
        group.bench_with_input(BenchmarkId::new("SucceedNode", nodes), &state, |b, state| {
            b.iter_batched_ref(
                || state.clone(),
                |state| black_box(decide(state, &succeed)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// The stored log of a chain of `tasks` tasks, one record a step, and its number of events.
fn chain_log(tasks: usize) -> (Vec<Vec<u8>>, u64) {
    let names: Vec<String> = (0..tasks).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = Graph::chain(&names, &callable()).plan();
    let mut state = State::absent(ExecutionId::new("e-1").unwrap());
    let mut log = Vec::new();
    let mut number = 0_u64;
    let at = pyoco_core::time::Timestamp::from_micros(1_700_000_000_000_000);
    let mut append = |requests: &[Request]| {
        let mut batch = Batch::new(&mut state);
        for request in requests {
            batch.decide(request).unwrap();
        }
        let mut ids = || {
            number += 1;
            EventId::new(&format!("ev-{number}")).unwrap()
        };
        log.push(batch.seal(&mut ids).unwrap().bytes);
    };
    let mut command = create();
    command.start = true;
    append(&[Request::new(caller(), at, command)]);
    append(&[Request::new(worker(0), at, claim("j", Some(&plan)))]);
    append(&[Request::new(worker(1), at, start_node("t0"))]);
    for (n, name) in names.iter().enumerate() {
        let mut step = vec![Request::new(worker(1), at, succeed(name, json!({"rows": n})))];
        step.extend(names.get(n + 1).map(|next| Request::new(worker(1), at, start_node(next))));
        append(&step);
    }
    (log, state.events.0)
}

fn folds(c: &mut Criterion) {
    let mut group = c.benchmark_group("fold");
    group.sample_size(20);
    for tasks in [250, 2500, 10_000] {
        let (log, events) = chain_log(tasks);
        group.throughput(Throughput::Elements(events));
        let id = ExecutionId::new("e-1").unwrap();
        let decode = |bytes: &Vec<u8>| (Record::decode(bytes).unwrap(), Digest::of_bytes(bytes));
        let decoded: Vec<(Record, Digest)> = log.iter().map(decode).collect();
        group.bench_with_input(BenchmarkId::new("events in memory", events), &decoded, |b, records| {
            b.iter(|| {
                let mut state = State::absent(id.clone());
                for (record, hash) in records {
                    state.follow(record, *hash).unwrap();
                }
                black_box(state)
            });
        });
        group.bench_with_input(BenchmarkId::new("stored bytes, chain checked", events), &log, |b, log| {
            b.iter(|| black_box(State::from_log(id.clone(), log.iter().map(Vec::as_slice)).unwrap()));
        });
    }
    group.finish();
}

criterion_group!(benches, commands, folds);
criterion_main!(benches);
