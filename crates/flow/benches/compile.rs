//! From bytes to a plan: flows of a thousand and of ten thousand tasks, as a chain and as diamonds.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pyoco_flow::{Limits, Loaded, parse};

/// Tasks in a row; every line of the graph links a hundred of them.
fn chain(tasks: usize) -> String {
    let names: Vec<String> = (0..tasks).map(|number| format!("task_{number}")).collect();
    let lines = (0..tasks).step_by(99).map(|start| names[start..(start + 100).min(tasks)].join(" >> "));
    document(&lines.collect::<Vec<_>>(), &names)
}

/// One task, two beside each other, one task, and so on.
fn diamonds(tasks: usize) -> String {
    let names: Vec<String> = (0..tasks).map(|number| format!("task_{number}")).collect();
    let lines: Vec<String> = (0..tasks.saturating_sub(3))
        .step_by(3)
        .map(|at| format!("{} >> ({} & {}) >> {}", names[at], names[at + 1], names[at + 2], names[at + 3]))
        .collect();
    document(&lines, &names)
}

fn document(lines: &[String], names: &[String]) -> String {
    let mut text = format!("flow:\n  graph: |\n    {}\ntasks:\n", lines.join("\n    "));
    for name in names {
        let _ = writeln!(text, "  {name}:\n    callable: 'pkg.module:{name}'");
    }
    text
}

fn compile(source: &str) -> usize {
    let limits = Limits { max_bytes: 8 << 20 };
    let plan =
        parse(source.as_bytes(), limits).and_then(|workflow| workflow.compile("main", &Loaded::default()));
    plan.map_or(0, |plan| plan.root.nodes().len())
}

fn flows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    for tasks in [1_000_usize, 10_000] {
        for (shape, source) in [("chain", chain(tasks)), ("diamonds", diamonds(tasks))] {
            assert!(compile(&source) >= tasks, "the flow must compile");
            group.throughput(Throughput::Elements(tasks as u64));
            group.bench_with_input(BenchmarkId::new(shape, tasks), &source, |bencher, source| {
                bencher.iter(|| compile(black_box(source)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, flows);
criterion_main!(benches);
