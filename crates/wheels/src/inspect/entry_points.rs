//! entry_points.txt: what a wheel offers to others, in groups.

use std::collections::HashSet;

use super::unsound::Unsound;

/// One thing that a wheel offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    /// What kind of thing it is, such as `console_scripts`.
    pub group: String,
    /// Its name within the group.
    pub name: String,
    /// The object it stands for, such as `package.module:function`.
    pub object: String,
}

/// Reads `[group]` and `name = object`. A line that is further in than the one it follows goes on with it.
pub(super) fn read(path: &str, bytes: &[u8]) -> Result<Vec<EntryPoint>, Unsound> {
    let text = std::str::from_utf8(bytes).map_err(|_broken| Unsound::entry(path, "is not UTF-8"))?;
    let mut points: Vec<EntryPoint> = Vec::new();
    let mut known = HashSet::new();
    let mut group: Option<&str> = None;
    let mut indent: Option<usize> = None;
    for (number, line) in text.lines().enumerate() {
        let wrong = |what| Err(Unsound::entry(path, format!("{what}: line {}", number + 1)));
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        let depth = line.len() - line.trim_start().len();
        if let (Some(above), Some(point)) = (indent, points.last_mut())
            && depth > above
        {
            point.object.push('\n');
            point.object.push_str(content);
            continue;
        }
        if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            group = Some(name.trim());
            indent = None;
            continue;
        }
        let (Some(group), Some((name, object))) = (group, content.split_once('=')) else {
            return wrong("has a line that is neither a group nor an entry point");
        };
        let (name, object) = (name.trim(), object.trim());
        if !known.insert((group, name)) {
            return wrong("has an entry point twice");
        }
        indent = Some(depth);
        points.push(EntryPoint { group: group.to_owned(), name: name.to_owned(), object: object.to_owned() });
    }
    Ok(points)
}
