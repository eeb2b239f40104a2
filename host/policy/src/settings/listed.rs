//! Names and values in messages, as many as somebody reads.

/// More than that nobody reads.
pub(super) const LISTED: usize = 24;

/// The texts with commas between them, and how many there are beside those that are shown.
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
    fn what_nobody_would_read_is_counted() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert!(listed(&["a"; LISTED + 2]).ends_with("a, a, and 2 more"));
    }
}
