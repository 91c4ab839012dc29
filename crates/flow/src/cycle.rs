//! Tasks that wait for each other.

/// One circle of tasks, each waiting for the next; the first is repeated at the end.
pub(crate) fn find(waits_for: &[Vec<usize>]) -> Option<Vec<usize>> {
    // 0: not seen, 1: on the current way, 2: leads nowhere bad. A list of (task, next edge) instead of recursion.
    let mut state = vec![0_u8; waits_for.len()];
    for start in 0..waits_for.len() {
        if state[start] != 0 {
            continue;
        }
        let mut way = vec![(start, 0)];
        state[start] = 1;
        while let Some((task, edge)) = way.last_mut() {
            let Some(&next) = waits_for[*task].get(*edge) else {
                state[*task] = 2;
                way.pop();
                continue;
            };
            *edge += 1;
            match state.get(next) {
                Some(0) => {
                    state[next] = 1;
                    way.push((next, 0));
                }
                Some(1) => {
                    let from = way.iter().position(|(task, _)| *task == next).unwrap_or(0);
                    let mut circle: Vec<usize> = way[from..].iter().map(|(task, _)| *task).collect();
                    circle.push(next);
                    return Some(circle);
                }
                Some(_) | None => {}
            }
        }
    }
    None
}

/// The circle in words, in the order things would have to run.
pub(crate) fn describe(circle: &[usize], name: impl Fn(usize) -> String) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = circle.iter().rev().take(SHOWN).map(|task| name(*task)).collect();
    if circle.len() > SHOWN {
        names.push("...".to_owned());
    }
    names.join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_a_diamond_is_none() {
        assert_eq!(find(&[vec![], vec![0], vec![0], vec![1, 2]]), None);
        assert_eq!(find(&[vec![1], vec![2], vec![0]]), Some(vec![0, 1, 2, 0]));
        assert_eq!(find(&[vec![0]]), Some(vec![0, 0]));
        assert_eq!(find(&[vec![], vec![0, 2], vec![1]]), Some(vec![1, 2, 1]));
    }
}
