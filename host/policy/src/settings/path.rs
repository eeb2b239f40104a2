//! The path of a setting: `livenessProbe.periodSeconds`, `extraLabels["app.kubernetes.io/part-of"]`.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The names of a setting's path, the outermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<String>);

impl Path {
    /// Parses a path. A path consists of names with dots between them. A name with dots has the form `["…"]`. An
    /// invalid text becomes a path that no schema has, so parsing never fails.
    pub fn parse(text: &str) -> Self {
        let mut names = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let quoted = rest.strip_prefix("[\"").and_then(|inner| inner.split_once("\"]"));
            let (name, after) = quoted.unwrap_or_else(|| rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())));
            if name.is_empty() && quoted.is_none() {
                // The text has a stray dot or bracket. Keep the rest of the text as one name: no schema has such a
                // name, so the path matches no setting.
                names.push(rest.to_owned());
                break;
            }
            names.push(name.to_owned());
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        Self(names)
    }

    /// Returns the names, the outermost first.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the value at this path in `tree`, or `None` if the tree has no value there.
    pub fn find_in<'a>(&self, tree: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(tree, |value, name| value.get(name))
    }

    /// Returns the path of the setting `name` below this path.
    #[must_use]
    pub fn then(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Self(names)
    }

    /// Returns whether `other` is equal to this path or below this path.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns every prefix of the path, from the outermost name to the path itself.
    pub fn prefixes(&self) -> impl Iterator<Item = Self> {
        (1..=self.0.len()).map(|length| Self(self.0[..length].to_vec()))
    }

    /// Returns the path without its first name.
    #[must_use]
    pub fn tail(&self) -> Self {
        Self(self.0.iter().skip(1).cloned().collect())
    }
}

impl FromIterator<String> for Path {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            if name.is_empty() || name.contains(['.', '[', '"']) {
                write!(f, "[\"{name}\"]")?;
            } else if i == 0 {
                f.write_str(name)?;
            } else {
                write!(f, ".{name}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_what_it_writes() {
        for text in ["image", "livenessProbe.periodSeconds", r#"extraLabels["app.kubernetes.io/name"]"#] {
            assert_eq!(Path::parse(text).to_string(), text);
        }
        assert_eq!(Path::parse(r#"a["b.c"].d"#).names(), ["a", "b.c", "d"]);
    }

    #[test]
    fn parsing_ends_for_a_text_that_is_no_path() {
        for text in ["", ".", "..a", "a..b", "[", "a[", "a[\"", "[\"\"]", "a.[0]", "é.ü"] {
            let _ = Path::parse(text).to_string();
        }
    }
}
