//! Every kind of request, counted, and compared with what it did before.

#![allow(clippy::print_stdout, reason = "the counts are what one wants to see")]

mod table;

use std::alloc::System;

use pyoco_work::{Counts, Site, Stream, least};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Samples of each request, of which the least counts.
const SAMPLES: usize = 21;
/// Requests of a sample.
const EACH: usize = 20;
const AT_ONCE: usize = 16;
const CHAIN: usize = 40;
const READERS: usize = 8;
const FEW: usize = 100;
const MANY: usize = 5_000;
const NARROW: usize = 200;
const WIDE: usize = 2_000;
/// Whole runs of wide flows. Each has many steps, so that few are enough.
const WHOLE: usize = 3;

/// One test, because the counters are those of the whole process.
#[tokio::test(flavor = "current_thread")]
async fn no_request_does_more_work_than_it_did() {
    let site = Site::open(CHAIN, &[NARROW, WIDE]).await;
    let mut seen: Vec<(&'static str, Counts)> = Vec::new();

    store(&site, FEW).await;
    let few = list(&site).await;
    seen.push(("GET /runs?limit=50, 100 stored", few));
    seen.push(("POST /runs, alone", submit(&site).await));
    seen.push(("POST /runs, 16 at once, each", submit_at_once(&site).await));
    let waiting = site.submit().await;
    seen.push(("GET /runs/{id}", look(&site, &waiting).await));
    seen.push(("POST /runs/{id}/cancel", cancel(&site).await));
    seen.push(("a run of one task", run(&site, "one", 1, SAMPLES).await));
    seen.push(("a chain of 40, a step", run(&site, "chain", CHAIN, SAMPLES).await));
    let narrow = run(&site, "wide-200", NARROW, WHOLE).await;
    let wide = run(&site, "wide-2000", WIDE, WHOLE).await;
    seen.extend([("200 side by side, a step", narrow), ("2,000 side by side, a step", wide)]);
    let (narrow_run, wide_run) = (site.run("wide-200").await, site.run("wide-2000").await);
    let (narrow_look, wide_look) = (look(&site, &narrow_run).await, look(&site, &wide_run).await);
    seen.extend([("GET /runs/{id}, 200 tasks", narrow_look), ("GET /runs/{id}, 2,000 tasks", wide_look)]);
    let report = report(&site).await;
    seen.push(("a report of progress", report));
    let followed = "an event, to one of 8 readers of /executions/{id}/events/stream";
    let row = |row| format!("row {row}\"");
    seen.push((followed, events(&site, &report, |id| format!("/executions/{id}/events/stream"), row).await));
    let watched = "a change, to one of 8 watchers of /runs/{id}/watch";
    let snapshot = |_| "event: snapshot".to_owned();
    seen.push((
        watched,
        events(&site, &report, |id| format!("/runs/{id}/watch?timeout_sec=600"), snapshot).await,
    ));
    store(&site, MANY).await;
    let many = list(&site).await;
    seen.push(("GET /runs?limit=50, 5,000 stored", many));
    site.close().await;

    for (of, counts) in &seen {
        println!("{of:64} {:.1?}", counts.values());
    }
    println!("{:64} {:?}", "", Counts::NAMES);
    table::must_not_grow(&few, &many);
    table::must_not_widen("a step of a wide flow", &narrow, &wide);
    // The answer is longer; how often memory is taken for it is not.
    let pieces = |counts: &Counts| Counts { allocated: 0.0, ..*counts };
    table::must_not_widen("a look at a wide flow", &pieces(&narrow_look), &pieces(&wide_look));
    table::check(&seen);
}

async fn store(site: &Site, count: usize) {
    for _ in 0..count.div_ceil(AT_ONCE * 4) {
        site.submit_at_once(AT_ONCE * 4).await;
    }
}

async fn submit(site: &Site) -> Counts {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let work = async {
            for _ in 0..EACH {
                site.submit().await;
            }
        };
        samples.push(site.count(EACH, work).await.0);
    }
    least(&samples)
}

async fn submit_at_once(site: &Site) -> Counts {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        samples.push(site.count(AT_ONCE, site.submit_at_once(AT_ONCE)).await.0);
    }
    least(&samples)
}

async fn look(site: &Site, run: &str) -> Counts {
    let path = format!("/runs/{run}");
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let work = async {
            for _ in 0..EACH {
                site.get(&path).await;
            }
        };
        samples.push(site.count(EACH, work).await.0);
    }
    least(&samples)
}

/// Each list comes after a submission, so that its connection has to read every page that it needs: reads are pages then.
async fn list(site: &Site) -> Counts {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        site.submit().await;
        samples.push(site.count(1, site.get("/runs?limit=50")).await.0);
    }
    least(&samples)
}

async fn cancel(site: &Site) -> Counts {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let runs = site.submit_at_once(EACH).await;
        let work = async {
            for run in &runs {
                site.cancel(run).await;
            }
        };
        samples.push(site.count(EACH, work).await.0);
    }
    least(&samples)
}

async fn run(site: &Site, flow: &str, steps: usize, samples_wanted: usize) -> Counts {
    site.run(flow).await;
    let mut samples = Vec::new();
    for _ in 0..samples_wanted {
        samples.push(site.count(steps, site.run(flow)).await.0);
    }
    least(&samples)
}

async fn report(site: &Site) -> Counts {
    let execution = site.execution().await;
    let mut samples = Vec::new();
    for number in 0..SAMPLES {
        let work = async {
            for each in 0..EACH {
                site.report(&execution, number * EACH + each).await;
            }
        };
        samples.push(site.count(EACH, work).await.0);
    }
    least(&samples)
}

/// What a report makes when it is followed, less what it makes alone, for each of those who follow.
async fn events(
    site: &Site,
    alone: &Counts,
    path: impl Fn(&str) -> String,
    wanted: impl Fn(usize) -> String,
) -> Counts {
    let execution = site.execution().await;
    let mut readers: Vec<Stream> = Vec::new();
    for _ in 0..READERS {
        let mut reader = site.follow(&path(&execution)).await;
        // How it stands before anything is reported.
        reader.until("\n\n").await;
        readers.push(reader);
    }
    let mut samples = Vec::new();
    for number in 0..SAMPLES {
        let work = async {
            for each in 0..EACH {
                let row = number * EACH + each;
                site.report(&execution, row).await;
                for reader in &mut readers {
                    reader.until(&wanted(row)).await;
                }
            }
        };
        let followed = site.count(EACH, work).await.0;
        samples.push(followed.less(alone).each(READERS));
    }
    least(&samples)
}
