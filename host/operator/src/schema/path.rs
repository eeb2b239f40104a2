//! Findings about fields, and their paths.

use std::fmt::Write as _;

/// A finding about a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path of the field, as in `kubectl explain`.
    pub path: String,
    /// The problem.
    pub message: String,
}

/// Formats a path, such as `spec.items[2].name`. A key with special characters is quoted: `metadata.labels["a.b/c"]`.
pub(crate) fn path<'a>(segments: impl IntoIterator<Item = Segment<'a>>) -> String {
    let mut path = String::new();
    for segment in segments {
        match segment {
            Segment::Index(index) => drop(write!(path, "[{index}]")),
            Segment::Key(key) if !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "-_$".contains(c)) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Segment::Key(key) => drop(write!(path, "[{key:?}]")),
            Segment::Named(name) if name.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c)) => {
                path.extend(["[", name, "]"]);
            }
            Segment::Named(name) => drop(write!(path, "[{name:?}]")),
        }
    }
    path
}

/// One step of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Segment<'a> {
    Key(&'a str),
    Index(usize),
    /// An item of a list, by its name.
    Named(&'a str),
}
