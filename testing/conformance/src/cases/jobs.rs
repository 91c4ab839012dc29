//! Cases of the list of jobs and of that of their labels.

use std::sync::Arc;

use pyoco_core::view::RunStatus;
use pyoco_ports::{IndexRow, JobFilter, JobPlace, LabelFilter, Store};

use crate::samples::{at, execution, row, tag, tenant};
use crate::{Subject, Verdict};

/// A label of characters that mean something elsewhere.
const ODD: &str = "'\"\u{0}[%_";

fn texts(labels: &[&str]) -> Vec<String> {
    labels.iter().copied().map(str::to_owned).collect()
}

/// A job of tag `cpu` that changed long after it was created.
fn job(name: &str, version: u64, created: u64, labels: &[&str]) -> IndexRow {
    let mut row = row(name, version, 1_000);
    row.created_at = at(created);
    row.summary.tag = Some(tag("cpu"));
    row.summary.tags = texts(labels);
    row
}

/// The whole list, in pages: any of them may be short.
async fn through(store: &dyn Store, filter: &JobFilter, limit: usize) -> Vec<String> {
    let mut filter = filter.clone();
    let mut names = Vec::new();
    loop {
        let page = store.jobs(&filter, limit).await.unwrap();
        assert!(page.rows.len() <= limit, "{filter:?}");
        names.extend(page.rows.iter().map(|row| row.execution.to_string()));
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => return names,
        }
    }
}

fn all_of(labels: &[&str]) -> JobFilter {
    JobFilter { all_labels: texts(labels), ..JobFilter::default() }
}

fn any_of(labels: &[&str]) -> JobFilter {
    JobFilter { any_labels: texts(labels), ..JobFilter::default() }
}

/// Seven jobs that differ in everything a filter looks at, and a hidden one. What was created last changed first.
fn varied() -> Vec<IndexRow> {
    let mut rows = vec![
        job("j0", 1, 0, &["cpu"]),
        job("j1", 1, 10, &["cpu", "nightly"]),
        job("j2", 1, 20, &[]),
        job("j3", 1, 30, &["nightly", "ünï", "nightly"]),
        job("j4", 1, 40, &["cpu", "nightly", ODD]),
        job("j5", 1, 40, &["cpu"]),
        job("j6", 1, 60, &["gpu", "ünï"]),
        job("hidden", 1, 50, &["cpu", "nightly", "ünï", ODD]),
    ];
    rows[7].hidden = true;
    for number in [1, 4, 7] {
        rows[number].summary.tenant_id = Some(tenant("team"));
    }
    for number in [0, 3, 6] {
        rows[number].summary.status = RunStatus::Failed;
    }
    rows[5].summary.status = RunStatus::Running;
    rows[3].summary.flow_name = "other".to_owned();
    rows[6].summary.tag = None;
    (rows[6].started_at, rows[6].ended_at, rows[6].cancel_requested_at) =
        (Some(at(61)), Some(at(63)), Some(at(62)));
    for (number, row) in (0..).zip(&mut rows) {
        row.updated_at = at(1_000 - number);
    }
    rows
}

async fn filled(subject: &dyn Subject) -> Arc<dyn Store> {
    let store = subject.fresh().await;
    // In an order that is nobody's.
    for number in [3, 7, 0, 6, 2, 5, 1, 4] {
        store.put(varied()[number].clone()).await.unwrap();
    }
    store
}

