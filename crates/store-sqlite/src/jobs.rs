//! The list of jobs, newest first: by their labels, or by their creation alone. The queue of jobs is not here.
//!
//! A list is the places that several sets have in common, each kept in the order of the list: one set for each label that is
//! wanted, one for all of which any is enough, one for a status that few have. The sets are walked together. Whoever is farther
//! down the list says where the others need to look next, so a page costs no more than the smallest of them has.

use pyoco_core::ids::{ExecutionId, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::{IndexRow, JobFilter, JobPage, JobPlace};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use crate::error;
use crate::index::{columns, decode};

/// So many rows of tables and indexes are looked at for one page.
const MOST_LOOKS: usize = 2_000;
/// So many runs of the wanted statuses are few: they are read and put in order before the walk, which then meets no others.
const FEW: u64 = 300;

/// A page, newest job first.
pub(crate) fn page(connection: &Connection, filter: &JobFilter, limit: usize) -> rusqlite::Result<JobPage> {
    // All statements see one state: what stands in one set stands in the others and has its row.
    let state = connection.unchecked_transaction()?;
    let mut walk = Walk::begin(&state, filter)?;
    let mut rows: Vec<IndexRow> = Vec::new();
    let next = loop {
        match walk.step()? {
            Step::Over => break None,
            // One more than is shown tells whether there is more.
            Step::To(_) if rows.len() >= limit => break rows.last().map(place_of),
            Step::To(place) => rows.extend(walk.row(&place)?),
            Step::Tired(place) => break Some(place.into_job_place()?),
        }
    };
    Ok(JobPage { rows, next })
}

fn place_of(row: &IndexRow) -> JobPlace {
    JobPlace { created_at: row.created_at, execution: row.execution.clone() }
}

/// Where something stands in the list, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    created_at: i64,
    execution: String,
}

impl Place {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { created_at: row.get(0)?, execution: row.get(1)? })
    }

    /// The end of a search that may find this place itself: there is no text between another and that with a zero behind it.
    fn included(&self) -> Self {
        Self { created_at: self.created_at, execution: format!("{}\0", self.execution) }
    }

    fn into_job_place(self) -> rusqlite::Result<JobPlace> {
        Ok(JobPlace {
            created_at: Timestamp::from_micros(self.created_at),
            execution: ExecutionId::new(&self.execution).map_err(|why| error::unreadable(1, why))?,
        })
    }
}

/// What a step led to.
enum Step {
    /// A place that all sets have.
    To(Place),
    /// Enough was looked at; nothing is left out before this place.
    Tired(Place),
    /// The end.
    Over,
}

/// The way down a list.
struct Walk<'a> {
    search: Search<'a>,
    sets: Vec<Set<'a>>,
    /// What is shown next stands before this place.
    end: Place,
    /// The last place that is known to be shown, or not to be.
    decided: Option<Place>,
    wanted: Wanted<'a>,
    looks: usize,
}

/// What is looked at in the row itself.
struct Wanted<'a> {
    statuses: Vec<String>,
    flow: Option<&'a str>,
}

impl<'a> Walk<'a> {
    fn begin(connection: &'a Connection, filter: &'a JobFilter) -> rusqlite::Result<Self> {
        let search = Search::of(connection, filter);
        let stored = |label| Stored { label, head: Head::Unknown };
        let mut sets: Vec<Set<'_>> =
            filter.all_labels.iter().map(|label| Set::Stored(vec![stored(Some(label.as_str()))])).collect();
        if !filter.any_labels.is_empty() {
            let labels = filter.any_labels.iter();
            sets.push(Set::Stored(labels.map(|label| stored(Some(label.as_str()))).collect()));
        }
        let few = few(connection, filter)?;
        let looks = few.as_ref().map_or(0, Vec::len);
        sets.extend(few.map(Set::Read));
        if sets.is_empty() {
            sets.push(Set::Stored(vec![stored(None)]));
        }
        let wanted = Wanted {
            statuses: filter.statuses.iter().map(RunStatus::to_string).collect(),
            flow: filter.flow.as_deref(),
        };
        Ok(Self { search, sets, end: end_of(filter), decided: None, wanted, looks })
    }

