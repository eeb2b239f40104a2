//! Quickly finds texts that may contain a secret. The slow checks look only at these texts.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Parts of texts that may announce a secret value. The case of letters does not matter.
static SECRETS: LazyLock<Hints> = LazyLock::new(|| {
    Hints::new([
        "passw",
        "passp",
        "passc",
        "pwd",
        "secret",
        "token",
        "credential",
        "key",
        "private",
        "authorization",
        "cookie",
        "bearer",
        "basic ",
        "pin",
        "jwt",
        "://",
        "database_url",
        "connection_string",
        "dsn",
    ])
});

/// Parts of texts to find. `None` if the matcher refuses so many parts; then each text counts as a match.
#[derive(Debug)]
pub(super) struct Hints(Option<AhoCorasick>);

impl Hints {
    pub(super) fn new(parts: impl IntoIterator<Item = &'static str>) -> Self {
        Self(AhoCorasick::builder().ascii_case_insensitive(true).build(parts).ok())
    }

    /// Returns whether a text contains one of the parts.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|parts| parts.is_match(text))
    }
}

/// Returns whether a text may contain a secret value.
///
/// The check is quick, so it can also return true for a text without a secret value.
pub(super) fn may_name_a_secret(text: &str) -> bool {
    SECRETS.may_be_in(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_a_text_does_not_matter() {
        for text in ["X-Api-Key: 1", "https://a", "Basic abc", "myToken"] {
            assert!(may_name_a_secret(text), "{text}");
        }
        for text in ["", "registry.example/agents", "basically", "level: info"] {
            assert!(!may_name_a_secret(text), "{text}");
        }
    }
}
