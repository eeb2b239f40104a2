//! Lists names and values in messages, up to a number that people read.

/// The most texts that a message lists. The settings of a default policy fit.
pub(super) const LISTED: usize = 32;

/// Joins the texts with commas, and counts the texts beyond the limit.
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
