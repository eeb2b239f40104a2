//! Kubernetes' rules for names.

/// Returns whether a text is a DNS label: at most 63 lower-case letters, digits and inner hyphens.
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

/// Returns whether a text is a DNS subdomain: DNS labels with dots between them, at most 253 characters.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

/// Returns whether a text is a valid value of a label: empty, or at most 63 letters, digits and inner `-_.`.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= 63 && is_word(text))
}

/// Returns whether a text is a valid key of a label or annotation. A key is a word of at most 63 characters, and may
/// begin with a domain and a slash.
pub fn is_key(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    domain.is_none_or(is_subdomain) && name.len() <= 63 && is_word(name)
}

/// Returns whether a text is a valid kind: one word of at most 63 letters and digits that starts with a capital letter.
pub fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_label_of_any_length(text: &str) -> bool {
    text.starts_with(is_lower) && text.ends_with(is_lower) && text.chars().all(|c| is_lower(c) || c == '-')
}

fn is_word(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(|c| is_end(c) || "-_.".contains(c))
}

fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_kubernetes() {
        assert!(is_label("a-0") && !is_label("-a") && !is_label("A") && !is_label("") && !is_label(&"a".repeat(64)));
        assert!(is_subdomain("a.b-c.d") && !is_subdomain("a..b") && !is_subdomain("a_b") && !is_subdomain(""));
        assert!(is_label_value("") && is_label_value("A_b.c-1") && !is_label_value("a ") && !is_label_value("é"));
        assert!(is_key("app") && is_key("kaos.tools/a_B") && !is_key("/a") && !is_key("a/") && !is_key("a/b/c"));
        assert!(
            is_kind("HTTPRoute") && is_kind("A1") && !is_kind("pods") && !is_kind("Deployment.apps") && !is_kind("")
        );
        assert!(is_kind(&"A".repeat(63)) && !is_kind(&"A".repeat(64)));
    }
}
