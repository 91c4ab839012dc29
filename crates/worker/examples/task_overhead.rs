//! What a task costs beyond its own work: no-op Python tasks through one warm process, and many at once through more.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement, printed for a person"
)]

use std::sync::Arc;
use std::time::Instant;

use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::plan::{Block, Plan, Runner, TaskSpec};
use pyoco_core::state::Context;
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Lines};
use pyoco_store_memory::MemoryStore;
use pyoco_worker::python::PythonOptions;
use pyoco_worker::{Call, End, LocalRuntime, Runtime as _, Stop, Urgency};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }
}

const TASKS: &str =
    "def noop():\n    pass\n\n\ndef add(a=1, b=2):\n    return a + b\n\n\ndef talk():\n    print('hello')\n";

fn runtime(folder: &std::path::Path, hosts: usize) -> Arc<LocalRuntime> {
    let mut options = PythonOptions::new(folder.to_owned(), std::env::vars().collect());
    (options.hosts, options.keep_warm) = (hosts, hosts);
    if let Some(python) = std::env::args().nth(1) {
        options.python = python.into();
    }
    let store = Arc::new(MemoryStore::new());
    let lines = Lines::new(store.clone(), u64::MAX);
    Arc::new(LocalRuntime::new(options, lines, store, Arc::new(Noon)))
}

fn call(name: &str) -> Call {
    let task = TaskSpec::new(name, Runner::Callable(format!("tasks:{name}")));
    Call {
        execution: ExecutionId::new("run").unwrap(),
        node: NodeId::new(name).unwrap(),
        attempt: Attempt(1),
        plan: Arc::new(Plan::new("main".to_owned(), vec![task.clone()], Block::default()).unwrap()),
        task,
        context: Context::default(),
        loops: Vec::new(),
        wheels: None,
        trace: None,
    }
}

async fn run(runtime: &LocalRuntime, name: &str, stop: &watch::Sender<Urgency>) {
    let end = runtime.run(call(name), Stop::from(stop.subscribe())).await;
    assert!(matches!(end, End::Succeeded { .. }), "{end:?}");
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tasks.py"), TASKS).unwrap();
    let stop = Arc::new(watch::Sender::new(Urgency::None));

    let one = runtime(folder.path(), 1);
    let begin = Instant::now();
    run(&one, "noop", &stop).await;
    println!("first task, interpreter looked up and started: {:?}", begin.elapsed());
    for name in ["noop", "add", "talk"] {
        run(&one, name, &stop).await;
        let begin = Instant::now();
        const TIMES: u32 = 2000;
        for _ in 0..TIMES {
            run(&one, name, &stop).await;
        }
        println!("{name:5} one after the other, one process: {:?} a task", begin.elapsed() / TIMES);
    }
    one.close().await;

    for hosts in [1, 2, 4, 8] {
        let many = runtime(folder.path(), hosts);
        many.warm_up(None).await.unwrap();
        // Every process imports the module before the clock starts.
        let mut first = JoinSet::new();
        for _ in 0..hosts * 4 {
            let (many, stop) = (many.clone(), stop.clone());
            first.spawn(async move { run(&many, "noop", &stop).await });
        }
        first.join_all().await;
        let slots = Arc::new(Semaphore::new(8));
        let begin = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..400 {
            let (many, stop, slots) = (many.clone(), stop.clone(), slots.clone());
            tasks.spawn(async move {
                let _slot = slots.acquire_owned().await.unwrap();
                run(&many, "noop", &stop).await;
            });
        }
        tasks.join_all().await;
        println!("400 tasks through {hosts} processes, 8 at once: {:?}", begin.elapsed());
        many.close().await;
    }
}
