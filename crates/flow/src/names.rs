//! "Did you mean": the known name that is closest to a wrong one.

/// A name at most a third wrong, the closest first; `None` when there is no such one.
pub(crate) fn closest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long names are not typos of each other, and comparing them all would cost too much.
    let length = wrong.chars().count();
    if length > 64 {
        return None;
    }
    let allowed = (length / 3).max(1);
    let near = known.take(2000).filter(|name| name.chars().count().abs_diff(length) <= allowed);
    let measured = near.map(|name| (distance(wrong, name), name)).filter(|(steps, _)| *steps <= allowed);
    measured.min_by_key(|(steps, _)| *steps).map(|(_, name)| name)
}

/// Letters to add, drop, change or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(a[i - 1] != b[j - 1]);
                let mut steps = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    steps = steps.min(rows[i - 2][j - 2] + 1);
                }
                steps
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_a_stranger_does_not() {
        let known = ["extract", "transform", "load"];
        assert_eq!(closest("tranform", known.into_iter()), Some("transform"));
        assert_eq!(closest("laod", known.into_iter()), Some("load"));
        assert_eq!(closest("banana", known.into_iter()), None);
    }
}
