//! Lists names and values in messages. Limits their number, so that people can read the list.

/// The maximum number of texts that a message lists. The limit is high enough for the names of all settings at one
/// level of a default policy.
pub(super) const LISTED: usize = 32;

/// Joins the texts with commas. For texts beyond the limit, adds only their number.
pub(crate) fn listed(texts: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = texts.iter().take(LISTED).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match texts.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_beyond_the_limit_are_counted() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert!(listed(&["a"; LISTED + 2]).ends_with("a, a, and 2 more"));
    }
}
