//! Checks the data of a `ConfigMap` or a Secret.

use super::{found::Findings, manifest_value::ManifestValue};

/// The maximum size of all values together, in bytes.
const MAX_DATA_BYTES: usize = 1 << 20;

/// Checks a `ConfigMap`.
pub(super) fn config_map(manifest: &ManifestValue<'_>, found: &mut Findings) {
    let bytes = keys(manifest, &["data", "binaryData"], found);
    for (key, value) in manifest.field("binaryData").entries() {
        if manifest.field("data").field(key).is_there() {
            found.add(&value, "is also in data: remove one of the two");
        }
    }
    bounded(&manifest.field("data"), bytes, found);
}

/// Checks a Secret.
pub(super) fn secret(manifest: &ManifestValue<'_>, found: &mut Findings) {
    let bytes = keys(manifest, &["data", "stringData"], found);
    bounded(&manifest.field("data"), bytes, found);
}

/// Checks the keys in these fields, and returns the size of the values in bytes.
fn keys<'a>(manifest: &ManifestValue<'a>, fields: &[&'a str], found: &mut Findings) -> usize {
    let mut bytes = 0;
    for field in fields {
        for (key, value) in manifest.field(field).entries() {
            found.data_key(&value, key);
            let is_base64 = *field == "binaryData" || (*field == "data" && fields.contains(&"stringData"));
            bytes += if is_base64 { decoded(value.text()) } else { value.text().len() };
        }
    }
    bytes
}

/// Returns the number of bytes that a base64 text encodes.
fn decoded(text: &str) -> usize {
    let characters = text.trim_end_matches('=').bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).count();
    characters * 3 / 4
}

fn bounded(data: &ManifestValue<'_>, bytes: usize, found: &mut Findings) {
    if bytes > MAX_DATA_BYTES {
        let remedy = "split the object, or store less data in the object";
        found.add(data, format!("has {bytes} bytes, but the limit is {MAX_DATA_BYTES}: {remedy}"));
    }
}
