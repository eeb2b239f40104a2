//! Older fields: the note for each one in use, and the condition that sums them up.

use alloc::vec::Vec;
use kaos_policy_sdk::types::{Condition, Note};
use kaos_policy_sdk::{condition, note};

/// The reason of every note about an older field, and the type of the condition.
pub const DEPRECATED: &str = "Deprecated";

/// The object uses the older field `old`; `now` is the one to use, none if nothing took its place.
pub fn deprecated(old: &str, now: Option<&str>) -> Note {
    let message = match now {
        Some(now) => format!("{old} is an older field and still works: use {now}"),
        None => format!("{old} is an older field and still works; nothing takes its place"),
    };
    note::at(old, note::warning(DEPRECATED, message))
}

/// Condition `Deprecated`, if any older field is in use.
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
    fn the_condition_is_there_only_when_an_older_field_is() {
        assert!(deprecated_condition(&[]).is_none());
        let notes = [deprecated("a", None), deprecated("b", Some("c"))];
        let condition = deprecated_condition(&notes).unwrap();
        assert!(condition.message.contains("a is") && condition.message.contains("use c"));
    }
}
