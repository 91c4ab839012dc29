//! Cases of the audit trail.

use pyoco_core::time::Timestamp;
use pyoco_ports::{AuditEntry, AuditFilter, AuditPage, LOOKED_AT, Store, TOGETHER};

use crate::samples::{at, tenant};
use crate::{Subject, Verdict};

fn entry(id: &str, when: Timestamp, action: &str, owner: Option<&str>, target: Option<&str>) -> AuditEntry {
    AuditEntry {
        id: id.to_owned(),
        at: when,
        action: action.to_owned(),
        tenant: owner.map(tenant),
        target: target.map(str::to_owned),
        body: format!(r#"{{"id":"{id}","日本":"\u0000 '; --"}}"#).into_bytes(),
    }
}

/// So many entries, one after another.
fn several(count: usize) -> Vec<AuditEntry> {
    let one = |number: usize| entry(&format!("e-{number:05}"), at(number as u64), "runs.submit", None, None);
    (0..count).map(one).collect()
}

fn all() -> AuditFilter {
    AuditFilter::default()
}

fn ids(page: &AuditPage) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.id.as_str()).collect()
}

/// Every entry of a filter, page by page, and how many pages it took.
async fn walk(store: &dyn Store, filter: &AuditFilter, limit: usize) -> (Vec<AuditEntry>, usize) {
    let (mut found, mut pages, mut filter) = (Vec::new(), 0, filter.clone());
    loop {
        let page = store.audit(&filter, limit).await.unwrap();
        assert!(page.entries.len() <= limit, "no page is longer than was asked for");
        pages += 1;
        found.extend(page.entries);
        let Some(next) = page.next else { return (found, pages) };
        assert_ne!(Some(next), filter.before, "a page goes on behind the one before it");
        filter.before = Some(next);
    }
}

pub(crate) async fn write(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.audit(&all(), 10).await.unwrap(), AuditPage { entries: Vec::new(), next: None });
    store.write_audit(Vec::new()).await.unwrap();
    let entries = vec![
        entry("b", at(2), "api_key.revoke", Some("team"), Some("key-1")),
        entry("a", at(1), "runs.submit", None, None),
        entry("日本 \r\n\0.*>", Timestamp::from_micros(-1), "door.refused", None, Some("日本 \r\n.*>")),
    ];
    store.write_audit(entries.clone()).await.unwrap();
    // A repeat, as after an answer that got lost, also among new ones and twice in one go.
    store.write_audit(vec![entries[1].clone()]).await.unwrap();
    let last = entry("c", at(0), "runs.cancel", None, Some("e-1"));
    store.write_audit(vec![entries[0].clone(), last.clone(), last.clone()]).await.unwrap();
    // In the order of writing, whatever they say about when it was.
    let mut wanted: Vec<AuditEntry> = entries.into_iter().chain([last]).collect();
    wanted.reverse();
    assert_eq!(walk(&*store, &all(), 10).await.0, wanted);
    let many = several(1_000);
    store.write_audit(many.clone()).await.unwrap();
    let page = store.audit(&all(), 1_000).await.unwrap();
    assert_eq!(page.entries, many.into_iter().rev().collect::<Vec<_>>(), "a large batch keeps its order");
    let Some(store) = subject.lose_and_reopen(store).await else { return Verdict::Passed };
    let (found, _) = walk(&*store, &all(), 500).await;
    assert_eq!(found.len(), 1_004);
    assert_eq!(found[1_000..], wanted);
    Verdict::Passed
}

pub(crate) async fn filter(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    let actions = ["runs", "runs.submit", "runs.submit.more", "runs.submit_yaml", "api_key.revoke"];
    let owners = [None, Some("team"), Some("other")];
    let targets = [None, Some("e-1"), Some("e-11")];
    let mut entries = Vec::new();
    for (number, action) in actions.iter().enumerate() {
        for owner in owners {
            for target in targets {
                let id = format!("{action} {owner:?} {target:?}");
                // Not in the order of their instants.
                entries.push(entry(&id, at((number as u64 * 7) % 5), action, owner, target));
            }
        }
    }
    store.write_audit(entries.clone()).await.unwrap();
    let wanted_actions = [None, Some("runs"), Some("runs.submit"), Some("run"), Some("api_key"), Some("")];
    let instants = [None, Some(at(0)), Some(at(2)), Some(at(9))];
    for owner in owners {
        for action in wanted_actions {
            for target in [None, Some("e-1"), Some("e"), Some("")] {
                for since in instants {
                    for until in instants {
                        let filter = AuditFilter {
                            tenant: owner.map(tenant),
                            action: action.map(str::to_owned),
                            target: target.map(str::to_owned),
                            since,
                            until,
                            before: None,
                        };
                        let wanted: Vec<_> =
                            entries.iter().rev().filter(|entry| filter.shows(entry)).cloned().collect();
                        assert_eq!(walk(&*store, &filter, 20).await.0, wanted, "{filter:?}");
                    }
                }
            }
        }
    }
    // What `shows` means, in words.
    let of = |filter: AuditFilter| {
        let store = &store;
        async move { walk(&**store, &filter, 100).await.0 }
    };
    let team = of(AuditFilter { tenant: Some(tenant("team")), ..all() }).await;
    assert!(team.iter().any(|entry| entry.tenant.is_none()), "what is nobody's is for all to see");
    assert!(team.iter().all(|entry| entry.tenant.as_ref().is_none_or(|owner| *owner == tenant("team"))));
    let runs = of(AuditFilter { action: Some("runs".to_owned()), ..all() }).await;
    assert_eq!(runs.len(), 4 * 9, "a name means itself and what follows it after a dot");
    let submits = of(AuditFilter { action: Some("runs.submit".to_owned()), ..all() }).await;
    assert_eq!(submits.len(), 2 * 9);
    Verdict::Passed
}

