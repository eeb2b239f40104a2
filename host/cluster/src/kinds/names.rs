//! Validates names, labels and annotations.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::{
    catalogue::{Family, Resource},
    status::Cause,
    storage::meta,
};

// All patterns are constants, and a test compiles all patterns. So this function never returns `None`.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static SUBDOMAIN: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));
static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static PORT: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"^[-a-z0-9]+$"));
static QUALIFIED: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"));

fn fits(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const KEY_TEXT: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Validates an object's metadata.
pub(super) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = meta(object, "name");
    let shown = json!(name).to_string();
    let mut refuse = |text: &str| causes.push(Cause::invalid("metadata.name", &shown, text));
    let (most, pattern, text) = match resource.family {
        Family::Service | Family::Namespace => (63, &LABEL, LABEL_TEXT),
        Family::Rbac => (usize::MAX, &LABEL, ""),
        _ => (253, &SUBDOMAIN, SUBDOMAIN_TEXT),
    };
    if name.len() > most {
        refuse(&format!("must be no more than {most} characters"));
    }
    if !text.is_empty() && !fits(pattern, name) {
        refuse(text);
    }
    causes.extend(labels(&object["metadata"]["labels"], "metadata.labels"));
    for (key, _) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
        causes.extend(qualified(&key.to_lowercase(), key, "metadata.annotations"));
    }
    for finalizer in object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        causes.extend(qualified(finalizer, finalizer, "metadata.finalizers"));
    }
    causes
}

/// Validates labels.
pub(super) fn labels(labels: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        causes.extend(qualified(key, key, path));
        let value = value.as_str().unwrap_or_default();
        let shown = json!(value).to_string();
        if value.len() > 63 {
            causes.push(Cause::invalid(path, &shown, "must be no more than 63 bytes"));
        }
        if !value.is_empty() && !fits(&QUALIFIED, value) {
            causes.push(Cause::invalid(path, &shown, VALUE_TEXT));
        }
    }
    causes
}

/// Validates a name that must be a DNS label.
pub(super) fn label(name: &str, path: &str) -> Vec<Cause> {
    let shown = json!(name).to_string();
    let mut causes = Vec::new();
    if name.len() > 63 {
        causes.push(Cause::invalid(path, &shown, "must be no more than 63 bytes"));
    }
    if !fits(&LABEL, name) {
        causes.push(Cause::invalid(path, &shown, LABEL_TEXT));
    }
    causes
}

/// Validates the name of a port, which must be a valid IANA service name.
pub(super) fn port(name: &str, path: &str) -> Vec<Cause> {
    let rules = [
        (name.len() <= 15, "must be no more than 15 bytes"),
        (fits(&PORT, name), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (name.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    let shown = json!(name).to_string();
    let broken = rules.iter().filter(|(holds, _)| !holds);
    broken.map(|(_, text)| Cause::invalid(path, &shown, text)).collect()
}

fn qualified(name: &str, shown: &str, path: &str) -> Vec<Cause> {
    let (prefix, rest) = name.split_once('/').map_or((None, name), |(prefix, rest)| (Some(prefix), rest));
    let shown = json!(shown).to_string();
    let mut causes = Vec::new();
    if prefix.is_some_and(|prefix| !fits(&SUBDOMAIN, prefix)) {
        causes.push(Cause::invalid(path, &shown, &format!("prefix part {SUBDOMAIN_TEXT}")));
    }
    if rest.is_empty() {
        causes.push(Cause::invalid(path, &shown, "name part must be non-empty"));
    } else if rest.len() > 63 {
        causes.push(Cause::invalid(path, &shown, "name part must be no more than 63 bytes"));
    }
    if !fits(&QUALIFIED, rest) {
        causes.push(Cause::invalid(path, &shown, KEY_TEXT));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!([&SUBDOMAIN, &LABEL, &PORT, &QUALIFIED].iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn label_values_are_at_most_63_bytes() {
        assert!(labels(&json!({"a": "x".repeat(63)}), "metadata.labels").is_empty());
        assert_eq!(labels(&json!({"a": "x".repeat(64)}), "metadata.labels").len(), 1);
        assert_eq!(labels(&json!({"a/b/c": "-"}), "metadata.labels").len(), 2);
    }
}
