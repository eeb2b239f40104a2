//! Converts protobuf bodies to JSON. kubectl sends protobuf for objects that it generates itself, as in
//! `kubectl create deployment`.
//!
//! Only requests can be protobuf. Answers are JSON: every client that sends protobuf also accepts JSON.
//! `schemas/messages.py` collects the field numbers from Kubernetes' `generated.proto` files.

use std::{collections::BTreeMap, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The fields of a message by number: name, type and label.
type Message = BTreeMap<u32, (String, String, String)>;

static MESSAGES: LazyLock<BTreeMap<String, Message>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../schemas/messages.json")).unwrap_or_default());

/// The prefix of every body.
const MAGIC: &[u8] = b"k8s\0";

/// Fields that contain an inlined message. In JSON, the fields of such a message are fields of the enclosing object.
const INLINE: [&str; 4] = ["handler", "volumeSource", "localObjectReference", "ephemeralContainerCommon"];

/// Reads a body. Returns `None` if the body is damaged or its kind is unknown.
pub(in crate::api) fn read(body: &[u8]) -> Option<Value> {
    let envelope = fields(body.strip_prefix(MAGIC)?)?;
    let bytes = |fields: &[(u32, Wire<'_>)], number: u32| {
        fields.iter().find(|(found, _)| *found == number).and_then(|(_, wire)| wire.bytes()).map(<[u8]>::to_vec)
    };
    let type_meta = bytes(&envelope, 1)?;
    let type_meta = fields(&type_meta)?;
    let api_version = String::from_utf8(bytes(&type_meta, 1)?).ok()?;
    let kind = String::from_utf8(bytes(&type_meta, 2)?).ok()?;
    let raw = bytes(&envelope, 2).unwrap_or_default();
    let mut object = message(&message_name(&api_version, &kind)?, &raw, crate::api::bounds::LEVELS)?;
    object.insert("apiVersion".into(), json!(api_version));
    object.insert("kind".into(), json!(kind));
    Some(Value::Object(object))
}

fn message_name(api_version: &str, kind: &str) -> Option<String> {
    let package = match api_version.split_once('/') {
        None => format!("core.{api_version}"),
        Some((group, version)) => format!("{}.{version}", group.split('.').next().unwrap_or_default()),
    };
    let candidates = [format!("k8s.io.api.{package}.{kind}"), format!("k8s.io.apimachinery.pkg.apis.meta.v1.{kind}")];
    candidates.into_iter().find(|name| MESSAGES.contains_key(name))
}

/// A value in the wire format.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

/// Splits a message into its fields.
fn fields(mut rest: &[u8]) -> Option<Vec<(u32, Wire<'_>)>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let number = u32::try_from(tag >> 3).ok()?;
        let mut take = |length: usize| {
            let (taken, left) = rest.split_at_checked(length)?;
            rest = left;
            Some(taken)
        };
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut rest)?),
            1 => Wire::Number(u64::from_le_bytes(take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                let (taken, left) = rest.split_at_checked(length)?;
                rest = left;
                Wire::Bytes(taken)
            }
            5 => Wire::Number(u64::from(u32::from_le_bytes(take(4)?.try_into().ok()?))),
            _ => return None,
        };
        found.push((number, value));
    }
    Some(found)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads a message with at most `levels` nested messages. The limit is necessary, because messages such as JSON schemas
/// can contain messages of their own type.
fn message(name: &str, raw: &[u8], levels: usize) -> Option<Map<String, Value>> {
    let levels = levels.checked_sub(1)?;
    let known = MESSAGES.get(name)?;
    let mut object = Map::new();
    for (number, wire) in fields(raw)? {
        let Some((field, kind, label)) = known.get(&number) else { continue };
        match label.as_str() {
            "map" => {
                let entry = fields(wire.bytes()?)?;
                let part = |number: u32| entry.iter().find(|(found, _)| *found == number).map(|(_, wire)| wire);
                let key = String::from_utf8(part(1)?.bytes()?.to_vec()).ok()?;
                let content = part(2).map_or_else(|| Some(Value::Null), |wire| value(kind, wire, levels))?;
                object.entry(field).or_insert_with(|| json!({}))[key] = content;
            }
            "repeated" => {
                let item = value(kind, &wire, levels)?;
                if let Value::Array(items) = object.entry(field).or_insert_with(|| json!([])) {
                    items.push(item);
                }
            }
            _ if INLINE.contains(&field.as_str()) => object.append(&mut message(kind, wire.bytes()?, levels)?),
            _ => drop(object.insert(field.clone(), value(kind, &wire, levels)?)),
        }
    }
    Some(object)
}

fn value(kind: &str, wire: &Wire<'_>, levels: usize) -> Option<Value> {
    let signed = |number: u64| number.cast_signed();
    Some(match (kind, wire) {
        ("bool", Wire::Number(number)) => json!(*number != 0),
        (_, Wire::Number(number)) => json!(signed(*number)),
        ("string", Wire::Bytes(bytes)) => json!(std::str::from_utf8(bytes).ok()?),
        ("bytes", Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (_, Wire::Bytes(bytes)) => {
            let short = kind.rsplit('.').next().unwrap_or_default();
            if short == "FieldsV1" {
                let raw = fields(bytes)?.into_iter().find_map(|(_, wire)| wire.bytes())?;
                return serde_json::from_slice(raw).ok();
            }
            let object = message(kind, bytes, levels)?;
            match short {
                "Time" | "MicroTime" => time(&object, short == "MicroTime"),
                "Quantity" => object.get("string").cloned().unwrap_or_else(|| json!("0")),
                "IntOrString" if object.get("type") == Some(&json!(1)) => object.get("strVal").cloned()?,
                "IntOrString" => object.get("intVal").cloned().unwrap_or_else(|| json!(0)),
                _ => Value::Object(object),
            }
        }
    })
}

fn time(object: &Map<String, Value>, micro: bool) -> Value {
    let seconds = object.get("seconds").and_then(Value::as_i64);
    let nanos = object.get("nanos").and_then(Value::as_i64).and_then(|nanos| i32::try_from(nanos).ok());
    match seconds.and_then(|seconds| Timestamp::new(seconds, nanos.unwrap_or_default()).ok()) {
        Some(time) if micro => json!(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        Some(time) => json!(crate::clock::text(time)),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Namespace `t`, in the bytes that kubectl sends.
    const NAMESPACE: &[u8] = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x07\n\x05\n\x01t\x42\0\x1a\0\x22\0";

    #[test]
    fn a_namespace_is_read() {
        let object = read(NAMESPACE).unwrap();
        assert_eq!(object["kind"], "Namespace");
        assert_eq!(object["metadata"], json!({"name": "t", "creationTimestamp": null}));
    }

    #[test]
    fn damaged_bodies_are_refused() {
        assert_eq!(read(b"k8s\0\n\xff"), None);
        assert_eq!(read(b"{}"), None);
    }
}