pub(crate) async fn filter(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    let all = JobFilter::default();
    let team = || Some(tenant("team"));
    let status = |statuses: &[RunStatus]| JobFilter { statuses: statuses.to_vec(), ..JobFilter::default() };
    let cases: Vec<(JobFilter, &[&str])> = vec![
        (all.clone(), &["j6", "j5", "j4", "j3", "j2", "j1", "j0"]),
        (all_of(&["cpu"]), &["j5", "j4", "j1", "j0"]),
        (all_of(&["nightly"]), &["j4", "j3", "j1"]),
        (all_of(&["nightly", "nightly"]), &["j4", "j3", "j1"]),
        (all_of(&["ünï"]), &["j6", "j3"]),
        (all_of(&[ODD]), &["j4"]),
        (all_of(&["cpu", "nightly"]), &["j4", "j1"]),
        (all_of(&["nightly", "cpu", ODD]), &["j4"]),
        (all_of(&["cpu", "ünï"]), &[]),
        (all_of(&["CPU"]), &[]),
        (all_of(&["cp"]), &[]),
        (all_of(&[""]), &[]),
        (all_of(&["cpu", "none"]), &[]),
        (any_of(&["cpu"]), &["j5", "j4", "j1", "j0"]),
        (any_of(&["gpu", "nightly", "none"]), &["j6", "j4", "j3", "j1"]),
        (any_of(&["none", "neither"]), &[]),
        (JobFilter { any_labels: texts(&["ünï", "cpu"]), ..all_of(&["nightly"]) }, &["j4", "j3", "j1"]),
        (JobFilter { any_labels: texts(&["ünï", ODD]), ..all_of(&["cpu"]) }, &["j4"]),
        (status(&[RunStatus::Failed]), &["j6", "j3", "j0"]),
        (status(&[RunStatus::Failed, RunStatus::Running, RunStatus::Failed]), &["j6", "j5", "j3", "j0"]),
        (status(&[RunStatus::Cancelled]), &[]),
        (JobFilter { all_labels: texts(&["cpu"]), ..status(&[RunStatus::Failed]) }, &["j0"]),
        (JobFilter { any_labels: texts(&["ünï", "gpu"]), ..status(&[RunStatus::Failed]) }, &["j6", "j3"]),
        (JobFilter { flow: Some("other".to_owned()), ..all.clone() }, &["j3"]),
        (JobFilter { flow: Some("main".to_owned()), ..all_of(&["nightly"]) }, &["j4", "j1"]),
        (JobFilter { flow: Some("OTHER".to_owned()), ..all.clone() }, &[]),
        (JobFilter { tenant: team(), ..all.clone() }, &["j4", "j1"]),
        (JobFilter { tenant: team(), ..all_of(&["cpu"]) }, &["j4", "j1"]),
        (JobFilter { tenant: team(), ..all_of(&[ODD, "cpu"]) }, &["j4"]),
        (JobFilter { tenant: team(), ..any_of(&["gpu", ODD]) }, &["j4"]),
        (JobFilter { tenant: team(), ..status(&[RunStatus::Pending]) }, &["j4", "j1"]),
        (JobFilter { tenant: team(), ..status(&[RunStatus::Failed]) }, &[]),
        (JobFilter { tenant: Some(tenant("nobody")), ..all.clone() }, &[]),
        // Neither instant itself.
        (JobFilter { created_after: Some(at(30)), ..all.clone() }, &["j6", "j5", "j4"]),
        (JobFilter { created_before: Some(at(40)), ..all.clone() }, &["j3", "j2", "j1", "j0"]),
        (
            JobFilter { created_after: Some(at(0)), created_before: Some(at(40)), ..all_of(&["nightly"]) },
            &["j3", "j1"],
        ),
        (JobFilter { created_after: Some(at(10)), ..any_of(&["cpu", "nightly"]) }, &["j5", "j4", "j3"]),
        (JobFilter { created_before: Some(at(60)), ..status(&[RunStatus::Failed]) }, &["j3", "j0"]),
        (JobFilter { created_after: Some(at(0)), ..status(&[RunStatus::Failed]) }, &["j6", "j3"]),
        (JobFilter { created_after: Some(at(40)), created_before: Some(at(40)), ..all.clone() }, &[]),
    ];
    for (filter, wanted) in cases {
        for limit in [100, 2, 1] {
            assert_eq!(through(&*store, &filter, limit).await, wanted, "{filter:?}");
        }
    }
    // A row is shown as it was put.
    let first = store.jobs(&all, 1).await.unwrap();
    assert_eq!(first.rows, [varied()[6].clone()]);
    // A cursor may be of a job that is not there, and farther up than the filter reaches.
    let cursor = Some(JobPlace { created_at: at(35), execution: execution("gone") });
    let behind = JobFilter { cursor: cursor.clone(), ..all_of(&["nightly"]) };
    assert_eq!(through(&*store, &behind, 9).await, ["j3", "j1"]);
    let behind = JobFilter { cursor, created_before: Some(at(30)), ..all.clone() };
    assert_eq!(through(&*store, &behind, 9).await, ["j2", "j1", "j0"]);
    changes(&*store).await;
    Verdict::Passed
}

