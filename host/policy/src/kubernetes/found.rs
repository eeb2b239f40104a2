//! Collects the findings of one manifest, and implements the rules that many fields share.

use std::collections::HashSet;

use serde_json::Value;

use super::{Checks, manifest_value::ManifestValue};
use crate::{
    cut::{VALUE, cut},
    names::{is_key, is_label, is_label_value, is_subdomain},
    origins::PathStep,
};

/// The maximum number of findings that the check reports for one manifest.
const TOLD: usize = 10;

/// A value or field that an API server would refuse.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The path of the value: the names and indices from the manifest's root to the value.
    pub(crate) path: Vec<PathStep>,
    /// The problem and the remedy.
    pub(crate) message: String,
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    findings: Vec<Finding>,
    is_of_newest: bool,
}

impl Findings {
    /// Creates an empty collection for a check of this level.
    pub(super) fn for_these(checks: Checks) -> Self {
        Self { findings: Vec::new(), is_of_newest: checks == Checks::Fields }
    }

    /// Returns whether the check also reports values that only new versions of Kubernetes refuse. Version 1.36 refuses
    /// such a value, but at least one of the versions from 1.30 to 1.35 accepts it.
    pub(super) fn is_of_newest(&self) -> bool {
        self.is_of_newest
    }

    /// Adds a finding if the collection is not full.
    pub(super) fn add(&mut self, at: &ManifestValue<'_>, message: impl Into<String>) {
        if !self.is_full() {
            self.findings.push(Finding { path: at.steps(), message: message.into() });
        }
    }

    /// Returns whether the collection is full, so that the caller can stop searching.
    pub(super) fn is_full(&self) -> bool {
        self.findings.len() >= TOLD
    }