    /// Goes to the next place that all sets have.
    fn step(&mut self) -> rusqlite::Result<Step> {
        loop {
            // Never before something was decided, so that every page goes on.
            if self.looks >= MOST_LOOKS
                && let Some(place) = &self.decided
            {
                return Ok(Step::Tired(place.clone()));
            }
            let mut first: Option<Place> = None;
            for set in &mut self.sets {
                let Some(place) = set.before(&self.end, &self.search, &mut self.looks)? else {
                    return Ok(Step::Over);
                };
                self.end = place.included();
                first.get_or_insert(place);
            }
            let Some(first) = first else { return Ok(Step::Over) };
            // Whoever stands farther down than the first has decided about it.
            self.decided = Some(first.clone());
            if self.end == first.included() {
                self.end = first.clone();
                return Ok(Step::To(first));
            }
        }
    }

    /// The row at a place, if it is what is wanted.
    fn row(&mut self, place: &Place) -> rusqlite::Result<Option<IndexRow>> {
        // In the index of its table, and in the table.
        self.looks += 2;
        let mut statement = self.search.connection.prepare_cached(ROW)?;
        statement.query_row([&place.execution], |row| {
            let (status, flow) = (row.get_ref("status")?.as_str()?, row.get_ref("flow")?.as_str()?);
            let has_status =
                self.wanted.statuses.is_empty() || self.wanted.statuses.iter().any(|wanted| wanted == status);
            if has_status && self.wanted.flow.is_none_or(|wanted| wanted == flow) {
                decode(row).map(Some)
            } else {
                Ok(None)
            }
        })
    }
}

const ROW: &str = concat!("SELECT ", columns!(""), ", status, flow FROM runs WHERE execution = ?1");

/// Where a list begins: what is shown stands before this place.
fn end_of(filter: &JobFilter) -> Place {
    let before = filter.created_before.map_or(i64::MAX, Timestamp::as_micros);
    let before = Place { created_at: before, execution: String::new() };
    let cursor = filter.cursor.as_ref().map(|cursor| Place {
        created_at: cursor.created_at.as_micros(),
        execution: cursor.execution.to_string(),
    });
    cursor.into_iter().chain([before.clone()]).min().unwrap_or(before)
}

/// Places in the order of the list.
enum Set<'a> {
    /// Those of any of some labels, in their tables.
    Stored(Vec<Stored<'a>>),
    /// Those that were read, the newest at the end.
    Read(Vec<Place>),
}

impl Set<'_> {
    /// The newest place before another. Those that are asked for come nearer to the end of the list each time.
    fn before(
        &mut self,
        end: &Place,
        search: &Search<'_>,
        looks: &mut usize,
    ) -> rusqlite::Result<Option<Place>> {
        let stored = match self {
            Self::Stored(stored) => stored,
            Self::Read(places) => {
                while places.last().is_some_and(|place| place >= end) {
                    places.pop();
                }
                return Ok(places.last().cloned());
            }
        };
        let mut newest: Option<&Place> = None;
        for one in stored {
            let place = one.before(end, search, looks)?;
            newest = newest.max(place);
        }
        Ok(newest.cloned())
    }
}

/// The places of one label, or of all jobs, in their table.
struct Stored<'a> {
    label: Option<&'a str>,
    head: Head,
}

/// What was found last.
enum Head {
    Unknown,
    At(Place),
    /// There is nothing more.
    Over,
}

impl Stored<'_> {
    fn before(
        &mut self,
        end: &Place,
        search: &Search<'_>,
        looks: &mut usize,
    ) -> rusqlite::Result<Option<&Place>> {
        // What was found last stays the newest until the end comes as far.
        let is_known = match &self.head {
            Head::Unknown => false,
            Head::At(place) => place < end,
            Head::Over => true,
        };
        if !is_known {
            *looks += 1;
            self.head = search.before(self.label, end)?.map_or(Head::Over, Head::At);
        }
        match &self.head {
            Head::At(place) => Ok(Some(place)),
            Head::Unknown | Head::Over => Ok(None),
        }
    }
}

/// Finds places in their tables.
struct Search<'a> {
    connection: &'a Connection,
    tenant: Option<&'a str>,
    /// Nothing is wanted that was created then or before.
    created_after: i64,
}

impl<'a> Search<'a> {
    fn of(connection: &'a Connection, filter: &'a JobFilter) -> Self {
        Self {
            connection,
            tenant: filter.tenant.as_ref().map(TenantId::as_str),
            created_after: filter.created_after.map_or(i64::MIN, Timestamp::as_micros),
        }
    }

