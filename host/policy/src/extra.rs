//! The members of an `extra` in an answer of a policy. This version of the contract defines no members. The host
//! refuses an answer with an unknown member: the policy relies on this member, but the host cannot act on the member.

use serde_json::{Map, Value};

use crate::cut::{VALUE, cut};

/// Returns the shortened name of the first member that this host does not know, or `None` if the text has no such
/// member.
pub(crate) fn unknown(text: &str) -> Option<String> {
    let members: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    members.keys().next().map(|key| cut(key, VALUE).into_owned())
}

/// Returns the message about a member that this host does not know.
pub(crate) fn not_known(key: &str) -> String {
    format!("this host does not know the field `{key}`: remove the field, or use an operator with a newer contract")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_unknown_and_the_first_one_is_named() {
        assert_eq!(unknown("{}"), None);
        assert_eq!(unknown(r#"{"kept":[],"b":1}"#).as_deref(), Some("b"));
        assert!(unknown(&format!(r#"{{"{}":1}}"#, "x".repeat(100_000))).is_some_and(|key| key.len() < 1_000));
    }
}