pub(crate) async fn pages(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    // More than one page looks at, with something rare at the far end.
    let mut entries = several(LOOKED_AT + 1_200);
    entries[3].action = "api_key.create".to_owned();
    entries[4].target = Some("rare".to_owned());
    for batch in entries.chunks(1_000) {
        store.write_audit(batch.to_vec()).await.unwrap();
    }
    entries.reverse();
    for limit in [LOOKED_AT * 2, 4_000, 997] {
        let (found, pages) = walk(&*store, &all(), limit).await;
        let wrong = found.iter().zip(&entries).position(|(found, wanted)| found != wanted);
        assert_eq!(
            (found.len(), wrong),
            (entries.len(), None),
            "every entry once, in order, {limit} at a time"
        );
        assert!(pages > 1, "one page looks at a bounded number");
    }
    let rare = AuditFilter { action: Some("api_key".to_owned()), ..all() };
    let first = store.audit(&rare, 10).await.unwrap();
    assert!(first.entries.is_empty() && first.next.is_some(), "it was looked for, and not far enough");
    assert_eq!(walk(&*store, &rare, 10).await.0.len(), 1);
    let targeted = AuditFilter { target: Some("rare".to_owned()), ..all() };
    assert_eq!(walk(&*store, &targeted, 10).await.0.len(), 1);
    // What is written meanwhile does not come into pages that were begun.
    let page = store.audit(&all(), 2).await.unwrap();
    store.write_audit(vec![entry("late", at(1), "runs.submit", None, None)]).await.unwrap();
    let rest = store.audit(&AuditFilter { before: page.next, ..all() }, 2).await.unwrap();
    assert_eq!((ids(&page), ids(&rest)), (vec!["e-11199", "e-11198"], vec!["e-11197", "e-11196"]));
    for nowhere in [0, 1] {
        let page = store.audit(&AuditFilter { before: Some(nowhere), ..all() }, 10).await.unwrap();
        assert_eq!(page, AuditPage { entries: Vec::new(), next: None }, "{nowhere}");
    }
    let page = store.audit(&AuditFilter { before: Some(u64::MAX), ..all() }, 1).await.unwrap();
    assert_eq!(ids(&page), ["late"]);
    Verdict::Passed
}

pub(crate) async fn prune(subject: &dyn Subject) -> Verdict {
    let store = subject.fresh().await;
    assert_eq!(store.prune_audit(at(1_000), 10).await.unwrap(), 0);
    let entries = several(1_500);
    store.write_audit(entries.clone()).await.unwrap();
    assert_eq!(store.prune_audit(at(0), 100).await.unwrap(), 0, "nothing is from before the first");
    assert_eq!(store.prune_audit(at(1_200), 0).await.unwrap(), 0);
    // Where entries are kept together, the last of them may stay with one that is to stay.
    let nearly = |most: usize| most - (TOGETHER - 1)..=most;
    let mut gone = store.prune_audit(at(1_200), 700).await.unwrap();
    assert!(nearly(700).contains(&gone), "at most so many, and not far fewer: {gone}");
    let (left, _) = walk(&*store, &all(), 500).await;
    assert!(left == entries[gone..].iter().rev().cloned().collect::<Vec<_>>(), "the oldest go first");
    gone += store.prune_audit(at(1_200), 700).await.unwrap();
    assert!(nearly(1_200).contains(&gone), "{gone}");
    assert_eq!(store.prune_audit(at(1_200), 700).await.unwrap(), 0);
    assert_eq!(walk(&*store, &all(), 500).await.0.len(), 1_500 - gone);
    // One of that very instant stays; and whoever was in the middle of a list goes on where it was.
    let page = store.audit(&all(), 100).await.unwrap();
    gone += store.prune_audit(at(1_300), 700).await.unwrap();
    assert!(nearly(1_300).contains(&gone), "{gone}");
    let (rest, _) = walk(&*store, &AuditFilter { before: page.next, ..all() }, 50).await;
    assert!(rest == entries[gone..1_400].iter().rev().cloned().collect::<Vec<_>>());
    // An empty trail takes new entries, and their places are behind the old ones.
    assert_eq!(store.prune_audit(at(9_999), 700).await.unwrap(), 1_500 - gone);
    assert_eq!(walk(&*store, &all(), 10).await.0, []);
    let new = entry("new", at(1), "runs.submit", None, None);
    store.write_audit(vec![new.clone()]).await.unwrap();
    assert_eq!(walk(&*store, &all(), 10).await.0, [new]);
    let gone = store.audit(&AuditFilter { before: page.next, ..all() }, 10).await.unwrap();
    assert_eq!(gone.entries, [], "what is new is before no old place");
    Verdict::Passed
}