    /// The newest place of a label, or of all jobs, before another.
    fn before(&self, label: Option<&str>, end: &Place) -> rusqlite::Result<Option<Place>> {
        let Place { created_at, execution } = end;
        let one = |sql, values: &[&dyn ToSql]| {
            self.connection.prepare_cached(sql)?.query_row(values, Place::read).optional()
        };
        let found = match (label, self.tenant) {
            (None, None) => one(PLACE, &[created_at, execution]),
            (None, Some(tenant)) => one(PLACE_OF_TENANT, &[created_at, execution, &tenant]),
            (Some(label), None) => one(LABEL, &[created_at, execution, &label]),
            (Some(label), Some(tenant)) => one(LABEL_OF_TENANT, &[created_at, execution, &label, &tenant]),
        }?;
        Ok(found.filter(|place| place.created_at > self.created_after))
    }
}

/// One step down a table or an index.
macro_rules! newest {
    ($table:literal, $conditions:literal) => {
        concat!(
            "SELECT created_at, execution FROM ",
            $table,
            " WHERE ",
            $conditions,
            "(created_at, execution) < (?1, ?2) ORDER BY created_at DESC, execution DESC LIMIT 1"
        )
    };
}

const PLACE: &str = newest!("job_places", "");
const PLACE_OF_TENANT: &str = newest!("job_places INDEXED BY job_places_by_tenant", "tenant = ?3 AND ");
const LABEL: &str = newest!("job_labels", "label = ?3 AND ");
const LABEL_OF_TENANT: &str =
    newest!("job_labels INDEXED BY job_labels_by_tenant", "tenant = ?4 AND label = ?3 AND ");

/// The places of all that have the wanted statuses, oldest first, if that is asked for and they are few.
fn few(connection: &Connection, filter: &JobFilter) -> rusqlite::Result<Option<Vec<Place>>> {
    if filter.statuses.is_empty() {
        return Ok(None);
    }
    let mut statuses: Vec<String> = filter.statuses.iter().map(RunStatus::to_string).collect();
    statuses.sort_unstable();
    statuses.dedup();
    let tenant = filter.tenant.as_ref().map(TenantId::as_str);
    let mut runs = 0;
    for status in &statuses {
        let sql = match tenant {
            Some(_) => "SELECT sum(runs) FROM run_counts WHERE status = ?1 AND tenant = ?2",
            None => "SELECT sum(runs) FROM run_counts WHERE status = ?1 AND ?2 IS NULL",
        };
        let counted: Option<u64> =
            connection.prepare_cached(sql)?.query_row((status, tenant), |row| row.get(0))?;
        runs += counted.unwrap_or(0);
    }
    if runs > FEW {
        return Ok(None);
    }
    let mut places: Vec<Place> = Vec::new();
    for status in &statuses {
        let (sql, values): (_, &[&dyn ToSql]) = match &tenant {
            Some(tenant) => (OF_STATUS_OF_TENANT, &[status, tenant]),
            None => (OF_STATUS, &[status]),
        };
        let mut statement = connection.prepare_cached(sql)?;
        for place in statement.query_map(values, Place::read)? {
            places.push(place?);
        }
    }
    if let Some(after) = filter.created_after {
        places.retain(|place| place.created_at > after.as_micros());
    }
    places.sort_unstable();
    Ok(Some(places))
}

const OF_STATUS: &str =
    "SELECT created_at, execution FROM runs INDEXED BY runs_by_status WHERE status = ?1 AND hidden = 0";