    /// Returns all findings.
    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.findings
    }

    /// Requires a text that is not empty. Returns whether the value is a text that is not empty.
    pub(super) fn needs(&mut self, at: &ManifestValue<'_>, what: &str) -> bool {
        let is_there = !at.text().is_empty();
        if !is_there {
            self.add(at, format!("is required: {what}"));
        }
        is_there
    }

    /// Checks that a text is one of `allowed`. Accepts an empty text, because Kubernetes replaces an empty text by a
    /// default.
    pub(super) fn one_of(&mut self, at: &ManifestValue<'_>, allowed: &[&str]) {
        if !at.text().is_empty() {
            self.exactly_one_of(at, allowed);
        }
    }

    /// Checks that a value is one of `allowed`, for a field without a default.
    pub(super) fn exactly_one_of(&mut self, at: &ManifestValue<'_>, allowed: &[&str]) {
        if at.is_there() && !allowed.contains(&at.text()) {
            self.add(at, format!("{} is not one of {}", shown(at), allowed.join(", ")));
        }
    }

    /// Checks that a number is at least `least`. Accepts an absent number.
    pub(super) fn at_least(&mut self, at: &ManifestValue<'_>, least: i64) {
        if at.number().is_some_and(|number| number < least) {
            self.add(at, format!("{} is too small: it must be at least {least}", shown(at)));
        }
    }

    /// Requires a valid port number.
    pub(super) fn port_number(&mut self, number: &ManifestValue<'_>) {
        if number.is_there() {
            self.between(number, 1, 65535);
        } else {
            self.add(number, "is required: a number from 1 to 65535");
        }
    }

    /// Checks that a number is between `least` and `most`. Accepts an absent number.
    pub(super) fn between(&mut self, at: &ManifestValue<'_>, least: i64, most: i64) {
        if at.number().is_some_and(|number| !(least..=most).contains(&number)) {
            self.add(at, format!("{} is not a number from {least} to {most}", shown(at)));
        }
    }

    /// Checks that a text is a DNS label. Returns whether the text is a DNS label.
    pub(super) fn label(&mut self, at: &ManifestValue<'_>) -> bool {
        let is_one = is_label(at.text());
        if !is_one {
            let rule = "write at most 63 lower-case letters, digits and inner hyphens";
            self.add(at, format!("{} is not a valid name: {rule}", shown(at)));
        }
        is_one
    }

    /// Checks that a text is a valid name of an object.
    pub(super) fn name(&mut self, at: &ManifestValue<'_>) {
        if !is_subdomain(at.text()) {
            let rule = "write lower-case letters, digits and inner hyphens, optionally with dots between them";
            self.add(at, format!("no object can have the name {}: {rule}", shown(at)));
        }
    }

    /// Checks that a text is a valid name of an object. Accepts an empty text.
    pub(super) fn name_if_any(&mut self, at: &ManifestValue<'_>) {
        if !at.text().is_empty() {
            self.name(at);
        }
    }

    /// Checks the key of a label, or another name for which Kubernetes has the same rules.
    pub(super) fn key(&mut self, at: &ManifestValue<'_>, key: &str) {
        if !is_key(key) {
            let rule = "write at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, \
                        optionally after a domain and a slash";
            self.add(at, format!("{} is not the key of a label: {rule}", quoted(key)));
        }
    }

    /// Checks the value of a label.
    pub(super) fn label_value(&mut self, at: &ManifestValue<'_>) {
        if !is_label_value(at.text()) {
            let rule = "write at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";
            self.add(at, format!("{} is not the value of a label: {rule}", shown(at)));
        }
    }

    /// Checks the keys and values of labels.
    pub(super) fn labels(&mut self, at: &ManifestValue<'_>) {
        for (key, value) in at.entries() {
            self.key(&value, key);
            self.label_value(&value);
        }
    }

    /// Checks a port, which is a number or a name.
    pub(super) fn port(&mut self, at: &ManifestValue<'_>) {
        match at.value() {
            Value::String(name) => self.port_name(at, name),
            _ => self.between(at, 1, 65535),
        }
    }

    /// Checks the name of a port.
    pub(super) fn port_name(&mut self, at: &ManifestValue<'_>, name: &str) {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_one = name.len() <= 15
            && name.bytes().all(is_inner)
            && name.bytes().any(|byte| byte.is_ascii_lowercase())
            && !name.contains("--")
            && !name.starts_with('-')
            && !name.ends_with('-');
        if !is_one {
            let rule = "write at most 15 lower-case letters, digits and single inner hyphens, a letter among them";
            self.add(at, format!("{} is not the name of a port: {rule}", quoted(name)));
        }
    }

    /// Checks a key of a `ConfigMap` or a Secret.
    pub(super) fn data_key(&mut self, at: &ManifestValue<'_>, key: &str) {
        let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_one = !key.is_empty()
            && key.len() <= 253
            && key.bytes().all(is_character)
            && key != "."
            && !key.starts_with("..");
        if !is_one {
            let rule = "write letters, digits and `-_.`, not `.` alone and no `..` at the beginning";
            self.add(at, format!("{} is not the key of a ConfigMap or Secret: {rule}", quoted(key)));
        }
    }

    /// Checks the permission bits of a file.
    pub(super) fn mode(&mut self, at: &ManifestValue<'_>) {
        if at.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
            self.add(at, format!("{} is not the mode of a file: write 0 to 511, or 0000 to 0777 in YAML", shown(at)));
        }
    }

    /// Checks that a path is relative. Accepts an absent path.
    pub(super) fn path_below(&mut self, at: &ManifestValue<'_>) {
        if at.text().starts_with('/') {
            self.add(at, format!("{} is an absolute path: write the path without the first slash", shown(at)));
        }
        self.no_way_up(at);
    }

    /// Checks the relative path of a file that Kubernetes creates.
    pub(super) fn new_path_below(&mut self, at: &ManifestValue<'_>) {
        self.path_below(at);
        if at.text().starts_with("..") && !at.text().starts_with("../") && at.text() != ".." {
            self.add(at, format!("{} begins with `..`: choose another name", shown(at)));
        }
    }

    /// Checks that a path does not contain `..`.
    pub(super) fn no_way_up(&mut self, at: &ManifestValue<'_>) {
        if at.text().split('/').any(|part| part == "..") {
            self.add(at, format!("{} leads upwards: remove `..`", shown(at)));
        }
    }

    /// Checks that any two items of a list differ in at least one of the `fields`, because Kubernetes identifies an
    /// item by these fields. `fields` contains the name of each field, and the value to use if the field is absent.
    pub(super) fn differ<'a>(&mut self, list: &ManifestValue<'a>, fields: &[(&'a str, &str)]) {
        let mut seen = HashSet::new();
        for item in list.items() {
            let value = |(field, absent): &(&'a str, &str)| match item.field(field).value() {
                Value::Null => (*absent).to_owned(),
                Value::String(text) if text.is_empty() => (*absent).to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let key: Vec<String> = fields.iter().map(value).collect();
            if seen.contains(&key) {
                let names: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
                let told = quoted(&key.join(" "));
                let message = format!("{told} occurs twice: items of this list must differ in {}", names.join(" or "));
                self.add(&item.field(fields.first().map_or("", |(field, _)| field)), message);
            }
            seen.insert(key);
        }
    }
}

/// Formats a value of the manifest for a message.
pub(super) fn shown(at: &ManifestValue<'_>) -> String {
    match at.value() {
        Value::String(text) => quoted(text),
        other => cut(&other.to_string(), VALUE).into_owned(),
    }
}

/// Puts a text in quotes for a message, and escapes unprintable characters.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", cut(text, VALUE))
}
