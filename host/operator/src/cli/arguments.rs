//! Arguments that many commands share, and their parsers.

use clap::ValueEnum;
use kaos_policy::names::{is_label, is_subdomain};

/// The output format of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// An object that the user named as `KIND/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectWord {
    pub(super) kind: String,
    pub(super) name: String,
}

/// Parses `KIND/NAME`.
pub(super) fn object_word(text: &str) -> Result<ObjectWord, String> {
    let parts = text.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty() && !name.contains('/'));
    parts
        .map(|(kind, name)| ObjectWord { kind: kind.to_owned(), name: name.to_owned() })
        .ok_or_else(|| "write it as KIND/NAME".to_owned())
}

/// A kind, or an object of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KindOrObject {
    pub(super) kind: String,
    pub(super) name: Option<String>,
}

/// Parses `KIND` or `KIND/NAME`.
pub(super) fn kind_or_object(text: &str) -> Result<KindOrObject, String> {
    if text.contains('/') {
        let ObjectWord { kind, name } = object_word(text)?;
        return Ok(KindOrObject { kind, name: Some(name) });
    }
    let is_word = !text.is_empty() && !text.contains(char::is_whitespace);
    is_word
        .then(|| KindOrObject { kind: text.to_owned(), name: None })
        .ok_or_else(|| "write KIND or KIND/NAME".to_owned())
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