const OF_STATUS_OF_TENANT: &str = "SELECT created_at, execution FROM runs INDEXED BY runs_by_tenant_status \
    WHERE status = ?1 AND tenant = ?2 AND hidden = 0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::tests::{empty, plan};

    #[test]
    fn each_step_is_one_search_along_an_index_alone() {
        let connection = empty();
        for (sql, walks) in [
            (PLACE, "job_places USING PRIMARY KEY ((created_at,execution)<(?,?))"),
            (
                PLACE_OF_TENANT,
                "USING COVERING INDEX job_places_by_tenant (tenant=? AND (created_at,execution)<(?,?))",
            ),
            (LABEL, "job_labels USING PRIMARY KEY (label=? AND (created_at,execution)<(?,?))"),
            (
                LABEL_OF_TENANT,
                "USING COVERING INDEX job_labels_by_tenant (tenant=? AND label=? AND (created_at,execution)<(?,?))",
            ),
            (OF_STATUS, "runs_by_status (status=?)"),
            (OF_STATUS_OF_TENANT, "runs_by_tenant_status (tenant=? AND status=?)"),
        ] {
            let plan = plan(&connection, sql);
            assert!(plan.contains(walks), "{sql}: {plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }

    /// Jobs 0..n, a job each second, of the labels and the status that are given for each.
    fn filled(count: i64, of: impl Fn(i64) -> (&'static [&'static str], &'static str)) -> Connection {
        let connection = empty();
        let state = connection.unchecked_transaction().unwrap();
        for number in 0..count {
            let (labels, status) = of(number);
            let summary = serde_json::json!({
                "run_id": number.to_string(), "flow_name": "f", "tag": "cpu", "tags": labels, "status": status,
                "tenant_id": null, "api_key_id": null, "updated_at": null, "heartbeat_at": null, "error": null,
            });
            let sql = "INSERT INTO runs (execution, version, tag, status, flow, created_at, updated_at, wants_job, hidden, \
                       summary, labelled) VALUES (?1, 1, 'cpu', ?2, 'f', ?3, ?3, 0, 0, ?4, ?5)";
            let labelled = labels != ["cpu"];
            state
                .execute(sql, (format!("e{number:05}"), status, number, summary.to_string(), labelled))
                .unwrap();
        }
        state.commit().unwrap();
        connection
    }

    /// All pages, and how many there were.
    fn through(connection: &Connection, mut filter: JobFilter, limit: usize) -> (Vec<i64>, usize) {
        let mut found = Vec::new();
        for pages in 1.. {
            let page = page(connection, &filter, limit).unwrap();
            found.extend(page.rows.iter().map(|row| row.created_at.as_micros()));
            assert!(page.rows.len() <= limit);
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => return (found, pages),
            }
        }
        unreachable!()
    }

    fn all_of(labels: &[&str]) -> JobFilter {
        JobFilter { all_labels: labels.iter().copied().map(str::to_owned).collect(), ..JobFilter::default() }
    }

    #[test]
    fn a_page_that_finds_little_is_short_and_the_next_ones_find_the_rest() {
        // 400 failed, more than a few, the oldest of 5,000.
        let connection =
            filled(5_000, |number| (&["cpu"], if number < 400 { "FAILED" } else { "COMPLETED" }));
        let filter = JobFilter { statuses: vec![RunStatus::Failed], ..JobFilter::default() };
        let first = page(&connection, &filter, 50).unwrap();
        assert!(first.rows.is_empty() && first.next.is_some());
        let (found, pages) = through(&connection, filter.clone(), 1_000);
        assert!(found.iter().copied().eq((0..400).rev()), "{found:?}");
        assert!(pages > 5, "{pages}");
        let labelled = JobFilter { all_labels: vec!["cpu".to_owned()], ..filter };
        assert_eq!(through(&connection, labelled, 1_000).0, found);
    }

    #[test]
    fn a_status_that_few_have_is_found_at_once_however_old_they_are() {
        let connection = filled(5_000, |number| (&["cpu"], if number < 20 { "FAILED" } else { "COMPLETED" }));
        let filter =
            JobFilter { statuses: vec![RunStatus::Failed, RunStatus::Running], ..JobFilter::default() };
        for filter in [JobFilter { all_labels: vec!["cpu".to_owned()], ..filter.clone() }, filter] {
            let (found, pages) = through(&connection, filter.clone(), 50);
            assert!(found.iter().copied().eq((0..20).rev()) && pages == 1, "{found:?} {pages}");
            assert_eq!(through(&connection, filter, 8), (found, 3));
        }
    }

    #[test]
    fn labels_that_have_little_in_common_lead_each_other_down_the_list() {
        // Two halves, and three jobs of both: each label alone has more than a page may look at.
        let connection = filled(6_000, |number| match number {
            10 | 2_999 | 5_999 => (&["old", "new"], "COMPLETED"),
            0..3_000 => (&["old"], "COMPLETED"),
            _ => (&["new"], "COMPLETED"),
        });
        assert_eq!(through(&connection, all_of(&["old", "new"]), 50), (vec![5_999, 2_999, 10], 1));
        assert_eq!(through(&connection, all_of(&["new", "old"]), 50), (vec![5_999, 2_999, 10], 1));
        let any = JobFilter { any_labels: vec!["new".to_owned(), "old".to_owned()], ..JobFilter::default() };
        let (found, _) = through(&connection, any, 700);
        assert!(found.into_iter().eq((0..6_000).rev()));
        // Nothing in common, one beside the other all the way down.
        let connection =
            filled(6_000, |number| (if number % 2 == 0 { &["even"] } else { &["odd"] }, "COMPLETED"));
        let (found, pages) = through(&connection, all_of(&["even", "odd"]), 50);
        assert!(found.is_empty() && pages > 2, "{found:?} {pages}");
    }
}