/// Jobs are shown as they are now.
async fn changes(store: &dyn Store) {
    let has =
        async |name: &str, label: &str| through(store, &all_of(&[label]), 9).await.contains(&name.to_owned());
    // Labels come and go, and the status changes nothing about them.
    for (version, labels, status) in [
        (2, &["cpu", "new"][..], RunStatus::Pending),
        (3, &["cpu", "new"], RunStatus::Running),
        (4, &["new"], RunStatus::Running),
        (5, &["cpu"], RunStatus::Completed),
        (6, &[], RunStatus::Completed),
        (7, &["new", "new", "cpu"], RunStatus::Completed),
    ] {
        let mut row = job("j0", version, 0, labels);
        row.summary.status = status;
        store.put(row).await.unwrap();
        for label in ["cpu", "new"] {
            assert_eq!(has("j0", label).await, labels.contains(&label), "{version} {label}");
        }
        let filter = JobFilter { statuses: vec![status], ..JobFilter::default() };
        assert!(through(store, &filter, 9).await.contains(&"j0".to_owned()), "{version}");
    }
    // What is older than the row changes none of it.
    store.put(job("j0", 6, 70, &["older"])).await.unwrap();
    assert!(has("j0", "new").await && !has("j0", "older").await);
    // Another tag is another label, if that is all it has.
    let mut other = job("j0", 8, 0, &["gpu"]);
    other.summary.tag = Some(tag("gpu"));
    store.put(other).await.unwrap();
    assert!(has("j0", "gpu").await && !has("j0", "cpu").await);
    // Hidden, and shown again.
    let mut hidden = job("j0", 9, 0, &["cpu", "new"]);
    hidden.hidden = true;
    store.put(hidden).await.unwrap();
    for filter in [JobFilter::default(), all_of(&["cpu"]), any_of(&["new", "gpu"])] {
        assert!(!through(store, &filter, 9).await.contains(&"j0".to_owned()), "{filter:?}");
    }
    store.put(job("j0", 10, 0, &["cpu", "new"])).await.unwrap();
    assert!(has("j0", "new").await);
    // Of another tenant, and created at another time, as no job should be.
    let mut moved = job("j0", 11, 45, &["cpu"]);
    moved.summary.tenant_id = Some(tenant("team"));
    store.put(moved).await.unwrap();
    let team = JobFilter { tenant: Some(tenant("team")), ..all_of(&["cpu"]) };
    assert_eq!(through(store, &team, 9).await, ["j0", "j4", "j1"]);
    assert_eq!(through(store, &JobFilter::default(), 9).await, ["j6", "j0", "j5", "j4", "j3", "j2", "j1"]);
    // It was never accepted.
    store.forget(&execution("j0")).await.unwrap();
    for filter in [JobFilter::default(), all_of(&["cpu"]), team] {
        assert!(!through(store, &filter, 9).await.contains(&"j0".to_owned()), "{filter:?}");
    }
}

const STATUSES: [RunStatus; 3] = [RunStatus::Pending, RunStatus::Completed, RunStatus::Failed];

pub(crate) async fn pages(subject: &dyn Subject) -> Verdict {
    for (filter, size) in [
        (JobFilter::default(), 24),
        (all_of(&["even"]), 12),
        (all_of(&["cpu", "even"]), 12),
        (all_of(&["third", "even"]), 4),
        (any_of(&["third", "even"]), 16),
        (JobFilter { statuses: vec![RunStatus::Failed], ..JobFilter::default() }, 8),
        (JobFilter { statuses: vec![RunStatus::Failed, RunStatus::Pending], ..all_of(&["even"]) }, 8),
        (JobFilter { created_before: Some(at(5)), ..any_of(&["third", "even"]) }, 13),
    ] {
        one_by_one(subject, filter, size).await;
    }
    Verdict::Passed
}

/// A job of many, of which several share an instant, so that the id has to decide.
fn one_of_many(number: u64, version: u64) -> IndexRow {
    let mut labels = vec!["cpu"];
    labels.extend(number.is_multiple_of(2).then_some("even"));
    labels.extend(number.is_multiple_of(3).then_some("third"));
    let mut job = job(&format!("j{number:02}"), version, number / 4, &labels);
    let status = STATUSES.into_iter().cycle().nth(usize::try_from(number).unwrap());
    job.summary.status = status.unwrap();
    job
}

