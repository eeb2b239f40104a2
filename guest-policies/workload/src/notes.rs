//! Builds notes on deprecated fields, and the condition that lists these notes.

use alloc::vec::Vec;
use kaos_policy_sdk::types::{Condition, Note};
use kaos_policy_sdk::{Places, condition, note};

/// The reason code of every note on a deprecated field, and the type of the condition.
pub const DEPRECATED: &str = "Deprecated";

/// Returns a note that the object uses the deprecated field `old`. `now` is the field to use instead, or `None` if no
/// field replaces `old`.
pub fn deprecated(old: &str, now: Option<&str>) -> Note {
    let message = match now {
        Some(now) => format!("{old} is an older field and still works: use {now}"),
        None => format!("{old} is an older field without a successor"),
    };
    note::at(old, note::warning(DEPRECATED, message))
}

/// Returns a note that the deprecated field `old` has no effect because `newer` is set.
pub fn ignored(old: &str, newer: &str) -> Note {
    let message = format!("{old} is an older field and is ignored, since {newer} is set: remove it");
    note::at(old, note::warning(DEPRECATED, message))
}

/// Returns the note [`ignored`] if `is_set` is true, and the note [`deprecated`] otherwise.
pub fn older(old: &str, newer: &str, is_set: bool) -> Note {
    if is_set { ignored(old, newer) } else { deprecated(old, Some(newer)) }
}

/// Returns the note on the variables `names` at the deprecated path `old`, or `None` if `names` is empty. `theirs` has
/// the names at the path `newer`. If it contains all of `names`, the old variables have no effect.
pub fn older_env<'a>(
    old: &str,
    mut names: impl ExactSizeIterator<Item = &'a str>,
    newer: &str,
    theirs: impl Iterator<Item = &'a str>,
) -> Option<Note> {
    let is_used = names.len() > 0;
    let theirs: Places<'_> = theirs.collect();
    let is_ignored = names.all(|name| theirs.get(name).is_some());
    is_used.then(|| older(old, newer, is_ignored))
}

/// Returns the condition `Deprecated` if a note is about a deprecated field, and `None` otherwise.
pub fn deprecated_condition(notes: &[Note]) -> Option<Condition> {
    let messages: Vec<&str> =
        notes.iter().filter(|note| note.reason == DEPRECATED).map(|note| note.message.as_str()).collect();
    (!messages.is_empty()).then(|| condition::yes(DEPRECATED, "OlderFields", messages.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_older_field_and_the_one_to_use() {
        let note = deprecated("spec.config.env", Some("spec.container.env"));
        assert_eq!(note.path.as_deref(), Some("spec.config.env"));
        assert!(note.message.ends_with("use spec.container.env"));
    }

    #[test]
    fn an_older_field_next_to_the_newer_one_is_reported_as_ignored() {
        let message = older("spec.resources", "spec.container.resources", true).message;
        assert!(message.contains("is ignored, since spec.container.resources is set"), "{message}");
        assert!(older("a", "b", false).message.ends_with("still works: use b"));
    }

    #[test]
    fn older_variables_are_ignored_if_the_newer_field_has_them_all() {
        let told = |names: &[&'static str], theirs: &[&'static str]| {
            older_env("o", names.iter().copied(), "n", theirs.iter().copied()).map(|note| note.message)
        };
        assert_eq!(told(&[], &["A"]), None);
        assert!(told(&["A", "B"], &["A"]).unwrap().contains("still works: use n"));
        assert!(told(&["A", "B"], &["B", "C", "A"]).unwrap().contains("is ignored, since n is set"));
    }

    #[test]
    fn the_condition_is_there_only_when_an_older_field_is() {
        assert!(deprecated_condition(&[]).is_none());
        let notes = [deprecated("a", None), deprecated("b", Some("c"))];
        let condition = deprecated_condition(&notes).unwrap();
        assert!(condition.message.contains("a is") && condition.message.contains("use c"));
    }
}
