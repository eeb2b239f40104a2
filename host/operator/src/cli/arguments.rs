//! Arguments that many verbs share, and their parsers.

use clap::ValueEnum;
use kaos_policy::names::{is_label, is_subdomain};

/// The output format of a verb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Parses the name of a namespace.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let remedy = "use at most 63 lower-case letters, digits and inner hyphens";
    if is_label(text) { Ok(text.to_owned()) } else { Err(format!("not the name of a namespace: {remedy}")) }
}

/// Parses one entry of a list of namespaces, with or without spaces around the entry.
pub(super) fn one_namespace(text: &str) -> Result<String, String> {
    namespace(text.trim())
}

/// Parses the name of an object.
pub(super) fn name(text: &str) -> Result<String, String> {
    let remedy = "use lower-case letters, digits and inner hyphens, with dots between the parts";
    if is_subdomain(text) { Ok(text.to_owned()) } else { Err(format!("not the name of an object: {remedy}")) }
}

/// Parses a domain.
pub(super) fn domain(text: &str) -> Result<String, String> {
    let remedy = "use lower-case letters, digits and inner hyphens, with dots between the parts";
    if is_subdomain(text) { Ok(text.to_owned()) } else { Err(format!("not a domain: {remedy}")) }
}