/// Reads a whole list in pages while jobs come and change.
async fn one_by_one(subject: &dyn Subject, mut filter: JobFilter, size: usize) {
    let store = subject.fresh().await;
    for number in 0..24 {
        store.put(one_of_many(number, 1)).await.unwrap();
    }
    let whole = through(&*store, &filter, 100).await;
    assert_eq!(whole.len(), size, "{filter:?}");
    assert!(whole.is_sorted_by(|one, other| one > other), "{whole:?}");
    let mut paged = Vec::new();
    let mut round = 0;
    loop {
        let page = store.jobs(&filter, 3).await.unwrap();
        paged.extend(page.rows.iter().map(|row| row.execution.to_string()));
        // One comes, which is newer than the cursor; others change, which keeps them where they are.
        let mut new = job(&format!("new{round}"), 1, 99, &["cpu", "even", "third"]);
        new.summary.status = RunStatus::Failed;
        store.put(new).await.unwrap();
        for number in [3, 10] {
            let mut changed = one_of_many(number, 2 + round);
            changed.updated_at = at(2_000 + round);
            changed.summary.heartbeat_at = Some(1.5);
            store.put(changed).await.unwrap();
        }
        round += 1;
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(paged, whole, "{filter:?}");
}

async fn labels_of(store: &dyn Store, filter: &LabelFilter, limit: usize) -> Vec<(String, u64)> {
    let mut filter = filter.clone();
    let mut labels = Vec::new();
    loop {
        let page = store.labels(&filter, limit).await.unwrap();
        assert!(page.labels.len() <= limit, "{filter:?}");
        labels.extend(page.labels);
        match page.next {
            Some(next) => filter.after = Some(next),
            None => return labels,
        }
    }
}

pub(crate) async fn labels(subject: &dyn Subject) -> Verdict {
    let store = filled(subject).await;
    let more =
        [("j7", &["cp", "cpu", "CPU", "cpu2", "ünï", "c%"][..]), ("j8", &["c%", "日本語 のタグ", "日本"])];
    for (name, labels) in more {
        store.put(job(name, 1, 70, labels)).await.unwrap();
    }
    let all = LabelFilter::default();
    let prefix = |prefix: &str| LabelFilter { prefix: Some(prefix.to_owned()), ..LabelFilter::default() };
    let after = |after: &str, filter: LabelFilter| LabelFilter { after: Some(after.to_owned()), ..filter };
    let team = LabelFilter { tenant: Some(tenant("team")), ..all.clone() };
    let whole: &[(&str, u64)] = &[
        (ODD, 1),
        ("CPU", 1),
        ("c%", 2),
        ("cp", 1),
        ("cpu", 5),
        ("cpu2", 1),
        ("gpu", 1),
        ("nightly", 3),
        ("ünï", 3),
        ("日本", 1),
        ("日本語 のタグ", 1),
    ];
    let cases: Vec<(LabelFilter, &[(&str, u64)])> = vec![
        (all.clone(), whole),
        (prefix(""), whole),
        (prefix("cp"), &[("cp", 1), ("cpu", 5), ("cpu2", 1)]),
        (prefix("c%"), &[("c%", 2)]),
        (prefix("日本"), &[("日本", 1), ("日本語 のタグ", 1)]),
        (prefix("日本語"), &[("日本語 のタグ", 1)]),
        (prefix("none"), &[]),
        (after("cpu", all.clone()), &whole[5..]),
        (after("cpx", all.clone()), &whole[6..]),
        (after("日本語 のタグ", all.clone()), &[]),
        (after("cp", prefix("cp")), &[("cpu", 5), ("cpu2", 1)]),
        // Before all of them, and behind.
        (after("a", prefix("cp")), &[("cp", 1), ("cpu", 5), ("cpu2", 1)]),
        (after("d", prefix("cp")), &[]),
        (team.clone(), &[(ODD, 1), ("cpu", 2), ("nightly", 2)]),
        (LabelFilter { prefix: Some("n".to_owned()), ..team.clone() }, &[("nightly", 2)]),
        (LabelFilter { tenant: Some(tenant("nobody")), ..all.clone() }, &[]),
    ];
    for (filter, wanted) in cases {
        let wanted: Vec<(String, u64)> =
            wanted.iter().map(|(label, jobs)| ((*label).to_owned(), *jobs)).collect();
        for limit in [100, 2] {
            assert_eq!(labels_of(&*store, &filter, limit).await, wanted, "{filter:?}");
        }
    }
    // The counts follow the jobs: labels change, a job is hidden, shown again, and taken back.
    let count = async |label: &str, filter: &LabelFilter| {
        let labels = labels_of(&*store, filter, 100).await;
        labels.into_iter().find(|(found, _)| found == label).map(|(_, jobs)| jobs)
    };
    let put = async |version, labels: &[&str], hidden| {
        let mut row = job("j1", version, 10, labels);
        row.summary.tenant_id = Some(tenant("team"));
        row.hidden = hidden;
        store.put(row).await.unwrap();
    };
    for (version, labels, hidden, wanted) in [
        (2, &["nightly", "new"][..], false, [(Some(4), Some(1)), (Some(1), Some(1))]),
        (3, &["nightly", "new"], false, [(Some(4), Some(1)), (Some(1), Some(1))]),
        (4, &["cpu", "new", "new"], true, [(Some(4), Some(1)), (None, None)]),
        (5, &["cpu"], false, [(Some(5), Some(2)), (None, None)]),
        (1, &["new"], false, [(Some(5), Some(2)), (None, None)]),
        (6, &[], false, [(Some(4), Some(1)), (None, None)]),
    ] {
        put(version, labels, hidden).await;
        let found = [
            (count("cpu", &all).await, count("cpu", &team).await),
            (count("new", &all).await, count("new", &team).await),
        ];
        assert_eq!(found, wanted, "{version}");
    }
    store.forget(&execution("j4")).await.unwrap();
    assert_eq!(
        (count("cpu", &all).await, count(ODD, &all).await, count("cpu", &team).await),
        (Some(3), None, None)
    );
    Verdict::Passed
}
