//! Paths of fields, as users write them: `spec.config.memory.contextLimit`, `spec.models[0]`,
//! `metadata.annotations["a.b/c"]`.

use alloc::{borrow::ToOwned, string::String};
use core::fmt::{self, Write};

/// A path of a field. [`Display`](fmt::Display) prints the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// Creates a path from its text.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the path of the member `name`. Quotes a name that contains characters other than ASCII letters, digits,
    /// `-`, `_` and `$`. For example, a dot in a name without quotes would make the path ambiguous.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_$".contains(&b));
        let mut text = self.0.clone();
        if !plain {
            let _ = write!(text, "[\"{}\"]", crate::shown(name, crate::SHOWN));
        } else if text.is_empty() {
            text.push_str(name);
        } else {
            text.push('.');
            text.push_str(name);
        }
        Self(text)
    }

    /// Returns the path of the item `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        // Concatenate by hand: `format!` would take ten times as long, and the decoder builds a path for each variable
        // of a container.
        let mut text = String::with_capacity(self.0.len() + 8);
        text.push_str(&self.0);
        text.push('[');
        push_number(&mut text, index);
        text.push(']');
        Self(text)
    }

    /// Returns this path with `root` before it.
    #[must_use]
    pub fn under(&self, root: &str) -> Self {
        match (root, self.0.as_str()) {
            ("", own) => Self(own.to_owned()),
            (root, "") => Self(root.to_owned()),
            (root, own) if own.starts_with('[') => Self(format!("{root}{own}")),
            (root, own) => Self(format!("{root}.{own}")),
        }
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_number(text: &mut String, number: usize) {
    if number > 9 {
        push_number(text, number / 10);
    }
    text.push(char::from(b"0123456789"[number % 10]));
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_path_reads_as_users_write_it() {
        let path = Path::new("spec").key("models").index(0);
        assert_eq!(path.as_str(), "spec.models[0]");
        assert_eq!(Path::new("a").index(1_203_040).as_str(), "a[1203040]");
        assert_eq!(Path::default().key("spec").as_str(), "spec");
        assert_eq!(Path::new("metadata.annotations").key("a.b/c").as_str(), "metadata.annotations[\"a.b/c\"]");
    }

    #[test]
    fn a_root_goes_before_a_path() {
        assert_eq!(Path::new("containers[0]").under("spec.podSpec").as_str(), "spec.podSpec.containers[0]");
        assert_eq!(Path::new("[0].name").under("spec.env").as_str(), "spec.env[0].name");
        assert_eq!(Path::default().under("spec").as_str(), "spec");
    }
}
