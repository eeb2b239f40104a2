//! Checks the metadata of a manifest and of the templates in it. The controllers of Kubernetes copy a template's
//! metadata to the objects that they create.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{Rule, breaches::Breaches};
use crate::{
    cut::{VALUE, cut},
    names::{is_key, is_label_value},
    pods,
    stamp::{APPLIED_DIGEST, HASH_STANDS_FOR, POD_SPEC_HASH},
};

/// The metadata fields that a policy can set.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];
/// The metadata fields that a policy can set in a template. The list contains `creationTimestamp`, because code
/// generators emit this field without a value.
const TEMPLATE: [&str; 4] = ["name", "labels", "annotations", "creationTimestamp"];
/// Labels and annotations that the host itself writes or interprets. A policy must not set these labels and
/// annotations.
const RESERVED: [&str; 5] =
    [APPLIED_DIGEST, POD_SPEC_HASH, HASH_STANDS_FOR, "kaos.tools/policy", "kaos.tools/policy-revision"];
/// The maximum size of all annotations of one object, in bytes. Kubernetes has the same limit.
const ANNOTATIONS: usize = 256 << 10;
/// The maximum number of characters of a field's name in a path.
const NAME: usize = 64;

/// Checks the metadata of a manifest and of every template in it.
pub(super) fn check(path: &str, manifest: &Value, breaches: &mut Breaches) {
    let Some(fields) = manifest.as_object() else { return };
    let mut at = " ".to_owned();
    for (name, value) in fields {
        if name == "metadata" {
            of_object(&format!("{path} metadata"), value, &METADATA, breaches);
        } else {
            within(path, name, value, &mut at, breaches);
        }
    }
}

/// Checks templates: every value with `metadata` and `spec`, at any depth. Does not search pod specs, because they
/// contain no templates.
fn templates(path: &str, value: &Value, at: &mut String, breaches: &mut Breaches) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("spec")
                && let Some(metadata) = fields.get("metadata").filter(|metadata| metadata.is_object())
            {
                of_object(&format!("{path}{at}.metadata"), metadata, &TEMPLATE, breaches);
            }
            if !pods::is_spec(value) {
                fields.iter().for_each(|(name, value)| within(path, name, value, at, breaches));
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let length = at.len();
                let _ = write!(at, "[{i}]");
                templates(path, item, at, breaches);
                at.truncate(length);
            }
        }
        _ => {}
    }
}

fn within(path: &str, name: &str, value: &Value, at: &mut String, breaches: &mut Breaches) {
    let length = at.len();
    if !at.ends_with(' ') {
        at.push('.');
    }
    at.extend(name.chars().take(NAME));
    templates(path, value, at, breaches);
    at.truncate(length);
}

fn of_object(path: &str, metadata: &Value, allowed: &[&str], breaches: &mut Breaches) {
    for (field, value) in metadata.as_object().into_iter().flatten() {
        if !allowed.contains(&field.as_str()) && !value.is_null() {
            breaches.add(Rule::HostMetadata, format_args!("{path}.{field}"), "must not be written by a policy");
        }
    }
    let mut breach = |rule, at: &str, message: String| breaches.add(rule, format_args!("{path}{at}"), message);
    labels(metadata.get("labels"), &mut breach);
    annotations(metadata.get("annotations"), &mut breach);
}

fn labels(labels: Option<&Value>, breach: &mut impl FnMut(Rule, &str, String)) {
    for (key, value) in entries(labels, ".labels", breach) {
        let at = format!(".labels[\"{}\"]", cut(key, VALUE));
        if RESERVED.contains(&key.as_str()) {
            breach(Rule::HostMetadata, &at, "may be written by the operator only".to_owned());
        }
        if !is_key(key) || !value.as_str().is_some_and(is_label_value) {
            let shown = cut(&value.to_string(), VALUE).into_owned();
            breach(Rule::ValidNames, &at, format!("this key with the value {shown} is not a valid label"));
        }
    }
}

fn annotations(annotations: Option<&Value>, breach: &mut impl FnMut(Rule, &str, String)) {
    let mut bytes = 0;
    for (key, value) in entries(annotations, ".annotations", breach) {
        let at = format!(".annotations[\"{}\"]", cut(key, VALUE));
        if RESERVED.contains(&key.as_str()) {
            breach(Rule::HostMetadata, &at, "may be written by the operator only".to_owned());
        }
        if !is_key(&key.to_lowercase()) || !value.is_string() {
            breach(Rule::ValidNames, &at, "is not a valid annotation: write a valid key, and a text".to_owned());
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS {
        breach(Rule::Bounded, ".annotations", format!("has {bytes} bytes, but the limit is {ANNOTATIONS}"));
    }
}

fn entries<'a, B: FnMut(Rule, &str, String)>(
    map: Option<&'a Value>,
    at: &str,
    breach: &mut B,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a, B> {
    if map.is_some_and(|map| !map.is_object() && !map.is_null()) {
        breach(Rule::WellFormed, at, "is not an object".to_owned());
    }
    map.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
